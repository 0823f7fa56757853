/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "walk.h"
#include "cover_int.h"

#include <ucs/regcache/regcache_int.h>
#include <ucs/sys/math.h>

/*
 * What others have been given keys of. A use that gives others access has them reach
 * its buffer, by the program's own doing; with registrations that are left pinned they
 * could for as long as it is mapped. So where the user does not allow more, a walk is
 * registered together as far as each of its bytes was asked for with that access
 * before, which it was when the walk came by for the first time. UCX 1.13 gives all
 * messages remote access, later ones all but receives that read from the sender.
 */

/* @return What was given with just this access; NULL: nothing */
static ucs_regcache_given_t *
ucs_regcache_given_find(ucs_regcache_h cache, unsigned access)
{
    unsigned i;

    for (i = 0; i < UCS_REGCACHE_GIVEN; ++i) {
        if (cache->memory.given[i].access == access) {
            return &cache->memory.given[i];
        }
    }
    return NULL;
}

void ucs_regcache_given_note(ucs_regcache_h cache,
                             const ucs_regcache_request_t *request)
{
    unsigned access = request->access & cache->config.cover.remote_mask;
    ucs_regcache_given_t *given;

    if (access == 0) {
        return;
    }
    given = ucs_regcache_given_find(cache, access);
    if (given == NULL) {
        given = ucs_regcache_given_find(cache, 0); /* none yet */
    }
    if (given != NULL) {
        given->access = access;
        ucs_extents_add(&given->bytes, request->start, request->end);
    }
}

/* @return Bytes beyond the step at an address, where the walk goes, that were given
 *         with that step; 0 also if it was not */
static size_t ucs_regcache_given_room(const ucs_regcache_given_t *given,
                                      const ucs_predict_walk_t *walk, uintptr_t at)
{
    const ucs_itree_node_t *part = ucs_itree_first(&given->bytes.tree, at, at + 1);

    if ((part == NULL) || (part->start > at) ||
        (part->end < at + walk->length)) {
        return 0;
    }
    return (walk->stride > 0) ? part->end - at - walk->length : at - part->start;
}

size_t ucs_regcache_given_bytes(ucs_regcache_h cache,
                                const ucs_predict_walk_t *walk, unsigned access,
                                uintptr_t at)
{
    unsigned wanted = access & cache->config.cover.remote_mask;
    size_t bytes    = 0;
    const ucs_regcache_given_t *given;
    size_t room;
    unsigned i;

    for (i = 0; i < UCS_REGCACHE_GIVEN; ++i) {
        given = &cache->memory.given[i];
        room  = (wanted & ~given->access) ?
                        0 :
                        ucs_regcache_given_room(given, walk, at);
        bytes = ucs_max(bytes, room);
    }
    return bytes;
}

/* Windows touch each other, for other buffers may lie between the steps: one ends where
 * the step behind it begins, or before, but not within a step */
static size_t
ucs_regcache_given_whole(const ucs_predict_walk_t *walk, size_t bytes)
{
    size_t stride = ucs_predict_walk_stride(walk);
    size_t gap    = (stride > walk->length) ? stride - walk->length : 0;
    size_t part   = bytes % stride;

    return (part > gap) ? bytes - part + gap : bytes;
}

void ucs_regcache_given_enlarge(ucs_regcache_h cache,
                                ucs_regcache_request_t *whole, uintptr_t at,
                                size_t bytes)
{
    const ucs_predict_walk_t *walk = whole->walk;
    uintptr_t end                  = at + walk->length;
    size_t most                    = ucs_min(bytes, cache->tuning.cover_max);

    if (walk->stride > 0) {
        ucs_regcache_cover_behind_by(cache, whole,
                                     ucs_regcache_page_up(cache, most));
        bytes       = ucs_regcache_given_whole(walk, ucs_min(most, whole->last - end));
        whole->end  = end + bytes;
        whole->last = ucs_regcache_page_up(cache, whole->end);
    } else {
        ucs_regcache_cover_before_by(cache, whole,
                                     ucs_regcache_page_up(cache, most));
        bytes        = ucs_regcache_given_whole(walk, ucs_min(most, at - whole->first));
        whole->start = at - bytes;
        whole->first = ucs_regcache_page_down(cache, whole->start);
    }
}

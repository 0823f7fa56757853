/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "cover_int.h"

#include <ucs/regcache/regcache_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_memory.h>

/*
 * Neighbours share one registration. A program that maps the pieces of a range
 * one by one registers the next piece together with what lies ahead of it: as
 * much as its neighbours have registered so far, so that each registration is
 * as long as all before, and n pieces cost as many as n has binary digits. What
 * was handed out before stays as it is: handles live until their last user.
 *
 * One that maps the pieces in any order has no neighbours to show what it is
 * about. What it has registered in the same mapping shows it: each piece is
 * registered with as much around it as that, so that the registrations double
 * what is covered until what is left are holes, each of which is filled by one.
 * They are of memory alone that is there, and of so much that a share of it has
 * been asked for. Where one ends at another a piece of the program may lie
 * across, and would need a registration of its own: where pieces differ, each
 * cover reaches into the next by as much as the longest piece so far, so that
 * one of the two has it whole.
 *
 * Pages that nobody asked for may be unmapped and mapped anew without a use
 * being there. The event comes before that, and dooms the cover; but a cover
 * that is begun between the event and the unmapping itself would outlive it.
 * So pages that an event has touched are in no cover until they are mapped anew
 * or asked for, when whatever became of them is over (memory.untouched has all
 * others).
 */

ucs_status_t ucs_regcache_cover_init(ucs_regcache_h cache,
                                     const ucs_regcache_params_t *params)
{
    ucs_extents_node_t *node;

    cache->config.cover = params->cover;
    if (params->cover.kind == UCS_REGCACHE_COVER_OFF) {
        return UCS_OK;
    }

    /* Events may come before anything else hands over nodes */
    while (cache->memory.untouched.spares < UCS_EXTENTS_SPARES) {
        node = ucs_own_alloc(sizeof(*node));
        if (node == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        ucs_extents_give(&cache->memory.untouched, node);
    }
    ucs_extents_add(&cache->memory.untouched, cache->config.page_mask + 1,
                    (UINTPTR_MAX >> 16) & ~cache->config.page_mask);
    return UCS_OK;
}

int ucs_regcache_cover_is_own(ucs_regcache_h cache, unsigned flags)
{
    const ucs_regcache_cover_t *cover = &cache->config.cover;

    return (cover->own_set != 0) &&
           ((flags & (cover->own_set | cover->own_clear)) == cover->own_set);
}

/* A use that others may be given a key of gets what it asked for and no more,
 * unless the user says otherwise. With a ceiling nothing is pinned that nobody
 * asked for. */
int ucs_regcache_may_cover(ucs_regcache_h cache,
                           const ucs_regcache_request_t *request)
{
    const ucs_regcache_cover_t *cover = &cache->config.cover;

    return (cover->kind != UCS_REGCACHE_COVER_OFF) &&
           ((cover->kind == UCS_REGCACHE_COVER_REMOTE) ||
            !(request->access & cover->remote_mask)) &&
           (cache->config.max_pinned == SIZE_MAX) &&
           (cache->memory.cover_failures < UCS_REGCACHE_COVER_FAILURES);
}

static int ucs_regcache_cover_is_neighbour(const ucs_regcache_region_t *region,
                                           const ucs_regcache_request_t *whole)
{
    ucs_regcache_state_t state = ucs_regcache_word_state(
            ucs_load_relaxed(&region->word));

    return ((state == UCS_REGCACHE_STATE_LIVE) ||
            (state == UCS_REGCACHE_STATE_REGISTERING)) &&
           (region->size_class == UCS_REGCACHE_CLASS_MANAGED) &&
           (ucs_load_relaxed(&region->idle) != UCS_REGCACHE_IDLE_DROP) &&
           (ucs_load_relaxed(&region->access) == whole->access);
}

/* Where the row of registrations begins, each of which touches the next, that
 * ends at the request */
static uintptr_t
ucs_regcache_cover_before(ucs_regcache_h cache,
                          const ucs_regcache_request_t *whole)
{
    uintptr_t first = whole->first;
    unsigned left   = UCS_REGCACHE_COVER_NEIGHBOURS;
    ucs_regcache_region_t *region;

    while ((left-- > 0) && (first > 0)) {
        region = ucs_regcache_index_first(&cache->index, first - 1, first);
        if ((region == NULL) || (region->first >= first) ||
            !ucs_regcache_cover_is_neighbour(region, whole)) {
            break;
        }
        first = region->first;
    }
    return first;
}

/* Likewise where it ends that begins behind the request */
static uintptr_t
ucs_regcache_cover_behind(ucs_regcache_h cache,
                          const ucs_regcache_request_t *whole)
{
    size_t page    = cache->config.page_mask + 1;
    uintptr_t last = whole->last;
    unsigned left  = UCS_REGCACHE_COVER_NEIGHBOURS;
    ucs_regcache_region_t *region;

    while ((left-- > 0) && (last < UINTPTR_MAX - page)) {
        region = ucs_regcache_index_first(&cache->index, last, last + page);
        if ((region == NULL) || (region->last <= last) ||
            !ucs_regcache_cover_is_neighbour(region, whole)) {
            break;
        }
        last = region->last;
    }
    return last;
}

/* Of a row that was registered around a few pieces most may not be asked for,
 * and what is registered ahead for it is not brought into memory either.
 * @return Nonzero if that was tried in vain too often. */
static int ucs_regcache_cover_is_vain(const ucs_regcache_field_t *field,
                                      size_t row, ucs_regcache_request_t *whole)
{
    /* Uses that a hint led to a cover are not among those that asked */
    whole->is_scattered = (field != NULL) && (row - row / 4 > field->asked);
    return whole->is_scattered &&
           (field->refused >= UCS_REGCACHE_COVER_FAILURES);
}

/* A row that holds half of what was registered in the mapping tells more than
 * the rest: pieces come in order, be it with pages that they share */
static void ucs_regcache_cover_enlarge(ucs_regcache_h cache,
                                       const ucs_regcache_field_t *field,
                                       ucs_regcache_request_t *whole)
{
    size_t scatter = ucs_regcache_cover_scatter(cache, field);
    size_t before  = whole->first - ucs_regcache_cover_before(cache, whole);
    size_t behind  = ucs_regcache_cover_behind(cache, whole) - whole->last;
    size_t room    = cache->tuning.cover_max - (whole->last - whole->first);
    size_t row     = ucs_max(before, behind);

    if (scatter / 2 > row) {
        whole->is_scattered = 1;
        ucs_regcache_cover_around_by(cache, whole, ucs_min(scatter, room));
    } else if (ucs_regcache_cover_is_vain(field, row, whole)) {
        return;
    } else if (before >= behind) {
        ucs_regcache_cover_behind_by(cache, whole, ucs_min(before, room));
    } else {
        ucs_regcache_cover_before_by(cache, whole, ucs_min(behind, room));
    }
}

int ucs_regcache_cover(ucs_regcache_h cache, ucs_regcache_request_t *whole)
{
    const ucs_regcache_request_t asked = *whole;
    ucs_regcache_field_t *field        = NULL;
    int is_own    = ucs_regcache_cover_is_own(cache, whole->flags);
    size_t length = whole->last - whole->first;

    if ((whole->walk == NULL) &&
        (!ucs_regcache_may_cover(cache, whole) ||
         (whole->size_class != UCS_REGCACHE_CLASS_MANAGED))) {
        return 0;
    }
    if (is_own) {
        field = ucs_regcache_cover_field(cache, whole->first);
    }
    if (whole->walk != NULL) {
        ucs_regcache_walk_enlarge(cache, whole, whole->walk->at);
    } else if ((length < cache->tuning.cover_max) &&
               !(cache->walking.is_on && !is_own)) {
        ucs_regcache_cover_enlarge(cache, field, whole);
    }
    if (field != NULL) {
        field->covered += whole->last - whole->first;
        if (field->is_uneven) {
            ucs_regcache_cover_overlap(cache, whole, &asked, field->longest);
        }
    }
    whole->ahead = (whole->last - whole->first - length) /
                   (cache->config.page_mask + 1);
    if ((whole->walk != NULL) && (whole->ahead > 0)) {
        whole->is_window  = 1;
        whole->size_class = UCS_REGCACHE_CLASS_MANAGED;
    }
    return whole->ahead > 0;
}

void ucs_regcache_cover_refused(ucs_regcache_h cache,
                                const ucs_regcache_region_t *region)
{
    ucs_regcache_field_t *field = ucs_regcache_cover_field(cache,
                                                           region->first);

    if (ucs_load_relaxed(&region->is_window)) {
        ucs_regcache_walk_refused(cache, region->first, region->last);
    }
    if ((field != NULL) && region->is_scattered) {
        ++field->refused;
        field->covered -= ucs_min(field->covered,
                                  ucs_regcache_pinned_length(region));
    }
}

unsigned ucs_regcache_cover_question(ucs_regcache_h cache,
                                     const ucs_regcache_region_t *region,
                                     unsigned flags)
{
    return (region->is_cover &&
            (region->is_scattered || !ucs_regcache_cover_is_own(cache, flags))) ?
                   UCS_REGCACHE_INSPECT_SPECULATE :
                   0;
}

void ucs_regcache_cover_asked(ucs_regcache_h cache,
                              const ucs_regcache_request_t *request)
{
    if (cache->config.cover.kind == UCS_REGCACHE_COVER_OFF) {
        return;
    }
    ucs_extents_add(&cache->memory.untouched, request->first, request->last);
    if (ucs_regcache_cover_is_own(cache, request->flags) &&
        !ucs_extents_covers(&cache->memory.seen, request->first,
                            request->last)) {
        ucs_regcache_cover_count(cache, request);
    }
}

/* While events are missed, one may be under way of which nothing was told */
void ucs_regcache_cover_mapped(ucs_regcache_h cache, uintptr_t start,
                               uintptr_t end)
{
    if ((cache->config.cover.kind != UCS_REGCACHE_COVER_OFF) &&
        (ucs_load_relaxed(&cache->distrust) == 0) && (start > 0) &&
        (start < end)) {
        ucs_extents_add(&cache->memory.untouched, start, end);
    }
}

void ucs_regcache_cover_serves(ucs_regcache_h cache,
                               const ucs_regcache_request_t *request)
{
    size_t pages = (request->last - request->first) /
                   (cache->config.page_mask + 1);

    if ((request->size_class != UCS_REGCACHE_CLASS_MANAGED) ||
        ucs_extents_covers(&cache->memory.seen, request->first,
                           request->last)) {
        return;
    }
    if (ucs_regcache_cover_is_own(cache, request->flags)) {
        ucs_regcache_cover_count(cache, request);
    }
    ucs_regcache_account(cache, request->now);
    ucs_extents_add(&cache->memory.seen, request->first, request->last);
    ucs_regcache_account(cache, request->now);
    ++cache->stats.spared;
    cache->account.spared_pages += pages;
}

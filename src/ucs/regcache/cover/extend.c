/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "cover_int.h"

#include <ucs/regcache/regcache_int.h>
#include <ucs/sys/math.h>

/* Cut [*start_p, *end_p) to what of a set is in one piece with @a address, a
 * page */
static void ucs_regcache_cover_cut(const ucs_extents_t *set, uintptr_t address,
                                   uintptr_t *start_p, uintptr_t *end_p)
{
    const ucs_itree_node_t *part = ucs_itree_first(&set->tree, address,
                                                   address + 1);

    if (part == NULL) {
        *start_p = address;
        *end_p   = address;
        return;
    }
    *start_p = ucs_max(*start_p, part->start);
    *end_p   = ucs_min(*end_p, part->end);
}

/* The first region that overlaps [start, end) and pins it, or may do so without
 * being asked again. One that is dormant is forgotten if the cover takes it
 * in. */
static ucs_regcache_region_t *
ucs_regcache_cover_first(ucs_regcache_h cache, uintptr_t start, uintptr_t end)
{
    unsigned left = UCS_REGCACHE_COVER_NEIGHBOURS;
    ucs_regcache_region_t *region;

    region = ucs_regcache_index_first(&cache->index, start, end);
    while ((region != NULL) && (left-- > 0) &&
           (ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
            UCS_REGCACHE_STATE_DORMANT)) {
        region = ucs_regcache_index_next(&cache->index, region, start, end);
    }
    return region;
}

void ucs_regcache_cover_behind_by(ucs_regcache_h cache,
                                  ucs_regcache_request_t *whole,
                                  size_t length)
{
    uintptr_t last  = whole->last - 1 - cache->config.page_mask;
    uintptr_t end   = (length > UINTPTR_MAX - whole->last) ?
                              whole->last :
                              whole->last + length;
    uintptr_t start = whole->first;
    ucs_regcache_region_t *next;

    if (cache->env.inspect != NULL) {
        ucs_regcache_cover_cut(&cache->memory.kept, last, &start, &end);
    }
    ucs_regcache_cover_cut(&cache->memory.untouched, last, &start, &end);
    if (end <= whole->last) {
        return;
    }
    next = ucs_regcache_cover_first(cache, whole->last, end);
    if (next != NULL) {
        end = ucs_min(end, next->first);
    }
    if (end > whole->last) {
        whole->last = end;
        whole->end  = end;
    }
}

/* The regions that lie before are found from the lowest: what is enlarged ends
 * where the last of them does. */
void ucs_regcache_cover_before_by(ucs_regcache_h cache,
                                  ucs_regcache_request_t *whole,
                                  size_t length)
{
    uintptr_t end   = whole->last;
    uintptr_t start = (length > whole->first) ? whole->first :
                                                whole->first - length;
    unsigned left   = UCS_REGCACHE_COVER_NEIGHBOURS;
    ucs_regcache_region_t *region;

    if (cache->env.inspect != NULL) {
        ucs_regcache_cover_cut(&cache->memory.kept, whole->first, &start, &end);
    }
    ucs_regcache_cover_cut(&cache->memory.untouched, whole->first, &start, &end);
    while ((start < whole->first) &&
           ((region = ucs_regcache_cover_first(cache, start, whole->first)) !=
            NULL)) {
        start = (left-- > 0) ? region->last : whole->first;
    }
    if (start < whole->first) {
        whole->first = start;
        whole->start = start;
    }
}

void ucs_regcache_cover_around_by(ucs_regcache_h cache,
                                  ucs_regcache_request_t *whole,
                                  size_t length)
{
    size_t piece = whole->last - whole->first;
    size_t end   = piece + length / piece * piece;

    ucs_regcache_cover_before_by(cache, whole, length / 2 / piece * piece);
    ucs_regcache_cover_behind_by(cache, whole,
                                 end - (whole->last - whole->first));
    ucs_regcache_cover_before_by(cache, whole,
                                 end - (whole->last - whole->first));
}

/* What is pinned at an end: nothing is brought into memory beyond it */
static size_t
ucs_regcache_cover_pinned(ucs_regcache_h cache, uintptr_t from, int is_before)
{
    const ucs_regcache_region_t *region = ucs_regcache_index_first(
            &cache->index, from - is_before, from - is_before + 1);

    if ((region == NULL) ||
        (ucs_regcache_word_state(ucs_load_relaxed(&region->word)) !=
         UCS_REGCACHE_STATE_LIVE)) {
        return 0;
    }
    return is_before ? from - region->first : region->last - from;
}

void ucs_regcache_cover_overlap(ucs_regcache_h cache,
                                ucs_regcache_request_t *whole,
                                const ucs_regcache_request_t *asked,
                                size_t longest)
{
    size_t max      = cache->tuning.cover_max;
    size_t length   = whole->last - whole->first;
    size_t room     = max - ucs_min(length, max);
    size_t most     = ucs_min(longest, ucs_min(length / 4, room / 2)) &
                      ~cache->config.page_mask;
    uintptr_t start = whole->first;
    uintptr_t end   = whole->last;

    if (whole->first < asked->first) {
        start -= ucs_min(most, ucs_regcache_cover_pinned(cache, start, 1));
    }
    if (whole->last > asked->last) {
        end += ucs_min(most, ucs_regcache_cover_pinned(cache, end, 0));
    }
    if (cache->env.inspect != NULL) {
        ucs_regcache_cover_cut(&cache->memory.kept, whole->first, &start, &end);
    }
    ucs_regcache_cover_cut(&cache->memory.untouched, whole->first, &start, &end);
    whole->first = ucs_min(whole->first, start);
    whole->last  = ucs_max(whole->last, end);
    whole->start = ucs_min(whole->start, whole->first);
    whole->end   = ucs_max(whole->end, whole->last);
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

/*
 * One registration a buffer. Requests of several lengths at one address, and
 * requests that overlap by much, become one region, as in UCX's own cache;
 * otherwise the pages that they share would be pinned once for each of them.
 * That these pages are there is known: each range was registered, and no event
 * has struck its region since. What an inspection has not yet allowed to
 * outlive its use is left alone.
 *
 * A region that is kept for ever takes in all that shares a page with it. Where
 * there is a helper each region comes and goes, and what was merged comes and
 * goes together: there ranges must have half of the shorter one in common.
 */

int ucs_regcache_may_coalesce(ucs_regcache_h cache,
                              const ucs_regcache_request_t *request)
{
    return (cache->plan.ops->idle != UCS_REGCACHE_IDLE_DROP) &&
           (cache->index.stretch > 1) &&
           ((request->size_class == UCS_REGCACHE_CLASS_MANAGED) ||
            cache->walking.is_on) &&
           !ucs_load_relaxed(&cache->distrust);
}

typedef struct ucs_regcache_coalescing {
    ucs_regcache_request_t whole;
    size_t                 max;      /* bytes */
    int                    is_tight; /* what shares a page is taken in */
} ucs_regcache_coalescing_t;

/* Of two ranges of which one has what nobody asked for, would others be given access
 * to that which it lacks? */
static int ucs_regcache_coalesce_gives(ucs_regcache_h cache,
                                       const ucs_regcache_request_t *whole,
                                       const ucs_regcache_region_t *region)
{
    const ucs_regcache_cover_t *cover = &cache->config.cover;
    unsigned access                   = ucs_load_relaxed(&region->access);

    return (cover->kind != UCS_REGCACHE_COVER_REMOTE) &&
           (((region->is_cover ? whole->access & ~access : 0) |
             (whole->is_cover ? access & ~whole->access : 0)) &
            cover->remote_mask);
}

static int ucs_regcache_coalesce_is_part(ucs_regcache_h cache,
                                         const ucs_regcache_coalescing_t *merge,
                                         const ucs_regcache_region_t *region)
{
    uintptr_t start = ucs_max(merge->whole.start, region->node.start);
    uintptr_t end   = ucs_min(merge->whole.end, region->node.end);
    size_t length   = region->node.end - region->node.start;
    size_t common   = (end > start) ? end - start : 0;
    size_t whole    = ucs_max(merge->whole.end, region->node.end) -
                      ucs_min(merge->whole.start, region->node.start);
    uint64_t word   = ucs_load_relaxed(&region->word);

    /* What is in use would be pinned twice until its end */
    if ((ucs_regcache_word_refs(word) > 0) ||
        ((ucs_regcache_word_state(word) != UCS_REGCACHE_STATE_LIVE) &&
         (ucs_regcache_word_state(word) != UCS_REGCACHE_STATE_DORMANT))) {
        return 0;
    }
    if ((region->size_class != UCS_REGCACHE_CLASS_MANAGED) ||
        ucs_load_relaxed(&region->is_window) ||
        (ucs_load_relaxed(&region->idle) == UCS_REGCACHE_IDLE_DROP) ||
        (whole > merge->max) ||
        ucs_regcache_coalesce_gives(cache, &merge->whole, region)) {
        return 0;
    }
    length = ucs_min(length, merge->whole.end - merge->whole.start);
    return merge->is_tight || (2 * common >= length);
}

/* Among what lies across one end, or touches the same page there */
static ucs_regcache_region_t *
ucs_regcache_coalesce_find_at(ucs_regcache_h cache,
                              const ucs_regcache_coalescing_t *merge,
                              uintptr_t start, uintptr_t end)
{
    ucs_regcache_region_t *region;

    for (region = ucs_regcache_index_first(&cache->index, start, end);
         region != NULL;
         region = ucs_regcache_index_next(&cache->index, region, start, end)) {
        if (((region->node.start < merge->whole.start) ||
             (region->node.end > merge->whole.end)) &&
            ucs_regcache_coalesce_is_part(cache, merge, region)) {
            return region;
        }
    }
    return NULL;
}

/* Whatever lies between the two ends adds nothing, and may be all that there
 * is */
static ucs_regcache_region_t *
ucs_regcache_coalesce_find(ucs_regcache_h cache,
                           const ucs_regcache_coalescing_t *merge)
{
    const ucs_regcache_request_t *whole = &merge->whole;
    ucs_regcache_region_t *region;

    region = ucs_regcache_coalesce_find_at(cache, merge, whole->first,
                                           whole->start);
    if (region != NULL) {
        return region;
    }
    return ucs_regcache_coalesce_find_at(cache, merge, whole->end, whole->last);
}

static void ucs_regcache_coalesce_add(ucs_regcache_request_t *whole,
                                      const ucs_regcache_region_t *part)
{
    whole->start   = ucs_min(whole->start, part->node.start);
    whole->end     = ucs_max(whole->end, part->node.end);
    whole->first   = ucs_min(whole->first, part->first);
    whole->last    = ucs_max(whole->last, part->last);
    whole->access |= ucs_load_relaxed(&part->access);
    whole->is_cover |= part->is_cover;
}

ucs_regcache_region_t *ucs_regcache_coalesce(ucs_regcache_h cache,
                                             ucs_regcache_region_t *region,
                                             ucs_regcache_request_t *request)
{
    int is_for_ever = !ucs_regcache_plan_is_used(cache) &&
                      (cache->config.max_pinned == SIZE_MAX);
    size_t length   = request->last - request->first;
    ucs_regcache_coalescing_t merge = {
            .max      = is_for_ever ? SIZE_MAX : cache->index.stretch * length,
            .is_tight = is_for_ever};
    ucs_regcache_region_t *part;

    /* They are pinned anyway, and a buffer that begins a few bytes further up
     * the next time is found */
    request->start = request->first;
    request->end   = request->last;
    merge.whole    = *request;
    while ((part = ucs_regcache_coalesce_find(cache, &merge)) != NULL) {
        ucs_regcache_coalesce_add(&merge.whole, part);
    }
    if (((merge.whole.start == request->start) &&
         (merge.whole.end == request->end)) ||
        ((cache->env.inspect != NULL) &&
         !ucs_extents_covers(&cache->memory.kept, merge.whole.first,
                             merge.whole.last))) {
        return region;
    }

    *request = merge.whole;
    region   = ucs_regcache_index_find(&cache->index, request->start,
                                       request->end, request->access);
    /* One that is registered, or being so, covers the request only if it was
     * not found before, for it has as many users as can be counted */
    return ((region != NULL) &&
            (ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
             UCS_REGCACHE_STATE_DORMANT)) ?
                   region :
                   NULL;
}

/* What is planned for by itself, and would not be served by the other when both
 * are dormant, comes again: several lengths are used at one address in turn. What a
 * window has comes with that. */
static int ucs_regcache_coalesce_stays(ucs_regcache_h cache,
                                       const ucs_regcache_region_t *region,
                                       const ucs_regcache_region_t *by)
{
    return cache->plan.ops->keeps_dormant &&
           !ucs_load_relaxed(&region->is_window) &&
           !ucs_load_relaxed(&by->is_window) &&
           ucs_load_relaxed(&region->planned) &&
           (region->node.end - region->node.start <
            (by->node.end - by->node.start) / cache->index.stretch);
}

/* Under the lock: what is in use goes with its last user. @return Nonzero if
 * there is none: @a region is taken. */
static int ucs_regcache_coalesce_end(ucs_regcache_h cache,
                                     ucs_regcache_region_t *region, int stays)
{
    ucs_store_relaxed(&region->planned, stays);
    ucs_store_relaxed(&region->idle, stays ? UCS_REGCACHE_IDLE_BOTH :
                                             UCS_REGCACHE_IDLE_DROP);
    /* Either the last user's exchange of the word comes after this one, and it
     * finds what to do, or before, and there is no user [R-PUT] */
    (void)ucs_add_acq_rel(&region->word, 0);
    return ucs_regcache_region_take_idle(cache, region);
}

/* Under the lock: a region that another is to take the place of. One that is
 * dormant, and does not come again, is forgotten here. @return Nonzero if it is
 * taken. */
static int ucs_regcache_coalesce_take(ucs_regcache_h cache,
                                      ucs_regcache_region_t *region,
                                      const ucs_regcache_region_t *by)
{
    int stays = ucs_regcache_coalesce_stays(cache, region, by);

    switch (ucs_regcache_word_state(ucs_load_relaxed(&region->word))) {
    case UCS_REGCACHE_STATE_LIVE:
        return ucs_regcache_coalesce_end(cache, region, stays);
    case UCS_REGCACHE_STATE_DORMANT:
        if (!stays) {
            ucs_regcache_region_forget(cache, region);
        }
        return 0;
    default:
        return 0;
    }
}

/* Under the lock: the next region that is superfluous, once it is taken,
 * among those that begin at @a from_p or behind. @return NULL when a lot has
 * been looked at, with @a from_p where to go on, or all, with @a from_p at the
 * end. A lot ends between two addresses: nothing else is sure to be there when
 * the lock is taken again. */
static ucs_regcache_region_t *ucs_regcache_coalesce_next(
        ucs_regcache_h cache, ucs_regcache_region_t *by, uintptr_t *from_p)
{
    uintptr_t end   = ucs_load_relaxed(&by->end);
    unsigned access = ucs_load_relaxed(&by->access);
    uintptr_t from  = *from_p;
    unsigned looked = 0;
    ucs_regcache_region_t *region, *next;

    for (region = ucs_regcache_index_first(&cache->index, from, end);
         region != NULL; region = next) {
        if ((looked++ >= cache->tuning.lot) && (region->node.start > *from_p)) {
            *from_p = region->node.start;
            return NULL;
        }
        next    = ucs_regcache_index_next(&cache->index, region, from, end);
        *from_p = ucs_max(*from_p, region->node.start);
        if ((region != by) && (region->node.start >= from) &&
            (region->node.end <= end) &&
            !(ucs_load_relaxed(&region->access) & ~access) &&
            ucs_regcache_coalesce_take(cache, region, by)) {
            return region;
        }
    }
    *from_p = end;
    return NULL;
}

void ucs_regcache_supersede(ucs_regcache_h cache, ucs_regcache_region_t *by)
{
    uintptr_t from = ucs_load_relaxed(&by->start);
    uintptr_t end  = ucs_load_relaxed(&by->end);
    ucs_regcache_region_t *region;

    for (;;) {
        region = ucs_regcache_coalesce_next(cache, by, &from);
        if ((region == NULL) && (from >= end)) {
            return;
        }
        ucs_regcache_unlock(cache);
        if (region != NULL) {
            ucs_regcache_region_deregister(cache, region, NULL, NULL);
        }
        ucs_regcache_lock(cache);
    }
}

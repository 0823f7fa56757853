/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

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
 * goes together: there ranges must have much in common.
 */

/* Ranges have much in common: this share of the shorter one */
#define UCT_HELPER_MERGE_SHARE 2

int uct_helper_engine_may_merge(uct_helper_engine_h engine, size_t length)
{
    return (engine->policy != UCT_HELPER_POLICY_ON_DEMAND) &&
           (engine->index.stretch > 1) &&
           (uct_helper_engine_class(engine, length) ==
            UCT_HELPER_CLASS_MANAGED) &&
           !ucs_load_relaxed(&engine->distrust);
}

typedef struct uct_helper_merge {
    uintptr_t start;
    uintptr_t end;
    size_t    max;      /* bytes */
    int       is_tight; /* what shares a page is taken in */
} uct_helper_merge_t;

static int uct_helper_merge_is_part(uct_helper_engine_h engine,
                                    const uct_helper_merge_t *merge,
                                    uct_helper_region_t *region)
{
    uintptr_t start = ucs_max(merge->start, region->node.start);
    uintptr_t end   = ucs_min(merge->end, region->node.end);
    size_t length   = region->node.end - region->node.start;
    size_t common   = (end > start) ? end - start : 0;
    size_t whole    = ucs_max(merge->end, region->node.end) -
                      ucs_min(merge->start, region->node.start);

    uint64_t word   = ucs_load_relaxed(&region->word);

    /* What is in use would be pinned twice until its end */
    if ((uct_helper_word_refs(word) > 0) ||
        ((uct_helper_word_state(word) != UCT_HELPER_STATE_LIVE) &&
         (uct_helper_word_state(word) != UCT_HELPER_STATE_DORMANT))) {
        return 0;
    }
    if ((uct_helper_engine_class(engine, length) != UCT_HELPER_CLASS_MANAGED) ||
        (ucs_load_relaxed(&region->idle) == UCT_HELPER_IDLE_DROP) ||
        (whole > merge->max)) {
        return 0;
    }
    length = ucs_min(length, merge->end - merge->start);
    return merge->is_tight || (common * UCT_HELPER_MERGE_SHARE >= length);
}

/* Among what lies across one end, or touches the same page there */
static uct_helper_region_t *
uct_helper_merge_find_at(uct_helper_engine_h engine,
                         const uct_helper_merge_t *merge, uintptr_t start,
                         uintptr_t end)
{
    uct_helper_region_t *region;

    for (region = uct_helper_index_first(&engine->index, start, end);
         region != NULL;
         region = uct_helper_index_next(&engine->index, region, start, end)) {
        if (((region->node.start < merge->start) ||
             (region->node.end > merge->end)) &&
            uct_helper_merge_is_part(engine, merge, region)) {
            return region;
        }
    }
    return NULL;
}

/* Whatever lies between the two ends adds nothing, and may be all that there
 * is */
static uct_helper_region_t *
uct_helper_merge_find(uct_helper_engine_h engine,
                      const uct_helper_merge_t *merge)
{
    uct_helper_region_t *region;

    region = uct_helper_merge_find_at(
            engine, merge, uct_helper_engine_page_down(engine, merge->start),
            merge->start);
    if (region != NULL) {
        return region;
    }
    return uct_helper_merge_find_at(
            engine, merge, merge->end,
            uct_helper_engine_page_up(engine, merge->end));
}

uct_helper_region_t *
uct_helper_engine_merge(uct_helper_engine_h engine,
                        uct_helper_region_t *region, uintptr_t *start_p,
                        uintptr_t *end_p, unsigned *access_p)
{
    int is_for_ever = (engine->steer == NULL) &&
                      (engine->max_pinned == SIZE_MAX);
    uct_helper_merge_t merge = {
        .start    = *start_p,
        .end      = *end_p,
        .max      = is_for_ever ?
                            SIZE_MAX :
                            engine->index.stretch * (*end_p - *start_p),
        .is_tight = is_for_ever
    };
    unsigned access = *access_p;
    uct_helper_region_t *part;

    while ((part = uct_helper_merge_find(engine, &merge)) != NULL) {
        merge.start = ucs_min(merge.start, part->node.start);
        merge.end   = ucs_max(merge.end, part->node.end);
        access     |= ucs_load_relaxed(&part->access);
    }
    if (((merge.start == *start_p) && (merge.end == *end_p)) ||
        ((engine->env.inspect != NULL) &&
         !uct_helper_extents_covers(
                 &engine->kept,
                 uct_helper_engine_page_down(engine, merge.start),
                 uct_helper_engine_page_up(engine, merge.end)))) {
        return region;
    }

    *start_p  = merge.start;
    *end_p    = merge.end;
    *access_p = access;
    region    = uct_helper_index_find(&engine->index, merge.start, merge.end,
                                      access);
    /* One that is registered, or being so, covers the request only if it was
     * not found before, for it has as many users as can be counted */
    return ((region != NULL) &&
            (uct_helper_word_state(ucs_load_relaxed(&region->word)) ==
             UCT_HELPER_STATE_DORMANT)) ?
                   region :
                   NULL;
}

/* Under the lock: what is in use goes with its last user. @return Nonzero if
 * there is none: @a region is claimed. */
static int uct_helper_merge_end(uct_helper_engine_h engine,
                                uct_helper_region_t *region)
{
    ucs_store_relaxed(&region->planned, 0);
    ucs_store_relaxed(&region->idle, UCT_HELPER_IDLE_DROP);
    /* Either the last user's exchange of the word comes after this one, and he
     * finds what to do, or before, and there is no user [R-PUT] */
    (void)ucs_add_acq_rel(&region->word, 0);
    return uct_helper_region_claim(engine, region);
}

/* Under the lock: a region that another is to take the place of. One that is
 * dormant is forgotten here. @return Nonzero if it is claimed. */
static int uct_helper_merge_take(uct_helper_engine_h engine,
                                 uct_helper_region_t *region)
{
    switch (uct_helper_word_state(ucs_load_relaxed(&region->word))) {
    case UCT_HELPER_STATE_LIVE:
        return uct_helper_merge_end(engine, region);
    case UCT_HELPER_STATE_DORMANT:
        uct_helper_index_remove(&engine->index, region);
        uct_helper_region_free(engine, region);
        return 0;
    default:
        return 0;
    }
}

/* Under the lock: the next region that is superfluous, once it is claimed,
 * among those that begin at @a from_p or behind. @return NULL when a lot has
 * been looked at, with @a from_p where to go on, or all, with @a from_p at the
 * end. A lot ends between two addresses: nothing else is sure to be there when
 * the lock is taken again. */
static uct_helper_region_t *
uct_helper_merge_next(uct_helper_engine_h engine, uct_helper_region_t *by,
                      uintptr_t *from_p)
{
    uintptr_t end   = ucs_load_relaxed(&by->end);
    unsigned access = ucs_load_relaxed(&by->access);
    uintptr_t from  = *from_p;
    unsigned looked = 0;
    uct_helper_region_t *region, *next;

    for (region = uct_helper_index_first(&engine->index, from, end);
         region != NULL; region = next) {
        if ((looked++ >= UCT_HELPER_LOT) && (region->node.start > *from_p)) {
            *from_p = region->node.start;
            return NULL;
        }
        next    = uct_helper_index_next(&engine->index, region, from, end);
        *from_p = ucs_max(*from_p, region->node.start);
        if ((region != by) && (region->node.start >= from) &&
            (region->node.end <= end) &&
            !(ucs_load_relaxed(&region->access) & ~access) &&
            uct_helper_merge_take(engine, region)) {
            return region;
        }
    }
    *from_p = end;
    return NULL;
}

void uct_helper_engine_supersede(uct_helper_engine_h engine,
                                 uct_helper_region_t *by)
{
    uintptr_t from = ucs_load_relaxed(&by->start);
    uintptr_t end  = ucs_load_relaxed(&by->end);
    uct_helper_region_t *region;

    do {
        uct_helper_engine_lock(engine);
        region = uct_helper_merge_next(engine, by, &from);
        uct_helper_engine_unlock(engine);
        if (region != NULL) {
            uct_helper_region_deregister(engine, region, NULL);
        }
    } while (from < end);
}

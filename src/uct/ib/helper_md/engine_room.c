/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <ucs/sys/math.h>

#include <sched.h>

/* Keys of the LRU order that are corrected before the index lock is let go:
 * each moves its region through the heap, which costs as much as to look at some
 * others. More than one for each eviction, so all are correct in the end. */
#define UCT_HELPER_ROOM_LOT (1 + UCT_HELPER_LOT / 8)

/* What would pin more than leaving everything pinned pins something twice.
 * Neighbours may share a page, which then is. */
static int uct_helper_engine_is_twice(uct_helper_engine_h engine,
                                      size_t length)
{
    return engine->account.pinned + length >
           engine->seen.bytes +
                   (engine->account.regions + 1) * (engine->page_mask + 1);
}

int uct_helper_engine_fits(uct_helper_engine_h engine, size_t length)
{
    return (engine->account.pinned <= engine->max_pinned) &&
           (length <= engine->max_pinned - engine->account.pinned) &&
           (engine->account.regions < engine->max_regions);
}

/* How many uses until the region's next: as predicted, and if it is overdue by
 * so many, as many more; after a use that the predictor does not know of yet,
 * as many as there were before that; if nothing is known, as many as there have
 * been since its latest, which makes the order that of the latest uses. */
static int64_t uct_helper_engine_distance(uct_helper_engine_h engine,
                                          uct_helper_region_t *region)
{
    uint64_t now  = ucs_load_relaxed(&engine->learned);
    uint64_t next = ucs_load_relaxed(&region->next_use);

    if (ucs_load_relaxed(&region->use_start) !=
        ucs_load_relaxed(&region->learned_start)) {
        return ucs_load_relaxed(&region->again);
    }
    if (next == 0) {
        next = ucs_load_relaxed(&region->learned);
    }
    return (next > now) ? next - now : now - next;
}

/* Belady's rule on predictions: the idle region whose next use is farthest. Any
 * order of the heap serves, and beyond a lot of regions the older part of
 * it. */
static uct_helper_region_t *
uct_helper_engine_farthest(uct_helper_engine_h engine,
                           const uct_helper_heap_t *heap)
{
    unsigned count              = ucs_min(heap->count, UCT_HELPER_LOT);
    uct_helper_region_t *victim = NULL;
    int64_t most                = INT64_MIN;
    uct_helper_region_t *region;
    int64_t distance;
    unsigned i;

    for (i = 0; i < count; ++i) {
        region   = *uct_helper_heap_at(heap, i);
        distance = uct_helper_engine_distance(engine, region);
        if ((distance >= most) &&
            (uct_helper_word_refs(ucs_load_relaxed(&region->word)) == 0)) {
            victim = region;
            most   = distance;
        }
    }
    return victim;
}

/* Of one class; what may be looked at is counted off @a left_p, and the search
 * may go on when that has become 0 */
static uct_helper_region_t *
uct_helper_engine_victim_of(uct_helper_engine_h engine, int class,
                            uint64_t now, unsigned *left_p)
{
    uct_helper_heap_t *heap = &engine->lru[class];

    if ((class == UCT_HELPER_CLASS_MANAGED) &&
        (engine->policy == UCT_HELPER_POLICY_PREDICT)) {
        return uct_helper_engine_farthest(engine, heap);
    }
    return uct_helper_heap_oldest(heap, now, left_p);
}

/* Of the classes from @a last down to @a first. Under the lock, which is let go
 * after each lot that is looked at. @return A region that is claimed; NULL if
 * nothing is idle. */
static uct_helper_region_t *
uct_helper_engine_victim(uct_helper_engine_h engine, int first, int last)
{
    uint64_t now  = uct_helper_engine_now(engine);
    unsigned left = UCT_HELPER_ROOM_LOT;
    int class     = last;
    uct_helper_region_t *victim;

    while (class >= first) {
        victim = uct_helper_engine_victim_of(engine, class, now, &left);
        if ((victim != NULL) && uct_helper_region_claim(engine, victim)) {
            return victim;
        }
        if (left == 0) {
            left = UCT_HELPER_ROOM_LOT;
            uct_helper_engine_unlock(engine);
            uct_helper_engine_lock(engine);
        } else if (victim == NULL) {
            --class;
        } /* else it has found a user since it was chosen */
    }
    return NULL;
}

/* Evict one idle region of a class, or of any if @a class is
 * UCT_HELPER_CLASS_LAST. The lock is let go for the lower domain's call.
 * @return Bytes unpinned, 0 if nothing is idle. */
static size_t uct_helper_engine_evict(uct_helper_engine_h engine, int class)
{
    int is_any = (class == UCT_HELPER_CLASS_LAST);
    uct_helper_region_t *victim;
    size_t length;

    victim = uct_helper_engine_victim(engine, is_any ? 0 : class,
                                      is_any ? class - 1 : class);
    if (victim == NULL) {
        return 0;
    }

    ++engine->account.evicted;
    length = uct_helper_engine_pinned_length(engine, victim);
    uct_helper_engine_unlock(engine);
    uct_helper_region_deregister(engine, victim, NULL);
    uct_helper_engine_lock(engine);
    return length;
}

/* Doomed regions, and what another thread is about to release or to have
 * registered without a user, will soon make room. Under the lock, which is let
 * go meanwhile. @return Zero if there is nothing to wait for. */
static int uct_helper_engine_await_room(uct_helper_engine_h engine)
{
    int is_reclaimable = (engine->reclaim != NULL);

    if (!is_reclaimable && (engine->account.transit == 0)) {
        return 0;
    }
    uct_helper_engine_unlock(engine);
    if (is_reclaimable) {
        uct_helper_engine_reclaim_some(engine, UCT_HELPER_RECLAIM_MAX);
    } else if (engine->env.yield != NULL) {
        engine->env.yield(engine->env.arg);
    } else {
        sched_yield();
    }
    uct_helper_engine_lock(engine);
    return 1;
}

/* Under predict the helper takes free room only: a lower bound of one use
 * against an estimate of another is no ground to give up what is there. Under
 * the lock, which is let go now and then. @return Nonzero if there is room, and
 * it is claimed. */
static int uct_helper_engine_find_spare(uct_helper_engine_h engine,
                                        size_t length)
{
    while (!uct_helper_engine_fits(engine, length)) {
        if (engine->steer->keeps_budget ||
            (uct_helper_engine_evict(engine, UCT_HELPER_CLASS_LAST) == 0)) {
            return 0;
        }
    }
    return uct_helper_engine_claim(engine, length, UCT_HELPER_ROOM_HELPER);
}

/* A use is never refused for a ceiling of ours, but it asks all who could make
 * room. Under the lock, which is let go now and then. @return Nonzero if there
 * is room; it is claimed in any case. */
static int uct_helper_engine_find_room(uct_helper_engine_h engine,
                                       size_t length)
{
    unsigned asked = 0;
    uct_helper_room_t room;
    int is_local;

    for (;;) {
        is_local = uct_helper_engine_fits(engine, length);
        if (is_local &&
            uct_helper_engine_claim(engine, length, UCT_HELPER_ROOM_USE)) {
            return 1;
        }

        room = is_local ? uct_helper_engine_ask(engine, length, 0, &asked) :
                          UCT_HELPER_ROOM_NONE;
        if (room == UCT_HELPER_ROOM_NONE) {
            if ((uct_helper_engine_evict(engine, UCT_HELPER_CLASS_LAST) > 0) ||
                uct_helper_engine_await_room(engine)) {
                continue;
            }
            room = is_local ? uct_helper_engine_ask(engine, length, 1, &asked) :
                              UCT_HELPER_ROOM_NONE;
        }
        if (room == UCT_HELPER_ROOM_GRANTED) {
            return 1;
        }
        if (room == UCT_HELPER_ROOM_NONE) {
            (void)uct_helper_engine_claim(engine, length,
                                          UCT_HELPER_ROOM_FORCE);
            return 0;
        }
    }
}

int uct_helper_engine_make_room(uct_helper_engine_h engine,
                                uct_helper_region_t *region, int is_use)
{
    size_t length = uct_helper_engine_pinned_length(engine, region);
    uint64_t now  = uct_helper_engine_now(engine);
    int fits;

    uct_helper_engine_lock(engine);
    if ((uct_helper_engine_class(engine, uct_helper_region_length(region)) ==
         UCT_HELPER_CLASS_SMALL) &&
        (engine->account.small >= UCT_HELPER_SMALL_MAX)) {
        uct_helper_engine_evict(engine, UCT_HELPER_CLASS_SMALL);
    }
    while (is_use && uct_helper_engine_is_twice(engine, length) &&
           (uct_helper_engine_evict(engine, UCT_HELPER_CLASS_LAST) > 0)) {
    }
    fits = is_use ? uct_helper_engine_find_room(engine, length) :
                    !uct_helper_engine_is_twice(engine, length) &&
                    uct_helper_engine_find_spare(engine, length);
    if (fits || is_use) {
        uct_helper_engine_account_region(engine, region, 1, now);
        engine->account.over_ceiling += !fits;
        if (!fits) {
            ucs_store_relaxed(&engine->is_over, 1);
        }
        ++engine->account.transit;
        engine->account.wanted += is_use;
    }
    uct_helper_engine_unlock(engine);
    return fits || is_use;
}

void uct_helper_engine_trim(uct_helper_engine_h engine)
{
    uct_helper_engine_lock(engine);
    ucs_store_relaxed(&engine->is_over, 0);
    while (((engine->account.pinned > engine->max_pinned) ||
            (engine->account.regions > engine->max_regions)) &&
           (uct_helper_engine_evict(engine, UCT_HELPER_CLASS_LAST) > 0)) {
    }
    /* What is in use is left, and its last user looks again */
    if ((engine->account.pinned > engine->max_pinned) ||
        (engine->account.regions > engine->max_regions)) {
        ucs_store_relaxed(&engine->is_over, 1);
    }
    uct_helper_engine_unlock(engine);
}

size_t uct_helper_engine_evict_for(uct_helper_engine_h engine, size_t length)
{
    size_t freed = 0;
    size_t bytes;

    uct_helper_engine_reclaim(engine);
    uct_helper_engine_lock(engine);
    do {
        bytes  = uct_helper_engine_evict(engine, UCT_HELPER_CLASS_LAST);
        freed += bytes;
    } while ((bytes > 0) && (freed < length));
    uct_helper_engine_unlock(engine);
    return freed;
}

/* Uses that are themselves short of something are not waited for, for they may
 * wait here as well */
static int uct_helper_engine_is_leaving(uct_helper_engine_h engine)
{
    int is_leaving;

    uct_helper_engine_lock(engine);
    is_leaving = engine->account.transit > engine->account.wanted;
    uct_helper_engine_unlock(engine);
    return is_leaving;
}

size_t uct_helper_engine_release(uct_helper_engine_h engine, size_t length)
{
    size_t freed = uct_helper_engine_evict_for(engine, length);

    /* What other threads are just releasing counts until they have */
    while ((freed < length) && uct_helper_engine_is_leaving(engine)) {
        sched_yield();
    }
    return freed;
}

void uct_helper_engine_yield(uct_helper_engine_h engine)
{
    ucs_store_relaxed(&engine->pressed, 1);
    do {
        (void)uct_helper_engine_evict_for(engine, SIZE_MAX);
        if (!uct_helper_engine_is_leaving(engine)) {
            break;
        }
        sched_yield();
    } while (1);
    /* What the helper had registered meanwhile without a user */
    (void)uct_helper_engine_evict_for(engine, SIZE_MAX);
}

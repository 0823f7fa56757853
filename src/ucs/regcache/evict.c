/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_int.h"

#include <ucs/sys/math.h>

#include <sched.h>

/* Keys of the LRU order that are corrected before the index lock is let go:
 * each moves its region through the heap, which costs as much as to look at
 * some others. More than one for each eviction, so all are correct in the end.
 * */
#define UCS_REGCACHE_EVICT_LOT (1 + UCS_REGCACHE_LOT / 8)

/* What would pin more than leaving everything pinned pins something twice.
 * Neighbours may share a page, which then is. */
static int ucs_regcache_is_twice(ucs_regcache_h cache, size_t length)
{
    return cache->account.pinned + length >
           cache->memory.seen.bytes +
                   (cache->account.regions + 1) * (cache->config.page_mask + 1);
}

int ucs_regcache_fits(ucs_regcache_h cache, size_t length)
{
    return (cache->account.pinned <= cache->config.max_pinned) &&
           (length <= cache->config.max_pinned - cache->account.pinned) &&
           (cache->account.regions < cache->config.max_regions);
}

/* How many uses until the region's next: as predicted, and if it is overdue by
 * so many, as many more; after a use that the predictor does not know of yet,
 * as many as there were before that; if nothing is known, as many as there have
 * been since its latest, which makes the order that of the latest uses. */
static int64_t ucs_regcache_distance(ucs_regcache_h cache,
                                     ucs_regcache_region_t *region)
{
    uint64_t now  = ucs_load_relaxed(&cache->plan.learned);
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
static ucs_regcache_region_t *ucs_regcache_farthest(ucs_regcache_h cache,
                                                    const ucs_heap_t *heap)
{
    unsigned count                = ucs_min(heap->count, UCS_REGCACHE_LOT);
    ucs_regcache_region_t *victim = NULL;
    int64_t most                  = INT64_MIN;
    ucs_regcache_region_t *region;
    int64_t distance;
    unsigned i;

    for (i = 0; i < count; ++i) {
        region   = ucs_regcache_lru_region(*ucs_heap_at(heap, i));
        distance = ucs_regcache_distance(cache, region);
        if ((distance >= most) &&
            (ucs_regcache_word_refs(ucs_load_relaxed(&region->word)) == 0)) {
            victim = region;
            most   = distance;
        }
    }
    return victim;
}

/* Of one class; what may be looked at is counted off @a left_p, and the search
 * may go on when that has become 0 */
static ucs_regcache_region_t *ucs_regcache_victim_of(ucs_regcache_h cache,
                                                     int class, uint64_t now,
                                                     unsigned *left_p)
{
    ucs_heap_t *heap = &cache->lru[class];

    if ((class == UCS_REGCACHE_CLASS_MANAGED) &&
        (cache->config.policy == UCS_REGCACHE_POLICY_PREDICT)) {
        return ucs_regcache_farthest(cache, heap);
    }
    return ucs_regcache_lru_oldest(heap, now, left_p);
}

/* Of the classes from @a last down to @a first. Under the lock, which is let go
 * after each lot that is looked at. @return A region that is claimed; NULL if
 * nothing is idle. */
static ucs_regcache_region_t *ucs_regcache_victim(ucs_regcache_h cache,
                                                  int first, int last)
{
    uint64_t now  = ucs_regcache_now(cache);
    unsigned left = UCS_REGCACHE_EVICT_LOT;
    int class     = last;
    ucs_regcache_region_t *victim;

    while (class >= first) {
        victim = ucs_regcache_victim_of(cache, class, now, &left);
        if ((victim != NULL) && ucs_regcache_region_take_idle(cache, victim)) {
            return victim;
        }
        if (left == 0) {
            left = UCS_REGCACHE_EVICT_LOT;
            ucs_regcache_unlock(cache);
            ucs_regcache_lock(cache);
        } else if (victim == NULL) {
            --class;
        } /* else it has found a user since it was chosen */
    }
    return NULL;
}

/* Evict one idle region of a class, or of any if @a class is
 * UCS_REGCACHE_CLASS_LAST. The lock is let go for the lower domain's call.
 * @return Bytes unpinned, 0 if nothing is idle. */
static size_t ucs_regcache_evict(ucs_regcache_h cache, int class)
{
    int is_any = (class == UCS_REGCACHE_CLASS_LAST);
    ucs_regcache_region_t *victim;
    size_t length;

    victim = ucs_regcache_victim(cache, is_any ? 0 : class,
                                 is_any ? class - 1 : class);
    if (victim == NULL) {
        return 0;
    }

    ++cache->account.evicted;
    length = ucs_regcache_pinned_length(cache, victim);
    ucs_regcache_unlock(cache);
    ucs_regcache_region_deregister(cache, victim, NULL);
    ucs_regcache_lock(cache);
    return length;
}

/* Doomed regions, and what another thread is about to release or to have
 * registered without a user, will soon make room. Under the lock, which is let
 * go meanwhile. @return Zero if there is nothing to wait for. */
static int ucs_regcache_await_room(ucs_regcache_h cache)
{
    int is_reclaimable = (cache->reclaim.list != NULL);

    if (!is_reclaimable && (cache->account.transit == 0)) {
        return 0;
    }
    ucs_regcache_unlock(cache);
    if (is_reclaimable) {
        ucs_regcache_reclaim_some(cache, UCS_REGCACHE_RECLAIM_MAX);
    } else if (cache->env.yield != NULL) {
        cache->env.yield(cache->env.arg);
    } else {
        sched_yield();
    }
    ucs_regcache_lock(cache);
    return 1;
}

/* Under predict the helper takes free room only: a lower bound of one use
 * against an estimate of another is no ground to give up what is there. Under
 * the lock, which is let go now and then. @return Nonzero if there is room, and
 * it is claimed. */
static int ucs_regcache_find_spare(ucs_regcache_h cache, size_t length)
{
    while (!ucs_regcache_fits(cache, length)) {
        if (cache->plan.ops->keeps_budget ||
            (ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_LAST) == 0)) {
            return 0;
        }
    }
    return ucs_regcache_claim(cache, length, UCS_CLAIM_HELPER);
}

/* A use is never refused for a ceiling of ours, but it asks all who could make
 * room. Under the lock, which is let go now and then. @return Nonzero if there
 * is room; it is claimed in any case. */
static int ucs_regcache_find_room(ucs_regcache_h cache, size_t length)
{
    unsigned asked = 0;
    ucs_regcache_answer_t answer;
    int is_local;

    for (;;) {
        is_local = ucs_regcache_fits(cache, length);
        if (is_local &&
            ucs_regcache_claim(cache, length, UCS_CLAIM_USE)) {
            return 1;
        }

        answer = is_local ? ucs_regcache_ask(cache, length, UCS_ASK_SHARE, &asked) :
                          UCS_REGCACHE_ANSWER_NONE;
        if (answer == UCS_REGCACHE_ANSWER_NONE) {
            if ((ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_LAST) > 0) ||
                ucs_regcache_await_room(cache)) {
                continue;
            }
            answer = is_local ? ucs_regcache_ask(cache, length, UCS_ASK_ALL, &asked) :
                              UCS_REGCACHE_ANSWER_NONE;
        }
        if (answer == UCS_REGCACHE_ANSWER_GRANTED) {
            return 1;
        }
        if (answer == UCS_REGCACHE_ANSWER_NONE) {
            (void)ucs_regcache_claim(cache, length, UCS_CLAIM_FORCE);
            return 0;
        }
    }
}

int ucs_regcache_make_room(ucs_regcache_h cache, ucs_regcache_region_t *region,
                           int is_use)
{
    size_t length = ucs_regcache_pinned_length(cache, region);
    uint64_t now  = ucs_regcache_now(cache);
    int fits;

    ucs_regcache_lock(cache);
    if ((ucs_regcache_class(cache, ucs_regcache_region_length(region)) ==
         UCS_REGCACHE_CLASS_SMALL) &&
        (cache->account.small >= UCS_REGCACHE_SMALL_MAX)) {
        ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_SMALL);
    }
    while (is_use && ucs_regcache_is_twice(cache, length) &&
           (ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_LAST) > 0)) {
    }
    fits = is_use ? ucs_regcache_find_room(cache, length) :
                    !ucs_regcache_is_twice(cache, length) &&
                            ucs_regcache_find_spare(cache, length);
    if (fits || is_use) {
        ucs_regcache_account_region(cache, region, 1, now);
        cache->account.over_ceiling += !fits;
        if (!fits) {
            ucs_store_relaxed(&cache->is_over, 1);
        }
        ++cache->account.transit;
        cache->account.wanted += is_use;
    }
    ucs_regcache_unlock(cache);
    return fits || is_use;
}

void ucs_regcache_trim(ucs_regcache_h cache)
{
    ucs_regcache_lock(cache);
    ucs_store_relaxed(&cache->is_over, 0);
    while (((cache->account.pinned > cache->config.max_pinned) ||
            (cache->account.regions > cache->config.max_regions)) &&
           (ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_LAST) > 0)) {
    }
    /* What is in use is left, and its last user looks again */
    if ((cache->account.pinned > cache->config.max_pinned) ||
        (cache->account.regions > cache->config.max_regions)) {
        ucs_store_relaxed(&cache->is_over, 1);
    }
    ucs_regcache_unlock(cache);
}

size_t ucs_regcache_evict_for(ucs_regcache_h cache, size_t length)
{
    size_t freed = 0;
    size_t bytes;

    ucs_regcache_reclaim(cache);
    ucs_regcache_lock(cache);
    do {
        bytes = ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_LAST);
        freed += bytes;
    } while ((bytes > 0) && (freed < length));
    ucs_regcache_unlock(cache);
    return freed;
}

/* Uses that are themselves short of something are not waited for, for they may
 * wait here as well */
static int ucs_regcache_is_leaving(ucs_regcache_h cache)
{
    int is_leaving;

    ucs_regcache_lock(cache);
    is_leaving = cache->account.transit > cache->account.wanted;
    ucs_regcache_unlock(cache);
    return is_leaving;
}

size_t ucs_regcache_shrink(ucs_regcache_h cache, size_t length)
{
    size_t freed = ucs_regcache_evict_for(cache, length);

    /* What other threads are just releasing counts until they have */
    while ((freed < length) && ucs_regcache_is_leaving(cache)) {
        sched_yield();
    }
    return freed;
}

void ucs_regcache_yield(ucs_regcache_h cache)
{
    ucs_store_relaxed(&cache->pressed, 1);
    do {
        (void)ucs_regcache_evict_for(cache, SIZE_MAX);
        if (!ucs_regcache_is_leaving(cache)) {
            break;
        }
        sched_yield();
    } while (1);
    /* What the helper had registered meanwhile without a user */
    (void)ucs_regcache_evict_for(cache, SIZE_MAX);
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>
#include <ucs/sys/sync/give_way.h>

/* Regions below min_size that stay registered */
#define UCS_REGCACHE_SMALL_MAX 1024

/* Whatever pins more than leaving everything pinned would pins something twice, or
 * memory that was unmapped. Neighbours may share a page. @return Bytes beyond that. */
static uint64_t ucs_regcache_excess(ucs_regcache_h cache, size_t length)
{
    uint64_t pinned = cache->stats.pinned_bytes + length;
    uint64_t left   = cache->memory.seen.bytes +
                      (cache->stats.regions + 1) *
                              (cache->config.page_mask + 1);

    return (!cache->memory.has_covers && (pinned > left)) ?
                   pinned - left :
                   0;
}

/* Unmapped memory that waits for its deregistration is pinned once */
static int ucs_regcache_is_twice(ucs_regcache_h cache, size_t length)
{
    return ucs_regcache_excess(cache, length) >
           ucs_load_relaxed(&cache->reclaim.bytes);
}

/* The cache's own ceilings */
static int ucs_regcache_fits(ucs_regcache_h cache, size_t length)
{
    return (cache->stats.pinned_bytes <= cache->config.max_pinned) &&
           (length <= cache->config.max_pinned - cache->stats.pinned_bytes) &&
           (cache->stats.regions < cache->config.max_regions);
}

/*
 * A budget that is shared with others
 */

static int ucs_regcache_claim(ucs_regcache_h cache, size_t length,
                              ucs_claim_t why)
{
    return (cache->env.budget == NULL) ||
           cache->env.budget->claim(cache->env.arg, length, why);
}

/* A use does not fit: ask others, once each way. The lock is let go
 * meanwhile. */
static ucs_regcache_answer_t ucs_regcache_ask(ucs_regcache_h cache,
                                              size_t length, ucs_ask_t whom,
                                              unsigned *asked_p)
{
    const ucs_regcache_budget_t *budget = cache->env.budget;
    unsigned bit                        = 1u << whom;
    ucs_regcache_answer_t answer;

    if ((budget == NULL) || (*asked_p & bit)) {
        return UCS_REGCACHE_ANSWER_NONE;
    }

    *asked_p |= bit;
    ucs_regcache_unlock(cache);
    answer = budget->ask(cache->env.arg, length, whom);
    ucs_regcache_lock(cache);

    /* Another thread came up to a ceiling of our own meanwhile */
    if ((answer == UCS_REGCACHE_ANSWER_GRANTED) &&
        !ucs_regcache_fits(cache, length)) {
        budget->unclaim(cache->env.arg, length);
        answer = UCS_REGCACHE_ANSWER_MAYBE;
    }
    return answer;
}

/*
 * Admission
 */

void ucs_regcache_let_others(ucs_regcache_h cache)
{
    ucs_regcache_unlock(cache);
    if (cache->env.yield != NULL) {
        cache->env.yield(cache->env.arg);
    } else {
        ucs_give_way();
    }
    ucs_regcache_lock(cache);
}

/* Doomed regions, and what another thread is about to release or to have
 * registered without a user, will soon be evicted or evictable. The lock is let
 * go meanwhile. @return Zero if there is nothing to wait for. */
static int ucs_regcache_await_eviction(ucs_regcache_h cache)
{
    int is_reclaimable = (cache->reclaim.list != NULL);

    if (!is_reclaimable && (cache->account.transit == 0)) {
        return 0;
    }
    if (is_reclaimable) {
        ucs_regcache_unlock(cache);
        ucs_regcache_reclaim_some(cache, UCS_REGCACHE_RECLAIM_MAX);
        ucs_regcache_lock(cache);
    } else {
        ucs_regcache_let_others(cache);
    }
    return 1;
}

/* Unmapped memory goes first: a use that would pin beside it deregisters it, or waits
 * for another thread that does, unless there is too much of it. The lock is let go
 * meanwhile. @return Zero if there is nothing to finish. */
static int ucs_regcache_finish_leaving(ucs_regcache_h cache)
{
    if (ucs_load_relaxed(&cache->reclaim.count) >= UCS_REGCACHE_RECLAIM_MAX) {
        return 0;
    }
    if (cache->reclaim.list != NULL) {
        ucs_regcache_unlock(cache);
        ucs_regcache_reclaim_some(cache, 1);
        ucs_regcache_lock(cache);
    } else if (cache->account.leaving > 0) {
        ucs_regcache_let_others(cache);
    } else {
        return 0;
    }
    return 1;
}

/* Under a policy that minds the price the helper evicts only what is needed later than
 * this one. The lock is let go now and then. @return Nonzero if it fits, and is
 * claimed. */
static int ucs_regcache_admit_ahead(ucs_regcache_h cache,
                                    ucs_regcache_region_t *region)
{
    size_t length = ucs_regcache_pinned_length(region);

    if (ucs_regcache_is_twice(cache, length)) {
        return 0;
    }
    while (!ucs_regcache_fits(cache, length) ||
           !ucs_regcache_soft_fits(cache, length)) {
        if (cache->plan.ops->keeps && ucs_regcache_finish_leaving(cache)) {
            continue;
        }
        if ((cache->plan.ops->minds_price ?
                     ucs_regcache_evict_soft(cache, region) :
                     ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_LAST)) == 0) {
            ucs_regcache_soft_give_up(region);
            return 0;
        }
    }
    return ucs_regcache_claim(cache, length, UCS_CLAIM_HELPER);
}

/* A use is never refused for a ceiling, but all that could make room for it are asked.
 * The lock is let go now and then. @return Nonzero if it fits; it is claimed in any
 * case. */
static int ucs_regcache_admit_use(ucs_regcache_h cache, size_t length)
{
    unsigned asked = 0;
    ucs_regcache_answer_t answer;
    int is_local;

    ucs_regcache_soft_make_room(cache, length);
    while ((ucs_regcache_excess(cache, length) > 0) &&
           ucs_regcache_finish_leaving(cache)) {
    }
    while (ucs_regcache_is_twice(cache, length) &&
           (ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_LAST) > 0)) {
    }
    for (;;) {
        is_local = ucs_regcache_fits(cache, length);
        if (is_local && ucs_regcache_claim(cache, length, UCS_CLAIM_USE)) {
            return 1;
        }

        answer = is_local ? ucs_regcache_ask(cache, length, UCS_ASK_SHARE,
                                             &asked) :
                            UCS_REGCACHE_ANSWER_NONE;
        if (answer == UCS_REGCACHE_ANSWER_NONE) {
            if ((ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_LAST) > 0) ||
                ucs_regcache_await_eviction(cache)) {
                continue;
            }
            answer = is_local ? ucs_regcache_ask(cache, length, UCS_ASK_ALL,
                                                 &asked) :
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

int ucs_regcache_admit(ucs_regcache_h cache, ucs_regcache_region_t *region,
                       int is_use, uint64_t now)
{
    size_t length = ucs_regcache_pinned_length(region);
    int is_window, fits;

    if ((region->size_class == UCS_REGCACHE_CLASS_SMALL) &&
        (cache->account.small >= UCS_REGCACHE_SMALL_MAX)) {
        ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_SMALL);
    }
    /* What a walk is in lies idle between its steps, and is as good as in use */
    is_window = ucs_load_relaxed(&region->is_window);
    if (is_window || (is_use && (cache->walking.held > 0))) {
        ucs_regcache_soft_posted(cache, cache->walking.held + length);
    }
    cache->walking.held += is_window ? length : 0;
    fits = is_use ? ucs_regcache_admit_use(cache, length) :
                    ucs_regcache_admit_ahead(cache, region);
    if (!fits && !is_use) {
        return 0;
    }

    ucs_regcache_account_region(cache, region, 1, now);
    if (!fits) {
        ++cache->stats.over_ceiling;
        ucs_store_relaxed(&cache->is_over, 1);
    }
    ++cache->account.transit;
    cache->account.wanted += is_use;
    return 1;
}

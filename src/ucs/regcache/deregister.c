/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_int.h"

#include <limits.h>
#include <stdlib.h>

/*
 * Out of look-up
 */

uint64_t ucs_regcache_region_doom(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region)
{
    ucs_regcache_index_remove(&cache->index, region);
    ucs_heap_remove(ucs_regcache_region_lru(cache, region), &region->lru);
    /* From here on no look-up without the lock takes a reference: either its
     * compare-and-swap came first and is counted in the word, or it fails */
    return ucs_or_acq_rel(&region->word, UCS_REGCACHE_WORD_DOOMED);
}

int ucs_regcache_region_take_idle(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region)
{
    uint64_t word = ucs_load_acquire(&region->word); /* [R-PUT] */

    if (!ucs_regcache_word_is_hit(word) || (ucs_regcache_word_refs(word) > 0) ||
        !ucs_cas_acq_rel(&region->word, &word,
                         ucs_regcache_word_set_state(
                                 word, UCS_REGCACHE_STATE_DEREGISTERING))) {
        return 0;
    }

    ucs_heap_remove(ucs_regcache_region_lru(cache, region), &region->lru);
    ucs_regcache_index_remove_memh(region);
    ++cache->account.transit;
    return 1;
}

/*
 * Deregistration
 */

/* Under the lock: a finished registration's figures go into the totals, and the
 * next one's begin anew */
static void ucs_regcache_region_fold(ucs_regcache_h cache,
                                     ucs_regcache_region_t *region)
{
    ucs_regcache_account_uses(cache, region);
    if (ucs_load_relaxed(&region->speculative) && (region->counted == 0)) {
        ++cache->account.wasted;
    }
    region->counted      = 0;
    region->counted_busy = 0;
    ucs_store_relaxed(&region->hits, 0);
    ucs_store_relaxed(&region->joined, 0);
    ucs_store_relaxed(&region->busy_ns, 0);
    ucs_store_relaxed(&region->speculative, 0);
}

void ucs_regcache_region_deregister(ucs_regcache_h cache,
                                    ucs_regcache_region_t *region,
                                    ucs_regcache_comp_t comp)
{
    ucs_regcache_memh_t memh = ucs_load_relaxed(&region->memh);
    uint64_t start, now, word;

    /* Before the lower domain can give the same handle to another region */
    ucs_store_release(&region->memh, NULL); /* [R-FIELDS] */
    start = ucs_regcache_now(cache);
    (void)cache->env.mem_dereg(cache->env.arg, memh, comp);
    now = ucs_regcache_now(cache);

    ucs_regcache_lock(cache);
    ucs_predict_cost_update(&cache->cost.dereg,
                            ucs_regcache_pages(cache, region), now - start);
    --cache->account.transit;
    ucs_regcache_account_region(cache, region, -1, now);
    ucs_regcache_region_fold(cache, region);
    word = ucs_load_relaxed(&region->word);
    if (word & UCS_REGCACHE_WORD_DOOMED) {
        ucs_regcache_region_free(cache, region);
    } else if (ucs_load_relaxed(&region->planned) &&
               (ucs_load_relaxed(&region->idle) != UCS_REGCACHE_IDLE_DROP)) {
        /* release [R-LIVE]: pairs with the acquire in try_ref */
        ucs_store_release(
                &region->word,
                ucs_regcache_word_set_state(word, UCS_REGCACHE_STATE_DORMANT));
    } else {
        ucs_regcache_index_remove(&cache->index, region);
        ucs_regcache_region_free(cache, region);
    }
    ucs_regcache_unlock(cache);
}

/*
 * Reclaiming
 */

/* Bytes that a doomed region without users pins */
static size_t ucs_regcache_region_held(ucs_regcache_h cache,
                                       ucs_regcache_region_t *region)
{
    return (ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
            UCS_REGCACHE_STATE_LIVE) ?
                   ucs_regcache_pinned_length(cache, region) :
                   0;
}

void ucs_regcache_region_reclaim(ucs_regcache_h cache,
                                 ucs_regcache_region_t *region)
{
    region->next        = cache->reclaim.list;
    cache->reclaim.list = region;
    ucs_add_relaxed(&cache->reclaim.count, 1);
    ucs_add_relaxed(&cache->reclaim.bytes,
                    ucs_regcache_region_held(cache, region));
}

static ucs_regcache_region_t *
ucs_regcache_region_unreclaim(ucs_regcache_h cache)
{
    ucs_regcache_region_t *region = cache->reclaim.list;

    if (region != NULL) {
        cache->reclaim.list = region->next;
        ucs_sub_relaxed(&cache->reclaim.count, 1);
        ucs_sub_relaxed(&cache->reclaim.bytes,
                        ucs_regcache_region_held(cache, region));
    }
    return region;
}

static void ucs_regcache_complete(ucs_regcache_h cache,
                                  ucs_regcache_invalidate_t *list)
{
    ucs_regcache_invalidate_t *next;

    for (; list != NULL; list = next) {
        next = list->next;
        cache->env.complete(cache->env.arg, list->comp);
        free(list);
    }
}

/* A doomed region nobody uses. The first completion goes with the lower
 * domain's call; the others are due as soon as that has been made. */
static void ucs_regcache_region_finish(ucs_regcache_h cache,
                                       ucs_regcache_region_t *region)
{
    ucs_regcache_invalidate_t *list = region->invalidate;
    ucs_regcache_comp_t comp        = NULL;
    ucs_regcache_invalidate_t *first;

    region->invalidate = NULL;
    if (list != NULL) {
        first = list;
        list  = list->next;
        comp  = first->comp;
        free(first);
    }
    ucs_regcache_region_deregister(cache, region, comp);
    ucs_regcache_complete(cache, list);
}

/* Under the lock: a doomed LIVE region is about to be finished */
static void ucs_regcache_region_withdraw(ucs_regcache_h cache,
                                         ucs_regcache_region_t *region)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    ucs_store_release(&region->word, /* [R-LIVE] */
                      ucs_regcache_word_set_state(
                              word, UCS_REGCACHE_STATE_DEREGISTERING));
    ucs_regcache_index_remove_memh(region);
    ++cache->account.transit;
}

void ucs_regcache_reclaim_some(ucs_regcache_h cache, unsigned max)
{
    ucs_regcache_region_t *region;
    uint64_t word;

    for (; (max > 0) && (ucs_load_relaxed(&cache->reclaim.count) > 0); --max) {
        ucs_regcache_lock(cache);
        region = ucs_regcache_region_unreclaim(cache);
        if (region == NULL) {
            ucs_regcache_unlock(cache);
            return;
        }

        word = ucs_load_relaxed(&region->word);
        if (ucs_regcache_word_state(word) == UCS_REGCACHE_STATE_DORMANT) {
            ucs_regcache_region_free(cache, region);
            ucs_regcache_unlock(cache);
            continue;
        }
        ucs_regcache_region_withdraw(cache, region);
        ucs_regcache_unlock(cache);
        ucs_regcache_region_finish(cache, region);
    }
}

void ucs_regcache_reclaim(ucs_regcache_h cache)
{
    ucs_regcache_reclaim_some(cache, UINT_MAX);
}

static void ucs_regcache_region_close(ucs_regcache_h cache,
                                      ucs_regcache_region_t *region)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    if (ucs_regcache_word_state(word) != UCS_REGCACHE_STATE_LIVE) {
        return;
    }
    ucs_regcache_lock(cache);
    if (!(word & UCS_REGCACHE_WORD_DOOMED)) {
        (void)ucs_regcache_region_doom(cache, region);
    }
    ucs_regcache_region_withdraw(cache, region);
    ucs_regcache_unlock(cache);
    ucs_regcache_region_finish(cache, region);
}

void ucs_regcache_deregister_all(ucs_regcache_h cache)
{
    ucs_regcache_walk_t walk = {.chunk = cache->store.chunks};
    ucs_regcache_region_t *region;

    while ((region = ucs_regcache_walk_next(&walk)) != NULL) {
        ucs_regcache_region_close(cache, region);
    }
}

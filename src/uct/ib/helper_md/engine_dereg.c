/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <limits.h>
#include <stdlib.h>

/*
 * Out of look-up
 */

uint64_t uct_helper_region_doom(uct_helper_engine_h engine,
                                uct_helper_region_t *region)
{
    uct_helper_index_remove(&engine->index, region);
    uct_helper_heap_remove(uct_helper_region_lru(engine, region), region);
    /* From here on no look-up without the lock takes a reference: either its
     * compare-and-swap came first and is counted in the word, or it fails */
    return ucs_or_acq_rel(&region->word, UCT_HELPER_WORD_DOOMED);
}

int uct_helper_region_claim(uct_helper_engine_h engine,
                            uct_helper_region_t *region)
{
    uint64_t word = ucs_load_acquire(&region->word); /* [R-PUT] */

    if (!uct_helper_word_is_hit(word) || (uct_helper_word_refs(word) > 0) ||
        !ucs_cas_acq_rel(&region->word, &word,
                         uct_helper_word_set_state(
                                 word, UCT_HELPER_STATE_DEREGISTERING))) {
        return 0;
    }

    uct_helper_heap_remove(uct_helper_region_lru(engine, region), region);
    uct_helper_index_remove_memh(region);
    ++engine->account.transit;
    return 1;
}

/*
 * Deregistration
 */

/* Under the lock: a finished registration's figures go into the totals, and the
 * next one's begin anew */
static void uct_helper_region_fold(uct_helper_engine_h engine,
                                   uct_helper_region_t *region)
{
    uct_helper_engine_account_uses(engine, region);
    if (ucs_load_relaxed(&region->speculative) && (region->counted == 0)) {
        ++engine->account.wasted;
    }
    region->counted      = 0;
    region->counted_busy = 0;
    ucs_store_relaxed(&region->hits, 0);
    ucs_store_relaxed(&region->joined, 0);
    ucs_store_relaxed(&region->busy_ns, 0);
    ucs_store_relaxed(&region->speculative, 0);
}

void uct_helper_region_deregister(uct_helper_engine_h engine,
                                  uct_helper_region_t *region,
                                  uct_completion_t *comp)
{
    uct_mem_h memh = ucs_load_relaxed(&region->memh);
    uint64_t start, now, word;

    /* Before the lower domain can give the same handle to another region */
    ucs_store_release(&region->memh, NULL); /* [R-FIELDS] */
    start = uct_helper_engine_now(engine);
    (void)engine->env.mem_dereg(engine->env.arg, memh, comp);
    now   = uct_helper_engine_now(engine);

    uct_helper_engine_lock(engine);
    ucs_predict_cost_update(&engine->deregister_cost,
                            uct_helper_engine_pages(engine, region),
                            now - start);
    --engine->account.transit;
    uct_helper_engine_account_region(engine, region, -1, now);
    uct_helper_region_fold(engine, region);
    word = ucs_load_relaxed(&region->word);
    if (word & UCT_HELPER_WORD_DOOMED) {
        uct_helper_region_free(engine, region);
    } else if (ucs_load_relaxed(&region->planned) &&
               (ucs_load_relaxed(&region->idle) != UCT_HELPER_IDLE_DROP)) {
        /* release [R-LIVE]: pairs with the acquire in try_ref */
        ucs_store_release(&region->word,
                          uct_helper_word_set_state(
                                  word, UCT_HELPER_STATE_DORMANT));
    } else {
        uct_helper_index_remove(&engine->index, region);
        uct_helper_region_free(engine, region);
    }
    uct_helper_engine_unlock(engine);
}

/*
 * Reclaiming
 */

/* Bytes that a doomed region without users pins */
static size_t uct_helper_region_held(uct_helper_engine_h engine,
                                     uct_helper_region_t *region)
{
    return (uct_helper_word_state(ucs_load_relaxed(&region->word)) ==
            UCT_HELPER_STATE_LIVE) ?
                   uct_helper_engine_pinned_length(engine, region) :
                   0;
}

void uct_helper_region_reclaim(uct_helper_engine_h engine,
                               uct_helper_region_t *region)
{
    region->next    = engine->reclaim;
    engine->reclaim = region;
    ucs_add_relaxed(&engine->reclaimable, 1);
    ucs_add_relaxed(&engine->reclaimable_bytes,
                    uct_helper_region_held(engine, region));
}

static uct_helper_region_t *
uct_helper_region_unreclaim(uct_helper_engine_h engine)
{
    uct_helper_region_t *region = engine->reclaim;

    if (region != NULL) {
        engine->reclaim = region->next;
        ucs_sub_relaxed(&engine->reclaimable, 1);
        ucs_sub_relaxed(&engine->reclaimable_bytes,
                        uct_helper_region_held(engine, region));
    }
    return region;
}

static void uct_helper_invoke_completions(uct_helper_invalidate_t *list)
{
    uct_helper_invalidate_t *next;

    for (; list != NULL; list = next) {
        next = list->next;
        if (--list->comp->count == 0) {
            list->comp->func(list->comp);
        }
        free(list);
    }
}

/* A doomed region nobody uses. The first completion goes with the lower
 * domain's call; the others are due as soon as that has been made. */
static void uct_helper_region_finish(uct_helper_engine_h engine,
                                     uct_helper_region_t *region)
{
    uct_helper_invalidate_t *list = region->invalidate;
    uct_completion_t *comp        = NULL;
    uct_helper_invalidate_t *first;

    region->invalidate = NULL;
    if (list != NULL) {
        first = list;
        list  = list->next;
        comp  = first->comp;
        free(first);
    }
    uct_helper_region_deregister(engine, region, comp);
    uct_helper_invoke_completions(list);
}

/* Under the lock: a doomed LIVE region is about to be finished */
static void uct_helper_region_withdraw(uct_helper_engine_h engine,
                                       uct_helper_region_t *region)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    ucs_store_release(&region->word, /* [R-LIVE] */
                      uct_helper_word_set_state(
                              word, UCT_HELPER_STATE_DEREGISTERING));
    uct_helper_index_remove_memh(region);
    ++engine->account.transit;
}

void uct_helper_engine_reclaim_some(uct_helper_engine_h engine, unsigned max)
{
    uct_helper_region_t *region;
    uint64_t word;

    for (; (max > 0) && (ucs_load_relaxed(&engine->reclaimable) > 0); --max) {
        uct_helper_engine_lock(engine);
        region = uct_helper_region_unreclaim(engine);
        if (region == NULL) {
            uct_helper_engine_unlock(engine);
            return;
        }

        word = ucs_load_relaxed(&region->word);
        if (uct_helper_word_state(word) == UCT_HELPER_STATE_DORMANT) {
            uct_helper_region_free(engine, region);
            uct_helper_engine_unlock(engine);
            continue;
        }
        uct_helper_region_withdraw(engine, region);
        uct_helper_engine_unlock(engine);
        uct_helper_region_finish(engine, region);
    }
}

void uct_helper_engine_reclaim(uct_helper_engine_h engine)
{
    uct_helper_engine_reclaim_some(engine, UINT_MAX);
}

static void uct_helper_region_close(uct_helper_engine_h engine,
                                    uct_helper_region_t *region)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    if (uct_helper_word_state(word) != UCT_HELPER_STATE_LIVE) {
        return;
    }
    uct_helper_engine_lock(engine);
    if (!(word & UCT_HELPER_WORD_DOOMED)) {
        (void)uct_helper_region_doom(engine, region);
    }
    uct_helper_region_withdraw(engine, region);
    uct_helper_engine_unlock(engine);
    uct_helper_region_finish(engine, region);
}

void uct_helper_engine_deregister_all(uct_helper_engine_h engine)
{
    uct_helper_walk_t walk = {.chunk = engine->chunks};
    uct_helper_region_t *region;

    while ((region = uct_helper_walk_next(&walk)) != NULL) {
        uct_helper_region_close(engine, region);
    }
}

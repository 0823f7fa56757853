/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/mem/own_memory.h>

#include <limits.h>

/* From so many bytes on the helper deregisters a region that may not outlive its use:
 * the thread that ends the use would wait some milliseconds */
#define UCS_REGCACHE_LATER_BYTES (64ul << 20)

/* --- Deregistration ------------------------------------------------------- */

void ucs_regcache_region_deregister(ucs_regcache_h cache,
                                    ucs_regcache_region_t *region,
                                    ucs_regcache_comp_t comp,
                                    ucs_regcache_loss_t *loss)
{
    ucs_regcache_memh_t memh = ucs_load_relaxed(&region->memh);
    uint64_t start, now;

    /* Before the lower domain can give the same handle to another region */
    ucs_store_release(&region->memh, NULL); /* [R-FIELDS] */
    start = ucs_regcache_now(cache);
    (void)cache->env.mem_dereg(cache->env.arg, memh, comp);
    now = ucs_regcache_now(cache);

    ucs_regcache_lock(cache);
    ucs_predict_cost_update(&cache->cost.dereg,
                            ucs_regcache_pages(cache, region), now - start);
    ucs_regcache_account(cache, start);
    ucs_regcache_account_why(cache, region, UCS_REGCACHE_HELD_OTHER,
                             UCS_REGCACHE_TIME_NEVER);
    ucs_regcache_account_region(cache, region, -1, now);
    ucs_regcache_account_end(cache, region);
    if (loss != NULL) {
        ucs_regcache_account_loss(cache, loss, now);
    }
    ucs_regcache_region_retire(cache, region);
    ucs_regcache_unlock(cache);
}

/* --- Reclaiming ----------------------------------------------------------- */

static void ucs_regcache_complete(ucs_regcache_h cache,
                                  ucs_regcache_invalidate_t *list)
{
    ucs_regcache_invalidate_t *next;

    for (; list != NULL; list = next) {
        next = list->next;
        cache->env.complete(cache->env.arg, list->comp);
        ucs_own_free(list);
    }
}

/* A doomed region without users. The first completion goes with the lower
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
        ucs_own_free(first);
    }
    ucs_regcache_region_deregister(cache, region, comp, NULL);
    ucs_regcache_complete(cache, list);
}

/* No look-up finds a doomed region, so nobody uses this registration whatever becomes of
 * the memory; and its pages stay its own for as long as they are pinned. */
int ucs_regcache_drop_later(ucs_regcache_h cache, ucs_regcache_region_t *region)
{
    uint64_t word = ucs_load_acquire(&region->word); /* [R-PUT] */

    if (!ucs_regcache_word_is_hit(word) || (ucs_regcache_word_refs(word) > 0) ||
        (ucs_regcache_pinned_length(region) < UCS_REGCACHE_LATER_BYTES) ||
        !ucs_regcache_needs_helper(cache)) {
        return 0;
    }

    word = ucs_regcache_region_doom(cache, region);
    /* A user that came since finds the doom when it goes */
    if (ucs_regcache_word_refs(word) == 0) {
        ucs_regcache_region_reclaim(cache, region);
    }
    return 1;
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

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_int.h"

static ucs_status_t ucs_regcache_lower_reg(ucs_regcache_h cache,
                                           ucs_regcache_region_t *region,
                                           unsigned flags, ucs_regcache_memh_t *memh_p)
{
    uint64_t start = ucs_regcache_now(cache);
    ucs_status_t status;

    status = cache->env.mem_reg(cache->env.arg,
                                (void *)ucs_load_relaxed(&region->start),
                                ucs_regcache_region_length(region), flags,
                                memh_p);
    if (status == UCS_OK) {
        start = ucs_regcache_now(cache) - start;
        ucs_regcache_lock(cache);
        ucs_predict_cost_update(&cache->cost.reg,
                                ucs_regcache_pages(cache, region), start);
        ucs_regcache_unlock(cache);
    }
    return status;
}

/* The verbs domain of UCX 1.13 reports a full device or memlock limit as an
 * I/O error */
int ucs_regcache_status_is_exhausted(ucs_status_t status)
{
    return (status == UCS_ERR_NO_MEMORY) || (status == UCS_ERR_IO_ERROR) ||
           (status == UCS_ERR_NO_RESOURCE);
}

/* A use: what fails for want of memory or regions is tried again after idle
 * registrations have been given up. Quietly, for the caller has a way left. */
static ucs_status_t ucs_regcache_lower_reg_use(ucs_regcache_h cache,
                                               ucs_regcache_region_t *region,
                                               unsigned flags,
                                               ucs_regcache_memh_t *memh_p)
{
    ucs_status_t status;

    status = ucs_regcache_lower_reg(cache, region, flags, memh_p);
    if (!ucs_regcache_status_is_exhausted(status)) {
        return status;
    }

    ucs_store_relaxed(&cache->pressed, 1);
    (void)ucs_regcache_evict_for(cache,
                                 ucs_regcache_pinned_length(cache, region));
    return ucs_regcache_lower_reg(cache, region, flags, memh_p);
}

/* Under the lock; references do not change while a region is REGISTERING */
static ucs_status_t ucs_regcache_region_publish(ucs_regcache_h cache,
                                                ucs_regcache_region_t *region,
                                                ucs_regcache_memh_t memh, uint64_t now,
                                                unsigned refs)
{
    uint64_t word = ucs_load_relaxed(&region->word);
    int doomed    = !!(word & UCS_REGCACHE_WORD_DOOMED);

    ucs_store_release(&region->memh, memh); /* [R-FIELDS] */
    ucs_regcache_index_add_memh(&cache->index, region);
    if (refs == 0) {
        ucs_store_relaxed(&region->use_start, now); /* of who waited */
        ucs_store_relaxed(&region->last_use, now);
    }
    if (!doomed) {
        ucs_regcache_lru_push(ucs_regcache_region_lru(cache, region), region);
    }
    if (ucs_regcache_word_refs(word) > 0) {
        ucs_regcache_in_use(cache, ucs_regcache_pinned_length(cache, region));
    }
    /* release [R-LIVE]: pairs with the acquire in try_ref and in waiters */
    ucs_store_release(&region->word, ucs_regcache_word_set_state(
                                             word, UCS_REGCACHE_STATE_LIVE));
    if (doomed && (ucs_regcache_word_refs(word) == 0)) {
        ucs_regcache_region_reclaim(cache, region);
    }
    return (doomed && (refs == 0)) ? UCS_ERR_CANCELED : UCS_OK;
}

/* Under the lock. Whoever waits finds the region doomed and goes his own way;
 * the last of them frees it. */
static void ucs_regcache_region_abandon(ucs_regcache_h cache,
                                        ucs_regcache_region_t *region,
                                        unsigned refs)
{
    uint64_t word = ucs_load_relaxed(&region->word) -
                    refs * UCS_REGCACHE_WORD_REF;

    if (!(word & UCS_REGCACHE_WORD_DOOMED)) {
        ucs_regcache_index_remove(&cache->index, region);
    }
    if (ucs_regcache_word_refs(word) == 0) {
        ucs_regcache_region_free(cache, region);
        return;
    }
    /* release [R-LIVE]: pairs with the acquire in waiters */
    ucs_store_release(&region->word, ucs_regcache_word_set_state(
                                             word, UCS_REGCACHE_STATE_DORMANT) |
                                             UCS_REGCACHE_WORD_DOOMED);
}

/* Under the lock. What found no room, and nobody waits for, may come later. */
static void ucs_regcache_region_fail(ucs_regcache_h cache,
                                     ucs_regcache_region_t *region,
                                     ucs_status_t status, unsigned refs)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    if ((status == UCS_ERR_EXCEEDS_LIMIT) &&
        (ucs_regcache_word_refs(word) == 0) &&
        !(word & UCS_REGCACHE_WORD_DOOMED)) {
        /* release [R-LIVE]: pairs with the acquire in waiters */
        ucs_store_release(
                &region->word,
                ucs_regcache_word_set_state(word, UCS_REGCACHE_STATE_DORMANT));
    } else {
        ucs_regcache_region_abandon(cache, region, refs);
    }
}

ucs_status_t ucs_regcache_region_register(ucs_regcache_h cache,
                                          ucs_regcache_region_t *region,
                                          unsigned flags, unsigned refs)
{
    int is_use = (refs > 0);
    ucs_regcache_memh_t memh = NULL;
    ucs_status_t status;
    int may_keep, has_room;
    uint64_t now;

    /* Asked anew each time: the memory was let go of since the last use */
    may_keep = is_use || ucs_regcache_may_keep(cache, region, 0);
    has_room = may_keep && ucs_regcache_make_room(cache, region, is_use);
    if (!has_room) {
        status = may_keep ? UCS_ERR_EXCEEDS_LIMIT : UCS_ERR_REJECTED;
    } else if (is_use) {
        status = ucs_regcache_lower_reg_use(cache, region, flags, &memh);
    } else {
        status = ucs_regcache_lower_reg(cache, region, flags, &memh);
    }
    now = ucs_regcache_now(cache);

    ucs_regcache_lock(cache);
    cache->account.transit -= has_room;
    cache->account.wanted -= has_room && is_use;
    if (status == UCS_OK) {
        status = ucs_regcache_region_publish(cache, region, memh, now, refs);
    } else {
        if (has_room) {
            ucs_regcache_account_region(cache, region, -1, now);
            ++cache->account.failed;
        }
        ucs_regcache_region_fail(cache, region, status, refs);
    }
    ucs_regcache_unlock(cache);

    cache->env.wake_waiters(cache->env.arg,
                            ucs_regcache_region_wait_word(region));
    return status;
}

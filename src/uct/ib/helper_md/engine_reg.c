/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

static ucs_status_t uct_helper_lower_reg(uct_helper_engine_h engine,
                                         uct_helper_region_t *region,
                                         unsigned flags, uct_mem_h *memh_p)
{
    uint64_t start = uct_helper_engine_now(engine);
    ucs_status_t status;

    status = engine->env.mem_reg(engine->env.arg,
                                 (void*)ucs_load_relaxed(&region->start),
                                 uct_helper_region_length(region), flags,
                                 memh_p);
    if (status == UCS_OK) {
        start = uct_helper_engine_now(engine) - start;
        uct_helper_engine_lock(engine);
        ucs_predict_cost_update(&engine->register_cost,
                                uct_helper_engine_pages(engine, region),
                                start);
        uct_helper_engine_unlock(engine);
    }
    return status;
}

/* The verbs domain of UCX 1.13 reports a full device or memlock limit as an
 * I/O error */
int uct_helper_status_is_exhausted(ucs_status_t status)
{
    return (status == UCS_ERR_NO_MEMORY) || (status == UCS_ERR_IO_ERROR) ||
           (status == UCS_ERR_NO_RESOURCE);
}

/* A use: what fails for want of memory or regions is tried again after idle
 * registrations have been given up. Quietly, for the caller has a way left. */
static ucs_status_t uct_helper_lower_reg_use(uct_helper_engine_h engine,
                                             uct_helper_region_t *region,
                                             unsigned flags, uct_mem_h *memh_p)
{
    ucs_status_t status;

    status = uct_helper_lower_reg(engine, region, flags, memh_p);
    if (!uct_helper_status_is_exhausted(status)) {
        return status;
    }

    ucs_store_relaxed(&engine->pressed, 1);
    (void)uct_helper_engine_evict_for(
            engine, uct_helper_engine_pinned_length(engine, region));
    return uct_helper_lower_reg(engine, region, flags, memh_p);
}

/* Under the lock; references do not change while a region is REGISTERING */
static ucs_status_t uct_helper_region_publish(uct_helper_engine_h engine,
                                              uct_helper_region_t *region,
                                              uct_mem_h memh, uint64_t now,
                                              unsigned refs)
{
    uint64_t word = ucs_load_relaxed(&region->word);
    int doomed    = !!(word & UCT_HELPER_WORD_DOOMED);

    ucs_store_release(&region->memh, memh); /* [R-FIELDS] */
    uct_helper_index_add_memh(&engine->index, region);
    if (refs == 0) {
        ucs_store_relaxed(&region->use_start, now); /* of who waited */
        ucs_store_relaxed(&region->last_use, now);
    }
    if (!doomed) {
        uct_helper_heap_push(uct_helper_region_lru(engine, region), region);
    }
    if (uct_helper_word_refs(word) > 0) {
        uct_helper_engine_in_use(engine,
                                 uct_helper_engine_pinned_length(engine,
                                                                 region));
    }
    /* release [R-LIVE]: pairs with the acquire in try_ref and in waiters */
    ucs_store_release(&region->word,
                      uct_helper_word_set_state(word, UCT_HELPER_STATE_LIVE));
    if (doomed && (uct_helper_word_refs(word) == 0)) {
        uct_helper_region_reclaim(engine, region);
    }
    return (doomed && (refs == 0)) ? UCS_ERR_CANCELED : UCS_OK;
}

/* Under the lock. Whoever waits finds the region doomed and goes his own way;
 * the last of them frees it. */
static void uct_helper_region_abandon(uct_helper_engine_h engine,
                                      uct_helper_region_t *region,
                                      unsigned refs)
{
    uint64_t word = ucs_load_relaxed(&region->word) -
                    refs * UCT_HELPER_WORD_REF;

    if (!(word & UCT_HELPER_WORD_DOOMED)) {
        uct_helper_index_remove(&engine->index, region);
    }
    if (uct_helper_word_refs(word) == 0) {
        uct_helper_region_free(engine, region);
        return;
    }
    /* release [R-LIVE]: pairs with the acquire in waiters */
    ucs_store_release(&region->word,
                      uct_helper_word_set_state(word,
                                                UCT_HELPER_STATE_DORMANT) |
                              UCT_HELPER_WORD_DOOMED);
}

/* Under the lock. What found no room, and nobody waits for, may come later. */
static void uct_helper_region_fail(uct_helper_engine_h engine,
                                   uct_helper_region_t *region,
                                   ucs_status_t status, unsigned refs)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    if ((status == UCS_ERR_EXCEEDS_LIMIT) &&
        (uct_helper_word_refs(word) == 0) &&
        !(word & UCT_HELPER_WORD_DOOMED)) {
        /* release [R-LIVE]: pairs with the acquire in waiters */
        ucs_store_release(&region->word,
                          uct_helper_word_set_state(
                                  word, UCT_HELPER_STATE_DORMANT));
    } else {
        uct_helper_region_abandon(engine, region, refs);
    }
}

ucs_status_t uct_helper_region_register(uct_helper_engine_h engine,
                                        uct_helper_region_t *region,
                                        unsigned flags, unsigned refs)
{
    int is_use = (refs > 0);
    uct_mem_h memh = NULL;
    ucs_status_t status;
    int may_keep, has_room;
    uint64_t now;

    flags   |= UCT_MD_MEM_FLAG_HIDE_ERRORS;
    /* Asked anew each time: the memory was let go of since the last use */
    may_keep = is_use || uct_helper_engine_may_keep(engine, region, 0);
    has_room = may_keep && uct_helper_engine_make_room(engine, region, is_use);
    if (!has_room) {
        status = may_keep ? UCS_ERR_EXCEEDS_LIMIT : UCS_ERR_REJECTED;
    } else if (is_use) {
        status = uct_helper_lower_reg_use(engine, region, flags, &memh);
    } else {
        status = uct_helper_lower_reg(engine, region, flags, &memh);
    }
    now = uct_helper_engine_now(engine);

    uct_helper_engine_lock(engine);
    engine->account.transit -= has_room;
    engine->account.wanted  -= has_room && is_use;
    if (status == UCS_OK) {
        status = uct_helper_region_publish(engine, region, memh, now, refs);
    } else {
        if (has_room) {
            uct_helper_engine_account_region(engine, region, -1, now);
            ++engine->account.failed;
        }
        uct_helper_region_fail(engine, region, status, refs);
    }
    uct_helper_engine_unlock(engine);

    engine->env.wake_waiters(engine->env.arg,
                             uct_helper_region_wait_word(region));
    return status;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <ucs/sys/compiler_def.h>

#include <stdlib.h>

/* What the helper registered itself it looks after by itself; a use that it did
 * not foresee (@a wake) it must be told of. A hit never makes that call. */
static void uct_helper_engine_queue(uct_helper_engine_h engine,
                                    const uct_helper_use_t *use, unsigned wake)
{
    (void)uct_helper_dq_push(engine->dq, use);
    if (wake) {
        engine->env.wake(engine->env.arg);
    }
}

static void uct_helper_engine_drop(uct_helper_engine_h engine,
                                   uct_helper_region_t *region)
{
    int is_claimed;

    uct_helper_engine_lock(engine);
    is_claimed = uct_helper_region_claim(engine, region);
    uct_helper_engine_unlock(engine);
    if (is_claimed) {
        uct_helper_region_deregister(engine, region, NULL);
    }
}

void uct_helper_engine_doomed(uct_helper_engine_h engine,
                                     uct_helper_region_t *region)
{
    int is_waited_for;

    uct_helper_engine_lock(engine);
    is_waited_for = (region->invalidate != NULL);
    uct_helper_region_reclaim(engine, region);
    uct_helper_engine_unlock(engine);

    /* Completions run in the thread that asked for them or a fellow of it,
     * never in the helper, if that can be had */
    if (is_waited_for || !uct_helper_engine_needs_helper(engine)) {
        uct_helper_engine_reclaim(engine);
    } else {
        engine->env.wake(engine->env.arg);
    }
}

static void uct_helper_engine_idle_region(uct_helper_engine_h engine,
                                          uct_helper_region_t *region,
                                          uint64_t word, unsigned wake,
                                          const uct_helper_use_t *use)
{
    if (ucs_unlikely(word & UCT_HELPER_WORD_DOOMED)) {
        uct_helper_engine_doomed(engine, region);
        return;
    }

    switch (ucs_load_relaxed(&region->idle)) {
    case UCT_HELPER_IDLE_QUEUE:
        uct_helper_engine_queue(engine, use, wake);
        break;
    case UCT_HELPER_IDLE_DROP:
        uct_helper_engine_drop(engine, region);
        break;
    default:
        /* relaxed: a measure, the ceiling is looked at under the lock */
        if (ucs_unlikely(ucs_load_relaxed(&engine->is_over))) {
            uct_helper_engine_trim(engine);
        }
        break;
    }
}

/* All that concerns the end of a use is written before the reference goes:
 * afterwards the region may already be another's. If another user arrives
 * meanwhile, the use goes on and what was written is taken back. */
void uct_helper_region_put(uct_helper_engine_h engine,
                           uct_helper_region_t *region, uint64_t now)
{
    uint64_t word = ucs_load_acquire(&region->word);
    uct_helper_use_t use;
    unsigned wake;
    uint64_t busy;
    size_t pinned;

    while (uct_helper_word_refs(word) > 1) {
        if (ucs_cas_acq_rel(&region->word, &word,
                            word - UCT_HELPER_WORD_REF)) {
            return;
        }
    }

    use.region     = region;
    use.generation = uct_helper_word_gen(word);
    use.start_ns   = ucs_load_relaxed(&region->use_start);
    use.end_ns     = now;
    use.sp         = ucs_load_relaxed(&region->sp);
    use.address    = ucs_load_relaxed(&region->start);
    use.length     = uct_helper_region_length(region);
    pinned         = uct_helper_engine_pinned_length(engine, region);
    busy           = (now > use.start_ns) ? now - use.start_ns : 0;
    ucs_store_relaxed(&region->busy_ns,
                      ucs_load_relaxed(&region->busy_ns) + busy);
    ucs_store_relaxed(&region->last_use, now);
    wake = ucs_load_relaxed(&region->wake);
    if (wake) {
        ucs_store_relaxed(&region->wake, 0);
    }
    /* release [R-PUT]: pairs with the acquire in claim and try_ref; the doom
     * bit may have appeared since, a reference may have */
    while (!ucs_cas_acq_rel(&region->word, &word,
                            word - UCT_HELPER_WORD_REF)) {
        if (uct_helper_word_refs(word) > 1) {
            ucs_store_relaxed(&region->busy_ns,
                              ucs_load_relaxed(&region->busy_ns) - busy);
            if (wake) {
                ucs_store_relaxed(&region->wake, 1);
            }
            uct_helper_region_put(engine, region, now);
            return;
        }
    }
    ucs_sub_relaxed(&engine->in_use, pinned);
    uct_helper_engine_idle_region(engine, region, word, wake, &use);
}

static ucs_status_t uct_helper_region_invalidate(uct_helper_engine_h engine,
                                                 uct_helper_region_t *region,
                                                 uct_completion_t *comp)
{
    uct_helper_invalidate_t *entry = malloc(sizeof(*entry));

    if (entry == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    entry->comp = comp;
    uct_helper_engine_lock(engine);
    entry->next        = region->invalidate;
    region->invalidate = entry;
    if (!(ucs_load_relaxed(&region->word) & UCT_HELPER_WORD_DOOMED)) {
        (void)uct_helper_region_doom(engine, region);
    }
    uct_helper_engine_unlock(engine);
    return UCS_OK;
}

static uct_helper_region_t *
uct_helper_engine_find_memh(uct_helper_engine_h engine, uct_mem_h memh)
{
    uct_helper_hint_t *hint = uct_helper_index_memh_hint(&engine->index, memh);
    uct_helper_region_t *region;

    /* The caller has a reference on the region with this handle, and no other
     * that is registered has the same: a match cannot be stale [R-FIELDS] */
    region = ucs_load_relaxed(hint);
    if (ucs_likely((region != NULL) &&
                   (ucs_load_acquire(&region->memh) == memh))) {
        return region;
    }

    uct_helper_engine_lock(engine);
    region = uct_helper_index_find_memh(&engine->index, memh);
    uct_helper_engine_unlock(engine);
    if (region != NULL) {
        ucs_store_relaxed(hint, region);
    }
    return region;
}

ucs_status_t uct_helper_engine_put(uct_helper_engine_h engine, uct_mem_h memh,
                                   uct_completion_t *comp)
{
    uct_helper_region_t *region = uct_helper_engine_find_memh(engine, memh);
    ucs_status_t status;

    if (ucs_unlikely(region == NULL)) {
        return UCS_ERR_NO_ELEM;
    }

    if (ucs_unlikely(comp != NULL)) {
        status = uct_helper_region_invalidate(engine, region, comp);
        if (status != UCS_OK) {
            return status;
        }
    }

    uct_helper_region_put(engine, region, uct_helper_engine_now(engine));
    return UCS_OK;
}

int uct_helper_engine_is_gone(uct_helper_engine_h engine, uct_mem_h memh)
{
    uct_helper_region_t *region = uct_helper_engine_find_memh(engine, memh);

    return (region != NULL) &&
           (ucs_load_acquire(&region->word) & UCT_HELPER_WORD_DOOMED);
}

/*
 * Memory events
 */

/* Under the lock. @return Nonzero if there is something to reclaim. */
static int uct_helper_engine_strike(uct_helper_engine_h engine,
                                    uct_helper_region_t *region)
{
    uint64_t word            = uct_helper_region_doom(engine, region);
    uct_helper_state_t state = uct_helper_word_state(word);

    if ((state == UCT_HELPER_STATE_LIVE) ||
        (state == UCT_HELPER_STATE_REGISTERING)) {
        ++engine->account.invalidated;
    }
    /* In any other state, or with users, whoever holds it sees the doom */
    if ((uct_helper_word_refs(word) > 0) ||
        ((state != UCT_HELPER_STATE_LIVE) &&
         (state != UCT_HELPER_STATE_DORMANT))) {
        return 0;
    }
    uct_helper_region_reclaim(engine, region);
    return 1;
}

/* Under the lock. @return Nonzero if there is something to reclaim. */
static int uct_helper_engine_strike_range(uct_helper_engine_h engine,
                                          uintptr_t start, uintptr_t end)
{
    int reclaim = 0;
    uct_helper_region_t *region;

    while ((region = uct_helper_index_first(&engine->index, start, end)) !=
           NULL) {
        reclaim |= uct_helper_engine_strike(engine, region);
    }
    return reclaim;
}

/* Under the lock. @return as above. */
static int uct_helper_engine_forget_range(uct_helper_engine_h engine,
                                          uintptr_t start, uintptr_t end,
                                          uint64_t now)
{
    int reclaim = uct_helper_engine_strike_range(engine, start, end);

    uct_helper_engine_account(engine, now);
    ++engine->events;
    uct_helper_extents_remove(&engine->seen, start, end);
    uct_helper_extents_remove(&engine->kept, start, end);
    uct_helper_extents_remove(&engine->barred, start, end);
    return reclaim;
}

/* An event that comes during the strike marks what is marked already; nothing
 * comes into look-up meanwhile, so the strike is for it as well */
void uct_helper_engine_strike_all(uct_helper_engine_h engine)
{
    engine->is_struck |= uct_helper_engine_forget_range(engine, 0, UINTPTR_MAX,
                                                        engine->account.time);
    /* release [R-GATE]: pairs with the acquire in get */
    (void)ucs_and_acq_rel(&engine->gate, ~(uint32_t)UCT_HELPER_GATE_EVENT);
}

/* Under the lock, which is let go */
static void uct_helper_engine_forget(uct_helper_engine_h engine,
                                     uintptr_t address, size_t length,
                                     uint64_t now)
{
    uintptr_t start = uct_helper_engine_page_down(engine, address);
    uintptr_t end   = (length > UINTPTR_MAX - address) ?
                              UINTPTR_MAX :
                              uct_helper_engine_page_up(engine,
                                                        address + length);
    int reclaim     = uct_helper_engine_forget_range(engine, start, end, now);

    uct_helper_engine_unlock(engine);
    if (reclaim) {
        engine->env.wake(engine->env.arg);
    }
}

void uct_helper_engine_unmapped(uct_helper_engine_h engine, uintptr_t address,
                                size_t length)
{
    uint64_t now = uct_helper_engine_now(engine);

    if (ucs_unlikely(uct_helper_lock_is_mine(&engine->lock))) {
        (void)ucs_or_acq_rel(&engine->gate, UCT_HELPER_GATE_EVENT);
        return;
    }

    uct_helper_engine_lock(engine);
    uct_helper_engine_forget(engine, address, length, now);
}

int uct_helper_engine_try_unmapped(uct_helper_engine_h engine,
                                   uintptr_t address, size_t length)
{
    uint64_t now = uct_helper_engine_now(engine);

    if (!uct_helper_lock_try(&engine->lock)) {
        return 0;
    }
    uct_helper_engine_forget(engine, address, length, now);
    return 1;
}

/*
 * Distrust
 */

/* What may be kept is asked again afterwards: it may be watched no more */
void uct_helper_engine_distrust(uct_helper_engine_h engine, unsigned reason)
{
    uct_helper_engine_lock(engine);
    if (ucs_or_acq_rel(&engine->distrust, reason) == 0) {
        (void)uct_helper_engine_strike_range(engine, 0, UINTPTR_MAX);
        ++engine->events;
    }
    uct_helper_extents_remove(&engine->kept, 0, UINTPTR_MAX);
    uct_helper_engine_unlock(engine);

    /* To reclaim, and to look when it may be trusted again */
    engine->env.wake(engine->env.arg);
}

void uct_helper_engine_trust(uct_helper_engine_h engine, unsigned reason)
{
    uct_helper_engine_lock(engine);
    ucs_store_relaxed(&engine->distrust,
                      ucs_load_relaxed(&engine->distrust) & ~reason);
    uct_helper_engine_unlock(engine);
}

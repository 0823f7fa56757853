/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_int.h"

#include <ucs/sys/compiler_def.h>

#include <stdlib.h>

/* What the helper registered itself it looks after by itself; a use that it did
 * not foresee (@a wake) it must be told of. A hit never makes that call. */
static void ucs_regcache_queue(ucs_regcache_h cache, const ucs_use_t *use,
                               unsigned wake)
{
    (void)ucs_dq_push(cache->use.queue, use);
    if (wake) {
        cache->env.wake(cache->env.arg);
    }
}

static void ucs_regcache_drop(ucs_regcache_h cache,
                              ucs_regcache_region_t *region)
{
    int is_taken;

    ucs_regcache_lock(cache);
    is_taken = ucs_regcache_region_take_idle(cache, region);
    ucs_regcache_unlock(cache);
    if (is_taken) {
        ucs_regcache_region_deregister(cache, region, NULL);
    }
}

void ucs_regcache_doomed(ucs_regcache_h cache, ucs_regcache_region_t *region)
{
    int is_waited_for;

    ucs_regcache_lock(cache);
    is_waited_for = (region->invalidate != NULL);
    ucs_regcache_region_reclaim(cache, region);
    ucs_regcache_unlock(cache);

    /* Completions run in the thread that asked for them or a fellow of it,
     * never in the helper, if that can be had */
    if (is_waited_for || !ucs_regcache_needs_helper(cache)) {
        ucs_regcache_reclaim(cache);
    } else {
        cache->env.wake(cache->env.arg);
    }
}

static void ucs_regcache_idle_region(ucs_regcache_h cache,
                                     ucs_regcache_region_t *region,
                                     uint64_t word, unsigned wake,
                                     const ucs_use_t *use)
{
    if (ucs_unlikely(word & UCS_REGCACHE_WORD_DOOMED)) {
        ucs_regcache_doomed(cache, region);
        return;
    }

    switch (ucs_load_relaxed(&region->idle)) {
    case UCS_REGCACHE_IDLE_QUEUE:
        ucs_regcache_queue(cache, use, wake);
        break;
    case UCS_REGCACHE_IDLE_DROP:
        ucs_regcache_drop(cache, region);
        break;
    default:
        /* relaxed: a measure, the ceiling is looked at under the lock */
        if (ucs_unlikely(ucs_load_relaxed(&cache->is_over))) {
            ucs_regcache_trim(cache);
        }
        break;
    }
}

/* All that concerns the end of a use is written before the reference goes:
 * afterwards the region may already be another's. If another user arrives
 * meanwhile, the use goes on and what was written is taken back. */
void ucs_regcache_region_put(ucs_regcache_h cache,
                             ucs_regcache_region_t *region, uint64_t now)
{
    uint64_t word = ucs_load_acquire(&region->word); /* [R-PUT] */
    ucs_use_t use;
    unsigned wake;
    uint64_t busy;
    size_t pinned;

    while (ucs_regcache_word_refs(word) > 1) {
        /* acq_rel [R-PUT]: pairs with that of the user that is the last */
        if (ucs_cas_acq_rel(&region->word, &word,
                            word - UCS_REGCACHE_WORD_REF)) {
            return;
        }
    }

    use.region     = region;
    use.generation = ucs_regcache_word_gen(word);
    use.start_ns   = ucs_load_relaxed(&region->use_start);
    use.end_ns     = now;
    use.sp         = ucs_load_relaxed(&region->sp);
    use.address    = ucs_load_relaxed(&region->start);
    use.length     = ucs_regcache_region_length(region);
    pinned         = ucs_regcache_pinned_length(region);
    busy           = (now > use.start_ns) ? now - use.start_ns : 0;
    ucs_store_relaxed(&region->busy_ns,
                      ucs_load_relaxed(&region->busy_ns) + busy);
    ucs_store_relaxed(&region->last_use, now);
    wake = ucs_load_relaxed(&region->wake);
    if (wake) {
        ucs_store_relaxed(&region->wake, 0);
    }
    /* release [R-PUT]: pairs with the acquire in take_idle and try_ref; the
     * doom bit may have appeared since, a reference may have */
    while (!ucs_cas_acq_rel(&region->word, &word,
                            word - UCS_REGCACHE_WORD_REF)) {
        if (ucs_regcache_word_refs(word) > 1) {
            ucs_store_relaxed(&region->busy_ns,
                              ucs_load_relaxed(&region->busy_ns) - busy);
            if (wake) {
                ucs_store_relaxed(&region->wake, 1);
            }
            ucs_regcache_region_put(cache, region, now);
            return;
        }
    }
    ucs_sub_relaxed(&cache->use.bytes, pinned);
    ucs_regcache_idle_region(cache, region, word, wake, &use);
}

static ucs_status_t ucs_regcache_region_invalidate(
        ucs_regcache_h cache, ucs_regcache_region_t *region,
        ucs_regcache_comp_t comp)
{
    ucs_regcache_invalidate_t *entry = malloc(sizeof(*entry));

    if (entry == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    entry->comp = comp;
    ucs_regcache_lock(cache);
    entry->next        = region->invalidate;
    region->invalidate = entry;
    if (!(ucs_load_relaxed(&region->word) & UCS_REGCACHE_WORD_DOOMED)) {
        (void)ucs_regcache_region_doom(cache, region);
    }
    ucs_regcache_unlock(cache);
    return UCS_OK;
}

static ucs_regcache_region_t *ucs_regcache_find_memh(ucs_regcache_h cache,
                                                     ucs_regcache_memh_t memh)
{
    ucs_regcache_hint_t *hint = ucs_regcache_index_memh_hint(&cache->index,
                                                             memh);
    ucs_regcache_region_t *region;

    /* The caller has a reference on the region with this handle, and no other
     * that is registered has the same: a match cannot be stale [R-FIELDS] */
    region = ucs_load_relaxed(hint);
    if (ucs_likely((region != NULL) &&
                   (ucs_load_acquire(&region->memh) == memh))) {
        return region;
    }

    ucs_regcache_lock(cache);
    region = ucs_regcache_index_find_memh(&cache->index, memh);
    ucs_regcache_unlock(cache);
    if (region != NULL) {
        ucs_store_relaxed(hint, region);
    }
    return region;
}

ucs_status_t ucs_regcache_put(ucs_regcache_h cache, ucs_regcache_memh_t memh,
                              ucs_regcache_comp_t comp)
{
    ucs_regcache_region_t *region = ucs_regcache_find_memh(cache, memh);
    ucs_status_t status;

    if (ucs_unlikely(region == NULL)) {
        return UCS_ERR_NO_ELEM;
    }

    if (ucs_unlikely(comp != NULL)) {
        status = ucs_regcache_region_invalidate(cache, region, comp);
        if (status != UCS_OK) {
            return status;
        }
    }

    ucs_regcache_region_put(cache, region, ucs_regcache_now(cache));
    return UCS_OK;
}

int ucs_regcache_is_gone(ucs_regcache_h cache, ucs_regcache_memh_t memh)
{
    ucs_regcache_region_t *region = ucs_regcache_find_memh(cache, memh);

    /* relaxed: the event that dooms a region has its own order with the caller,
     * which asks after it */
    return (region != NULL) &&
           (ucs_load_relaxed(&region->word) & UCS_REGCACHE_WORD_DOOMED);
}

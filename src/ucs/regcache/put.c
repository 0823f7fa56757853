/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "regcache_int.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_memory.h>

/* A new buffer is rented, so the helper need not hear of its use at once, and a wake-up
 * is a system call.
 *
 * seq_cst [R-DUE]: with those in the helper's step. Either it sees that there
 * is something to learn, or its time is seen here. Of two that tell at once the
 * more patient may win, once. */
static int ucs_regcache_comes_late(ucs_regcache_h cache, uint64_t now,
                                   uint64_t patience)
{
    uint64_t before = ucs_load_relaxed(&cache->plan.patience);
    uint64_t due;

    before = (before == 0) ? patience : ucs_min(before, patience);
    ucs_store_seq_cst(&cache->plan.patience, before); /* [R-DUE] */
    due    = ucs_load_seq_cst(&cache->plan.next_due); /* [R-DUE] */
    return due > now + patience;
}

/* The helper looks after its own registrations by itself. Only a use that it did not
 * foresee (@a wake) wakes it, never a hit. */
static void ucs_regcache_queue(ucs_regcache_h cache, const ucs_use_t *use,
                               unsigned wake, int is_first)
{
    uint64_t patience;

    if (ucs_likely(is_first)) {
        (void)ucs_dq_push_alone(cache->use.queue, use);
    } else {
        (void)ucs_dq_push(cache->use.queue, use);
    }
    if (ucs_likely(!wake)) {
        return;
    }
    patience = (wake == UCS_REGCACHE_WAKE_RARELY) ? cache->tuning.patrol_ns :
                                                    cache->tuning.leisure_ns;
    if ((wake == UCS_REGCACHE_WAKE_NOW) ||
        ucs_regcache_comes_late(cache, use->end_ns, patience)) {
        cache->env.wake(cache->env.arg);
    }
}

/* @a may_leave  The helper may do it. */
static void ucs_regcache_drop(ucs_regcache_h cache,
                              ucs_regcache_region_t *region, int may_leave)
{
    ucs_regcache_loss_t loss = {.since = ucs_regcache_now(cache),
                                .why   = UCS_REGCACHE_LOST_RELEASED};
    int is_left, is_taken;

    ucs_regcache_lock(cache);
    ucs_regcache_account(cache, loss.since);
    is_left  = may_leave && ucs_regcache_drop_later(cache, region);
    is_taken = !is_left && ucs_regcache_region_take_idle(cache, region);
    ucs_regcache_unlock(cache);
    if (is_left) {
        cache->env.wake(cache->env.arg);
    } else if (is_taken) {
        ucs_regcache_region_deregister(cache, region, NULL, &loss);
    }
}

/* What the caller has done since then, other than a use, was deregistering */
static void ucs_regcache_lose(ucs_regcache_h cache, uint64_t since)
{
    ucs_regcache_loss_t loss = {.since = since,
                                .why   = UCS_REGCACHE_LOST_RELEASED};
    uint64_t now             = ucs_regcache_now(cache);

    ucs_regcache_lock(cache);
    ucs_regcache_account_loss(cache, &loss, now);
    ucs_regcache_unlock(cache);
}

void ucs_regcache_doomed(ucs_regcache_h cache, ucs_regcache_region_t *region)
{
    uint64_t since = ucs_regcache_now(cache);
    int is_mine;

    ucs_regcache_lock(cache);
    /* Completions run in the thread that asked for them or a fellow of it,
     * never in the helper, if that can be had */
    is_mine = (region->invalidate != NULL) || !ucs_regcache_needs_helper(cache);
    ucs_regcache_region_reclaim(cache, region);
    ucs_regcache_unlock(cache);

    if (is_mine) {
        ucs_regcache_reclaim(cache);
        ucs_regcache_lose(cache, since);
    } else {
        cache->env.wake(cache->env.arg);
    }
}

/* The rare ends of a use; @a idle is what the region says */
static UCS_F_NOINLINE void
ucs_regcache_idle_rare(ucs_regcache_h cache, ucs_regcache_region_t *region,
                       uint64_t word, unsigned idle, unsigned wake,
                       int is_first, const ucs_use_t *use)
{
    uint64_t since;

    if (word & UCS_REGCACHE_WORD_DOOMED) {
        ucs_regcache_doomed(cache, region);
    } else if (idle == UCS_REGCACHE_IDLE_DROP) {
        ucs_regcache_drop(cache, region, 1);
    } else if (idle == UCS_REGCACHE_IDLE_BOTH) {
        ucs_regcache_queue(cache, use, wake, is_first);
        ucs_regcache_drop(cache, region, 0);
    } else {
        since = ucs_regcache_now(cache);
        ucs_regcache_trim(cache);
        ucs_regcache_lose(cache, since);
    }
}

/* @a word is what it was before the last reference went. What the region says
 * is read only now: the thread that changed it during a use relies on it. */
static UCS_F_ALWAYS_INLINE void
ucs_regcache_idle_region(ucs_regcache_h cache, ucs_regcache_region_t *region,
                         uint64_t word, unsigned wake, int is_first,
                         const ucs_use_t *use)
{
    unsigned idle = ucs_load_relaxed(&region->idle);

    /* is_over is relaxed: a measure, the ceiling is looked at under the lock */
    if (ucs_unlikely((word & UCS_REGCACHE_WORD_DOOMED) ||
                     (idle >= UCS_REGCACHE_IDLE_DROP) ||
                     ((idle == UCS_REGCACHE_IDLE_KEEP) &&
                      ucs_load_relaxed(&cache->is_over)))) {
        ucs_regcache_idle_rare(cache, region, word, idle, wake, is_first, use);
    } else if (idle == UCS_REGCACHE_IDLE_QUEUE) {
        ucs_regcache_queue(cache, use, wake, is_first);
    }
}

/*
 * The last user. All that concerns the end of a use is written before the
 * reference goes: afterwards the region may already be another's. If another
 * user arrives meanwhile, the use goes on and what was written is taken back.
 */
static UCS_F_ALWAYS_INLINE void
ucs_regcache_use_over(ucs_regcache_h cache, ucs_regcache_region_t *region,
                      uint64_t word, uint64_t start, uint64_t end,
                      unsigned wake)
{
    uint64_t busy       = (end > start) ? end - start : 0;
    size_t pinned       = ucs_regcache_pinned_length(region);
    const ucs_use_t use = {.region     = region,
                           .generation = ucs_regcache_word_gen(word),
                           .start_ns   = start,
                           .end_ns     = end,
                           .sp         = ucs_load_relaxed(&region->sp),
                           .address    = ucs_load_relaxed(&region->start),
                           .length     = ucs_regcache_region_length(region)};
    int is_first;

    ucs_store_relaxed(&region->busy_ns,
                      ucs_load_relaxed(&region->busy_ns) + busy);
    ucs_store_relaxed(&region->last_use, end);
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
            ucs_store_relaxed(&region->untimed, 0);
            if (wake) {
                ucs_store_relaxed(&region->wake, wake);
            }
            ucs_regcache_region_put(cache, region);
            return;
        }
    }
    is_first = ucs_first_is_me(&cache->use.first);
    (void)ucs_first_sum_add(&cache->use.bytes, is_first, -pinned);
    ucs_regcache_idle_region(cache, region, word, wake, is_first, &use);
}

/* Read the clock at the end of a use that began at @a start */
static uint64_t ucs_regcache_use_time(ucs_regcache_h cache,
                                      ucs_regcache_region_t *region,
                                      uint64_t start)
{
    uint64_t now    = ucs_regcache_now(cache);
    uint64_t took   = (now > start) ? now - start : 0;
    uint32_t shorts = ucs_load_relaxed(&region->shorts);

    ucs_store_relaxed(&region->untimed, 0);
    if (took >= UCS_REGCACHE_SHORT_USE_NS) {
        ucs_store_relaxed(&region->shorts, 0);
    } else if (shorts < UCS_REGCACHE_END_SAMPLE) {
        ucs_store_relaxed(&region->shorts, shorts + 1);
    } else {
        ucs_store_relaxed(&region->usual_ns, (uint32_t)took);
        ucs_store_relaxed(&region->untimed, UCS_REGCACHE_END_SAMPLE - 1);
    }
    return now;
}

void ucs_regcache_region_put(ucs_regcache_h cache,
                             ucs_regcache_region_t *region)
{
    uint64_t word = ucs_load_acquire(&region->word); /* [R-PUT] */
    uint64_t start;

    while (ucs_regcache_word_refs(word) > 1) {
        /* acq_rel [R-PUT]: pairs with that of the user that is the last */
        if (ucs_cas_acq_rel(&region->word, &word,
                            word - UCS_REGCACHE_WORD_REF)) {
            return;
        }
    }

    start = ucs_load_relaxed(&region->use_start);
    ucs_regcache_use_over(cache, region, word, start,
                          ucs_regcache_use_time(cache, region, start),
                          ucs_load_relaxed(&region->wake));
}

/* A use like those before it of the same region: nothing here is called unless
 * it is for the last time, so no register is saved */
static UCS_F_ALWAYS_INLINE void
ucs_regcache_region_put_fast(ucs_regcache_h cache,
                             ucs_regcache_region_t *region)
{
    uint64_t word    = ucs_load_acquire(&region->word); /* [R-PUT] */
    uint64_t start   = ucs_load_relaxed(&region->use_start);
    uint32_t untimed = ucs_load_relaxed(&region->untimed);

    if (ucs_unlikely((ucs_regcache_word_refs(word) > 1) || (untimed == 0) ||
                     ucs_load_relaxed(&region->wake))) {
        ucs_regcache_region_put(cache, region);
        return;
    }

    ucs_store_relaxed(&region->untimed, untimed - 1);
    ucs_regcache_use_over(cache, region, word, start,
                          start + ucs_load_relaxed(&region->usual_ns), 0);
}

static ucs_status_t ucs_regcache_region_invalidate(
        ucs_regcache_h cache, ucs_regcache_region_t *region,
        ucs_regcache_comp_t comp)
{
    ucs_regcache_invalidate_t *entry = ucs_own_alloc(sizeof(*entry));

    if (entry == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    entry->comp = comp;
    ucs_regcache_lock(cache);
    ucs_regcache_account(cache, ucs_regcache_now(cache));
    entry->next        = region->invalidate;
    region->invalidate = entry;
    if (!(ucs_load_relaxed(&region->word) & UCS_REGCACHE_WORD_DOOMED)) {
        (void)ucs_regcache_region_doom(cache, region);
    }
    ucs_regcache_unlock(cache);
    return UCS_OK;
}

/* @return NULL if the hint is of another region. */
static UCS_F_ALWAYS_INLINE ucs_regcache_region_t *
ucs_regcache_hinted_memh(ucs_regcache_h cache, ucs_regcache_memh_t memh)
{
    ucs_regcache_region_t *region = ucs_load_relaxed(
            ucs_regcache_index_memh_hint(&cache->index, memh));

    /* acquire [R-FIELDS]: the caller has a reference on the region with this
     * handle, and no other that is registered has the same: a match cannot be
     * stale */
    return ucs_likely((region != NULL) &&
                      (ucs_load_acquire(&region->memh) == memh)) ?
                   region :
                   NULL;
}

static ucs_regcache_region_t *ucs_regcache_find_memh(ucs_regcache_h cache,
                                                     ucs_regcache_memh_t memh)
{
    ucs_regcache_region_t *region = ucs_regcache_hinted_memh(cache, memh);

    if (region != NULL) {
        return region;
    }

    ucs_regcache_lock(cache);
    region = ucs_regcache_index_find_memh(&cache->index, memh);
    ucs_regcache_unlock(cache);
    if (region != NULL) {
        ucs_store_relaxed(ucs_regcache_index_memh_hint(&cache->index, memh),
                          region);
    }
    return region;
}

static UCS_F_NOINLINE ucs_status_t
ucs_regcache_put_slow(ucs_regcache_h cache, ucs_regcache_memh_t memh,
                      ucs_regcache_comp_t comp)
{
    ucs_regcache_region_t *region = ucs_regcache_find_memh(cache, memh);
    ucs_status_t status;

    if (region == NULL) {
        return UCS_ERR_NO_ELEM;
    }

    if (comp != NULL) {
        status = ucs_regcache_region_invalidate(cache, region, comp);
        if (status != UCS_OK) {
            return status;
        }
    }

    ucs_regcache_region_put(cache, region);
    return UCS_OK;
}

ucs_status_t ucs_regcache_put(ucs_regcache_h cache, ucs_regcache_memh_t memh,
                              ucs_regcache_comp_t comp)
{
    ucs_regcache_region_t *region = ucs_regcache_hinted_memh(cache, memh);

    if (ucs_unlikely((region == NULL) || (comp != NULL))) {
        return ucs_regcache_put_slow(cache, memh, comp);
    }

    ucs_regcache_region_put_fast(cache, region);
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

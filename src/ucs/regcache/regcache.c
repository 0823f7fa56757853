/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_int.h"

#include <ucs/sys/compiler_def.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UCS_REGCACHE_DQ_LENGTH    1024
#define UCS_REGCACHE_MAX_CONTEXTS 4096

/* Models before the first sample, on the dear side of what NICs of the last
 * fifteen years need (Goglin 2009, table 1), so that the first predictions
 * err towards registering early */
#define UCS_REGCACHE_REG_NS_PER_PAGE   250.0
#define UCS_REGCACHE_REG_NS            20000.0
#define UCS_REGCACHE_DEREG_NS_PER_PAGE 100.0
#define UCS_REGCACHE_DEREG_NS          10000.0

/* Lateness of the helper's wake-up before it has been measured */
#define UCS_REGCACHE_LATENESS_NS 100000

const char *ucs_regcache_policy_names[] = {
        [UCS_REGCACHE_POLICY_PREDICT]      = "predict",
        [UCS_REGCACHE_POLICY_PAPER]        = "paper",
        [UCS_REGCACHE_POLICY_LEAVE_PINNED] = "leave_pinned",
        [UCS_REGCACHE_POLICY_ON_DEMAND]    = "on_demand",
        [UCS_REGCACHE_POLICY_LRU]          = "lru",
        [UCS_REGCACHE_POLICY_LAST]         = NULL};

/*
 * Life
 */

static const ucs_regcache_policy_ops_t *
ucs_regcache_policy_find(ucs_regcache_policy_t policy)
{
    switch (policy) {
    case UCS_REGCACHE_POLICY_PREDICT:
        return &ucs_regcache_policy_order;
    case UCS_REGCACHE_POLICY_PAPER:
        return &ucs_regcache_policy_paper;
    default:
        return NULL;
    }
}

static ucs_status_t ucs_regcache_init(ucs_regcache_h cache,
                                      const ucs_regcache_params_t *params)
{
    size_t page_size = params->page_size ? params->page_size :
                                           (size_t)sysconf(_SC_PAGESIZE);

    if ((params->policy >= UCS_REGCACHE_POLICY_LAST) ||
        (page_size & (page_size - 1)) || !(params->miss_target >= 0) ||
        !(params->miss_target < 1) || !(params->cpu_target >= 0) ||
        !(params->cpu_target <= 1)) {
        return UCS_ERR_INVALID_PARAM;
    }

    cache->config.policy      = params->policy;
    cache->plan.ops           = ucs_regcache_policy_find(params->policy);
    cache->plan.miss_target   = params->miss_target;
    cache->plan.cpu_target    = params->cpu_target;
    cache->plan.share         = params->cpu_target;
    cache->config.min_size    = params->min_size;
    cache->config.max_pinned  = params->max_pinned;
    cache->config.max_regions = params->max_regions;
    cache->config.page_mask   = page_size - 1;
    cache->config.access_mask = params->access_mask ? params->access_mask :
                                                      UINT_MAX;
    cache->created            = ucs_regcache_now(cache);
    cache->plan.next_due      = UCS_REGCACHE_TIME_NEVER;
    cache->plan.sweep_at      = UCS_REGCACHE_TIME_NEVER;
    cache->plan.lateness      = UCS_REGCACHE_LATENESS_NS;

    cache->account.time = cache->created;
    ucs_lock_init(&cache->lock);
    ucs_regcache_index_init(&cache->index);
    if ((cache->plan.ops != NULL) && (cache->config.max_pinned != SIZE_MAX)) {
        cache->index.stretch = 1; /* a use takes the room that it needs */
    }
    ucs_heap_init(&cache->lru[UCS_REGCACHE_CLASS_SMALL]);
    ucs_heap_init(&cache->lru[UCS_REGCACHE_CLASS_MANAGED]);
    ucs_extents_init(&cache->memory.seen);
    ucs_extents_init(&cache->memory.kept);
    ucs_extents_init(&cache->memory.barred);
    ucs_predict_cost_init(&cache->cost.reg, UCS_REGCACHE_REG_NS_PER_PAGE,
                          UCS_REGCACHE_REG_NS);
    ucs_predict_cost_init(&cache->cost.dereg, UCS_REGCACHE_DEREG_NS_PER_PAGE,
                          UCS_REGCACHE_DEREG_NS);
    return UCS_OK;
}

ucs_status_t ucs_regcache_create(const ucs_regcache_params_t *params,
                                 const ucs_regcache_env_t *env,
                                 ucs_regcache_h *cache_p)
{
    unsigned max_contexts = params->max_contexts ? params->max_contexts :
                                                   UCS_REGCACHE_MAX_CONTEXTS;
    ucs_regcache_h cache;
    ucs_status_t status;

    cache = calloc(1, sizeof(*cache));
    if (cache == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    cache->env = *env;
    status     = ucs_regcache_init(cache, params);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = ucs_dq_create(params->dq_length ? params->dq_length :
                                               UCS_REGCACHE_DQ_LENGTH,
                           &cache->use.queue);
    if (status != UCS_OK) {
        goto err_free;
    }

    if (cache->plan.ops != NULL) {
        status = cache->plan.ops->init(cache, max_contexts);
        if (status != UCS_OK) {
            goto err_destroy_dq;
        }
    }

    status = ucs_regcache_rq_init(&cache->plan.rq, max_contexts);
    if (status != UCS_OK) {
        goto err_cleanup_steer;
    }

    *cache_p = cache;
    return UCS_OK;

err_cleanup_steer:
    if (cache->plan.ops != NULL) {
        cache->plan.ops->cleanup(cache);
    }
err_destroy_dq:
    ucs_dq_destroy(cache->use.queue);
err_free:
    free(cache);
    return status;
}

void ucs_regcache_destroy(ucs_regcache_h cache)
{
    ucs_regcache_chunk_t *chunk;

    ucs_regcache_reclaim(cache);
    ucs_regcache_deregister_all(cache);
    while ((chunk = cache->store.chunks) != NULL) {
        cache->store.chunks = chunk->next;
        free(chunk);
    }
    ucs_regcache_rq_cleanup(&cache->plan.rq);
    if (cache->plan.ops != NULL) {
        cache->plan.ops->cleanup(cache);
    }
    ucs_dq_destroy(cache->use.queue);
    ucs_heap_cleanup(&cache->lru[UCS_REGCACHE_CLASS_SMALL]);
    ucs_heap_cleanup(&cache->lru[UCS_REGCACHE_CLASS_MANAGED]);
    ucs_extents_cleanup(&cache->memory.barred);
    ucs_extents_cleanup(&cache->memory.kept);
    ucs_extents_cleanup(&cache->memory.seen);
    free(cache);
}

int ucs_regcache_needs_helper(ucs_regcache_h cache)
{
    return (cache->plan.ops != NULL) &&
           !ucs_load_relaxed(&cache->helper_refused) &&
           !ucs_load_relaxed(&cache->distrust);
}

void ucs_regcache_helper_refused(ucs_regcache_h cache)
{
    ucs_store_relaxed(&cache->helper_refused, 1);
}

/*
 * Lock
 */

/* relaxed: an event that interrupts this thread is seen by it; what other
 * threads saw of one that interrupted another owner the lock has ordered */
void ucs_regcache_lock(ucs_regcache_h cache)
{
    ucs_lock(&cache->lock);
    if (ucs_unlikely(ucs_load_relaxed(&cache->gate) &
                     UCS_REGCACHE_GATE_EVENT)) {
        ucs_regcache_strike_all(cache);
    }
}

void ucs_regcache_unlock(ucs_regcache_h cache)
{
    int is_struck;

    if (ucs_unlikely(ucs_load_relaxed(&cache->gate) &
                     UCS_REGCACHE_GATE_EVENT)) {
        ucs_regcache_strike_all(cache);
    }
    is_struck        = cache->is_struck;
    cache->is_struck = 0;
    ucs_unlock(&cache->lock);

    if (ucs_unlikely(is_struck)) {
        cache->env.wake(cache->env.arg);
    }
    /* An event came since it was looked for: hits wait for the next lock */
    if (ucs_unlikely(ucs_load_relaxed(&cache->gate) &
                     UCS_REGCACHE_GATE_EVENT)) {
        ucs_regcache_lock(cache);
        ucs_regcache_unlock(cache);
    }
}

/*
 * Get
 */

/* The caller has just taken a reference; the word was @a old before. From the
 * first reference to the last there is one writer, who has it: no atomic
 * read-modify-write is needed. */
static inline void ucs_regcache_region_begin_use(ucs_regcache_h cache,
                                                 ucs_regcache_region_t *region,
                                                 uint64_t old, size_t length,
                                                 uintptr_t sp, uint64_t now)
{
    uint64_t hits;

    if (ucs_unlikely(ucs_regcache_word_refs(old) > 0)) {
        /* The use that is under way speaks for both */
        if (length >= cache->config.min_size) {
            ucs_add_relaxed(&region->joined, 1);
        }
        return;
    }

    ucs_store_relaxed(&region->use_start, now);
    ucs_store_relaxed(&region->sp, sp);
    ucs_regcache_in_use(cache, ucs_regcache_pinned_length(cache, region));
    if (length < cache->config.min_size) {
        return;
    }

    hits = ucs_load_relaxed(&region->hits);
    ucs_store_relaxed(&region->hits, hits + 1);
    if (ucs_unlikely((hits & (UCS_REGCACHE_HIT_SAMPLE - 1)) == 0)) {
        ucs_hist_add(&cache->use.hit_ns, ucs_regcache_now(cache) - now);
    }
}

static ucs_regcache_idle_t ucs_regcache_idle(ucs_regcache_h cache,
                                             size_t length)
{
    if (ucs_regcache_class(cache, length) == UCS_REGCACHE_CLASS_SMALL) {
        return UCS_REGCACHE_IDLE_KEEP;
    }
    if (cache->config.policy == UCS_REGCACHE_POLICY_ON_DEMAND) {
        return UCS_REGCACHE_IDLE_DROP;
    }
    return ucs_regcache_needs_helper(cache) ? UCS_REGCACHE_IDLE_QUEUE :
                                              UCS_REGCACHE_IDLE_KEEP;
}

/* Under the lock: was the range ever registered, and is it still mapped? */
static void ucs_regcache_see(ucs_regcache_h cache, uintptr_t start,
                             uintptr_t end, uint64_t now)
{
    uintptr_t first = ucs_regcache_page_down(cache, start);
    uintptr_t last  = ucs_regcache_page_up(cache, end);
    int seen        = ucs_extents_covers(&cache->memory.seen, first, last);

    if (ucs_regcache_class(cache, end - start) == UCS_REGCACHE_CLASS_MANAGED) {
        if (seen) {
            ++cache->account.missed;
        } else {
            ++cache->account.cold;
        }
    }
    ucs_regcache_account(cache, now);
    if (!seen) {
        ucs_extents_add(&cache->memory.seen, first, last);
        ucs_regcache_account(cache, now);
    }
}

/* Under the lock: make @a region, or a new one if it is NULL, REGISTERING with
 * one reference. There is one in stock. */
static ucs_regcache_region_t *ucs_regcache_begin(ucs_regcache_h cache,
                                                 ucs_regcache_region_t *region,
                                                 uintptr_t start, uintptr_t end,
                                                 unsigned access, uint64_t now)
{
    uint64_t doomed = 0;
    uint64_t word;

    if (region == NULL) {
        region = ucs_regcache_region_alloc(cache);
        ucs_store_release(&region->start, start); /* [R-FIELDS] */
        ucs_store_release(&region->end, end);     /* [R-FIELDS] */
        ucs_store_release(&region->access, access); /* [R-FIELDS] */
        ucs_store_relaxed(&region->speculative, 0);
        if (ucs_unlikely(ucs_load_relaxed(&cache->distrust))) {
            doomed = UCS_REGCACHE_WORD_DOOMED;
        } else {
            ucs_regcache_index_add(&cache->index, region);
        }
        ucs_store_relaxed(&region->learned, 0);
        ucs_store_relaxed(&region->learned_start, 0);
        ucs_store_relaxed(&region->next_use, 0);
        ucs_store_relaxed(&region->again, 0);
    } else {
        access |= ucs_load_relaxed(&region->access);
        ucs_store_release(&region->access, access); /* [R-FIELDS] */
    }

    ucs_store_relaxed(&region->use_start, now);
    ucs_store_relaxed(&region->last_use, now);
    ucs_store_relaxed(&region->idle,
                      ucs_regcache_idle(cache,
                                        ucs_regcache_region_length(region)));
    ucs_store_relaxed(&region->wake, 1);
    word = ucs_load_relaxed(&region->word);
    ucs_store_release(
            &region->word, /* [R-LIVE] */
            (ucs_regcache_word_set_state(word, UCS_REGCACHE_STATE_REGISTERING) |
             doomed) +
                    UCS_REGCACHE_WORD_REF);
    return region;
}

/* The caller has a reference on a region that somebody else registers.
 * @return UCS_OK if it is now a live one, UCS_ERR_CANCELED if it is not and
 *         the reference is gone. */
static ucs_status_t ucs_regcache_wait(ucs_regcache_h cache,
                                      ucs_regcache_region_t *region)
{
    uint64_t word;

    for (;;) {
        word = ucs_load_acquire(&region->word); /* [R-LIVE] */
        if (ucs_regcache_word_state(word) != UCS_REGCACHE_STATE_REGISTERING) {
            break;
        }
        cache->env.wait(cache->env.arg, ucs_regcache_region_wait_word(region),
                        (uint32_t)word);
    }
    if (ucs_regcache_word_is_hit(word)) {
        return UCS_OK;
    }

    if (ucs_regcache_word_state(word) == UCS_REGCACHE_STATE_LIVE) {
        ucs_regcache_region_put(cache, region, ucs_regcache_now(cache));
    } else {
        word = ucs_sub_acq_rel(&region->word, UCS_REGCACHE_WORD_REF);
        if (ucs_regcache_word_refs(word) == 1) {
            ucs_regcache_doomed(cache, region);
        }
    }
    return UCS_ERR_CANCELED;
}

/* What a look-up under the lock came to */
typedef enum ucs_regcache_found {
    UCS_REGCACHE_FOUND_LIVE,        /* reference taken */
    UCS_REGCACHE_FOUND_REGISTERING, /* reference taken, to be waited for */
    UCS_REGCACHE_FOUND_NONE,        /* region is REGISTERING and the caller's */
    UCS_REGCACHE_FOUND_COALESCED,   /* likewise, and more than was asked for, by
                                  range or access */
    UCS_REGCACHE_FOUND_NO_RESERVE
} ucs_regcache_found_t;

static ucs_regcache_found_t
ucs_regcache_look_up(ucs_regcache_h cache, uintptr_t start, uintptr_t end,
                     unsigned access, int may_merge, uint64_t now,
                     uint64_t *old_p, ucs_regcache_region_t **region_p)
{
    uintptr_t first = start;
    uintptr_t last  = end;
    unsigned rights = access;
    ucs_regcache_region_t *region;

    region = ucs_regcache_index_find(&cache->index, start, end, access);
    if (region != NULL) {
        *region_p = region;
        *old_p    = ucs_load_relaxed(&region->word);
        switch (ucs_regcache_word_state(*old_p)) {
        case UCS_REGCACHE_STATE_LIVE:
            if (ucs_regcache_region_try_ref(region, start, end, access,
                                            old_p)) {
                return UCS_REGCACHE_FOUND_LIVE;
            }
            region = NULL; /* as many users as can be counted */
            break;
        case UCS_REGCACHE_STATE_REGISTERING:
            ucs_add_acq_rel(&region->word, UCS_REGCACHE_WORD_REF);
            return UCS_REGCACHE_FOUND_REGISTERING;
        default:
            break;
        }
    }

    if (cache->store.free == NULL) {
        return UCS_REGCACHE_FOUND_NO_RESERVE;
    }
    ucs_regcache_see(cache, start, end, now);
    if (may_merge) {
        /* Whole pages: they are pinned anyway, and a buffer that begins a few
         * bytes further up the next time is found */
        first  = ucs_regcache_page_down(cache, start);
        last   = ucs_regcache_page_up(cache, end);
        region = ucs_regcache_coalesce(cache, region, &first, &last, &rights);
    }
    region    = ucs_regcache_begin(cache, region, first, last, rights, now);
    *region_p = region;
    /* Nor is a region of before what was asked for: part of it may be gone, or
     * may be read only by now */
    return ((ucs_load_relaxed(&region->start) == start) &&
            (ucs_load_relaxed(&region->end) == end) &&
            (ucs_load_relaxed(&region->access) == access)) ?
                   UCS_REGCACHE_FOUND_NONE :
                   UCS_REGCACHE_FOUND_COALESCED;
}

static ucs_status_t ucs_regcache_miss(ucs_regcache_h cache,
                                      ucs_regcache_region_t *region,
                                      unsigned flags, uintptr_t sp,
                                      ucs_regcache_memh_t *memh_p)
{
    ucs_status_t status;

    ucs_store_relaxed(&region->sp, sp);
    if ((ucs_load_relaxed(&region->idle) != UCS_REGCACHE_IDLE_DROP) &&
        !ucs_regcache_may_keep(cache, region, 1)) {
        ucs_store_relaxed(&region->idle, UCS_REGCACHE_IDLE_DROP);
        ucs_store_relaxed(&region->planned, 0);
    }
    if (ucs_load_relaxed(&region->idle) == UCS_REGCACHE_IDLE_QUEUE) {
        (void)cache->env.walk(cache->env.arg, sp,
                              ucs_load_relaxed(&region->start),
                              ucs_regcache_region_length(region));
    }
    /* First, so that nothing is pinned twice */
    ucs_regcache_supersede(cache, region);
    status = ucs_regcache_region_register(
            cache, region, flags | ucs_load_relaxed(&region->access), 1);
    if (status == UCS_OK) {
        *memh_p = ucs_load_relaxed(&region->memh);
    }
    return status;
}

/* relaxed: a measure, the list itself is looked at under the lock */
static int ucs_regcache_must_reclaim(ucs_regcache_h cache)
{
    return (ucs_load_relaxed(&cache->reclaim.count) >=
            UCS_REGCACHE_RECLAIM_MAX) ||
           (ucs_load_relaxed(&cache->reclaim.bytes) >=
            UCS_REGCACHE_RECLAIM_MAX_BYTES);
}

/* What may wait or allocate, and so comes before the lock is taken */
static ucs_status_t ucs_regcache_prepare(ucs_regcache_h cache)
{
    ucs_regcache_pass_gate(cache);
    if (!ucs_regcache_needs_helper(cache)) {
        ucs_regcache_reclaim(cache); /* nobody else will */
    } else if (ucs_regcache_must_reclaim(cache)) {
        ucs_regcache_reclaim_some(cache, UCS_REGCACHE_RECLAIM_MAX);
    }
    return ucs_regcache_reserve(cache);
}

/* The caller has waited for a registration and has a reference on it */
static void ucs_regcache_region_begin_late(ucs_regcache_h cache,
                                           ucs_regcache_region_t *region,
                                           size_t length, uintptr_t sp,
                                           uint64_t now)
{
    if (length >= cache->config.min_size) {
        ucs_regcache_lock(cache);
        ++cache->account.late;
        ucs_regcache_unlock(cache);
    }
    /* Waiting was part of the use: the next one is due a period after this
     * one was wanted */
    ucs_store_relaxed(&region->use_start, now);
    ucs_store_relaxed(&region->speculative, 0);
    ucs_store_relaxed(&region->sp, sp);
}

static ucs_status_t ucs_regcache_get_slow(ucs_regcache_h cache, uintptr_t start,
                                          size_t length, unsigned flags,
                                          uintptr_t sp, uint64_t now,
                                          ucs_regcache_memh_t *memh_p)
{
    uintptr_t end   = start + length;
    unsigned access = flags & cache->config.access_mask;
    int may_merge   = ucs_regcache_may_coalesce(cache, length);
    ucs_regcache_region_t *region;
    ucs_regcache_found_t found;
    ucs_status_t status;
    uint64_t old;

    for (;;) {
        status = ucs_regcache_prepare(cache);
        if (status != UCS_OK) {
            return status;
        }

        ucs_regcache_lock(cache);
        found = ucs_regcache_look_up(cache, start, end, access, may_merge, now,
                                     &old, &region);
        ucs_regcache_unlock(cache);

        switch (found) {
        case UCS_REGCACHE_FOUND_LIVE:
            ucs_regcache_region_begin_use(cache, region, old, length, sp, now);
            goto out;
        case UCS_REGCACHE_FOUND_REGISTERING:
            if (ucs_regcache_wait(cache, region) == UCS_OK) {
                ucs_regcache_region_begin_late(cache, region, length, sp, now);
                goto out;
            }
            break;
        case UCS_REGCACHE_FOUND_NONE:
            return ucs_regcache_miss(cache, region, flags, sp, memh_p);
        case UCS_REGCACHE_FOUND_COALESCED:
            status = ucs_regcache_miss(cache, region, flags, sp, memh_p);
            if (status == UCS_OK) {
                return UCS_OK;
            }
            may_merge = 0; /* what was asked for may still be had */
            break;
        default:
            break;
        }
    }

out:
    *memh_p = ucs_load_relaxed(&region->memh);
    /* relaxed: a hint only, the region's word decides */
    ucs_store_relaxed(ucs_regcache_index_range_hint(&cache->index, start, end),
                      region);
    return UCS_OK;
}

ucs_status_t ucs_regcache_get(ucs_regcache_h cache, void *address,
                              size_t length, unsigned flags, uintptr_t sp,
                              ucs_regcache_memh_t *memh_p)
{
    uint64_t now    = ucs_regcache_now(cache);
    uintptr_t start = (uintptr_t)address;
    ucs_regcache_region_t *region;
    uint64_t old;

    /* relaxed: regions are never unmapped, [R-LIVE] orders the rest */
    region = ucs_load_relaxed(ucs_regcache_index_range_hint(
            &cache->index, start, start + length));
    /* acquire [R-GATE]: pairs with the release in ucs_regcache_gate_open() and
     * in ucs_regcache_strike_all(): whoever comes after an unmapping finds
     * the gate shut, or open again and the region struck */
    if (ucs_unlikely(
                (region == NULL) ||
                (ucs_load_acquire(&cache->gate) != UCS_REGCACHE_GATE_OPEN) ||
                !ucs_regcache_region_try_ref(region, start, start + length,
                                             flags & cache->config.access_mask,
                                             &old))) {
        return ucs_regcache_get_slow(cache, start, length, flags, sp, now,
                                     memh_p);
    }

    *memh_p = ucs_load_relaxed(&region->memh);
    ucs_regcache_region_begin_use(cache, region, old, length, sp, now);
    return UCS_OK;
}

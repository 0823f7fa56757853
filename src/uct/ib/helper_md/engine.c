/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <ucs/sys/compiler_def.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UCT_HELPER_DQ_LENGTH    1024
#define UCT_HELPER_MAX_CONTEXTS 4096

/* Models before the first sample, on the dear side of what NICs of the last
 * fifteen years need (Goglin 2009, table 1), so that the first predictions
 * err towards registering early */
#define UCT_HELPER_REG_NS_PER_PAGE   250.0
#define UCT_HELPER_REG_NS            20000.0
#define UCT_HELPER_DEREG_NS_PER_PAGE 100.0
#define UCT_HELPER_DEREG_NS          10000.0

/* Lateness of the helper's wake-up before it has been measured */
#define UCT_HELPER_LATENESS_NS 100000

const char *uct_helper_policy_names[] = {
    [UCT_HELPER_POLICY_PREDICT]      = "predict",
    [UCT_HELPER_POLICY_PAPER]        = "paper",
    [UCT_HELPER_POLICY_LEAVE_PINNED] = "leave_pinned",
    [UCT_HELPER_POLICY_ON_DEMAND]    = "on_demand",
    [UCT_HELPER_POLICY_LRU]          = "lru",
    [UCT_HELPER_POLICY_LAST]         = NULL
};

/*
 * Life
 */

static const uct_helper_steer_t *
uct_helper_engine_steer(uct_helper_policy_t policy)
{
    switch (policy) {
    case UCT_HELPER_POLICY_PREDICT:
        return &uct_helper_steer_order;
    case UCT_HELPER_POLICY_PAPER:
        return &uct_helper_steer_paper;
    default:
        return NULL;
    }
}

static ucs_status_t
uct_helper_engine_init(uct_helper_engine_h engine,
                       const uct_helper_engine_params_t *params)
{
    size_t page_size = params->page_size ? params->page_size :
                                           (size_t)sysconf(_SC_PAGESIZE);

    if ((params->policy >= UCT_HELPER_POLICY_LAST) ||
        (page_size & (page_size - 1)) || !(params->miss_target >= 0) ||
        !(params->miss_target < 1) || !(params->cpu_target >= 0) ||
        !(params->cpu_target <= 1)) {
        return UCS_ERR_INVALID_PARAM;
    }

    engine->policy      = params->policy;
    engine->steer       = uct_helper_engine_steer(params->policy);
    engine->miss_target = params->miss_target;
    engine->cpu_target  = params->cpu_target;
    engine->share       = params->cpu_target;
    engine->min_size    = params->min_size;
    engine->max_pinned  = params->max_pinned;
    engine->max_regions = params->max_regions;
    engine->page_mask   = page_size - 1;
    engine->created     = uct_helper_engine_now(engine);
    engine->next_due    = UCT_HELPER_TIME_NEVER;
    engine->sweep_at    = UCT_HELPER_TIME_NEVER;
    engine->lateness    = UCT_HELPER_LATENESS_NS;

    engine->account.time = engine->created;
    uct_helper_lock_init(&engine->lock);
    uct_helper_index_init(&engine->index);
    if ((engine->steer != NULL) && (engine->max_pinned != SIZE_MAX)) {
        engine->index.stretch = 1; /* a use takes the room that it needs */
    }
    uct_helper_heap_init(&engine->lru[UCT_HELPER_CLASS_SMALL]);
    uct_helper_heap_init(&engine->lru[UCT_HELPER_CLASS_MANAGED]);
    uct_helper_extents_init(&engine->seen);
    uct_helper_extents_init(&engine->kept);
    uct_helper_extents_init(&engine->barred);
    ucs_predict_cost_init(&engine->register_cost, UCT_HELPER_REG_NS_PER_PAGE,
                          UCT_HELPER_REG_NS);
    ucs_predict_cost_init(&engine->deregister_cost,
                          UCT_HELPER_DEREG_NS_PER_PAGE, UCT_HELPER_DEREG_NS);
    return UCS_OK;
}

ucs_status_t uct_helper_engine_create(const uct_helper_engine_params_t *params,
                                      const uct_helper_env_t *env,
                                      uct_helper_engine_h *engine_p)
{
    unsigned max_contexts = params->max_contexts ? params->max_contexts :
                                                   UCT_HELPER_MAX_CONTEXTS;
    uct_helper_engine_h engine;
    ucs_status_t status;

    engine = calloc(1, sizeof(*engine));
    if (engine == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    engine->env = *env;
    status      = uct_helper_engine_init(engine, params);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_helper_dq_create(params->dq_length ? params->dq_length :
                                                      UCT_HELPER_DQ_LENGTH,
                                  &engine->dq);
    if (status != UCS_OK) {
        goto err_free;
    }

    if (engine->steer != NULL) {
        status = engine->steer->init(engine, max_contexts);
        if (status != UCS_OK) {
            goto err_destroy_dq;
        }
    }

    status = uct_helper_rq_init(&engine->rq, max_contexts);
    if (status != UCS_OK) {
        goto err_cleanup_steer;
    }

    *engine_p = engine;
    return UCS_OK;

err_cleanup_steer:
    if (engine->steer != NULL) {
        engine->steer->cleanup(engine);
    }
err_destroy_dq:
    uct_helper_dq_destroy(engine->dq);
err_free:
    free(engine);
    return status;
}

void uct_helper_engine_destroy(uct_helper_engine_h engine)
{
    uct_helper_chunk_t *chunk;

    uct_helper_engine_reclaim(engine);
    uct_helper_engine_deregister_all(engine);
    while ((chunk = engine->chunks) != NULL) {
        engine->chunks = chunk->next;
        free(chunk);
    }
    uct_helper_rq_cleanup(&engine->rq);
    if (engine->steer != NULL) {
        engine->steer->cleanup(engine);
    }
    uct_helper_dq_destroy(engine->dq);
    uct_helper_heap_cleanup(&engine->lru[UCT_HELPER_CLASS_SMALL]);
    uct_helper_heap_cleanup(&engine->lru[UCT_HELPER_CLASS_MANAGED]);
    uct_helper_extents_cleanup(&engine->barred);
    uct_helper_extents_cleanup(&engine->kept);
    uct_helper_extents_cleanup(&engine->seen);
    free(engine);
}

int uct_helper_engine_needs_helper(uct_helper_engine_h engine)
{
    return (engine->steer != NULL) &&
           !ucs_load_relaxed(&engine->helper_refused) &&
           !ucs_load_relaxed(&engine->distrust);
}

void uct_helper_engine_helper_refused(uct_helper_engine_h engine)
{
    ucs_store_relaxed(&engine->helper_refused, 1);
}

/*
 * Lock
 */

/* relaxed: an event that interrupts this thread is seen by it; what other
 * threads saw of one that interrupted another owner the lock has ordered */
void uct_helper_engine_lock(uct_helper_engine_h engine)
{
    uct_helper_lock(&engine->lock);
    if (ucs_unlikely(ucs_load_relaxed(&engine->gate) & UCT_HELPER_GATE_EVENT)) {
        uct_helper_engine_strike_all(engine);
    }
}

void uct_helper_engine_unlock(uct_helper_engine_h engine)
{
    int is_struck;

    if (ucs_unlikely(ucs_load_relaxed(&engine->gate) & UCT_HELPER_GATE_EVENT)) {
        uct_helper_engine_strike_all(engine);
    }
    is_struck         = engine->is_struck;
    engine->is_struck = 0;
    uct_helper_unlock(&engine->lock);

    if (ucs_unlikely(is_struck)) {
        engine->env.wake(engine->env.arg);
    }
    /* An event came since it was looked for: hits wait for the next lock */
    if (ucs_unlikely(ucs_load_relaxed(&engine->gate) & UCT_HELPER_GATE_EVENT)) {
        uct_helper_engine_lock(engine);
        uct_helper_engine_unlock(engine);
    }
}

/*
 * Get
 */

/* The caller has just taken a reference; the word was @a old before. From the
 * first reference to the last there is one writer, who has it: no atomic
 * read-modify-write is needed. */
static inline void
uct_helper_region_begin_use(uct_helper_engine_h engine,
                            uct_helper_region_t *region, uint64_t old,
                            size_t length, uintptr_t sp, uint64_t now)
{
    uint64_t hits;

    if (ucs_unlikely(uct_helper_word_refs(old) > 0)) {
        /* The use that is under way speaks for both */
        if (length >= engine->min_size) {
            ucs_add_relaxed(&region->joined, 1);
        }
        return;
    }

    ucs_store_relaxed(&region->use_start, now);
    ucs_store_relaxed(&region->sp, sp);
    uct_helper_engine_in_use(engine,
                             uct_helper_engine_pinned_length(engine, region));
    if (length < engine->min_size) {
        return;
    }

    hits = ucs_load_relaxed(&region->hits);
    ucs_store_relaxed(&region->hits, hits + 1);
    if (ucs_unlikely((hits & (UCT_HELPER_HIT_SAMPLE - 1)) == 0)) {
        uct_helper_hist_add(&engine->hits,
                            uct_helper_engine_now(engine) - now);
    }
}

static uct_helper_idle_t uct_helper_engine_idle(uct_helper_engine_h engine,
                                                size_t length)
{
    if (uct_helper_engine_class(engine, length) == UCT_HELPER_CLASS_SMALL) {
        return UCT_HELPER_IDLE_KEEP;
    }
    if (engine->policy == UCT_HELPER_POLICY_ON_DEMAND) {
        return UCT_HELPER_IDLE_DROP;
    }
    return uct_helper_engine_needs_helper(engine) ? UCT_HELPER_IDLE_QUEUE :
                                                    UCT_HELPER_IDLE_KEEP;
}

/* Under the lock: was the range ever registered, and is it still mapped? */
static void uct_helper_engine_see(uct_helper_engine_h engine, uintptr_t start,
                                  uintptr_t end, uint64_t now)
{
    uintptr_t first = uct_helper_engine_page_down(engine, start);
    uintptr_t last  = uct_helper_engine_page_up(engine, end);
    int seen        = uct_helper_extents_covers(&engine->seen, first, last);

    if (uct_helper_engine_class(engine, end - start) ==
        UCT_HELPER_CLASS_MANAGED) {
        if (seen) {
            ++engine->account.missed;
        } else {
            ++engine->account.cold;
        }
    }
    uct_helper_engine_account(engine, now);
    if (!seen) {
        uct_helper_extents_add(&engine->seen, first, last);
        uct_helper_engine_account(engine, now);
    }
}

/* Under the lock: make @a region, or a new one if it is NULL, REGISTERING with
 * one reference. There is one in stock. */
static uct_helper_region_t *
uct_helper_engine_begin(uct_helper_engine_h engine, uct_helper_region_t *region,
                        uintptr_t start, uintptr_t end, unsigned access,
                        uint64_t now)
{
    uint64_t doomed = 0;
    uint64_t word;

    if (region == NULL) {
        region = uct_helper_region_alloc(engine);
        ucs_store_release(&region->start, start); /* [R-FIELDS] */
        ucs_store_release(&region->end, end);     /* [R-FIELDS] */
        ucs_store_release(&region->access, access); /* [R-FIELDS] */
        ucs_store_relaxed(&region->speculative, 0);
        if (ucs_unlikely(ucs_load_relaxed(&engine->distrust))) {
            doomed = UCT_HELPER_WORD_DOOMED;
        } else {
            uct_helper_index_add(&engine->index, region);
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
                      uct_helper_engine_idle(engine,
                                             uct_helper_region_length(region)));
    ucs_store_relaxed(&region->wake, 1);
    word = ucs_load_relaxed(&region->word);
    ucs_store_release(&region->word, /* [R-LIVE] */
                      (uct_helper_word_set_state(
                               word, UCT_HELPER_STATE_REGISTERING) |
                       doomed) +
                              UCT_HELPER_WORD_REF);
    return region;
}

/* The caller has a reference on a region that somebody else registers.
 * @return UCS_OK if it is now a live one, UCS_ERR_CANCELED if it is not and
 *         the reference is gone. */
static ucs_status_t uct_helper_engine_wait(uct_helper_engine_h engine,
                                           uct_helper_region_t *region)
{
    uint64_t word;

    for (;;) {
        word = ucs_load_acquire(&region->word); /* [R-LIVE] */
        if (uct_helper_word_state(word) != UCT_HELPER_STATE_REGISTERING) {
            break;
        }
        engine->env.wait(engine->env.arg, uct_helper_region_wait_word(region),
                         (uint32_t)word);
    }
    if (uct_helper_word_is_hit(word)) {
        return UCS_OK;
    }

    if (uct_helper_word_state(word) == UCT_HELPER_STATE_LIVE) {
        uct_helper_region_put(engine, region, uct_helper_engine_now(engine));
    } else {
        word = ucs_sub_acq_rel(&region->word, UCT_HELPER_WORD_REF);
        if (uct_helper_word_refs(word) == 1) {
            uct_helper_engine_doomed(engine, region);
        }
    }
    return UCS_ERR_CANCELED;
}

/* What a look-up under the lock came to */
typedef enum uct_helper_found {
    UCT_HELPER_FOUND_LIVE,        /* reference taken */
    UCT_HELPER_FOUND_REGISTERING, /* reference taken, to be waited for */
    UCT_HELPER_FOUND_NONE,        /* region is REGISTERING and the caller's */
    UCT_HELPER_FOUND_MERGED,      /* likewise, and more than was asked for, by
                                     range or access */
    UCT_HELPER_FOUND_NO_STOCK
} uct_helper_found_t;

static uct_helper_found_t
uct_helper_engine_look_up(uct_helper_engine_h engine, uintptr_t start,
                          uintptr_t end, unsigned access, int may_merge,
                          uint64_t now, uint64_t *old_p,
                          uct_helper_region_t **region_p)
{
    uintptr_t first = start;
    uintptr_t last  = end;
    unsigned rights = access;
    uct_helper_region_t *region;

    region = uct_helper_index_find(&engine->index, start, end, access);
    if (region != NULL) {
        *region_p = region;
        *old_p    = ucs_load_relaxed(&region->word);
        switch (uct_helper_word_state(*old_p)) {
        case UCT_HELPER_STATE_LIVE:
            if (uct_helper_region_try_ref(region, start, end, access, old_p)) {
                return UCT_HELPER_FOUND_LIVE;
            }
            region = NULL; /* as many users as can be counted */
            break;
        case UCT_HELPER_STATE_REGISTERING:
            ucs_add_acq_rel(&region->word, UCT_HELPER_WORD_REF);
            return UCT_HELPER_FOUND_REGISTERING;
        default:
            break;
        }
    }

    if (engine->free_regions == NULL) {
        return UCT_HELPER_FOUND_NO_STOCK;
    }
    uct_helper_engine_see(engine, start, end, now);
    if (may_merge) {
        /* Whole pages: they are pinned anyway, and a buffer that begins a few
         * bytes further up the next time is found */
        first  = uct_helper_engine_page_down(engine, start);
        last   = uct_helper_engine_page_up(engine, end);
        region = uct_helper_engine_merge(engine, region, &first, &last,
                                         &rights);
    }
    region = uct_helper_engine_begin(engine, region, first, last, rights, now);
    *region_p = region;
    /* Nor is a region of before what was asked for: part of it may be gone, or
     * may be read only by now */
    return ((ucs_load_relaxed(&region->start) == start) &&
            (ucs_load_relaxed(&region->end) == end) &&
            (ucs_load_relaxed(&region->access) == access)) ?
                   UCT_HELPER_FOUND_NONE :
                   UCT_HELPER_FOUND_MERGED;
}

static ucs_status_t
uct_helper_engine_miss(uct_helper_engine_h engine, uct_helper_region_t *region,
                       unsigned flags, uintptr_t sp, uct_mem_h *memh_p)
{
    ucs_status_t status;

    ucs_store_relaxed(&region->sp, sp);
    if ((ucs_load_relaxed(&region->idle) != UCT_HELPER_IDLE_DROP) &&
        !uct_helper_engine_may_keep(engine, region, 1)) {
        ucs_store_relaxed(&region->idle, UCT_HELPER_IDLE_DROP);
        ucs_store_relaxed(&region->planned, 0);
    }
    if (ucs_load_relaxed(&region->idle) == UCT_HELPER_IDLE_QUEUE) {
        (void)engine->env.walk(engine->env.arg, sp,
                               ucs_load_relaxed(&region->start),
                               uct_helper_region_length(region));
    }
    /* First, so that nothing is pinned twice */
    uct_helper_engine_supersede(engine, region);
    status = uct_helper_region_register(engine, region,
                                        flags |
                                        ucs_load_relaxed(&region->access), 1);
    if (status == UCS_OK) {
        *memh_p = ucs_load_relaxed(&region->memh);
    }
    return status;
}

/* relaxed: a measure, the list itself is looked at under the lock */
static int uct_helper_engine_must_reclaim(uct_helper_engine_h engine)
{
    return (ucs_load_relaxed(&engine->reclaimable) >= UCT_HELPER_RECLAIM_MAX) ||
           (ucs_load_relaxed(&engine->reclaimable_bytes) >=
            UCT_HELPER_RECLAIM_MAX_BYTES);
}

/* What may wait or allocate, and so comes before the lock is taken */
static ucs_status_t uct_helper_engine_prepare(uct_helper_engine_h engine)
{
    uct_helper_engine_pass_gate(engine);
    if (!uct_helper_engine_needs_helper(engine)) {
        uct_helper_engine_reclaim(engine); /* nobody else will */
    } else if (uct_helper_engine_must_reclaim(engine)) {
        uct_helper_engine_reclaim_some(engine, UCT_HELPER_RECLAIM_MAX);
    }
    return uct_helper_engine_stock(engine);
}

/* The caller has waited for a registration and has a reference on it */
static void uct_helper_region_begin_late(uct_helper_engine_h engine,
                                         uct_helper_region_t *region,
                                         size_t length, uintptr_t sp,
                                         uint64_t now)
{
    if (length >= engine->min_size) {
        uct_helper_engine_lock(engine);
        ++engine->account.late;
        uct_helper_engine_unlock(engine);
    }
    /* Waiting was part of the use: the next one is due a period after this
     * one was wanted */
    ucs_store_relaxed(&region->use_start, now);
    ucs_store_relaxed(&region->speculative, 0);
    ucs_store_relaxed(&region->sp, sp);
}

static ucs_status_t
uct_helper_engine_get_slow(uct_helper_engine_h engine, uintptr_t start,
                           size_t length, unsigned flags, uintptr_t sp,
                           uint64_t now, uct_mem_h *memh_p)
{
    uintptr_t end   = start + length;
    unsigned access = flags & UCT_MD_MEM_ACCESS_ALL;
    int may_merge   = uct_helper_engine_may_merge(engine, length);
    uct_helper_region_t *region;
    uct_helper_found_t found;
    ucs_status_t status;
    uint64_t old;

    for (;;) {
        status = uct_helper_engine_prepare(engine);
        if (status != UCS_OK) {
            return status;
        }

        uct_helper_engine_lock(engine);
        found = uct_helper_engine_look_up(engine, start, end, access,
                                          may_merge, now, &old, &region);
        uct_helper_engine_unlock(engine);

        switch (found) {
        case UCT_HELPER_FOUND_LIVE:
            uct_helper_region_begin_use(engine, region, old, length, sp, now);
            goto out;
        case UCT_HELPER_FOUND_REGISTERING:
            if (uct_helper_engine_wait(engine, region) == UCS_OK) {
                uct_helper_region_begin_late(engine, region, length, sp, now);
                goto out;
            }
            break;
        case UCT_HELPER_FOUND_NONE:
            return uct_helper_engine_miss(engine, region, flags, sp, memh_p);
        case UCT_HELPER_FOUND_MERGED:
            status = uct_helper_engine_miss(engine, region, flags, sp, memh_p);
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
    ucs_store_relaxed(uct_helper_index_range_hint(&engine->index, start, end),
                      region);
    return UCS_OK;
}

ucs_status_t uct_helper_engine_get(uct_helper_engine_h engine, void *address,
                                   size_t length, unsigned flags, uintptr_t sp,
                                   uct_mem_h *memh_p)
{
    uint64_t now        = uct_helper_engine_now(engine);
    uintptr_t start     = (uintptr_t)address;
    uct_helper_region_t *region;
    uint64_t old;

    /* relaxed: regions are never unmapped, [R-LIVE] orders the rest */
    region = ucs_load_relaxed(uct_helper_index_range_hint(&engine->index, start,
                                                          start + length));
    /* acquire [R-GATE]: pairs with the release in uct_helper_engine_open() and
     * in uct_helper_engine_strike_all(): whoever comes after an unmapping finds
     * the gate shut, or open again and the region struck */
    if (ucs_unlikely((region == NULL) ||
                     (ucs_load_acquire(&engine->gate) !=
                      UCT_HELPER_GATE_OPEN) ||
                     !uct_helper_region_try_ref(region, start, start + length,
                                                flags & UCT_MD_MEM_ACCESS_ALL,
                                                &old))) {
        return uct_helper_engine_get_slow(engine, start, length, flags, sp,
                                          now, memh_p);
    }

    *memh_p = ucs_load_relaxed(&region->memh);
    uct_helper_region_begin_use(engine, region, old, length, sp, now);
    return UCS_OK;
}

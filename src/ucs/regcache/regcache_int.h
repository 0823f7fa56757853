/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_INT_H_
#define UCS_REGCACHE_INT_H_

#include <ucs/regcache/cover/walk.h>
#include <ucs/regcache/region/index.h>
#include <ucs/regcache/region/known_memory.h>
#include <ucs/regcache/region/lru.h>
#include "regcache.h"
#include <ucs/regcache/region/region.h>
#include <ucs/regcache/region/state.h>
#include <ucs/regcache/register/register.h>

#include <ucs/datastruct/dq.h>
#include <ucs/datastruct/heap.h>
#include <ucs/predict/cost.h>
#include <ucs/regcache/plan/plan.h>
#include <ucs/sys/sync/first.h>
#include <ucs/sys/sync/lock.h>

/*
 * Inside of the cache. Calls between folders go down this list only, but by the
 * table of functions of a policy:
 *
 *   (here)     regcache.c: what a cache is created with, and its end; get.c: hit,
 *              wait, miss; put.c: the end of a use, invalidation; events.c:
 *              memory events, gate, distrust; rest.c: a helper that stands down;
 *              stats.c: a snapshot of all figures
 *   step/      step.c: the helper's step, a look for regions whose last use was
 *              lost, and when the next step is; init.c: begin and end;
 *              operations.c: what the program says, in the order of time
 *   policy/    what becomes of a registration that nobody uses, by policy.h; apply.c:
 *              a part of one
 *   announce/  receives that the program has posted: announce_serve.c registers for
 *              them; announce.c: what was announced, what it is worth, and what came
 *              of it
 *   plan/      ahead.c: windows that walks come to and leave; serve.c: what is
 *              due in the registration queue; price.c: what a region's
 *              registration is worth, and what the helper's work on it takes;
 *              plan.c: what a region is expected for; windows.c: those that walks
 *              are in; idle.c: what an idle step may do; leave.c: deregistrations
 *              that wait; rq.c: the registration queue
 *   register/  register.c: one registration: admission, lower domain, publication;
 *              admit.c: ceilings and budget: may this be pinned? evict.c: which
 *              idle region goes when others need what it pins; soft.c: what idle
 *              regions may add to the peak
 *   cover/     one registration for several uses: coalesce.c of a buffer, cover.c
 *              of neighbours, walk.c of the next steps of a walk; extend.c says how
 *              far that may reach, field.c what is known of its mapping
 *   region/    what a region is (region.h), and all that changes it: index.c:
 *              look-up by range and by handle; state.c: index lock, doom, strike;
 *              account.c: figures that change with it; why.c: their sums by reason
 *              and by cause; lru.c: regions by their latest use; deregister.c:
 *              lower domain, reclaiming; reserve.c: what is allocated ahead,
 *              outside of the lock; inspect.c: may a registration outlive its use?
 *
 * This header has the cache as a structure, which all of them look into.
 */

/**
 * The clock is read where a use begins, and where it ends, unless so many of
 * the region in a row were shorter than this (ns): from then on one end in so
 * many is read, and each other one is taken to come as long after its start as
 * that one did, until one was longer. A second reading is a third of what a hit
 * takes, and less than a five hundredth of any use that is longer.
 */
#define UCS_REGCACHE_SHORT_USE_NS 10000
#define UCS_REGCACHE_END_SAMPLE   16

/** What the cache was created with. */
typedef struct ucs_regcache_config {
    size_t                min_size;   /* bytes */
    size_t                max_pinned; /* bytes */
    unsigned long         max_regions;
    size_t                page_mask;  /* page size - 1 */
    unsigned              access_mask;
    double                max_slowdown;
    double                region_bytes; /* held for a registration */
    ucs_regcache_cover_t  cover;
} ucs_regcache_config_t;

/** What every use reads, and what it writes: in lines that no other reads. */
typedef struct ucs_regcache_uses {
    ucs_dq_h          queue;  /* to the helper, of uses that are over */
    ucs_first_t       first;  /* whose uses need no read-modify-write here */
    _Atomic(uint64_t) peak;   /* of the bytes in use */
    ucs_first_sum_t   bytes;  /* in use */
} ucs_regcache_uses_t;

/** What the lower domain takes, and uses that go there. Protected by the index
 *  lock. */
typedef struct ucs_regcache_cost {
    ucs_predict_cost_t reg;
    ucs_predict_cost_t dereg;
    ucs_predict_cost_t missed; /* a use that registers what has been registered
                                  before: from its begin until it has it */
} ucs_regcache_cost_t;

struct ucs_regcache {
    ucs_regcache_env_t     env;
    ucs_regcache_config_t  config;
    uint64_t               created;   /* ns */

    _Atomic(int)           helper_refused;
    _Atomic(unsigned)      distrust;  /* ucs_regcache_distrust_t, changes under
                                         the lock only. While it is not 0 each
                                         new region is doomed from birth and
                                         none is in the index */
    _Atomic(uint32_t)      gate;      /* UCS_REGCACHE_GATE_xx; among what hits
                                         read and nobody writes */
    _Atomic(int)           is_over;   /* a ceiling is passed, for all is in use;
                                         changes under the lock only */
    ucs_regcache_uses_t    use;

    /* The index lock: it protects what says so, and is taken with no other
     * lock held but the helper's step mutex */
    ucs_lock_t             lock;
    int                    is_struck; /* the helper is to be told */
    ucs_regcache_index_t   index __attribute__((aligned(UCS_REGCACHE_LINE)));
    ucs_heap_t             lru[UCS_REGCACHE_CLASS_LAST];
    ucs_regcache_memory_t  memory;
    ucs_regcache_walking_t walking;
    ucs_regcache_store_t   store;
    ucs_regcache_reclaim_t reclaim;
    ucs_regcache_account_t account;
    ucs_regcache_stats_t   stats;     /* what the lock protects of them */
    ucs_regcache_cost_t    cost;
    ucs_regcache_soft_t    soft;
    uint64_t               leave_told; /* bytes of env.leave_bytes */
    _Atomic(int)           pressed;   /* a use found something used up */

    ucs_regcache_plan_t    plan;
    ucs_regcache_tuning_t  tuning;
};

/** @return Nonzero if the policy needs a helper's steps. */
static inline int ucs_regcache_plan_is_used(ucs_regcache_h cache)
{
    return cache->plan.ops->idle == UCS_REGCACHE_IDLE_QUEUE;
}

/** First byte of the page of an address. */
static inline uintptr_t ucs_regcache_page_down(ucs_regcache_h cache,
                                               uintptr_t address)
{
    return address & ~cache->config.page_mask;
}

/** First byte of a page at or behind an address; the last page's if there is
 *  none. */
static inline uintptr_t ucs_regcache_page_up(ucs_regcache_h cache,
                                             uintptr_t address)
{
    return (address > UINTPTR_MAX - cache->config.page_mask) ?
                   UINTPTR_MAX & ~cache->config.page_mask :
                   (address + cache->config.page_mask) &
                           ~cache->config.page_mask;
}

/** Pages that a region pins. */
static inline size_t ucs_regcache_pages(ucs_regcache_h cache,
                                        const ucs_regcache_region_t *region)
{
    return ucs_regcache_pinned_length(region) / (cache->config.page_mask + 1);
}

/** @return Bytes that a registration holds: those that it pins, and what the NIC
 *          and its driver keep for it. */
static inline double ucs_regcache_held_bytes(ucs_regcache_h cache, size_t pinned)
{
    return (double)pinned + cache->config.region_bytes;
}

/** @return Bytes that would be held if all were left pinned, by this cache and
 *          those that share its price. Under the index lock. */
static inline double ucs_regcache_leave_bytes(ucs_regcache_h cache)
{
    double mine    = (double)cache->memory.seen.bytes +
                     cache->config.region_bytes * cache->memory.seen.pieces;
    uint64_t bytes = (uint64_t)mine;

    if (cache->env.leave_bytes == NULL) {
        return mine;
    }
    if (bytes != cache->leave_told) { /* the word is other domains', too */
        (void)ucs_add_relaxed(cache->env.leave_bytes, bytes - cache->leave_told);
        cache->leave_told = bytes;
    }
    return (double)ucs_load_relaxed(cache->env.leave_bytes);
}

/** The LRU order that a region belongs to. */
static inline ucs_heap_t *
ucs_regcache_region_lru(ucs_regcache_h cache,
                        const ucs_regcache_region_t *region)
{
    return &cache->lru[region->size_class];
}

/** @return The class of a request of so many bytes. */
static inline ucs_regcache_class_t
ucs_regcache_size_class(ucs_regcache_h cache, size_t length)
{
    return (length < cache->config.min_size) ? UCS_REGCACHE_CLASS_SMALL :
                                               UCS_REGCACHE_CLASS_MANAGED;
}

/** @return The time of the environment, ns. */
static inline uint64_t ucs_regcache_now(ucs_regcache_h cache)
{
    return cache->env.now(cache->env.arg);
}

/** Count bytes that have come into use. */
static inline void ucs_regcache_in_use(ucs_regcache_h cache, size_t length)
{
    int is_first   = ucs_first_is_me(&cache->use.first);
    uint64_t bytes = ucs_first_sum_add(&cache->use.bytes, is_first, length);
    uint64_t peak  = ucs_load_relaxed(&cache->use.peak);

    while (ucs_unlikely(bytes > peak) &&
           !ucs_cas_relaxed(&cache->use.peak, &peak, bytes)) {
    }
}

#endif

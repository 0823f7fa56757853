/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_INT_H_
#define UCS_REGCACHE_INT_H_

#include <ucs/datastruct/dq.h>
#include "regcache.h"
#include <ucs/datastruct/extents.h>
#include <ucs/datastruct/heap.h>
#include <ucs/datastruct/hist.h>
#include "index.h"
#include "lru.h"
#include <ucs/sys/lock.h>
#include <ucs/regcache/plan/rq.h>

#include <ucs/predict/callsite.h>
#include <ucs/predict/condition.h>
#include <ucs/predict/cost.h>
#include <ucs/predict/order.h>

/**
 * @file regcache_int.h
 *
 * Inside of the cache, shared by regcache.c (life, and the application's side:
 * get), put.c (put, memory events), inspect.c (gate, kinds of
 * memory), coalesce.c (one registration a buffer), reserve.c (what is
 * allocated ahead), evict.c (ceilings, eviction), register.c and
 * deregister.c (lower domain; reclaiming), rest.c (ceilings that are
 * shared, a helper that rests), step.c (the helper's side, with
 * policy_paper.c and policy_order.c, which know when a use is expected),
 * wakeup.c (when it looks in next) and stats.c (figures).
 */

BEGIN_C_DECLS

/** Classes of regions: each has its own LRU order. */
typedef enum ucs_regcache_class {
    UCS_REGCACHE_CLASS_SMALL, /* below min_size: bounded leave-pinned cache */
    UCS_REGCACHE_CLASS_MANAGED,
    UCS_REGCACHE_CLASS_LAST
} ucs_regcache_class_t;

/** Bound of the small cache, regions. */
#define UCS_REGCACHE_SMALL_MAX 1024

/** One hit in so many is timed, a power of two. */
#define UCS_REGCACHE_HIT_SAMPLE 256

/** Regions that are looked at before the index lock is let go: some ten
 *  microseconds, as long as what is done under it for a use takes at worst. */
#ifndef UCS_REGCACHE_LOT
#  define UCS_REGCACHE_LOT 256
#endif

/** What of unmapped memory may wait for the helper to deregister it; with more,
 *  a use that registers does it: it pays for a system call anyway, and a helper
 *  that is not let run must not hold what the application has given back. No
 *  more of them than may wait: each region that is unmapped has cost a use that
 *  registered, so they do not pile up. */
#define UCS_REGCACHE_RECLAIM_MAX       64
#define UCS_REGCACHE_RECLAIM_MAX_BYTES (16ul << 20)

/** Regions are allocated in chunks of this many. */
#define UCS_REGCACHE_CHUNK 64

/** What the gate is made of: while it is not open there are no hits. */
enum {
    UCS_REGCACHE_GATE_OPEN   = 0,
    UCS_REGCACHE_GATE_READER = 1, /* events of the kernel are being read */
    UCS_REGCACHE_GATE_WAITED = 2, /* somebody waits for their reader */
    UCS_REGCACHE_GATE_EVENT  = 4  /* one that interrupted the lock's owner is to
                                   be carried out before the lock is let go */
};

typedef struct ucs_regcache_chunk {
    struct ucs_regcache_chunk *next;
    ucs_regcache_region_t     regions[UCS_REGCACHE_CHUNK];
} ucs_regcache_chunk_t;

/** A walk over all regions, in use or free. They have their places for ever and
 *  in no order, so it may stop and go on later: whatever comes or goes
 *  meanwhile, each that was there at its begin is met once. */
typedef struct ucs_regcache_walk {
    ucs_regcache_chunk_t *chunk; /* NULL: it is over */
    unsigned             index;
} ucs_regcache_walk_t;

static inline ucs_regcache_region_t *
ucs_regcache_walk_next(ucs_regcache_walk_t *walk)
{
    ucs_regcache_region_t *region;

    if (walk->chunk == NULL) {
        return NULL;
    }
    region = &walk->chunk->regions[walk->index];
    if (++walk->index == UCS_REGCACHE_CHUNK) {
        walk->chunk = walk->chunk->next;
        walk->index = 0;
    }
    return region;
}

/** Figures that change under the lock only; see ucs_regcache_stats_t. */
typedef struct ucs_regcache_account {
    uint64_t time;      /* up to which the integrals are complete */
    uint64_t pinned;    /* == sum of the pages of all regions that are
                           REGISTERING, LIVE or DEREGISTERING */
    uint64_t pinned_peak;
    double   pinned_ns;
    uint64_t regions;   /* == number of these regions */
    uint64_t small;     /* those of class SMALL among them */
    uint64_t transit;   /* those of which a thread is with the lower domain; it
                           will come back without waiting for anybody */
    uint64_t wanted;    /* those in transit that a use is registering */
    uint64_t leave_peak;
    double   leave_ns;
    double   in_use_ns; /* of what has been folded in */
    uint64_t hits;      /* likewise */
    uint64_t late, missed, cold, wasted, evicted, invalidated;
    uint64_t over_ceiling, failed;
} ucs_regcache_account_t;

/** Uses that are sorted by their start before they are learned from. */
#define UCS_REGCACHE_BATCH 64

/** Uses under way that are looked at beside a batch. */
#define UCS_REGCACHE_UNDER_WAY 64

/**
 * A policy of the helper: what is expected when. All are called by the helper
 * only, without the lock.
 */
typedef struct ucs_regcache_policy_ops {
    /** Set up and release what the policy keeps in the cache. */
    ucs_status_t (*init)(ucs_regcache_h cache, unsigned max_contexts);
    void         (*cleanup)(ucs_regcache_h cache);

    /** Add to a sorted batch the uses that are under way, with an end of 0.
     *  May be NULL. @return The number of uses in the batch. */
    unsigned     (*under_way)(ucs_regcache_h cache,
                              ucs_use_t *uses, unsigned count);

    /** Learn from one use, whose region may have gone since. */
    void         (*use)(ucs_regcache_h cache,
                        const ucs_use_t *use);

    /** All uses that are known have been learned from: bring the queue up to
     *  date. NULL: each use did that itself. */
    void         (*plan)(ucs_regcache_h cache, uint64_t now);

    /** @return Until when a region that is registered is waited for. */
    uint64_t     (*until)(ucs_regcache_h cache,
                          const ucs_regcache_rq_item_t *item, uint64_t now);

    /** A use did not come until then. May be NULL. */
    void         (*unused)(ucs_regcache_h cache,
                           const ucs_regcache_rq_item_t *item);

    /** Regions stay DORMANT, so that they are found, without an item. */
    int remembers;

    /** Under a ceiling of bytes idle regions stay until that is reached. */
    int keeps_budget;
} ucs_regcache_policy_ops_t;

extern const ucs_regcache_policy_ops_t ucs_regcache_policy_paper;
extern const ucs_regcache_policy_ops_t ucs_regcache_policy_order;

/** The region of a buffer that the predictor knows. */
typedef struct ucs_regcache_home {
    ucs_regcache_region_t *region; /* NULL: none */
    uint64_t              generation;
    uint64_t              begun;   /* ns, start of the latest use learned */
    uint32_t              place;   /* generation of the buffer */
    int                   refused; /* the helper is not to register it now */
} ucs_regcache_home_t;

/** What the cache was created with. */
typedef struct ucs_regcache_config {
    ucs_regcache_policy_t policy;
    size_t                min_size;   /* bytes */
    size_t                max_pinned; /* bytes */
    unsigned long         max_regions;
    size_t                page_mask;  /* page size - 1 */
    unsigned              access_mask;
} ucs_regcache_config_t;

/** What every use writes. */
typedef struct ucs_regcache_uses {
    ucs_dq_h          queue; /* to the helper, of uses that are over */
    _Atomic(uint64_t) bytes; /* in use */
    _Atomic(uint64_t) peak;
    ucs_hist_t        hit_ns;
} ucs_regcache_uses_t;

/** What is known of memory, by pages. Protected by the index lock. */
typedef struct ucs_regcache_memory {
    ucs_extents_t seen;   /* was registered once and is still mapped */
    ucs_extents_t kept;   /* its registration may outlive its use */
    ucs_extents_t barred; /* it may not */
    uint64_t      events; /* memory events so far */
} ucs_regcache_memory_t;

/** Where regions come from. Protected by the index lock. */
typedef struct ucs_regcache_store {
    ucs_regcache_region_t *free;
    unsigned              num_free;
    unsigned              num_regions; /* ever allocated */
    ucs_regcache_chunk_t  *chunks;
} ucs_regcache_store_t;

/** Doomed regions without users, to be deregistered. All of it changes under
 *  the index lock. */
typedef struct ucs_regcache_reclaim {
    ucs_regcache_region_t *list;
    _Atomic(unsigned)     count; /* == length of the list */
    _Atomic(size_t)       bytes; /* == sum of what its regions pin */
} ucs_regcache_reclaim_t;

/** What the lower domain takes. Protected by the index lock. */
typedef struct ucs_regcache_cost {
    ucs_predict_cost_t reg;
    ucs_predict_cost_t dereg;
} ucs_regcache_cost_t;

/** The helper's own. */
typedef struct ucs_regcache_plan {
    const ucs_regcache_policy_ops_t *ops;          /* NULL: no helper needed */
    ucs_predict_table_h             table;         /* paper */
    ucs_predict_order_h             order;         /* predict */
    ucs_regcache_home_t             *homes;        /* by buffer */
    double                          miss_target;
    double                          cpu_target;    /* share of a core; 0: any */
    uint64_t                        spent;         /* ns of processor time, as
                                                      last read; 0: not yet */
    double                          share;         /* of a core, as it is now */
    uint64_t                        rest_until;    /* ns: what was spent is
                                                      earned */
    ucs_regcache_rq_t               rq;
    uint64_t                        lost;          /* by the queue of uses, as
                                                      last seen */
    ucs_regcache_walk_t             sweep;         /* after uses were lost */
    int                             sweep_again;   /* more were lost since it
                                                      began */
    uint64_t                        sweep_at;      /* ns, when it goes on or
                                                      begins */
    uint64_t                        used_at;       /* ns, when a step last found
                                                      a use */
    uint64_t                        next_due;      /* what the last step
                                                      returned */
    uint64_t                        lateness;      /* ns, smoothed, of steps */
    uint64_t                        lead;          /* ns before a deadline,
                                                      against steps that are
                                                      late now and then */
    uint64_t                        shared;     /* ns, until the core is free */
    int                             is_resting;
    uint64_t                        backoff_until; /* ns: nothing in advance
                                                      before */
    uint64_t                        backoff;       /* ns, the latest; 0: all is
                                                      well */
    _Atomic(uint64_t)               learned;       /* uses that the predictor
                                                      knows */
} ucs_regcache_plan_t;

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
    ucs_regcache_uses_t    use;

    /* The index lock: it protects what says so, and is taken with no other
     * lock held but the helper's step mutex */
    ucs_lock_t             lock;
    int                    is_struck; /* the helper is to be told */
    ucs_regcache_index_t   index;
    ucs_heap_t             lru[UCS_REGCACHE_CLASS_LAST];
    ucs_regcache_memory_t  memory;
    ucs_regcache_store_t   store;
    ucs_regcache_reclaim_t reclaim;
    ucs_regcache_account_t account;
    ucs_regcache_cost_t    cost;
    _Atomic(int)           is_over;   /* a ceiling is passed, for all is in use;
                                         changes under the lock only */
    _Atomic(int)           pressed;   /* a use found something used up */

    ucs_regcache_plan_t    plan;
};

/* --- regcache.c --- */

void ucs_regcache_lock(ucs_regcache_h cache);

/** Both also carry out what a memory event of a signal handler left behind. */
void ucs_regcache_unlock(ucs_regcache_h cache);

/** Range of pages that [start, end) touches. */
static inline uintptr_t ucs_regcache_page_down(ucs_regcache_h cache,
                                               uintptr_t address)
{
    return address & ~cache->config.page_mask;
}

static inline uintptr_t ucs_regcache_page_up(ucs_regcache_h cache,
                                             uintptr_t address)
{
    return (address > UINTPTR_MAX - cache->config.page_mask) ?
                   UINTPTR_MAX & ~cache->config.page_mask :
                   (address + cache->config.page_mask) &
                           ~cache->config.page_mask;
}

/** Bytes of the pages that a region pins. */
static inline size_t ucs_regcache_pinned_length(ucs_regcache_h cache,
                                                ucs_regcache_region_t *region)
{
    return ucs_regcache_page_up(cache, ucs_load_relaxed(&region->end)) -
           ucs_regcache_page_down(cache, ucs_load_relaxed(&region->start));
}

static inline size_t ucs_regcache_pages(ucs_regcache_h cache,
                                        ucs_regcache_region_t *region)
{
    return ucs_regcache_pinned_length(cache, region) /
           (cache->config.page_mask + 1);
}

static inline ucs_regcache_class_t ucs_regcache_class(ucs_regcache_h cache,
                                                      size_t length)
{
    return (length < cache->config.min_size) ? UCS_REGCACHE_CLASS_SMALL :
                                               UCS_REGCACHE_CLASS_MANAGED;
}

/** The LRU order that a region belongs to. */
static inline ucs_heap_t *ucs_regcache_region_lru(ucs_regcache_h cache,
                                                  ucs_regcache_region_t *region)
{
    return &cache->lru[ucs_regcache_class(cache,
                                          ucs_regcache_region_length(region))];
}

static inline uint64_t ucs_regcache_now(ucs_regcache_h cache)
{
    return cache->env.now(cache->env.arg);
}

/** Count bytes that have come into use. */
static inline void ucs_regcache_in_use(ucs_regcache_h cache, size_t length)
{
    uint64_t bytes = ucs_add_relaxed(&cache->use.bytes, length) + length;
    uint64_t peak  = ucs_load_relaxed(&cache->use.peak);

    while ((bytes > peak) && !ucs_cas_relaxed(&cache->use.peak, &peak, bytes)) {
    }
}

/* --- inspect.c --- */

/** Wait until the gate is open. */
void ucs_regcache_pass_gate(ucs_regcache_h cache);

/**
 * May the registration of a region that is REGISTERING outlive its use, or, for
 * a helper's (@a is_use is 0), be made? Outside of the lock.
 */
int ucs_regcache_may_keep(ucs_regcache_h cache, ucs_regcache_region_t *region,
                          int is_use);

/* --- coalesce.c --- */

/** May a use of so many bytes be registered with what is around it? */
int ucs_regcache_may_coalesce(ucs_regcache_h cache, size_t length);

/**
 * One registration a buffer: enlarge what is to be registered by the
 * registrations that it overlaps. Under the lock.
 *
 * @param [in]    region    Dormant one of exactly this range, or NULL.
 * @param [inout] start_p   Range asked for.
 * @param [inout] end_p
 * @param [inout] access_p  Union of what is asked of any of them.
 *
 * @return A dormant region of exactly the enlarged range, or NULL.
 */
ucs_regcache_region_t *ucs_regcache_coalesce(ucs_regcache_h cache,
                                             ucs_regcache_region_t *region,
                                             uintptr_t *start_p,
                                             uintptr_t *end_p,
                                             unsigned *access_p);

/** Deregister what lies within a region that is about to be registered, at the
 *  end of its use if it is in use. Outside of the lock. */
void ucs_regcache_supersede(ucs_regcache_h cache, ucs_regcache_region_t *by);

/* --- rest.c --- */

/** Count a region that is about to be pinned in the node's ledger, under the
 *  lock. @return Nonzero if it fits. */
int ucs_regcache_claim(ucs_regcache_h cache, size_t length, ucs_claim_t why);

/**
 * A use does not fit: ask others for room, once each way.
 *
 * @param [inout] asked_p  What has been asked; 0 at first.
 *
 * Called under the lock, which is let go meanwhile.
 *
 * @return UCS_REGCACHE_ANSWER_GRANTED: it fits, and is claimed.
 */
ucs_regcache_answer_t ucs_regcache_ask(ucs_regcache_h cache, size_t length,
                                       ucs_ask_t whom, unsigned *asked_p);

/* --- step.c, the helper only --- */

/** What the helper's work on a region takes. */
void ucs_regcache_step_terms(ucs_regcache_h cache,
                             ucs_regcache_region_t *region,
                             ucs_predict_terms_t *terms);

/** Have a region kept DORMANT when it is deregistered, unless the life that
 *  @a generation names has ended: the mark would stay on the next life, of
 *  which nobody may ever hear. */
void ucs_regcache_step_remember(ucs_regcache_h cache,
                                ucs_regcache_region_t *region,
                                uint64_t generation);

/** After items of a region have come or gone. */
void ucs_regcache_step_replan(ucs_regcache_h cache,
                              ucs_regcache_region_t *region);

/** Let go of a region that nothing is expected of any more. */
void ucs_regcache_step_forget(ucs_regcache_h cache,
                              ucs_regcache_region_t *region);

/** Deregister an idle region if the deregistration condition holds. A region
 *  without an item is always deregistered. */
void ucs_regcache_step_deregister(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region);

/** Nothing is expected of this item any more. A region that is left without
 *  items is known to no queue: nobody else would deregister or forget it. */
void ucs_regcache_step_cancel(ucs_regcache_h cache,
                              ucs_regcache_rq_item_t *item);

/** The path of a use. */
uint64_t ucs_regcache_step_path(ucs_regcache_h cache, const ucs_use_t *use);

/** Put a use into a batch that is sorted by start. */
void ucs_regcache_step_sort(ucs_use_t *uses, unsigned count,
                            const ucs_use_t *use);

/** First time at which the registration of a pending item may not be delayed
 *  any more. Under the lock. */
uint64_t ucs_regcache_step_begin_time(ucs_regcache_h cache,
                                      ucs_regcache_rq_item_t *item);

/* --- wakeup.c, the helper only --- */

/** Least time after which an end that did not come is looked for again. */
#define UCS_REGCACHE_POLL_MIN_NS UINT64_C(250000)

/** @return When the helper will have earned so much processor time, ns, beside
 *  what it has spent already. */
uint64_t ucs_regcache_wakeup_earned(ucs_regcache_h cache, uint64_t cost,
                                    uint64_t now);

/** @return When the helper is to step next, ns; now the step is over. */
uint64_t ucs_regcache_wakeup_next(ucs_regcache_h cache, uint64_t now);

/* --- put.c --- */

/** Give up a reference on a live region at time @a now, and do what its last
 *  user has to do. */
void ucs_regcache_region_put(ucs_regcache_h cache,
                             ucs_regcache_region_t *region, uint64_t now);

/** Carry out what memory events left behind that interrupted the lock's owner:
 *  every region is struck, for they could not say which. Under the lock. */
void ucs_regcache_strike_all(ucs_regcache_h cache);

/** The last user of a doomed region has gone. */
void ucs_regcache_doomed(ucs_regcache_h cache, ucs_regcache_region_t *region);

/* --- reserve.c --- */

/** Allocate ahead, outside of the lock, what one registration may need under
 *  it. */
ucs_status_t ucs_regcache_reserve(ucs_regcache_h cache);

/** Take a FREE region; its fields are set, its word is not. Under the lock. */
ucs_regcache_region_t *ucs_regcache_region_alloc(ucs_regcache_h cache);

/** Give a region back that is in no structure and has no references. Under
 *  the lock. */
void ucs_regcache_region_free(ucs_regcache_h cache,
                              ucs_regcache_region_t *region);

/* --- stats.c --- */

/** Bring the integrals up to @a now. Under the lock. */
void ucs_regcache_account(ucs_regcache_h cache, uint64_t now);

/** Count a region as pinned (@a sign is 1) or not any more (-1). Under the
 *  lock. */
void ucs_regcache_account_region(ucs_regcache_h cache,
                                 ucs_regcache_region_t *region, int sign,
                                 uint64_t now);

/** Take what a region's users have counted since the last time into the totals.
 *  Under the lock. */
void ucs_regcache_account_uses(ucs_regcache_h cache,
                               ucs_regcache_region_t *region);

/* --- evict.c --- */

/** @return Nonzero if the cache's own ceilings leave room. Under the lock. */
int ucs_regcache_fits(ucs_regcache_h cache, size_t length);

/**
 * Keep the ceilings: evict until there is room for a region, and count it as
 * pinned before it is. Outside of the lock.
 *
 * @return Nonzero if so, which it always is for a use; 0 if there is no room
 *         for a helper's registration.
 */
int ucs_regcache_make_room(ucs_regcache_h cache, ucs_regcache_region_t *region,
                           int is_use);

/** Go back below a ceiling that uses had to pass, as far as regions are
 *  idle. */
void ucs_regcache_trim(ucs_regcache_h cache);

/** Evict at least @a length bytes, or all that is idle. Outside of the lock.
 *  @return Bytes unpinned. */
size_t ucs_regcache_evict_for(ucs_regcache_h cache, size_t length);

/* --- register.c --- */

/**
 * Register a region that is REGISTERING: keep the ceilings, call the lower
 * domain, publish. Waiters are woken.
 *
 * @param [in] flags  For the lower domain.
 * @param [in] refs   The caller's own references, 0 or 1.
 *
 * On failure, or if a helper's registration (@a refs is 0) was doomed
 * meanwhile, the region is not the caller's any more.
 *
 * @return UCS_OK; the lower domain's error; UCS_ERR_CANCELED if doomed;
 *         UCS_ERR_EXCEEDS_LIMIT if a ceiling leaves no room for a helper's
 *         registration: the region is DORMANT again.
 */
ucs_status_t ucs_regcache_region_register(ucs_regcache_h cache,
                                          ucs_regcache_region_t *region,
                                          unsigned flags, unsigned refs);

/* --- deregister.c --- */

/** Take a region out of look-up and mark it doomed. Under the lock.
 *  @return The word before: with references in it, their last owner finds the
 *          doom and reclaims the region, without, the caller has to. A word
 *          read later could show that owner gone who is about to do so. */
uint64_t ucs_regcache_region_doom(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region);

/** Make a LIVE region without users DEREGISTERING. Under the lock.
 *  @return Zero if it has users, is doomed or is not LIVE. */
int ucs_regcache_region_take_idle(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region);

/** Deregister a claimed region; it becomes DORMANT if it is planned and its
 *  mapping still there, else FREE. Outside of the lock. */
void ucs_regcache_region_deregister(ucs_regcache_h cache,
                                    ucs_regcache_region_t *region,
                                    ucs_regcache_comp_t comp);

/** Put a doomed region without references on the reclaim list. Under the
 *  lock. */
void ucs_regcache_region_reclaim(ucs_regcache_h cache,
                                 ucs_regcache_region_t *region);

/** Deregister and free all that is on the reclaim list. Outside of the lock. */
void ucs_regcache_reclaim(ucs_regcache_h cache);

/** The same, of @a max regions at most. */
void ucs_regcache_reclaim_some(ucs_regcache_h cache, unsigned max);

/** Deregister every region that is LIVE, with users or without; what waits for
 *  an invalidation is told. Nobody else is inside the cache. */
void ucs_regcache_deregister_all(ucs_regcache_h cache);

END_C_DECLS

#endif

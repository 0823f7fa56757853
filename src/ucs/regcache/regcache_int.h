/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_INT_H_
#define UCS_REGCACHE_INT_H_

#include <ucs/datastruct/dq.h>
#include "regcache.h"
#include "valid.h"
#include <ucs/datastruct/extents.h>
#include <ucs/datastruct/heap.h>
#include <ucs/datastruct/hist.h>
#include "index.h"
#include "lru.h"
#include <ucs/sys/first.h>
#include <ucs/sys/lock.h>
#include <ucs/regcache/plan/plan.h>

#include <ucs/predict/cost.h>

#include <assert.h>

/**
 * @file regcache_int.h
 *
 * Inside of the cache. Calls go down this list only, so no two files are in a
 * circle:
 *
 *   regcache.c    life: what a cache is created with, and its end
 *   get.c         hit, wait, miss
 *   put.c         the end of a use, invalidation
 *   register.c    one registration: admission, lower domain, publication
 *   admit.c       ceilings and budget: may this be pinned?
 *   coalesce.c    one registration a buffer
 *   cover.c       one registration for neighbours
 *   evict.c       which idle region goes when others need what it pins
 *   floor.c       leaves all pinned where the helper costs more than it saves
 *   rest.c        a helper that stands down
 *   charge.c      what the helper takes from others
 *   deregister.c  lower domain, reclaiming
 *   reserve.c     what is allocated ahead, outside of the lock
 *   inspect.c     kinds of memory: may a registration outlive its use?
 *   events.c      memory events, gate, distrust
 *   stats.c       snapshot of all figures
 *   valid.c       the equations that hold whenever the index lock is free
 *   state.c       index lock, doom, strike: what changes a region's state
 *   account.c     figures that change with it
 *   lru.c         regions by their latest use
 *   index.c       look-up by range and by handle
 *
 * plan/ is the helper's side: it calls all of these but get.c and put.c.
 * regcache.c creates what plan/ keeps, and hands it the table of functions of a
 * policy; nothing else here calls it.
 */

BEGIN_C_DECLS

/** One hit in so many is timed, a power of two. */
#define UCS_REGCACHE_HIT_SAMPLE 256

/**
 * The clock is read where a use begins, and where it ends, unless so many of
 * the region in a row were shorter than this (ns): from then on one end in so
 * many is read, and each other one is taken to come as long after its start as
 * that one did, until one was longer. A second reading is a third of what a hit
 * takes, and less than a five hundredth of any use that is longer.
 */
#define UCS_REGCACHE_SHORT_USE_NS 10000
#define UCS_REGCACHE_END_SAMPLE   16

/** What the gate is made of: while it is not open there are no hits. */
enum {
    UCS_REGCACHE_GATE_OPEN   = 0,
    UCS_REGCACHE_GATE_READER = 1, /* events of the kernel are being read */
    UCS_REGCACHE_GATE_WAITED = 2, /* a thread waits for their reader */
    UCS_REGCACHE_GATE_EVENT  = 4  /* one that interrupted the lock's owner is to
                                   be carried out before the lock is let go */
};

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
                           will come back without waiting for another */
    uint64_t wanted;    /* those in transit that a use is registering */
    uint64_t leaving;   /* those in transit that are DEREGISTERING */
    uint64_t leave_peak;
    double   leave_ns;
    double   in_use_ns; /* of what has been folded in */
    uint64_t hits;      /* likewise */
    uint64_t late, missed, cold, wasted, evicted, invalidated;
    uint64_t over_ceiling, failed;
    uint64_t lock_takings;
    uint64_t lost_ns, late_ns;
    uint64_t repinned;  /* registrations of regions that had been given up */
    uint64_t covers;    /* registrations of more than was asked for */
    uint64_t spared;    /* first uses that found theirs made by that */
    uint64_t spared_pages; /* that those would have registered */
    uint64_t ahead_pages; /* that covers have registered beyond what was asked
                             for at the time */
} ucs_regcache_account_t;

/** What the cache was created with. */
typedef struct ucs_regcache_config {
    size_t                min_size;   /* bytes */
    size_t                max_pinned; /* bytes */
    unsigned long         max_regions;
    size_t                page_mask;  /* page size - 1 */
    unsigned              access_mask;
    double                max_slowdown;
    ucs_regcache_cover_t  cover;
} ucs_regcache_config_t;

/** What every use reads, and what it writes: in lines that no other reads. */
typedef struct ucs_regcache_uses {
    ucs_dq_h          queue;  /* to the helper, of uses that are over */
    ucs_first_t       first;  /* whose uses need no read-modify-write here */
    _Atomic(uint64_t) peak;   /* of the bytes in use */
    ucs_first_sum_t   bytes;  /* in use */
    ucs_hist_t        hit_ns; /* one in UCS_REGCACHE_HIT_SAMPLE */
} ucs_regcache_uses_t;

/** Memory events that are remembered, a power of two. */
#define UCS_REGCACHE_EVENTS 64u

/** A memory event: pages [start, end) at a time. */
typedef struct ucs_regcache_event {
    uintptr_t start;
    uintptr_t end;
    uint64_t  time; /* ns */
} ucs_regcache_event_t;

/** Mappings in which the program's own pieces are counted. With more at a time
 *  the oldest begins anew, which costs covers. */
#define UCS_REGCACHE_FIELDS 8

/** A mapping in which the program maps pieces itself (cover.c). */
typedef struct ucs_regcache_field {
    uintptr_t at;      /* an address in it; 0: there is none */
    size_t    asked;   /* bytes of first uses */
    size_t    covered; /* bytes that were registered for these */
    size_t    longest; /* bytes of a piece, in whole pages */
    int       is_uneven; /* pieces differ, or lie across their multiples */
    unsigned  refused; /* covers that would have brought in memory */
} ucs_regcache_field_t;

/** What is known of memory, by pages. Protected by the index lock. */
typedef struct ucs_regcache_memory {
    ucs_extents_t seen;   /* was registered once and is still mapped */
    ucs_extents_t kept;   /* its registration may outlive its use */
    ucs_extents_t barred; /* it may not */
    ucs_extents_t still;  /* no event has touched it, or it was asked for since;
                             empty without covers */
    unsigned      cover_failures; /* covers that were refused */
    ucs_regcache_field_t fields[UCS_REGCACHE_FIELDS];
    unsigned      fields_begun;   /* ever */
    uint64_t      events; /* memory events so far */
    ucs_regcache_event_t latest[UCS_REGCACHE_EVENTS]; /* by their number */
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

/** What the helper costs. It is the only one that writes this. */
typedef struct ucs_regcache_charge {
    uint64_t          spent;   /* ns of its processor time, as last read */
    double            step_ns; /* of it that a step takes, smoothed */
    double            busy;    /* share of it that others want, 0 to 1 */
    _Atomic(uint64_t) lost_ns; /* == sum of what it spent times that share */
} ucs_regcache_charge_t;

/** What may be pinned at once for what it is worth (soft.c). Protected by the
 *  index lock. */
typedef struct ucs_regcache_soft {
    int      is_kept;   /* the policy minds the price of memory, and there is no
                           ceiling of bytes */
    uint64_t in_use;    /* bytes: the most that uses had registered at once */
    uint64_t room;      /* bytes beside that */
    uint64_t raises;    /* of that room */
    uint64_t lost_ns;   /* by uses, for want of room */
} ucs_regcache_soft_t;

/** Whether all of it is worth what it costs (floor.c). Protected by the index
 *  lock; only the helper changes is_on. */
typedef struct ucs_regcache_floor {
    int      is_kept;   /* as the soft ceiling at first */
    int      is_on;     /* everything stays pinned */
    uint64_t times;     /* that it was */
    uint64_t lost_ns;   /* by uses that register what leaving pinned would have
                           had, or make room for it; by the model */
    uint64_t came_ns;   /* by uses of memory that was new, which nobody can
                           save; by the model */
} ucs_regcache_floor_t;

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
    ucs_regcache_store_t   store;
    ucs_regcache_reclaim_t reclaim;
    ucs_regcache_account_t account;
    ucs_regcache_cost_t    cost;
    ucs_regcache_soft_t    soft;
    ucs_regcache_floor_t   floor;
    _Atomic(int)           pressed;   /* a use found something used up */

    ucs_regcache_charge_t  charge;
    ucs_regcache_plan_t    plan;
    ucs_regcache_tuning_t  tuning;
};

/** @return Nonzero if the policy needs a helper's steps. */
static inline int ucs_regcache_plan_is_used(ucs_regcache_h cache)
{
    return cache->plan.ops->idle == UCS_REGCACHE_IDLE_QUEUE;
}

/**
 * What a use asks for: filled once where it comes in, and handed on as it is.
 * Addresses are rounded to pages there and nowhere behind.
 */
typedef struct ucs_regcache_request {
    uintptr_t            start;      /* bytes [start, end) */
    uintptr_t            end;
    uintptr_t            first;      /* the pages that they touch: first byte of
                                        the first */
    uintptr_t            last;       /* behind the last */
    unsigned             flags;      /* for the lower domain, if it registers */
    unsigned             access;     /* those of them that allow something */
    ucs_regcache_class_t size_class;
    uintptr_t            sp;         /* stack position of the call */
    uint64_t             now;        /* ns, when it came */
    int                  is_cover;   /* more than anybody asked for */
    int                  is_scattered; /* likewise, and beyond neighbours */
    size_t               ahead;        /* pages beyond what was asked for */
} ucs_regcache_request_t;

/** What a use has lost beyond a hit and is not in the totals yet. */
typedef struct ucs_regcache_loss {
    uint64_t since;     /* ns: up to then it is */
    uint64_t waited_ns; /* for registrations under way */
} ucs_regcache_loss_t;

/** What is known of the memory of a region that is REGISTERING. */
typedef struct ucs_regcache_inspection {
    uintptr_t     start;     /* pages: its own, and if the environment said yes
                                all that are known to be alike */
    uintptr_t     end;
    uint64_t      events;    /* memory events before it */
    int           is_kept;   /* it may outlive its use, as was found before */
    int           is_barred; /* it may not, likewise */
    ucs_extents_t *learned;  /* what they are to be added to; NULL: nothing */
} ucs_regcache_inspection_t;

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

/** The LRU order that a region belongs to. */
static inline ucs_heap_t *
ucs_regcache_region_lru(ucs_regcache_h cache,
                        const ucs_regcache_region_t *region)
{
    return &cache->lru[region->size_class];
}

static inline ucs_regcache_class_t
ucs_regcache_size_class(ucs_regcache_h cache, size_t length)
{
    return (length < cache->config.min_size) ? UCS_REGCACHE_CLASS_SMALL :
                                               UCS_REGCACHE_CLASS_MANAGED;
}

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

/* --- account.c: under the lock --- */

/** Bring the integrals up to @a now. */
void ucs_regcache_account(ucs_regcache_h cache, uint64_t now);

/** Count a region as pinned (@a sign is 1) or not any more (-1). */
void ucs_regcache_account_region(ucs_regcache_h cache,
                                 ucs_regcache_region_t *region, int sign,
                                 uint64_t now);

/** Take what a thread of the application has lost up to @a now into the
 *  totals. */
void ucs_regcache_account_loss(ucs_regcache_h cache, ucs_regcache_loss_t *loss,
                               uint64_t now);

/** Take what a region's users have counted since the last time into the
 *  totals. */
void ucs_regcache_account_uses(ucs_regcache_h cache,
                               ucs_regcache_region_t *region);

/** The same at the end of a registration; the next one's begin anew. */
void ucs_regcache_account_end(ucs_regcache_h cache,
                              ucs_regcache_region_t *region);

/* --- state.c: under the lock, but for what takes it --- */

/** @return Zero if the lock is not free; then it is not taken. */
int ucs_regcache_try_lock(ucs_regcache_h cache);

/**
 * REGISTERING, with one reference.
 *
 * @param [in] region  DORMANT, and covers the request; NULL: a FREE one, of
 *                     which there is one in reserve, takes on what is asked
 *                     for.
 */
ucs_regcache_region_t *
ucs_regcache_region_begin(ucs_regcache_h cache, ucs_regcache_region_t *region,
                          const ucs_regcache_request_t *request);

/**
 * REGISTERING no more: the lower domain has registered it.
 *
 * @param [in] refs  The caller's own references, 0 or 1.
 *
 * @return UCS_OK; UCS_ERR_CANCELED if it is doomed and the caller has no
 *         reference: then it is not the caller's any more.
 */
ucs_status_t
ucs_regcache_region_publish(ucs_regcache_h cache, ucs_regcache_region_t *region,
                            ucs_regcache_memh_t memh, uint64_t now,
                            unsigned refs);

/** REGISTERING no more: it is not to be had, for @a status. The region is not
 *  the caller's any more. */
void ucs_regcache_region_fail(ucs_regcache_h cache,
                              ucs_regcache_region_t *region,
                              ucs_status_t status, unsigned refs);

/** Make a LIVE region without users DEREGISTERING.
 *  @return Zero if it has users, is doomed or is not LIVE. */
int ucs_regcache_region_take_idle(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region);

/** Make a doomed LIVE region without users DEREGISTERING. */
void ucs_regcache_region_withdraw(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region);

/** DEREGISTERING no more: DORMANT if it is planned and its mapping still there,
 *  else FREE. */
void ucs_regcache_region_retire(ucs_regcache_h cache,
                                ucs_regcache_region_t *region);

/** Forget a DORMANT region that is not doomed. */
void ucs_regcache_region_forget(ucs_regcache_h cache,
                                ucs_regcache_region_t *region);

/** Give a region back that is in no structure and has no references. */
void ucs_regcache_region_free(ucs_regcache_h cache,
                              ucs_regcache_region_t *region);

/** Take a region out of look-up and mark it doomed.
 *  @return The word before: with references in it, their last owner finds the
 *          doom and reclaims the region, without, the caller has to. A word
 *          that is read later could show an owner gone that is about to do
 *          so. */
uint64_t ucs_regcache_region_doom(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region);

/** Put a doomed region without references on the reclaim list. */
void ucs_regcache_region_reclaim(ucs_regcache_h cache,
                                 ucs_regcache_region_t *region);

/** Take one off that list. @return NULL if there is none. */
ucs_regcache_region_t *ucs_regcache_region_unreclaim(ucs_regcache_h cache);

/** Doom all that overlaps a range. @return Nonzero if there is something to
 *  reclaim. */
int ucs_regcache_strike_range(ucs_regcache_h cache, uintptr_t start,
                              uintptr_t end);

/** The same, and forget what is known of the range's memory. */
int ucs_regcache_forget_range(ucs_regcache_h cache, uintptr_t start,
                              uintptr_t end, uint64_t now);

/** Remember a memory event. */
void ucs_regcache_note_event(ucs_regcache_h cache, uintptr_t start,
                             uintptr_t end, uint64_t now);

/** @return Nonzero if memory events may have come over a range at @a time (ns)
 *          or since. */
int ucs_regcache_was_struck(ucs_regcache_h cache, uintptr_t start,
                            uintptr_t end, uint64_t time);

/* --- events.c --- */

/** Wait until the gate is open. */
void ucs_regcache_pass_gate(ucs_regcache_h cache);

/* --- inspect.c --- */

/** Look up what is known of a region's memory. Under the lock. */
void ucs_regcache_inspect_begin(ucs_regcache_h cache,
                                const ucs_regcache_region_t *region,
                                ucs_regcache_inspection_t *inspection);

/**
 * May the registration outlive its use, or, with UCS_REGCACHE_INSPECT_SPECULATE
 * in @a flags, be made? Outside of the lock.
 */
int ucs_regcache_inspect(ucs_regcache_h cache, unsigned flags,
                         ucs_regcache_inspection_t *inspection);

/** Remember the answer. Under the lock. */
void ucs_regcache_inspect_end(ucs_regcache_h cache,
                              const ucs_regcache_inspection_t *inspection);

/* --- reserve.c --- */

/**
 * Take the lock, with as much in reserve as one registration may need under it;
 * what is short is allocated outside.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY: the lock is not taken.
 */
ucs_status_t ucs_regcache_lock_reserved(ucs_regcache_h cache);

/* --- deregister.c --- */

/** Deregister a region that is DEREGISTERING; it becomes DORMANT or FREE.
 *  Outside of the lock. */
void ucs_regcache_region_deregister(ucs_regcache_h cache,
                                    ucs_regcache_region_t *region,
                                    ucs_regcache_comp_t comp);

/** The same by a thread of the application, which loses the time since @a since
 *  by it. */
void ucs_regcache_region_drop(ucs_regcache_h cache,
                              ucs_regcache_region_t *region, uint64_t since);

/**
 * Have the helper deregister a large region whose last user has gone, for the
 * caller would wait long. Under the lock; the caller wakes the helper after it.
 *
 * @return Zero if it is not large or not idle, or if there is no helper: the
 *         caller does it.
 */
int ucs_regcache_drop_later(ucs_regcache_h cache,
                            ucs_regcache_region_t *region);

/** Deregister and free all that is on the reclaim list. Outside of the lock. */
void ucs_regcache_reclaim(ucs_regcache_h cache);

/** The same, of @a max regions at most. */
void ucs_regcache_reclaim_some(ucs_regcache_h cache, unsigned max);

/** Deregister every region that is LIVE, with users or without; what waits for
 *  an invalidation is told. No other thread is inside the cache. */
void ucs_regcache_deregister_all(ucs_regcache_h cache);

/* --- evict.c --- */

/** Evict one idle region of a class, or of any if it is
 *  UCS_REGCACHE_CLASS_LAST. Under the lock, which is let go for the lower
 *  domain's call. @return Bytes unpinned, 0 if nothing is idle. */
size_t ucs_regcache_evict(ucs_regcache_h cache, int size_class);

/**
 * Evict one managed region for the soft ceiling.
 *
 * @param [in] before  Only one whose next use is later than this one's; NULL:
 *                     any.
 *
 * @return Bytes unpinned, 0 if there is none.
 */
size_t ucs_regcache_evict_soft(ucs_regcache_h cache,
                               ucs_regcache_region_t *before);

/** Evict at least @a length bytes, or all that is idle. Outside of the lock.
 *  @return Bytes unpinned. */
size_t ucs_regcache_evict_for(ucs_regcache_h cache, size_t length);

/** Go back below a ceiling that uses had to pass, as far as regions are
 *  idle. */
void ucs_regcache_trim(ucs_regcache_h cache);

/* --- charge.c --- */

/** Charge the helper for what it took from others since the last time. The
 *  helper only, in each of its steps. */
void ucs_regcache_charge(ucs_regcache_h cache);

/* --- floor.c --- */

/** Set it up, once the soft ceiling is. */
void ucs_regcache_floor_init(ucs_regcache_h cache);

/** @return ns between two looks that cost the application @a look_ns each, so
 *          that they take half of what the floor lets all cost more. */
double ucs_regcache_floor_between(ucs_regcache_h cache, double look_ns);

/** A use registers memory that was not registered before. Under the lock. */
void ucs_regcache_floor_came(ucs_regcache_h cache,
                             const ucs_regcache_request_t *request);

/** The thread that ends a use deregisters a region which the policy does not
 *  hold. Under the lock. */
void ucs_regcache_floor_dropped(ucs_regcache_h cache,
                                const ucs_regcache_region_t *region);

/** A use registers what was registered once. Under the lock. */
void ucs_regcache_floor_missed(ucs_regcache_h cache,
                               const ucs_regcache_request_t *request);

/**
 * Has it cost more so far than leaving everything pinned would have, by more
 * than it may? The helper only, once its own time is charged; it stands down or
 * resumes.
 *
 * @param [in] now  ns.
 *
 * @return 0; or when to look again, ns, if everything stays pinned: there is
 *         nothing to do until then.
 */
uint64_t ucs_regcache_floor_holds(ucs_regcache_h cache, uint64_t now);

/* --- rest.c --- */

/** Stand down, or resume once no reason is left: see @ref ucs_regcache_rest.
 *  The helper only. */
void ucs_regcache_rest_for(ucs_regcache_h cache, ucs_regcache_rest_t why);
void ucs_regcache_resume_from(ucs_regcache_h cache, ucs_regcache_rest_t why);

/* --- soft.c: under the lock --- */

/** @return The soft ceiling, bytes; 0: there is none. */
uint64_t ucs_regcache_soft_bytes(ucs_regcache_h cache);

/** @return Nonzero if so many more bytes stay below the soft ceiling. */
int ucs_regcache_soft_fits(ucs_regcache_h cache, size_t length);

/** So many bytes are registered, or about to be, for the first uses of receives
 *  that the program has posted: for it they are in use from then on. */
void ucs_regcache_soft_posted(ucs_regcache_h cache, size_t posted);

/** A use is about to pin @a length bytes: evict what is idle until they stay
 *  below the soft ceiling, or nothing is. The lock is let go meanwhile. */
void ucs_regcache_soft_make_room(ucs_regcache_h cache, size_t length,
                                 uint64_t now);

/** A region goes, or is not registered, for want of room. */
void ucs_regcache_soft_give_up(ucs_regcache_region_t *region);

/** A use finds its region not registered. */
void ucs_regcache_soft_missed(ucs_regcache_h cache,
                              ucs_regcache_region_t *region, uint64_t now);

/* --- coalesce.c --- */

/** May a use be registered with what is around it? */
int ucs_regcache_may_coalesce(ucs_regcache_h cache,
                              const ucs_regcache_request_t *request);

/**
 * One registration a buffer: enlarge what is to be registered to whole pages,
 * and by the registrations that it overlaps. Under the lock.
 *
 * @param [in]    region   DORMANT one that covers the request, or NULL.
 * @param [inout] request  Range, and union of what is asked of any of them.
 *
 * @return A DORMANT region that covers the enlarged request, or NULL.
 */
ucs_regcache_region_t *ucs_regcache_coalesce(ucs_regcache_h cache,
                                             ucs_regcache_region_t *region,
                                             ucs_regcache_request_t *request);

/** Deregister what lies within a region that is about to be registered, at the
 *  end of its use if it is in use. Under the lock, which is let go
 *  meanwhile. */
void ucs_regcache_supersede(ucs_regcache_h cache, ucs_regcache_region_t *by);

/* --- cover.c: under the lock, but for the first --- */

/** @return UCS_OK or UCS_ERR_NO_MEMORY. */
ucs_status_t ucs_regcache_cover_init(ucs_regcache_h cache,
                                     const ucs_regcache_params_t *params);

/** Enlarge what is to be registered by what lies ahead of it, if neighbours are
 *  registered and covers are on, or around it, if other pieces of the mapping
 *  are. @return Nonzero if it is enlarged. */
int ucs_regcache_cover(ucs_regcache_h cache, ucs_regcache_request_t *whole);

/** The inspection has said no to a cover. */
void ucs_regcache_cover_refused(ucs_regcache_h cache,
                                const ucs_regcache_region_t *region);

/** @return What is to be asked of the memory of a region that a use with these
 *          flags registers, UCS_REGCACHE_INSPECT_xx. Outside of the lock, too. */
unsigned ucs_regcache_cover_question(ucs_regcache_h cache,
                                     const ucs_regcache_region_t *region,
                                     unsigned flags);

/** A use asks for a range, which is not in memory.seen yet if this is the first:
 *  whatever an event did to it is over. */
void ucs_regcache_cover_asked(ucs_regcache_h cache,
                              const ucs_regcache_request_t *request);

/** A use has found its range in a cover. */
void ucs_regcache_cover_serves(ucs_regcache_h cache,
                               const ucs_regcache_request_t *request);

/* --- admit.c: under the lock, which is let go now and then --- */

/** Let go of the lock for a moment, for threads that are about to release
 *  something. */
void ucs_regcache_let_others(ucs_regcache_h cache);

/**
 * Keep the ceilings: evict until a region fits, and count it as pinned before
 * it is.
 *
 * @param [in] now  ns.
 *
 * @return Nonzero if it is counted, which it always is for a use; 0 if it does
 *         not fit: a helper's registration is not to be made.
 */
int ucs_regcache_admit(ucs_regcache_h cache, ucs_regcache_region_t *region,
                       int is_use, uint64_t now);

/* --- register.c: outside of the lock --- */

/**
 * Register a region that is REGISTERING: keep the ceilings, call the lower
 * domain, publish. Waiters are woken. On failure the region is not the
 * caller's any more.
 *
 * @param [in]    flags       For the lower domain.
 * @param [in]    inspection  What the use has found out.
 * @param [inout] loss        The use's.
 *
 * @return UCS_OK, or the lower domain's error.
 */
ucs_status_t
ucs_regcache_register_use(ucs_regcache_h cache, ucs_regcache_region_t *region,
                          unsigned flags,
                          const ucs_regcache_inspection_t *inspection,
                          ucs_regcache_loss_t *loss);

/**
 * The same for the helper, which has no reference: the region is not its own
 * any more in any case.
 *
 * @return Likewise; UCS_ERR_CANCELED if it was doomed meanwhile;
 *         UCS_ERR_REJECTED if its memory is none for registrations that nobody
 *         asked for; UCS_ERR_EXCEEDS_LIMIT if it does not fit: the region is
 *         DORMANT again.
 */
ucs_status_t ucs_regcache_register_ahead(ucs_regcache_h cache,
                                         ucs_regcache_region_t *region);

/** Register a region that is REGISTERING for a use not at all: it is not the
 *  caller's any more. */
void ucs_regcache_register_refuse(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region);

/* --- valid.c --- */

/** In debug builds: all equations hold. Outside of the lock. */
#ifdef ENABLE_ASSERT
#  define ucs_regcache_assert_valid(_cache) assert(ucs_regcache_is_valid(_cache))
#else
#  define ucs_regcache_assert_valid(_cache) ((void)(_cache))
#endif

/* --- put.c --- */

/** Give up a reference on a live region, and do what its last user has to
 *  do. */
void ucs_regcache_region_put(ucs_regcache_h cache,
                             ucs_regcache_region_t *region);

/** The last user of a doomed region has gone. */
void ucs_regcache_doomed(ucs_regcache_h cache, ucs_regcache_region_t *region);

END_C_DECLS

#endif

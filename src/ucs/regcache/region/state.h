/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_STATE_H_
#define UCS_REGCACHE_STATE_H_

#include "region.h"

/*
 * The index lock; what changes the state of a region, and the figures; what a memory event
 * does to all that overlap a range; the end of a use, and of a registration.
 */

BEGIN_C_DECLS

/** Regions of unmapped memory that may wait for the helper. Beyond that a use that
 *  registers deregisters them. */
#define UCS_REGCACHE_RECLAIM_MAX 64

/** Likewise their bytes. */
#define UCS_REGCACHE_RECLAIM_MAX_BYTES (16ul << 20)

/** Doomed regions without users, to be deregistered. All of it changes under
 *  the index lock. */
typedef struct ucs_regcache_reclaim {
    ucs_regcache_region_t *list;
    _Atomic(unsigned)     count; /* == length of the list */
    _Atomic(size_t)       bytes; /* == sum of what its regions pin */
} ucs_regcache_reclaim_t;

/** What the figures in the cache's `stats` are reckoned with. These change under the
 *  lock only as well: pinned_bytes == sum of the pages of all regions that are
 *  REGISTERING, LIVE or DEREGISTERING, and regions == their number. */
typedef struct ucs_regcache_account {
    uint64_t time;      /* up to which the integrals are complete */
    double   pinned_ns; /* == the reasons of `why`, with what each region has held
                           since it was folded in */
    uint64_t small;     /* regions of class SMALL */
    uint64_t transit;   /* those that a thread registers or deregisters; it waits
                           for no other */
    uint64_t wanted;    /* those in transit that a use is registering */
    uint64_t leaving;   /* those in transit that are DEREGISTERING */
    double   leave_regions_peak;
    uint64_t lock_takings;
    uint64_t spared_pages; /* that those spared would have registered */
    uint64_t ahead_pages; /* that covers have registered beyond what was asked
                             for at the time */
} ucs_regcache_account_t;

/** What the gate is made of: while it is not open there are no hits. */
enum {
    UCS_REGCACHE_GATE_OPEN   = 0,
    UCS_REGCACHE_GATE_READER = 1, /* events of the kernel are being read */
    UCS_REGCACHE_GATE_WAITED = 2, /* a thread waits for their reader */
    UCS_REGCACHE_GATE_EVENT  = 4  /* one that interrupted the lock's owner is to
                                   be carried out before the lock is let go */
};

/* --- The lock: state.c, reserve.c --- */

/**
 * Take the index lock, and let it go. While a thread has it no other function of
 * the cache may be called in that thread but @ref ucs_regcache_unmapped. Both also
 * carry out what memory events left behind that interrupted the lock's owner.
 */
void ucs_regcache_lock(ucs_regcache_h cache);
void ucs_regcache_unlock(ucs_regcache_h cache);

/** @return Zero if the lock is not free; then it is not taken. */
int ucs_regcache_try_lock(ucs_regcache_h cache);

/**
 * Take the lock, with as much in reserve as one registration may need under it;
 * what is short is allocated outside.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY: the lock is not taken.
 */
ucs_status_t ucs_regcache_lock_reserved(ucs_regcache_h cache);

/* --- state.c: under the lock, but for what takes it --- */

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
 * Say what the thread that ends its next use does with a region that is
 * REGISTERING, and how soon the helper is to hear of that use.
 *
 * @param [in] is_new  The use is its first, and nothing foretold it.
 */
void ucs_regcache_region_plan_end(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region, int is_new);

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

/** DEREGISTERING no more: DORMANT if its mapping is still there, and it is planned or
 *  the helper has not heard of any use of it; else FREE. */
void ucs_regcache_region_retire(ucs_regcache_h cache,
                                ucs_regcache_region_t *region);

/** Forget a DORMANT region that is not doomed. */
void ucs_regcache_region_forget(ucs_regcache_h cache,
                                ucs_regcache_region_t *region);

/** Give a region back that is in no structure and has no references. */
void ucs_regcache_region_free(ucs_regcache_h cache,
                              ucs_regcache_region_t *region);

/** Take a region out of look-up and mark it doomed, at the time of the totals.
 *  @return The word before. If it has references, their last owner reclaims the
 *          region, else the caller has to. */
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

/** The same, and forget what is known of the range's memory, but for whether an
 *  event is under way there (memory.untouched). */
int ucs_regcache_forget_range(ucs_regcache_h cache, uintptr_t start,
                              uintptr_t end, uint64_t now);

/** Remember a memory event. */
void ucs_regcache_note_event(ucs_regcache_h cache, uintptr_t start,
                             uintptr_t end, uint64_t now);

/** @return Nonzero if memory events may have come over a range at @a time (ns)
 *          or since. */
int ucs_regcache_was_struck(ucs_regcache_h cache, uintptr_t start,
                            uintptr_t end, uint64_t time);

/* --- deregister.c --- */

/**
 * Deregister a region that is DEREGISTERING; it becomes DORMANT or FREE. Outside of
 * the lock.
 *
 * @param [inout] loss  Of a thread of the application; NULL: none, or it counts what
 *                      it loses elsewhere.
 */
void ucs_regcache_region_deregister(ucs_regcache_h cache,
                                    ucs_regcache_region_t *region,
                                    ucs_regcache_comp_t comp,
                                    ucs_regcache_loss_t *loss);

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

/** Fold in what a region's users have counted, and for what it has been held,
 *  up to the time of the totals. */
void ucs_regcache_account_fold(ucs_regcache_h cache,
                               ucs_regcache_region_t *region);

/** The helper has heard of a use: until it began the region was held as planned
 *  before. */
void ucs_regcache_account_use(ucs_regcache_h cache, const ucs_use_t *use);

/**
 * From now on a region is held for this reason.
 *
 * @param [in] kept  ns, until when the plan keeps it, unless it is that long
 *                   after its latest use that it is to be held; 0: no longer.
 */
void ucs_regcache_account_why(ucs_regcache_h cache,
                              ucs_regcache_region_t *region,
                              ucs_regcache_held_t held, uint64_t kept);

/** The same for what the helper has planned, since the latest use that it heard of if
 *  it had planned nothing since. */
void ucs_regcache_account_planned(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region,
                                  ucs_regcache_held_t held, uint64_t kept);

/** At the end of a registration; what the next one's users count begins
 *  anew. */
void ucs_regcache_account_end(ucs_regcache_h cache,
                              ucs_regcache_region_t *region);

/* --- put.c --- */

/** Give up a reference on a live region, and do what its last user has to
 *  do. */
void ucs_regcache_region_put(ucs_regcache_h cache,
                             ucs_regcache_region_t *region);

/** The last user of a doomed region has gone. */
void ucs_regcache_doomed(ucs_regcache_h cache, ucs_regcache_region_t *region);

/* --- events.c --- */

/** Wait until the gate is open. */
void ucs_regcache_pass_gate(ucs_regcache_h cache);

END_C_DECLS

#endif

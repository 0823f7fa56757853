/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_STATE_H_
#define UCS_REGCACHE_STATE_H_

#include "region.h"
#include "request.h"

#include <stdint.h>

/*
 * What changes the state of a region, and what a memory event does to all that
 * overlap a range.
 */

/** What the gate is made of: while it is not open there are no hits. */
enum {
    UCS_REGCACHE_GATE_OPEN   = 0,
    UCS_REGCACHE_GATE_READER = 1, /* events of the kernel are being read */
    UCS_REGCACHE_GATE_WAITED = 2, /* a thread waits for their reader */
    UCS_REGCACHE_GATE_EVENT  = 4  /* one that interrupted the lock's owner is to
                                   be carried out before the lock is let go */
};

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
 *  event is under way there (memory.still). */
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

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_EVENTS_H_
#define UCT_HELPER_EVENTS_H_

#include <ucs/regcache/regcache.h>

/**
 * @file events.h
 *
 * Memory events of the process, from UCM to every cache. One UCM handler
 * serves all domains. On its way nothing allocates, frees, logs or takes a
 * lock: UCM calls it inside munmap() and the like, from inside the allocator.
 */

BEGIN_C_DECLS

/**
 * Install the handler and see that the events of real calls arrive, from this
 * thread and from another; the first call decides for the process.
 *
 * @param [out] reason_p  What is missing, static text; NULL if nothing is.
 *
 * @return UCS_OK; otherwise nothing listens.
 */
ucs_status_t uct_helper_events_check(const char **reason_p);


/**
 * Pass events on to @a cache. @ref uct_helper_events_check has succeeded.
 *
 * @return UCS_OK, or UCS_ERR_EXCEEDS_LIMIT: too many listen
 *         (@ref ucs_listeners_join).
 */
ucs_status_t uct_helper_events_join(ucs_regcache_h cache);


/**
 * Stop passing events on to @a cache. No event is inside it any more when
 * this returns. Not from an event.
 */
void uct_helper_events_leave(ucs_regcache_h cache);


/**
 * Tell all caches that pages of a range are about to go, as an event of UCM's
 * does. Any thread, anywhere.
 *
 * @return Zero in a child that has not been told from its parent yet: what is
 *         registered and watched is the parent's.
 */
int uct_helper_events_unmapped(uintptr_t address, size_t length);


/** The same of pages that were just mapped, before the program knows of them
 *  (@ref ucs_regcache_mapped). */
int uct_helper_events_mapped(uintptr_t address, size_t length);


/** @return Memory events so far. */
uint64_t uct_helper_events_number(void);


/**
 * Tell all caches that a registration of [@a start, @a end) may outlive its use,
 * as their own inspection would find. Not if an event has come since @a number
 * was read, which was before the memory was looked at. Any thread, anywhere.
 */
void uct_helper_events_learn(uint64_t number, uintptr_t start, uintptr_t end);


/** Have all caches distrust or trust memory (@ref ucs_regcache_distrust) for a
 *  reason of @ref ucs_regcache_distrust_t. Not from an event. */
void uct_helper_events_distrust(unsigned reason);
void uct_helper_events_trust(unsigned reason);


/**
 * For one thread, which reads events of the kernel. Shut the gates of all
 * caches, pass on what has been read, open the gates. Between the first and
 * the last @ref uct_helper_events_leave waits. None of them waits.
 *
 * @param [in] is_gone  The pages have been unmapped already
 *                      (@ref ucs_regcache_try_unmapped).
 *
 * @return Of @ref uct_helper_events_try_pass: zero if a cache was busy; the
 *         event must be passed on again.
 */
void uct_helper_events_shut(void);
int uct_helper_events_try_pass(uintptr_t address, size_t length, int is_gone);
void uct_helper_events_open(void);


/**
 * See that events still arrive, if it is time to: when objects were loaded
 * since, one of which may have put its own hooks over ours, and now and then in
 * any case. If one is missed, all caches are told to distrust memory
 * (@ref ucs_regcache_distrust) and one line of warning is logged.
 *
 * @param [in] now  Time of @ref ucs_clock_now. From a step of the helper, any
 *                  number of them at once.
 */
void uct_helper_events_recheck(uint64_t now);


/** @return What has been found missing since the start, for the report, or
 *          NULL. */
const char *uct_helper_events_complaint(void);


/** In a child: no cache listens any more. */
void uct_helper_events_forget(void);

END_C_DECLS

#endif

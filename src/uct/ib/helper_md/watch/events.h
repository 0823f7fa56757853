/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_EVENTS_H_
#define UCT_HELPER_EVENTS_H_

#include <ucs/regcache/regcache.h>

/*
 * Memory events of the process, from UCM to every cache. One UCM handler serves
 * all domains. It must not allocate, free, log or take a lock: UCM calls it
 * inside munmap() and the like, from inside the allocator.
 */

BEGIN_C_DECLS

/**
 * Install the handler and check that events arrive, from this thread and from
 * another. The first call decides for the process.
 *
 * @return NULL, or what is missing, static text; then nothing listens.
 */
const char *uct_helper_events_check(void);

/**
 * Pass events on to @a cache. @ref uct_helper_events_check has succeeded.
 *
 * @return UCS_OK, or UCS_ERR_EXCEEDS_LIMIT: too many listen
 *         (@ref ucs_listeners_join).
 */
ucs_status_t uct_helper_events_join(ucs_regcache_h cache);

/**
 * Stop passing events on to @a cache. When this returns, no event is inside it.
 * Not from an event.
 */
void uct_helper_events_leave(ucs_regcache_h cache);

/**
 * Tell all caches that pages of a range are about to go, as UCM's event does.
 * Any thread, anywhere.
 *
 * @return Zero in a child that has not noticed yet that it is one: what is
 *         registered and watched is the parent's.
 */
int uct_helper_events_unmapped(uintptr_t address, size_t length);

/** The same of pages that were just mapped, before the program knows of them
 *  (@ref ucs_regcache_mapped). */
int uct_helper_events_mapped(uintptr_t address, size_t length);

/** @return Memory events so far. */
uint64_t uct_helper_events_number(void);

/**
 * Tell all caches that a registration of [@a start, @a end) may outlive its
 * use, as their own inspection would find. Does nothing if an event has come
 * since @a number was read, before the memory was inspected. Any thread,
 * anywhere.
 */
void uct_helper_events_learn(uint64_t number, uintptr_t start, uintptr_t end);

/** Have all caches distrust or trust memory (@ref ucs_regcache_distrust) for a
 *  reason of @ref ucs_regcache_distrust_t. Not from an event. */
void uct_helper_events_distrust(unsigned reason);
void uct_helper_events_trust(unsigned reason);

/**
 * For the one thread that reads kernel events: shut the gates of all caches,
 * pass on the events, open the gates. In between @ref uct_helper_events_leave
 * waits. None of these functions waits.
 *
 * @param [in] is_gone  The pages have been unmapped already (@ref
 *                      ucs_regcache_try_unmapped).
 *
 * @return Of @ref uct_helper_events_try_pass: zero if a cache was busy; the
 *         event must be passed on again.
 */
void uct_helper_events_shut(void);
int uct_helper_events_try_pass(uintptr_t address, size_t length, int is_gone);
void uct_helper_events_open(void);

/**
 * Check that events still arrive, if it is time to: after objects were loaded,
 * which may have replaced our hooks, and now and then. If one does not arrive,
 * all caches distrust memory (@ref ucs_regcache_distrust) and one warning is
 * logged.
 *
 * @param [in] now  Time of @ref ucs_clock_now. From a step of the helper, any
 *                  number of them at once.
 */
void uct_helper_events_recheck(uint64_t now);

/** @return The event that was found missing, for the report, or NULL. */
const char *uct_helper_events_complaint(void);

/** In a child: no cache listens any more. */
void uct_helper_events_forget(void);

END_C_DECLS

#endif

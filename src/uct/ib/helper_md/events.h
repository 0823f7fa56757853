/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_EVENTS_H_
#define UCT_HELPER_EVENTS_H_

#include "engine.h"

/**
 * @file events.h
 *
 * Memory events of the process, from UCM to every engine. One UCM handler
 * serves all domains. On its way nothing allocates, frees, logs or takes a
 * lock: UCM calls it inside munmap() and the like, from inside the allocator.
 */

BEGIN_C_DECLS

/** Most engines that can listen at a time. */
#define UCT_HELPER_EVENTS_MAX 64


/**
 * Install the handler and see that an event of a real mmap() and munmap()
 * arrives; the first call decides for the process.
 *
 * @return UCS_OK; otherwise one line of warning has been logged and nothing
 *         listens.
 */
ucs_status_t uct_helper_events_check(void);


/**
 * Pass events on to @a engine. @ref uct_helper_events_check has succeeded.
 *
 * @return UCS_OK, or UCS_ERR_EXCEEDS_LIMIT if @ref UCT_HELPER_EVENTS_MAX
 *         engines listen already.
 */
ucs_status_t uct_helper_events_join(uct_helper_engine_h engine);


/**
 * Stop passing events on to @a engine. No event is inside it any more when
 * this returns. Not from an event.
 */
void uct_helper_events_leave(uct_helper_engine_h engine);


/**
 * Around fork: events of the calling thread are kept from now on, because the
 * engines that it has quiesced cannot take them.
 */
void uct_helper_events_hold(void);


/** In the parent, after the engines were resumed: pass on what was kept. */
void uct_helper_events_release(void);


/** In the child: nobody listens any more. */
void uct_helper_events_forget(void);

END_C_DECLS

#endif

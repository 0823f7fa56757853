/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_DOOR_STATE_H_
#define UCP_DOOR_STATE_H_

#include "door.h"
#include "hear.h"

#include <pthread.h>

/**
 * @file state.h
 *
 * What the threads of a process share at the door; hear.c and receive.c only.
 */

BEGIN_C_DECLS

/** There once the door is open; its pages only where they are written. */
typedef struct ucp_door_state {
    _Atomic(const ucp_door_listener_t*) listener;
    _Atomic(uint64_t)                   idle_steps;
    _Atomic(uint64_t)                   unfollowed;
    pthread_key_t                       key; /* of a thread's end */
    int                                 has_key;
    ucp_door_posted_t                   posted;
    ucp_door_rings_t                    rings;
} ucp_door_state_t;


/** @return The state; NULL before the door was opened. */
ucp_door_state_t *ucp_door_get(void);


/** @return The calling thread's ring; NULL if nobody hears it, which has then
 *          been counted. */
ucp_door_ring_t *ucp_door_ring(ucp_door_state_t *state);


/** Tell an operation, by the owner of @a ring. @a id is a receive's, or 0. */
void ucp_door_tell(ucp_door_state_t *state, ucp_door_ring_t *ring,
                   ucs_operation_kind_t kind, ucp_door_data_t data,
                   ucp_door_site_t site, uint32_t id);


/** A receive that was told waits for its message: the helper, or a rank that
 *  waits, may register its buffer meanwhile. */
void ucp_door_posted(ucp_door_data_t data);


/** Tell that a receive has ended. By any thread, which speaks for the one that
 *  posted it. */
void ucp_door_tell_end(ucp_door_ticket_t ticket);

END_C_DECLS

#endif

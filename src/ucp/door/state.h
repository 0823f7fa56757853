/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_DOOR_STATE_H_
#define UCP_DOOR_STATE_H_

#include "door.h"
#include "tell.h"

#include <pthread.h>

/**
 * @file state.h
 *
 * State of the door that the threads share; for tell.c and receive.c only.
 */

BEGIN_C_DECLS

/** Allocated when the door is opened. */
typedef struct ucp_door_state {
    _Atomic(const ucp_door_listener_t*) listener;
    pthread_key_t                       key; /* of a thread's end */
    int                                 has_key;
    ucp_door_posted_t                   posted;
    ucp_door_rings_t                    rings;
} ucp_door_state_t;


/** @return The state; NULL before the door was opened. */
ucp_door_state_t *ucp_door_get(void);


/** @return The calling thread's ring; NULL, and the operation counts as lost,
 *          if it has none. */
ucp_door_ring_t *ucp_door_ring(ucp_door_state_t *state);


/** Tell an operation, by the owner of @a ring. @a id is a receive's, or 0. */
void ucp_door_tell(ucp_door_state_t *state, ucp_door_ring_t *ring,
                   ucs_operation_kind_t kind, ucp_door_data_t data,
                   ucp_door_site_t site, uint32_t id);


/** A told receive waits for its message: the helper, or a waiting rank, may
 *  register its buffer. */
void ucp_door_posted(ucp_door_data_t data);


/** Tell the end of a receive, for the thread that posted it. Any thread. */
void ucp_door_tell_end(ucp_door_ticket_t ticket);

END_C_DECLS

#endif

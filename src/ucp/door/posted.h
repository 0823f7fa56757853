/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_DOOR_POSTED_H_
#define UCP_DOOR_POSTED_H_

#include "tuning.h"

#include <ucs/sys/atomic.h>

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/**
 * @file posted.h
 *
 * Receives whose end is to be heard. A receive that has a completion function
 * with an argument has both kept in a wrap, and the door's own function in
 * their place; one that has not is found by its request when the program tests
 * or frees that. Both tables are bounded and neither waits; what finds no place
 * is not followed.
 */

BEGIN_C_DECLS

typedef void (*ucp_door_callback_t)(void);

/** Which receive: the thread that posted it and its number there, never 0. */
typedef uint64_t ucp_door_ticket_t;

/** A completion function that the program gave. */
typedef struct ucp_door_wrap {
    _Atomic(ucp_door_ticket_t) ticket; /* 0: free */
    ucp_door_callback_t        callback;
    void                      *argument;
} ucp_door_wrap_t;

typedef struct ucp_door_request {
    _Atomic(uintptr_t)         request; /* 0: free; 1: being written */
    _Atomic(ucp_door_ticket_t) ticket;
} ucp_door_request_t;

/** All zero is empty. */
typedef struct ucp_door_posted {
    _Atomic(unsigned)  num_requests;
    ucp_door_wrap_t    wraps[UCP_DOOR_WRAPS];
    ucp_door_request_t requests[UCP_DOOR_REQUESTS];
} ucp_door_posted_t;


/** @return What an operation is known by: its thread's number and its own. */
static inline ucp_door_ticket_t ucp_door_ticket(uint32_t thread, uint32_t id)
{
    return ((uint64_t)thread << 32) | id;
}


/**
 * Any thread.
 *
 * @return A wrap that holds the two until @ref ucp_door_wrap_end; NULL if there
 *         is none nearby.
 */
ucp_door_wrap_t *ucp_door_wrap_take(ucp_door_posted_t *posted,
                                    ucp_door_ticket_t ticket,
                                    ucp_door_callback_t callback,
                                    void *argument);


/** Free a wrap if it is still this receive's. Any thread.
 *
 * @return Nonzero if it was: exactly one of those who end a receive gets it. */
int ucp_door_wrap_end(ucp_door_wrap_t *wrap, ucp_door_ticket_t ticket);


/**
 * Follow a receive by its request. Any thread.
 *
 * @return A receive that ended unheard: @a ticket itself if there was no place,
 *         one that had the same request before, or 0.
 */
ucp_door_ticket_t ucp_door_request_follow(ucp_door_posted_t *posted,
                                          const void *request,
                                          ucp_door_ticket_t ticket);


/** The request is at its end. Any thread.
 *
 * @return The receive that it was of, 0 if none that is followed. */
ucp_door_ticket_t ucp_door_request_end(ucp_door_posted_t *posted,
                                       const void *request);

END_C_DECLS

#endif

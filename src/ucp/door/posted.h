/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_DOOR_POSTED_H_
#define UCP_DOOR_POSTED_H_

#include "tuning.h"

#include <ucs/sys/sync/atomic.h>

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * Follows receives until their end. A wrap keeps a receive's completion
 * function and argument, and the door's own function takes their place. Without
 * them a receive is found by its request, when the program tests or frees that.
 * Both tables are bounded and never wait; a receive without a place is not
 * followed.
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

/** @return The ticket of an operation: its thread's number and its own. */
static inline ucp_door_ticket_t ucp_door_ticket(uint32_t thread, uint32_t id)
{
    return ((uint64_t)thread << 32) | id;
}

/**
 * Any thread.
 *
 * @return A wrap that keeps both until @ref ucp_door_wrap_end; NULL if none is
 *         free nearby.
 */
ucp_door_wrap_t *ucp_door_wrap_take(ucp_door_posted_t *posted,
                                    ucp_door_ticket_t ticket,
                                    ucp_door_callback_t callback,
                                    void *argument);

/** Free a wrap if it is still this receive's. Any thread.
 *
 * @return Nonzero if so: for exactly one of the threads that end a receive. */
int ucp_door_wrap_end(ucp_door_wrap_t *wrap, ucp_door_ticket_t ticket);

/**
 * Follow a receive by its request. Any thread.
 *
 * @return A receive that is followed no more: @a ticket itself without a place,
 *         an earlier one of the same request, or 0.
 */
ucp_door_ticket_t ucp_door_request_follow(ucp_door_posted_t *posted,
                                          const void *request,
                                          ucp_door_ticket_t ticket);

/** The request ends. Any thread.
 *
 * @return Its receive, 0 if that is not followed. */
ucp_door_ticket_t ucp_door_request_end(ucp_door_posted_t *posted,
                                       const void *request);

END_C_DECLS

#endif

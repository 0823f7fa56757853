/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_DOOR_POSTED_H_
#define UCP_DOOR_POSTED_H_

#include "tuning.h"

#include <ucs/sys/sync/atomic.h>

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * Follows receives by their requests, until the program tests or frees these. The
 * table is bounded and never waits; a receive without a place is not followed.
 */

BEGIN_C_DECLS

/** Which receive: the thread that posted it and its number there, never 0. */
typedef uint64_t ucp_door_ticket_t;

typedef struct ucp_door_request {
    _Atomic(uintptr_t)         request; /* 0: free; 1: being written */
    _Atomic(ucp_door_ticket_t) ticket;
} ucp_door_request_t;

/** All zero is empty. */
typedef struct ucp_door_posted {
    _Atomic(unsigned)  num_requests;
    ucp_door_request_t requests[UCP_DOOR_REQUESTS];
} ucp_door_posted_t;

/** @return The ticket of an operation: its thread's number and its own. */
static inline ucp_door_ticket_t ucp_door_ticket(uint32_t thread, uint32_t id)
{
    return ((uint64_t)thread << 32) | id;
}

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

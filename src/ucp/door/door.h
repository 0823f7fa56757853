/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_DOOR_H_
#define UCP_DOOR_H_

#include <ucs/predict/operation.h>
#include <ucs/sys/clock.h>

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/*
 * Stands before UCP's public entry points: notes each operation of the program
 * and passes it on to UCP. Part of the preloaded stub; needs libc alone. The
 * helper, once it is loaded, opens the door and receives the operations.
 */

BEGIN_C_DECLS

/** Version of the two structures below: stub and module may be of different
 *  builds. */
#define UCP_DOOR_VERSION 8u

/** Name of @ref ucp_door_open for a look-up. */
#define UCP_DOOR_OPEN "ucp_door_open"

/** What the door calls and reads, from the program's threads. */
typedef struct ucp_door_listener {
    uint32_t version; /* UCP_DOOR_VERSION */
    /* Nanoseconds, monotonic */
    uint64_t (*now)(void);
    /* An idle step, by a thread that has waited for so long, less the time of
     * such steps: must not call UCP or wait */
    ucs_idle_outcome_t (*idle_step)(uint64_t spare_ns);
    /* UCP has a receive of a page or more, which is not complete: must not call
     * UCP or wait */
    void (*posted)(uintptr_t address, size_t length);
    /* As now, without a call; NULL: not available */
    const ucs_clock_scale_t *clock;
    /* Which operations are wanted */
    ucs_operation_wants_t *wants;
} ucp_door_listener_t;

/** How the opener of the door reads from it. */
typedef struct ucp_door_reader {
    uint32_t version; /* UCP_DOOR_VERSION */
    /* Move operations out of the rings, the earliest first; returns how many.
     * Any thread; of two at a time one gets none. */
    unsigned (*drain)(ucs_operation_t *into, unsigned max);
    /* Operations without room since the door was opened. Any thread */
    uint64_t (*lost)(void);
    /* In a forked child, by its only thread: forget the parent's operations */
    void (*adopt)(void);
} ucp_door_reader_t;

typedef const ucp_door_reader_t *(*ucp_door_open_func_t)(
        const ucp_door_listener_t *listener);

/**
 * Open the door, for good. Calls under way are not heard. A second call changes
 * the listener.
 *
 * @param [in] listener  Valid for as long as the process lives.
 *
 * @return The reader, valid as long; NULL without memory, or for another
 *         version of the listener: then nothing is heard.
 */
const ucp_door_reader_t *ucp_door_open(const ucp_door_listener_t *listener);

/** Open the door, if the process has one, and pass its reader to the helper, which
 *  works without it as well. Any thread, once there is to be a helper. */
void ucp_door_reader_start(void);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_DOOR_H_
#define UCP_DOOR_H_

#include <ucs/predict/operation.h>
#include <ucs/sys/clock.h>

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file door.h
 *
 * What stands before UCP's public entry points: each operation of the program
 * is written down and handed on. It is part of the preloaded stub and needs
 * libc alone; the helper, once it is loaded, opens it and is what it tells.
 */

BEGIN_C_DECLS

/** Of the two structures below: stub and module may be of different builds. */
#define UCP_DOOR_VERSION 6u

/** Name of @ref ucp_door_open for a look-up. */
#define UCP_DOOR_OPEN "ucp_door_open"

/** What the door calls, from the program's threads. Each member may be NULL. */
typedef struct ucp_door_listener {
    uint32_t version; /* UCP_DOOR_VERSION */
    /* Nanoseconds, monotonic; NULL: CLOCK_MONOTONIC */
    uint64_t (*now)(void);
    /* An idle step, by a thread that has waited for so long, less what such
     * steps took: must not call UCP, nor wait */
    ucs_idle_outcome_t (*idle_step)(uint64_t spare_ns);
    /* A receive of a page or more was told, and UCP has it and is not done
     * with it: must not call UCP, nor wait */
    void (*posted)(uintptr_t address, size_t length);
    /* As now, and without a call; zeroed: that cannot be had */
    ucs_clock_view_t clock;
    /* What is to be told; NULL: everything */
    ucs_operation_wants_t *wants;
} ucp_door_listener_t;

/** Figures of the door, since it was opened. */
typedef struct ucp_door_stats {
    uint64_t lost;       /* operations that found no room */
    uint64_t idle_steps; /* that progress called for */
    uint64_t unfollowed; /* receives whose end could not be followed */
} ucp_door_stats_t;

/** What the one that opens the door gets. */
typedef struct ucp_door_reader {
    uint32_t version; /* UCP_DOOR_VERSION */
    /* Move operations out of the rings, the earliest first as far as they have
     * come; returns how many. Any thread; of two at a time one gets none. */
    unsigned (*drain)(ucs_operation_t *into, unsigned max);
    /* Any thread */
    void (*get_stats)(ucp_door_stats_t *stats);
    /* In a forked child, by its only thread: forgets what the parent said */
    void (*adopt)(void);
} ucp_door_reader_t;

typedef const ucp_door_reader_t *(*ucp_door_open_func_t)(
        const ucp_door_listener_t *listener);


/**
 * Open the door, for good. Calls that are under way are not heard. Opened a
 * second time it changes its listener.
 *
 * @param [in] listener  Valid for as long as the process lives.
 *
 * @return What to read by, valid as long; NULL if there is no memory, or the
 *         listener is of another version: then nothing is heard.
 */
const ucp_door_reader_t *ucp_door_open(const ucp_door_listener_t *listener);

END_C_DECLS

#endif

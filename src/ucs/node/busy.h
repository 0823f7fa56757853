/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_NODE_BUSY_H_
#define UCS_NODE_BUSY_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>
#include <sys/types.h>

/**
 * @file busy.h
 *
 * How much of the processors a rank wants: the time that it ran and the time
 * that it waited for a processor. The first alone would not do: four ranks that
 * spin on two processors run for half of the time, as two ranks do that spin
 * for half of it.
 *
 * It is observed from outside, for a rank that is stopped, or whose helper
 * sleeps or was never needed, says nothing of itself.
 */

BEGIN_C_DECLS

/** One core, all of the time. */
#define UCS_BUSY_CORE 1000000

/** What a process has had of the processors since it was started. */
typedef struct ucs_busy_count {
    uint64_t ran_ns;     /**< all its threads together */
    uint64_t waited_ns;  /**< its first thread */
    int      has_waited; /**< zero: the system does not tell */
} ucs_busy_count_t;

/** @return Zero if there is no such process. */
typedef int (*ucs_busy_read_func_t)(pid_t pid, ucs_busy_count_t *count);

/** What is known of the owner of a slot. All zeros: nothing. */
typedef struct ucs_busy {
    uint64_t         owner;
    uint64_t         since;   /* ns, of the count */
    ucs_busy_count_t count;
    unsigned         windows; /* that were measured, at most 2 */
    unsigned         load[2]; /* in the last one and the one before */
} ucs_busy_t;


/** Ask the system, as @ref ucs_busy_read_func_t. */
int ucs_busy_read(pid_t pid, ucs_busy_count_t *count);


/** @return Nonzero if it has been observed, and a window of @a length
 *          nanoseconds is not over yet. */
int ucs_busy_is_known(const ucs_busy_t *busy, uint64_t owner, uint64_t now,
                      uint64_t length);


/**
 * Close a window: what was counted since the last call.
 *
 * @param [in] cores  That the rank uses at most.
 *
 * @return Nonzero if it did nothing at all in this window.
 */
int ucs_busy_note(ucs_busy_t *busy, uint64_t owner, uint64_t now,
                  const ucs_busy_count_t *count, unsigned cores);


/** @return What the rank wants, millionths of a core: the larger one of the
 *          last two windows, so that one quiet second is not believed yet; all
 *          its cores if it has not been observed for one window. */
uint64_t ucs_busy_wants(const ucs_busy_t *busy, uint64_t owner, unsigned cores);

END_C_DECLS

#endif

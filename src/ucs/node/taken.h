/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_NODE_TAKEN_H_
#define UCS_NODE_TAKEN_H_

#include "busy.h"

/**
 * @file taken.h
 *
 * How much of its processor time a helper takes from the application. On a core
 * that would be idle otherwise it takes nothing. Where it preempts a thread,
 * that one waits on its queue for as long as the helper runs, and the system
 * counts this. So the share is what the application's threads waited, over what
 * the helper ran, and no more than all of it.
 *
 * What the helper itself waits says less: a core is given to one that wakes up
 * soon, whether it is idle or not. With one rank that spins on two cores the
 * first thread waited for 0.08 of the helper's time, with two 1.0 to 1.4 times
 * as long as the helper ran.
 */

BEGIN_C_DECLS

/** Time between two looks at the system, ns. One takes 7 us, and many steps of
 *  a helper fall in between. */
#define UCS_TAKEN_WINDOW_NS UINT64_C(100000000)

/** What was before a window of this length counts half, ns: so a rank that
 *  begins to spin shows within the second, and one wait for a time slice does
 *  not count as many. */
#define UCS_TAKEN_MEMORY_NS UINT64_C(300000000)

/** What is known so far; the helper's own. All zeros: nothing. */
typedef struct ucs_taken {
    uint64_t         since;     /* ns, of the count; 0: not looked yet */
    ucs_busy_count_t count;     /* of the helper's process */
    uint64_t         spent_ns;  /* of the helper, likewise */
    double           waited_ns; /* of the application, fading */
    double           helper_ns; /* of the helper, fading as well */
    double           share;     /* 0 to 1 */
} ucs_taken_t;


/** @return Nonzero if the window is over, or none has begun. */
int ucs_taken_is_due(const ucs_taken_t *taken, uint64_t now);


/**
 * Close a window and begin the next.
 *
 * @param [in] spent_ns  Processor time of the helper so far.
 * @param [in] count     Of its process, the helper included, as by
 *                       @ref ucs_busy_read. All threads are taken to wait as
 *                       the first one does. Where the system does not tell how
 *                       long that was, all that the helper takes is taken from
 *                       others if the application ran at all.
 */
void ucs_taken_note(ucs_taken_t *taken, uint64_t now, uint64_t spent_ns,
                    const ucs_busy_count_t *count);


/** @return The share of the helper's processor time that was taken from others;
 *          below 0 before the first window is over: it is not known. */
double ucs_taken_share(const ucs_taken_t *taken);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_GIVE_WAY_H_
#define UCS_GIVE_WAY_H_

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/**
 * @file give_way.h
 *
 * What a loop does that waits for another thread's next few instructions.
 */

/** ns that a thread of a real-time class sleeps: what the kernel needs to run
 *  another one for the length of a lock. */
#define UCS_GIVE_WAY_NS 20000

/** Of what the kernel says of a thread, the class, without flags. */
#define UCS_GIVE_WAY_CLASSES 0xff


/**
 * Let another thread run. sched_yield() by a thread of a real-time class
 * (SCHED_FIFO, SCHED_RR) lets none of normal class run, not even one that was
 * preempted while it held what the caller waits for; so such a thread sleeps. By
 * system calls: no cancellation point. For any thread, in a signal handler too;
 * errno stays.
 */
static inline void ucs_give_way(void)
{
    const struct timespec moment = {0, UCS_GIVE_WAY_NS};
    int error                    = errno;
    int policy                   = syscall(SYS_sched_getscheduler, 0);

    if (((policy & UCS_GIVE_WAY_CLASSES) == SCHED_FIFO) ||
        ((policy & UCS_GIVE_WAY_CLASSES) == SCHED_RR)) {
        (void)syscall(SYS_nanosleep, &moment, NULL);
    } else {
        (void)syscall(SYS_sched_yield);
    }
    errno = error;
}

#endif

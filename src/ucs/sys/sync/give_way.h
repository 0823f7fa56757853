/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_GIVE_WAY_H_
#define UCS_GIVE_WAY_H_

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Let another thread run, from a loop that waits for its next few instructions.
 */

/** ns that a real-time thread sleeps: enough for the kernel to run another
 *  thread for the length of a lock. */
#define UCS_GIVE_WAY_NS 20000

/** Of what the kernel says of a thread, the class, without flags. */
#define UCS_GIVE_WAY_CLASSES 0xff

/**
 * Let another thread run. After sched_yield() by a real-time thread
 * (SCHED_FIFO, SCHED_RR) no normal thread runs, not even the preempted holder
 * of the lock; so a real-time thread sleeps. By system calls: no cancellation
 * point. Any thread, also in a signal handler; errno is kept.
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

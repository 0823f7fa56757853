/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_DEAD_H_
#define UCS_DEAD_H_

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/**
 * @file dead.h
 *
 * Whether another process lives. Between its death and its burial by a parent, which
 * launchers put off, it is a zombie, to which kill() succeeds. Nothing is opened: what is,
 * has for a moment a number in the program's table of descriptors that the program may
 * close, or want for a file of its own.
 */

/* A folder of a thread is one link, and two are those of any folder */
#define UCS_DEAD_TASK_LINKS 3


/** @return Nonzero if there is no process @a pid, or it is dead and not buried. One that
 *          cannot be told dead, as for want of /proc, is not. */
static inline int ucs_pid_is_dead(pid_t pid)
{
    char path[32], target[1];
    struct stat tasks;

    /* The dead have no memory, and so no program. Nor has a process whose first thread
     * has ended before others. */
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    if ((readlink(path, target, sizeof(target)) >= 0) || (errno != ENOENT)) {
        return 0;
    }

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    if (stat(path, &tasks) == 0) {
        return tasks.st_nlink <= UCS_DEAD_TASK_LINKS;
    }
    return (errno == ENOENT) && (access("/proc/self/task", F_OK) == 0);
}

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_DEAD_H_
#define UCS_DEAD_H_

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/*
 * Whether another process lives. Between its death and its burial by a parent, which
 * launchers put off, it is a zombie, to which kill() succeeds. Nothing is opened: what is,
 * has for a moment a number in the program's table of descriptors that the program may
 * close, or want for a file of its own.
 */

/* A folder of a thread is one link, and two are those of any folder */
#define UCS_DEAD_TASK_LINKS 3

/** The dead have no memory, and so no program. Nor has a process whose first thread has
 * ended before others, of which older kernels say that it has no such mapping. */
static inline int ucs_pid_has_program(pid_t pid)
{
    char path[32], target[1];

    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return readlink(path, target, sizeof(target)) >= 0;
}

/** @return Nonzero if there is no process @a pid, or it is dead and not buried. One that
 *          cannot be told dead, as for want of /proc, is not. */
static inline int ucs_pid_is_dead(pid_t pid)
{
    char path[32];
    struct stat tasks;

    if (ucs_pid_has_program(pid) || (errno != ENOENT)) {
        return 0;
    }

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    if (stat(path, &tasks) == 0) {
        return tasks.st_nlink <= UCS_DEAD_TASK_LINKS;
    }
    return (errno == ENOENT) && (access("/proc/self/task", F_OK) == 0);
}

static inline int ucs_pid_shows_mapping(pid_t pid, const void *address,
                                        size_t length)
{
    char path[80];
    struct stat mapping;

    snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", (int)pid,
             (unsigned long)address, (unsigned long)address + length);
    return lstat(path, &mapping) == 0;
}

/**
 * A process that lives has another program now (exec()) if it has lost what it mapped:
 * its number and the time at which it began stay.
 *
 * @param [in] address  Of a mapping of a file, or of shared memory, which @a pid made.
 * @param [in] length   Bytes, whole pages.
 * @param [in] own      As @a address, such a mapping of the caller's: tells whether
 *                      mappings are seen at all.
 *
 * @return Nonzero if it is gone. One that cannot be told gone, as for want of /proc, or
 *         of the right to look, is not.
 */
static inline int ucs_pid_has_lost(pid_t pid, const void *address, size_t length,
                                   const void *own)
{
    return !ucs_pid_shows_mapping(pid, address, length) && (errno == ENOENT) &&
           ucs_pid_has_program(pid) && ucs_pid_shows_mapping(getpid(), own, length);
}

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/proc/deserted.h>
#include <ucs/sys/io/log.h>
#include <ucs/sys/proc/spawn.h>

#include <ucs/sys/sync/atomic.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define UCS_DESERTED_THREAD_NAME "ucx-helper-end"

/* How long a process may outlive its last thread: short enough for a waiting
 * parent, long enough for few system calls. */
#define UCS_DESERTED_LOOK_NS 50000000

/* Links of the folder of threads, beside one for each thread */
#define UCS_DESERTED_TASK_LINKS 2

/* The watched process, by number, for a child is another one; 0: none */
static _Atomic(pid_t) ucs_deserted_process;

/* Signals that the first thread had blocked. Written before the thread that
 * reads it is started. */
static sigset_t ucs_deserted_mask;

/* Without a descriptor: the program may have used up all of them, or close
 * unknown ones. */
static int ucs_deserted_is_so(void)
{
    uint64_t before;
    struct stat tasks;
    char path[1];

    /* The link to the program vanishes with the first thread's memory; the thread
     * stays as a zombie */
    if ((readlink("/proc/self/exe", path, sizeof(path)) >= 0) ||
        (errno != ENOENT)) {
        return 0;
    }

    /* A thread of ours that begins or ends meanwhile counts as the program's */
    before = ucs_spawn_ours();
    return (stat("/proc/self/task", &tasks) == 0) &&
           (ucs_spawn_ours() == before) &&
           (tasks.st_nlink == UCS_DESERTED_TASK_LINKS + 1 +
                              (nlink_t)ucs_spawn_number(before));
}

/* Handlers of exit() run here as they would in the program's own last thread:
 * with a stack of the default size, and so that a signal can end them */
static void *ucs_deserted_main(void *arg)
{
    const struct timespec pause = {.tv_nsec = UCS_DESERTED_LOOK_NS};

    pthread_setname_np(pthread_self(), UCS_DESERTED_THREAD_NAME);
    ucs_spawn_enter();
    while (!ucs_deserted_is_so()) {
        nanosleep(&pause, NULL);
    }

    pthread_sigmask(SIG_SETMASK, &ucs_deserted_mask, NULL);
    exit(EXIT_SUCCESS);
}

void ucs_deserted_watch(void)
{
    pid_t pid = getpid();
    ucs_spawned_t thread;

    /* relaxed: one caller is the first; no data is passed */
    if (ucs_swap_relaxed(&ucs_deserted_process, pid) == pid) {
        return;
    }

    pthread_sigmask(SIG_SETMASK, NULL, &ucs_deserted_mask);
    if (ucs_spawn(&thread, 0, ucs_deserted_main, NULL) != 0) {
        ucs_helper_warn("the system refuses a thread: the process may never "
                        "end, as its first thread has left");
        return;
    }

    pthread_detach(thread.id);
}

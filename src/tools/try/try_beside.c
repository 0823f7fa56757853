/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "try.h"

#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sync/atomic.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The latest so many sleeps count. Halved: less exact; doubled: a job that changes is
 * seen less well. */
#define TOOL_TRY_SLEEPS 1024

/* Of each, nanoseconds. Halved: twice the processor time, now a thousandth of a core;
 * doubled: a job of a second has 50 */
#define TOOL_TRY_SLEEP_NS 10000000

/* As a helper and what wakes it (ucs/sys/proc/scout.h): one of the class that runs where
 * a core is idle sleeps, and wakes the other */
static struct {
    pthread_t    helper;
    sem_t        begin, end;   /* of the helper's turn */
    uint64_t     due_ns;
    _Atomic(int) is_over;
    double       late_ns[TOOL_TRY_SLEEPS];
    size_t       count;
} tool_try_sleeper;

static void *tool_try_help(void *arg)
{
    uint64_t now;

    while ((sem_wait(&tool_try_sleeper.begin) == 0) &&
           !ucs_load_relaxed(&tool_try_sleeper.is_over)) {
        now = ucs_clock_now();
        tool_try_sleeper.late_ns[tool_try_sleeper.count++ % TOOL_TRY_SLEEPS] =
                (now > tool_try_sleeper.due_ns) ?
                        now - tool_try_sleeper.due_ns : 0;
        sem_post(&tool_try_sleeper.end);
    }
    return NULL;
}

static void *tool_try_sleep(void *arg)
{
    const struct timespec nap      = {.tv_nsec = TOOL_TRY_SLEEP_NS};
    const struct sched_param param = {};

    prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
    (void)sched_setscheduler(0, SCHED_IDLE, &param);
    do {
        tool_try_sleeper.due_ns = ucs_clock_now() + TOOL_TRY_SLEEP_NS;
        nanosleep(&nap, NULL);
        sem_post(&tool_try_sleeper.begin);
        sem_wait(&tool_try_sleeper.end);
    } while (!ucs_load_relaxed(&tool_try_sleeper.is_over));
    return NULL;
}

int tool_try_sleeper_start(void)
{
    sigset_t all, old;
    pthread_t thread;
    int ret;

    sem_init(&tool_try_sleeper.begin, 0, 0);
    sem_init(&tool_try_sleeper.end, 0, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(&tool_try_sleeper.helper, NULL, tool_try_help, NULL);
    if (ret == 0) {
        ret = pthread_create(&thread, NULL, tool_try_sleep, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ret == 0;
}

static int tool_try_compare(const void *a, const void *b)
{
    double x = *(const double*)a, y = *(const double*)b;

    return (x > y) - (x < y);
}

void tool_try_sleeper_end(replay_params_t *params)
{
    size_t count;

    /* The other one is not waited for: on a busy machine it would not run for long */
    ucs_store_relaxed(&tool_try_sleeper.is_over, 1);
    sem_post(&tool_try_sleeper.begin);
    pthread_join(tool_try_sleeper.helper, NULL);
    count = ucs_min(tool_try_sleeper.count, TOOL_TRY_SLEEPS);
    qsort(tool_try_sleeper.late_ns, count, sizeof(double), tool_try_compare);
    params->lateness_ns = tool_try_sleeper.late_ns[count / 2];
    params->late_ns     = (count > 0) ? tool_try_sleeper.late_ns : NULL;
    params->late_count  = count;
}

/*
 * What the job reads
 */

pid_t tool_try_tee(const char *file)
{
    char *const argv[] = {"tee", (char*)file, NULL};
    struct stat st;
    int fds[2];
    pid_t pid;

    if ((fstat(STDIN_FILENO, &st) != 0) ||
        !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) ||
        (pipe2(fds, O_CLOEXEC) != 0)) {
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fds[1], STDOUT_FILENO);
        execvp(argv[0], argv);
        _exit(TOOL_EXIT_CANNOT_EXEC);
    }
    dup2(fds[0], STDIN_FILENO);
    close(fds[0]);
    close(fds[1]);
    return pid;
}

void tool_try_tee_end(pid_t pid, const char *file)
{
    int fd;

    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        fd = open(file, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            dup2(fd, STDIN_FILENO);
            close(fd);
        }
    }
}

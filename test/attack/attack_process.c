/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Other programs are begun, or take the place of this one, while its threads
 * communicate. Each gets what it would get without us: the descriptors, signals and
 * limits that this one hands on, and no more. And what a program does at its forks.
 */

#include "attack.h"
#include "../own_proc.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Programs that are still to follow */
#define LEFT     "ATTACK_LEFT"
#define CHAIN    6
#define SPAWNS   8
#define MISSES   200
#define THREADS  2

extern char **environ;

static _Atomic int exec_is_over;

/*
 * Threads that communicate
 */

/* Memory that stays and memory that comes and goes, so that something is just being
 * registered, deregistered and unmapped at any moment */
static void *exec_use_main(void *arg)
{
    char *kept = attack_map(ATTACK_SIZE);
    char *fresh;

    while (!exec_is_over) {
        attack_use(arg, kept, ATTACK_SIZE);
        fresh = attack_map(ATTACK_SIZE);
        attack_use(arg, fresh, ATTACK_SIZE);
        munmap(fresh, ATTACK_SIZE);
    }
    munmap(kept, ATTACK_SIZE);
    return NULL;
}

static void exec_begin_uses(uct_md_h md, pthread_t *threads)
{
    int i;

    exec_is_over = 0;
    for (i = 0; i < THREADS; ++i) {
        if (pthread_create(&threads[i], NULL, exec_use_main, md) != 0) {
            attack_die("no thread");
        }
    }
}

static void exec_end_uses(pthread_t *threads)
{
    int i;

    exec_is_over = 1;
    for (i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
}

/*
 * What a program is begun with
 */

static void say_signals(void)
{
    unsigned blocked = 0, ignored = 0;
    struct sigaction action;
    sigset_t mask;
    int i;

    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (i = 1; i < NSIG; ++i) {
        blocked += (sigismember(&mask, i) > 0);
        ignored += (sigaction(i, NULL, &action) == 0) &&
                   (action.sa_handler == SIG_IGN);
    }
    printf(", %u signals blocked, %u ignored", blocked, ignored);
}

static void say_what_is_inherited(void)
{
    struct itimerval timer;

    printf("%u descriptors", own_proc_descriptors());
    say_signals();
    getitimer(ITIMER_REAL, &timer);
    printf(", class %d, priority %d, slack %d, timer %d\n", sched_getscheduler(0),
           nice(0), prctl(PR_GET_TIMERSLACK), timer.it_value.tv_usec > 0);
}

/* One that another one began says what it has got. @return How many are to follow it, of
 * which the next one has one less. */
static int exec_count(int first)
{
    const char *text = getenv(LEFT);
    int left         = (text != NULL) ? atoi(text) : first;
    char number[16];

    snprintf(number, sizeof(number), "%d", left - 1);
    setenv(LEFT, number, 1);
    if (text != NULL) {
        say_what_is_inherited();
    }
    return left;
}

static char *const *exec_arguments(const char *name)
{
    static const char *arguments[3] = {"attack"};

    arguments[1] = name;
    return (char *const*)arguments;
}

/*
 * This program goes on as another one
 */

static void *exec_main(void *name)
{
    execv("/proc/self/exe", exec_arguments(name));
    attack_die("no program: %m");
}

/* By the first thread or another one, sooner or later */
ATTACK_BEFORE(exec, md)
{
    int left = exec_count(CHAIN);
    pthread_t threads[THREADS], id;

    md = attack_open();
    if (left == 0) {
        attack_use_often(md, attack_map(ATTACK_SIZE), ATTACK_SIZE);
        uct_md_close(md);
        return;
    }
    exec_begin_uses(md, threads);
    attack_sleep((left % 4) * 10);
    if (left % 2) {
        exec_main("exec");
    }
    pthread_create(&id, NULL, exec_main, "exec");
    pthread_join(id, NULL);
}

static void exec_on_alarm(int number)
{
    execve("/proc/self/exe", exec_arguments("exec_in_handler"), environ);
    _exit(127);
}

/* Whatever its thread is doing. The next program has the signal blocked. */
ATTACK_BEFORE(exec_in_handler, md)
{
    int left                = exec_count(CHAIN);
    struct itimerval timer  = {.it_value.tv_usec = 20000 + 1777 * left};
    struct sigaction action = {.sa_handler = exec_on_alarm};
    char *buffer            = attack_map(ATTACK_SIZE);
    sigset_t none;
    char *fresh;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    md = attack_open();
    if (left == 0) {
        attack_use_often(md, buffer, ATTACK_SIZE);
        uct_md_close(md);
        return;
    }
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (;;) {
        attack_use(md, buffer, ATTACK_SIZE);
        fresh = attack_map(ATTACK_SIZE);
        attack_use(md, fresh, ATTACK_SIZE);
        munmap(fresh, ATTACK_SIZE);
    }
}

/*
 * Others are begun
 */

static pid_t spawn_fork(char *const *arguments)
{
    pid_t pid = fork();

    if (pid == 0) {
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    return pid;
}

static pid_t spawn_vfork(char *const *arguments)
{
    pid_t pid = vfork();

    if (pid == 0) {
        execv("/nonexistent/attack", arguments);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    return pid;
}

static pid_t spawn_posix(char *const *arguments)
{
    pid_t pid = -1;

    return (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ) == 0) ?
                   pid :
                   -1;
}

static pid_t spawn_by_shell(char *const *arguments)
{
    char command[128], line[256];
    FILE *pipe;

    snprintf(command, sizeof(command), "exec /proc/%d/exe %s", (int)getpid(),
             arguments[1]);
    pipe = popen(command, "r");
    while ((pipe != NULL) && (fgets(line, sizeof(line), pipe) != NULL)) {
        fputs(line, stdout);
    }
    if ((pipe == NULL) || (pclose(pipe) != 0)) {
        attack_die("no shell: %m");
    }
    return 0;
}

static pid_t (*const spawn_ways[])(char *const *arguments) = {
    spawn_fork, spawn_vfork, spawn_posix, spawn_by_shell
};

#define SPAWN_WAYS (sizeof(spawn_ways) / sizeof(spawn_ways[0]))

ATTACK_BEFORE(spawned, md)
{
    char *const *arguments = exec_arguments("spawned");
    pthread_t threads[THREADS];
    int i, status = 0, left = exec_count(1);
    pid_t pid;

    md = attack_open();
    if (left == 0) {
        attack_use_in_a_thread(md);
        uct_md_close(md);
        return;
    }
    exec_begin_uses(md, threads);
    for (i = 0; i < SPAWNS; ++i) {
        pid = spawn_ways[i % SPAWN_WAYS](arguments);
        if ((pid < 0) || ((pid > 0) && ((waitpid(pid, &status, 0) != pid) ||
                                        (status != 0)))) {
            attack_die("child %d ended with status %d", i, status);
        }
    }
    exec_end_uses(threads);
    uct_md_close(md);
}

/* There is no such program: this one goes on */
ATTACK_BEFORE(exec_fails, md)
{
    char *const *arguments = exec_arguments("exec_fails");
    char *huge[]           = {NULL, NULL};
    pthread_t threads[THREADS];
    int i;

    huge[0] = malloc(1 << 20);
    memset(huge[0], 'x', (1 << 20) - 1);
    huge[0][(1 << 20) - 1] = '\0';
    md = attack_open();
    exec_begin_uses(md, threads);
    for (i = 0; i < MISSES; ++i) {
        if ((execv("/nonexistent/attack", arguments) != -1) || (errno != ENOENT) ||
            (execv("/proc/self/exe", huge) != -1) || (errno != E2BIG)) {
            attack_die("it did not fail as it should: %m");
        }
    }
    exec_end_uses(threads);
    uct_md_close(md);
    free(huge[0]);
}

/*
 * A program's own fork handlers
 */

static uct_md_h fork_md;

static void *fork_open_and_close(void *arg)
{
    uct_md_close(attack_open());
    return NULL;
}

/* As one that stops its workers for the fork, of which each may be about to communicate, to
 * begin, or to end */
static void fork_handler(void)
{
    pthread_t worker;

    if (fork_md != NULL) {
        attack_use_in_a_thread(fork_md);
        pthread_create(&worker, NULL, fork_open_and_close, NULL);
        pthread_join(worker, NULL);
    }
}

/* Of two handlers the one registered first is the last before a fork. Then all that we
 * hold for it is held, and the domain is used for the first time */
ATTACK_BEFORE(fork_handlers, md)
{
    pid_t child;
    int i, status;

    pthread_atfork(fork_handler, fork_handler, NULL);
    md = attack_open();
    for (i = 0; i < 5; ++i) {
        fork_md = md;
        child   = fork();
        if (child == 0) {
            attack_use_in_a_thread(md);
            _exit(0);
        }
        if ((waitpid(child, &status, 0) != child) || (status != 0)) {
            attack_die("a child ended with status %d", status);
        }
        attack_use_often(md, attack_map(ATTACK_SIZE), ATTACK_SIZE);
    }
    fork_md = NULL;
    uct_md_close(md);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Beside a loop of normal priority on each processor, where a helper that takes
 * only time that nobody wants is hardly let run: nobody waits for it. The program
 * is as one of an ordinary user, who may not raise a thread's priority.
 */

#include "attack.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define INNER    "ATTACK_STARVED"
#define BUFFERS  8
#define USES     100
#define TIMES    10

/* A use waits for a millisecond, then it registers itself, s */
#define USE_MAX 2e-3

/* What waits for a thread of normal priority waits for some slices at most, for
 * one of the idle class hundreds of milliseconds, s */
#define SLICES 0.1

/* Of the end, s. By the clock alone: it waits for its own turn in several places,
 * also for that of whatever else runs on the machine */
#define END_MAX 3.0

typedef struct stopwatch {
    double wall;
    double ran;
    long   slept;
} stopwatch_t;

static int schedstat_fd = -1;

/* @return Seconds that this thread ran, or was ready to and had no processor; 0 if
 *         the kernel does not tell. */
static double ran_or_ready(void)
{
    unsigned long long ran = 0, ready = 0;
    char text[128];
    ssize_t length = pread(schedstat_fd, text, sizeof(text) - 1, 0);

    if (length > 0) {
        text[length] = '\0';
        sscanf(text, "%llu %llu", &ran, &ready);
    }
    return (ran + ready) * 1e-9;
}

/* @return How often this thread gave its processor away to wait for something */
static long times_slept(void)
{
    struct rusage usage;

    return (getrusage(RUSAGE_THREAD, &usage) == 0) ? usage.ru_nvcsw : 0;
}

static stopwatch_t begin(void)
{
    stopwatch_t watch;

    watch.slept = times_slept();
    watch.ran   = ran_or_ready();
    watch.wall  = attack_now();
    return watch;
}

/* @return Seconds that it was kept waiting by something else than the busy loops. Who
 *         waits for a thread sleeps: time that is missing without a sleep was taken by
 *         the host of a virtual machine. */
static double waited(const stopwatch_t *watch)
{
    double wall = attack_now() - watch->wall;
    double ran  = ran_or_ready() - watch->ran;

    return ((schedstat_fd < 0) || (times_slept() == watch->slept)) ? 0 : wall - ran;
}

static void check(const char *what, double seconds, double limit)
{
    if (seconds > limit) {
        attack_die("%s waited for %.1f ms", what, seconds * 1e3);
    }
}

static void check_uses(uct_md_h md, char *buffers)
{
    stopwatch_t watch;
    unsigned i;

    for (i = 0; i < USES; ++i) {
        watch = begin();
        attack_use_as_is(md, buffers + (i % BUFFERS) * ATTACK_SIZE, ATTACK_SIZE);
        check("a use", waited(&watch), USE_MAX);
        attack_sleep(2);
    }
}

static void check_forks(void)
{
    stopwatch_t watch;
    pid_t child;
    int i;

    for (i = 0; i < TIMES; ++i) {
        watch = begin();
        child = fork();
        if (child == 0) {
            _exit(0);
        }
        check("fork()", waited(&watch), SLICES);
        if ((child < 0) || (waitpid(child, NULL, 0) != child)) {
            attack_die("no child: %m");
        }
    }
}

static void check_unmaps(uct_md_h md)
{
    stopwatch_t watch;
    char *buffer;
    int i;

    for (i = 0; i < TIMES; ++i) {
        buffer = attack_map(ATTACK_SIZE);
        attack_use(md, buffer, ATTACK_SIZE);
        watch = begin();
        munmap(buffer, ATTACK_SIZE);
        check("munmap()", waited(&watch), SLICES);
    }
}

/* Before a thread of ours is begun: they are as this one */
static void become_ordinary(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];

    if ((syscall(SYS_capget, &header, data) != 0)) {
        attack_die("no capabilities: %m");
    }
    data[0].effective &= ~(1u << CAP_SYS_NICE);
    data[0].permitted &= ~(1u << CAP_SYS_NICE);
    if ((syscall(SYS_capset, &header, data) != 0)) {
        attack_die("capabilities stay: %m");
    }
}

/* Its end follows, for which the other one has the time */
static void run_inner(uct_md_h md, int pipe_fd)
{
    char *buffers = attack_map(BUFFERS * ATTACK_SIZE);
    double now;

    become_ordinary();
    schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    attack_use_often(md, buffers, ATTACK_SIZE);
    check_uses(md, buffers);
    check_forks();
    check_unmaps(md);
    now = attack_now();
    if (write(pipe_fd, &now, sizeof(now)) != sizeof(now)) {
        attack_die("no pipe: %m");
    }
}

/* @return A process that computes on one processor for as long as this one is
 *         there. */
static pid_t begin_busy(int cpu)
{
    cpu_set_t cpus;
    pid_t child = fork();

    if (child == 0) {
        CPU_ZERO(&cpus);
        CPU_SET(cpu, &cpus);
        sched_setaffinity(0, sizeof(cpus), &cpus);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            __asm__ __volatile__("" ::: "memory");
        }
    }
    return child;
}

static void run_beside(const int ends[2])
{
    char number[16];
    pid_t child = fork();
    double now, end;
    int status;

    if (child == 0) {
        snprintf(number, sizeof(number), "%d", ends[1]);
        setenv(INNER, number, 1);
        execl("/proc/self/exe", "attack", "starved", (char*)NULL);
        _exit(127);
    }
    if ((child < 0) || (waitpid(child, &status, 0) != child)) {
        attack_die("no program: %m");
    }
    end = attack_now();
    if (status != 0) {
        attack_die("it ended with status %d", status);
    }
    if (read(ends[0], &now, sizeof(now)) != sizeof(now)) {
        attack_die("it said nothing: %m");
    }
    check("the end", end - now, END_MAX);
}

ATTACK(starved, md)
{
    pid_t busy[CPU_SETSIZE];
    int cpu, ends[2];
    cpu_set_t cpus;

    if (getenv(INNER) != NULL) {
        run_inner(md, atoi(getenv(INNER)));
        return;
    }
    if ((sched_getaffinity(0, sizeof(cpus), &cpus) != 0) || (pipe(ends) != 0)) {
        attack_die("no processors or no pipe: %m");
    }
    for (cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        busy[cpu] = CPU_ISSET(cpu, &cpus) ? begin_busy(cpu) : -1;
    }
    run_beside(ends);
    for (cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (busy[cpu] > 0) {
            kill(busy[cpu], SIGKILL);
            waitpid(busy[cpu], NULL, 0);
        }
    }
}

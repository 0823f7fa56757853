/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"
#include "../own_proc.h"

#include <ucs/sys/proc/thread.h>

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* glibc's own, which it lets nobody block */
#define LIFE_SIGNAL_CANCEL  32
#define LIFE_SIGNAL_SETXID  33

/* What may grow without being a leak: share of what was there */
#define LIFE_TOLERANCE 0.05

/* What is resident has stopped to grow: share, and looks at most */
#define LIFE_WARM     0.005
#define LIFE_WARM_UPS 12

#define LIFE_SIGNAL_BIT(signal) (UINT64_C(1) << ((signal) - 1))

static FILE *life_proc_open(const char *path)
{
    FILE *file = fopen(path, "r");

    if (file == NULL) {
        life_fail("%s cannot be read", path);
    }
    return file;
}

/* Value after "KEY:" in such a file; 0 if there is none */
static uint64_t life_proc_value(const char *path, const char *key, int base)
{
    FILE *file     = life_proc_open(path);
    size_t length  = strlen(key);
    uint64_t value = 0;
    char line[256];

    while (fgets(line, sizeof(line), file) != NULL) {
        if (!strncmp(line, key, length) && (line[length] == ':')) {
            value = strtoull(line + length + 1, NULL, base);
        }
    }
    fclose(file);
    return value;
}

pid_t life_proc_helper(void)
{
    pid_t found = 0;
    int count   = own_proc_threads(UCS_THREAD_NAME, &found);

    if (count < 0) {
        life_fail("the threads cannot be listed");
    }
    if (count > 1) {
        life_fail("there are two helpers");
    }
    return found;
}

pid_t life_proc_await_helper(void)
{
    pid_t helper;

    do {
        sched_yield();
        helper = life_proc_helper();
    } while (helper == 0);
    return helper;
}

int life_proc_is_left(void)
{
    FILE *file = life_proc_open("/proc/self/stat");
    char state = '?';

    /* The name of this program has no parenthesis */
    if (fscanf(file, "%*d %*[^)]) %c", &state) != 1) {
        life_fail("the state of the process cannot be read");
    }
    fclose(file);
    return state == 'Z';
}

int life_proc_blocks_all(pid_t thread)
{
    const uint64_t never = LIFE_SIGNAL_BIT(SIGKILL) | LIFE_SIGNAL_BIT(SIGSTOP) |
                           LIFE_SIGNAL_BIT(LIFE_SIGNAL_CANCEL) |
                           LIFE_SIGNAL_BIT(LIFE_SIGNAL_SETXID);
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)thread);
    return (life_proc_value(path, "SigBlk", 16) | never) == UINT64_MAX;
}

/* What a process holds */
typedef struct life_sample {
    size_t   rss;    /* bytes, counted page by page */
    unsigned fds;
    unsigned vmas;
    size_t   locked; /* bytes, VmPin + VmLck */
} life_sample_t;

static void life_proc_sample(life_sample_t *sample)
{
    const char *status = "/proc/self/status";

    /* VmRSS is a sum of the processors' counters that may be some hundred
     * pages off; this one is counted */
    sample->rss    = life_proc_value("/proc/self/smaps_rollup", "Rss", 10) << 10;
    sample->fds    = own_proc_descriptors();
    sample->vmas   = own_proc_mappings();
    sample->locked = (life_proc_value(status, "VmPin", 10) +
                      life_proc_value(status, "VmLck", 10)) << 10;
}

static void life_proc_compare(const char *what, double before, double after)
{
    if (after > before * (1 + LIFE_TOLERANCE)) {
        life_fail("%s grew from %.0f to %.0f", what, before, after);
    }
}

/* @return The steps until what is resident had stopped to grow. */
static unsigned long life_warm_up(life_run_func_t run, void *arg,
                                  unsigned long steps, life_sample_t *sample)
{
    unsigned long count = 0;
    double before;

    sample->rss = 0;
    do {
        before = sample->rss;
        run(arg, count, count + steps);
        count += steps;
        life_proc_sample(sample);
    } while ((sample->rss > before * (1 + LIFE_WARM)) &&
             (count < LIFE_WARM_UPS * steps));
    return count;
}

void life_soak(const char *what, life_run_func_t run, void *arg,
               unsigned long warm_up, unsigned long count, int with_locked)
{
    life_sample_t before, half, after;
    unsigned long first = life_warm_up(run, arg, warm_up, &before);

    run(arg, first, first + count / 2);
    life_proc_sample(&half);
    run(arg, first + count / 2, first + count);
    life_proc_sample(&after);

    printf("%s %lu after %lu: rss %zu -> %zu -> %zu fds %u -> %u vmas %u -> %u "
           "locked %zu -> %zu\n", what, count, first, before.rss, half.rss,
           after.rss, before.fds, after.fds, before.vmas, after.vmas,
           before.locked, after.locked);
    /* A leak goes on; tables that are filled late do not */
    life_proc_compare("rss", half.rss, after.rss);
    life_proc_compare("descriptors", half.fds, after.fds);
    life_proc_compare("mappings", half.vmas, after.vmas);
    if (with_locked) {
        life_proc_compare("locked bytes", half.locked, after.locked);
    }
}

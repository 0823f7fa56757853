/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "busy.h"

#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>
#include <ucs/sys/own_fd.h>

#include <stdio.h>
#include <string.h>


/* Of the first thread: time that it ran, time that it waited, both ns */
static int ucs_busy_read_waited(pid_t pid, uint64_t *waited_p)
{
    unsigned long long waited;
    char path[40], text[80];

    snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
    if ((ucs_own_fd_read_text(path, text, sizeof(text)) < 0) ||
        (sscanf(text, "%*u %llu", &waited) != 1)) {
        return 0;
    }

    *waited_p = waited;
    return 1;
}

int ucs_busy_read(pid_t pid, ucs_busy_count_t *count)
{
    clockid_t clock;

    if ((clock_getcpuclockid(pid, &clock) != 0) ||
        !ucs_clock_read(clock, &count->ran_ns)) {
        return 0;
    }

    count->waited_ns  = 0;
    count->has_waited = ucs_busy_read_waited(pid, &count->waited_ns);
    return 1;
}

static uint64_t ucs_busy_since(uint64_t now, uint64_t before)
{
    return (now > before) ? now - before : 0;
}

/* Other threads of a rank are taken to wait as its first one does. Where nobody
 * tells of waiting, a rank that runs at all may be one that spins and gets
 * little. */
static unsigned ucs_busy_load(const ucs_busy_count_t *before,
                              const ucs_busy_count_t *count, uint64_t elapsed,
                              unsigned cores)
{
    uint64_t most = (uint64_t)cores * UCS_BUSY_CORE;
    uint64_t ran  = ucs_busy_since(count->ran_ns, before->ran_ns);
    uint64_t waited;

    if (!count->has_waited || !before->has_waited) {
        return (ran > 0) ? most : 0;
    }

    waited = ucs_busy_since(count->waited_ns, before->waited_ns);
    return ucs_min((double)most, ((double)ran + (double)waited * cores) *
                                         UCS_BUSY_CORE / elapsed);
}

int ucs_busy_is_known(const ucs_busy_t *busy, uint64_t owner, uint64_t now,
                      uint64_t length)
{
    return (busy->owner == owner) && (busy->windows > 0) &&
           (now - busy->since < length);
}

int ucs_busy_note(ucs_busy_t *busy, uint64_t owner, uint64_t now,
                  const ucs_busy_count_t *count, unsigned cores)
{
    int is_idle = 0;

    if (busy->owner != owner) {
        memset(busy, 0, sizeof(*busy));
        busy->owner = owner;
    } else if (now > busy->since) {
        busy->load[1] = busy->load[0];
        busy->load[0] = ucs_busy_load(&busy->count, count, now - busy->since,
                                      cores);
        busy->windows = ucs_min(busy->windows + 1, 2);
        is_idle       = (count->ran_ns == busy->count.ran_ns);
    }

    busy->since = now;
    busy->count = *count;
    return is_idle;
}

uint64_t ucs_busy_wants(const ucs_busy_t *busy, uint64_t owner, unsigned cores)
{
    uint64_t most = (uint64_t)cores * UCS_BUSY_CORE;

    if ((busy->owner != owner) || (busy->windows == 0)) {
        return most;
    }

    /* One window alone is not compared with one before: that is zero */
    return ucs_min(most, ucs_max(busy->load[0], busy->load[1]));
}

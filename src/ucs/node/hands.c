/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include "hands.h"
#include "cpus.h"

#include <ucs/sys/io/own_fd.h>

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <stdio.h>

#if HAVE_NUMA
#  include <numa.h>
#endif


/* Remove processors that are known not to be on the caller's node */
static void ucs_hands_stay_near(cpu_set_t *cpus)
{
#if HAVE_NUMA
    int own = sched_getcpu();
    int node, cpu;

    if ((own < 0) || (numa_available() < 0)) {
        return;
    }
    node = numa_node_of_cpu(own);
    for (cpu = 0; (node >= 0) && (cpu < CPU_SETSIZE); ++cpu) {
        if (CPU_ISSET(cpu, cpus) && (numa_node_of_cpu(cpu) != node)) {
            CPU_CLR(cpu, cpus);
        }
    }
#else
    (void)cpus;
#endif
}

unsigned ucs_hands_near(cpu_set_t *cpus)
{
    cpu_set_t allowed;

    if (!ucs_cpus_allow(0, &allowed)) {
        return 0;
    }
    ucs_hands_stay_near(&allowed);
    if (CPU_COUNT(&allowed) > 0) {
        *cpus = allowed;
    }
    return CPU_COUNT(&allowed);
}

unsigned ucs_hands_idle_of(unsigned near, const char *loadavg)
{
    unsigned running; /* the caller is one of them */

    if ((sscanf(loadavg, "%*s %*s %*s %u/", &running) != 1) || (running == 0) ||
        (near <= running)) {
        return 1;
    }
    return near - running + 1;
}

unsigned ucs_hands_idle(unsigned near)
{
    char text[128];

    if (ucs_own_fd_read_text("/proc/loadavg", text, sizeof(text)) < 0) {
        text[0] = '\0';
    }
    return ucs_hands_idle_of(near, text);
}

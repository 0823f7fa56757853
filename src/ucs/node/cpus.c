/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "cpus.h"

#include <ucs/sys/io/own_fd.h>

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if HAVE_NUMA
#  include <numa.h>
#endif

#define UCS_CPUS_DEVICE_NODE "/sys/class/infiniband/%s/device/numa_node"
#define UCS_CPUS_SIBLINGS \
    "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list"


/* The kernel limits the set to the thread's cpuset */
int ucs_cpus_allow(int widen, cpu_set_t *allowed)
{
    if (widen) {
        memset(allowed, 0xff, sizeof(*allowed));
        (void)sched_setaffinity(0, sizeof(*allowed), allowed);
    }
    return sched_getaffinity(0, sizeof(*allowed), allowed) == 0;
}

/*
 * Distances
 */

#if HAVE_NUMA
static int ucs_cpus_device_node(const char *device, const cpu_set_t *near)
{
    int node = -1;
    char path[128], text[32];
    int cpu;

    snprintf(path, sizeof(path), UCS_CPUS_DEVICE_NODE, device);
    if ((strchr(device, '/') != NULL) ||
        (ucs_own_fd_read_text(path, text, sizeof(text)) < 0) ||
        (sscanf(text, "%d", &node) != 1)) {
        node = -1;
    }
    /* Not an RDMA device, or one without a NUMA node */
    for (cpu = 0; (node < 0) && (cpu < UCS_LEDGER_CPUS); ++cpu) {
        if (CPU_ISSET(cpu, near)) {
            node = numa_node_of_cpu(cpu);
            break;
        }
    }
    return node;
}

/* @return Zero if the nodes cannot be told apart */
static int ucs_cpus_numa(const char *device, const cpu_set_t *near,
                         uint8_t *distances)
{
    int cpu, node, other, distance;

    if ((numa_available() < 0) || (numa_max_node() == 0)) {
        return 0;
    }

    node = ucs_cpus_device_node(device, near);
    if (node < 0) {
        return 0;
    }

    for (cpu = 0; cpu < UCS_LEDGER_CPUS; ++cpu) {
        other          = numa_node_of_cpu(cpu);
        distance       = (other < 0) ? UINT8_MAX : numa_distance(node, other);
        distances[cpu] = (distance > UINT8_MAX) ? UINT8_MAX : distance;
    }
    return 1;
}
#else
static int ucs_cpus_numa(const char *device, const cpu_set_t *near,
                         uint8_t *distances)
{
    (void)device;
    (void)near;
    (void)distances;
    return 0;
}
#endif

void ucs_cpus_distances(const char *device, const cpu_set_t *near,
                        uint8_t *distances)
{
    int cpu;

    if (ucs_cpus_numa(device, near, distances)) {
        return;
    }
    for (cpu = 0; cpu < UCS_LEDGER_CPUS; ++cpu) {
        distances[cpu] = !CPU_ISSET(cpu, near);
    }
}

/*
 * The application
 */

/* Processors of one core: "0", "0,64" or "0-1" */
static unsigned ucs_cpus_threads(const cpu_set_t *cpus)
{
    unsigned count = 1;
    char path[96], text[64];
    int cpu, first, last;

    for (cpu = 0; (cpu < UCS_LEDGER_CPUS - 1) && !CPU_ISSET(cpu, cpus);
         ++cpu) {
    }
    snprintf(path, sizeof(path), UCS_CPUS_SIBLINGS, cpu);
    if (ucs_own_fd_read_text(path, text, sizeof(text)) > 0) {
        if ((sscanf(text, "%d-%d", &first, &last) == 2) && (last > first) &&
            (last - first < 8)) {
            count = last - first + 1;
        } else if (sscanf(text, "%d,%d", &first, &last) == 2) {
            count = 2;
        }
    }
    return count;
}

static unsigned ucs_cpus_cores(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    long threads     = (text != NULL) ? strtol(text, NULL, 10) : 1;

    return ((threads >= 1) && (threads <= UCS_LEDGER_CPUS)) ? threads : 1;
}

/* A rank that may run on more cores than it uses, such as on its whole socket,
 * is not bound to any of them */
void ucs_cpus_hold(ucs_cpus_held_t *hold)
{
    unsigned count;

    memset(hold, 0, sizeof(*hold));
    hold->cores = ucs_cpus_cores();
    if (sched_getaffinity(getpid(), sizeof(hold->cpus), &hold->cpus) != 0) {
        return;
    }

    count          = CPU_COUNT(&hold->cpus);
    hold->is_bound = (count > 0) &&
                     ((long)count < sysconf(_SC_NPROCESSORS_ONLN)) &&
                     (count <= hold->cores * ucs_cpus_threads(&hold->cpus));
}

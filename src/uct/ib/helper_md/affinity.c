/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "affinity.h"

#include <sched.h>
#include <unistd.h>

/* ucs_cpu_set_t and cpu_set_t are both arrays of unsigned long with one bit
 * for each of 1024 processors */
static cpu_set_t *uct_helper_affinity_set(ucs_cpu_set_t *cpus)
{
    return (cpu_set_t*)cpus;
}

/* @return The number of the only processor of the main thread, -1 if it has
 * several. */
static int uct_helper_affinity_main_cpu(void)
{
    cpu_set_t cpus;
    int cpu;

    if ((sched_getaffinity(getpid(), sizeof(cpus), &cpus) != 0) ||
        (CPU_COUNT(&cpus) != 1)) {
        return -1;
    }

    for (cpu = 0; !CPU_ISSET(cpu, &cpus); ++cpu) {
    }
    return cpu;
}

int uct_helper_affinity_choose(const uct_helper_config_t *config,
                               const ucs_cpu_set_t *local_cpus,
                               ucs_cpu_set_t *cpus)
{
    int main_cpu;

    switch (config->cpu_mode) {
    case UCT_HELPER_CPU_LIST:
        *cpus = config->cpus;
        return 1;
    case UCT_HELPER_CPU_AUTO:
        *cpus    = *local_cpus;
        main_cpu = uct_helper_affinity_main_cpu();
        if (main_cpu >= 0) {
            CPU_CLR(main_cpu, uct_helper_affinity_set(cpus));
        }
        return CPU_COUNT(uct_helper_affinity_set(cpus)) > 0;
    default:
        return 0;
    }
}

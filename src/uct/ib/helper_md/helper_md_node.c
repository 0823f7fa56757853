/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hear.h"
#include "helper_md_int.h"
#include <ucs/sys/io/log.h>

#include <ucs/sys/math.h>
#include <ucs/sys/proc/thread.h>

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * The helper of a domain among those of its node: it gives back what others
 * ask for, and learns whether it is to run, and where.
 */

/* Both types are arrays of unsigned long with one bit for each of 1024
 * processors */
static cpu_set_t *uct_helper_md_cpu_set(ucs_cpu_set_t *cpus)
{
    return (cpu_set_t*)cpus;
}

int uct_helper_md_is_idle(const uct_helper_config_t *config)
{
    return config->cpu_policy == UCS_PLACE_POLICY_IDLE;
}

/* A helper that takes idle time only may also use processors that the
 * application is bound to */
int uct_helper_md_choose_cpus(uct_helper_md_t *md, cpu_set_t *cpus)
{
    cpu_set_t application;

    switch (md->config.cpu_mode) {
    case UCT_HELPER_CPU_LIST:
        *cpus = *uct_helper_md_cpu_set(&md->config.cpus);
        return 1;
    case UCT_HELPER_CPU_AUTO:
        *cpus = *uct_helper_md_cpu_set(&md->local_cpus);
        if (!uct_helper_md_is_idle(&md->config) &&
            (sched_getaffinity(getpid(), sizeof(application), &application) ==
             0) && (CPU_COUNT(&application) == 1)) {
            CPU_AND(&application, &application, cpus);
            CPU_XOR(cpus, cpus, &application);
        }
        return CPU_COUNT(cpus) > 0;
    default:
        return 0;
    }
}

void uct_helper_md_look_around(uct_helper_md_t *md)
{
    if (md->node != NULL) {
        ucs_cpus_distances(md->name, uct_helper_md_cpu_set(&md->local_cpus),
                           md->topology.distances);
    }
}

/* Once, in the helper's thread: it widens its own binding */
static int uct_helper_md_survey(uct_helper_md_t *md)
{
    int is_auto = (md->config.cpu_mode == UCT_HELPER_CPU_AUTO);

    if (!md->is_surveyed) {
        md->is_surveyed = ucs_cpus_allow(is_auto, &md->topology.allowed);
    }
    return md->is_surveyed;
}

/* If no core is known to be idle: the nearest ones that no rank is bound to,
 * else any */
static void uct_helper_md_roam(const ucs_place_topology_t *topology,
                               const ucs_place_t *place, cpu_set_t *cpus)
{
    unsigned nearest = UINT8_MAX;
    int cpu;

    if (CPU_COUNT(&place->idle) == 0) {
        *cpus = topology->allowed;
        return;
    }

    *cpus = place->idle;
    for (cpu = 0; cpu < UCS_LEDGER_CPUS; ++cpu) {
        if (CPU_ISSET(cpu, cpus)) {
            nearest = ucs_min(nearest, topology->distances[cpu]);
        }
    }
    for (cpu = 0; cpu < UCS_LEDGER_CPUS; ++cpu) {
        if (topology->distances[cpu] > nearest) {
            CPU_CLR(cpu, cpus);
        }
    }
}

/* The user's list of processors comes first */
static void uct_helper_md_move(uct_helper_md_t *md, const ucs_place_t *place)
{
    cpu_set_t cpus = {{0}};

    if ((md->config.cpu_mode != UCT_HELPER_CPU_AUTO) ||
        ((place->cpu != UCS_PLACE_ANY) && (md->bound_cpu == place->cpu + 1))) {
        return;
    }

    md->bound_cpu = place->cpu + 1;
    if (place->cpu != UCS_PLACE_ANY) {
        CPU_SET(place->cpu, &cpus);
    } else {
        uct_helper_md_roam(&md->topology, place, &cpus);
    }
    if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) {
        ucs_helper_debug("%s: the helper thread is not bound", md->name);
    }
}

static void uct_helper_md_turn(uct_helper_md_t *md, uint64_t now)
{
    uint64_t cpu_ns = ucs_thread_spent();
    ucs_place_t place;

    md->work.cpu_ns = cpu_ns - md->turn_cpu_ns;
    if (ucs_node_turn(md->node, now, &md->work, &md->topology, &place)) {
        ucs_helper_warn("another process wrote over the node's ledger: this "
                        "rank goes on by itself, with the whole of its budget");
    }
    md->turn_cpu_ns = cpu_ns;
    md->work.steps  = 0;
    if (!uct_helper_md_is_idle(&md->config)) {
        uct_helper_md_move(md, &place);
    }
    ucs_regcache_set_shared(md->cache, place.shared_ns);
    /* relaxed: only this thread writes it */
    if (ucs_load_relaxed(&md->is_resting) == place.runs) {
        ucs_store_relaxed(&md->is_resting, !place.runs);
        ucs_helper_debug("%s: the helper %s: %s; %u idle cores", md->name,
                         place.runs ? "resumes" : "rests",
                         ucs_place_reasons[place.why], place.idle_cores);
        if (!place.runs) {
            ucs_regcache_rest(md->cache);
        } else {
            ucs_regcache_resume(md->cache);
        }
    }
}

uint64_t uct_helper_md_visit_node(uct_helper_md_t *md, uint64_t now)
{
    if (md->node == NULL) {
        return 0;
    }

    ++md->work.steps;
    ucs_node_serve(md->node);
    if ((now >= md->turn_at) && uct_helper_md_survey(md)) {
        md->turn_at = now + UCS_NODE_TURN_NS;
        uct_helper_md_turn(md, now);
    }
    return ucs_load_relaxed(&md->is_resting) ? md->turn_at : 0;
}

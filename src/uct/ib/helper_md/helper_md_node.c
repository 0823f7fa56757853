/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "helper_md_int.h"
#include <ucs/sys/io/log.h>

#include <sched.h>
#include <string.h>
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
    return config->cpu_policy == UCT_HELPER_CPU_POLICY_IDLE;
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

/* Once, in the helper's thread: it widens its own binding. The kernel limits it
 * to the thread's cpuset */
static int uct_helper_md_survey(uct_helper_md_t *md)
{
    if (!md->is_surveyed) {
        if (md->config.cpu_mode == UCT_HELPER_CPU_AUTO) {
            memset(&md->allowed, 0xff, sizeof(md->allowed));
            (void)sched_setaffinity(0, sizeof(md->allowed), &md->allowed);
        }
        md->is_surveyed = (sched_getaffinity(0, sizeof(md->allowed),
                                             &md->allowed) == 0);
    }
    return md->is_surveyed;
}

/* To idle processors, near the device if there are such. The user's list comes
 * first. */
static void uct_helper_md_move(uct_helper_md_t *md, const cpu_set_t *idle)
{
    cpu_set_t cpus;

    CPU_AND(&cpus, idle, uct_helper_md_cpu_set(&md->local_cpus));
    if (CPU_COUNT(&cpus) == 0) {
        cpus = (CPU_COUNT(idle) > 0) ? *idle : md->allowed;
    }
    if ((md->config.cpu_mode != UCT_HELPER_CPU_AUTO) ||
        CPU_EQUAL(&cpus, &md->bound)) {
        return;
    }

    md->bound = cpus;
    if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) {
        ucs_helper_debug("%s: the helper thread is not bound", md->name);
    }
}

static void uct_helper_md_rest(uct_helper_md_t *md, int rests)
{
    /* relaxed: only this thread writes it */
    if (ucs_load_relaxed(&md->is_resting) == rests) {
        return;
    }

    ucs_store_relaxed(&md->is_resting, rests);
    ucs_node_set_runs(md->node, !rests);
    ucs_helper_debug("%s: %s", md->name,
                     rests ? "the helper rests: no core is idle" :
                             "the helper resumes: a core is idle");
    if (rests) {
        ucs_regcache_rest(md->cache);
    } else {
        ucs_regcache_resume(md->cache);
    }
}

static void uct_helper_md_turn(uct_helper_md_t *md, uint64_t now)
{
    cpu_set_t cpus = md->allowed;
    int has_core;

    if (!ucs_node_mend(md->node, now)) {
        ucs_helper_warn("another process wrote over the node's ledger: this "
                        "rank goes on by itself, with the whole of its budget");
    }

    has_core = ucs_node_find_core(md->node, &cpus);
    if (!uct_helper_md_is_idle(&md->config)) {
        uct_helper_md_move(md, &cpus);
    }
    if (md->config.cpu_policy == UCT_HELPER_CPU_POLICY_CONSERVATIVE) {
        uct_helper_md_rest(md, !has_core);
    }
}

uint64_t uct_helper_md_visit_node(uct_helper_md_t *md, uint64_t now)
{
    if (md->node == NULL) {
        return 0;
    }

    ucs_node_serve(md->node);
    if ((now >= md->turn_at) && uct_helper_md_survey(md)) {
        md->turn_at = now + UCS_NODE_TURN_NS;
        uct_helper_md_turn(md, now);
    }
    return ucs_load_relaxed(&md->is_resting) ? md->turn_at : 0;
}

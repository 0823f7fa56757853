/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "helper_md_int.h"
#include <ucs/sys/io/log.h>

#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>
#include <ucs/sys/proc/waited.h>

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The helper among those of its node: it gives back what others ask for, and learns
 * whether it is to run, and where.
 */

#define UCT_HELPER_NODE_ERROR_MAX 512

/* Such a part of the memlock limit is left to UCX's own pools and the program. A driver
 * counts it by process, io_uring, by which the software NIC pins, by user. */
#define UCT_HELPER_NODE_POOLS 16

/* Where the process's helper runs */
typedef struct uct_helper_place {
    /* Near any device of the process; written under the session's lock. relaxed: bits
     * are only added */
    _Atomic(ucs_cpu_mask_t) near[UCS_CPU_SETSIZE / UCS_NCPUBITS];
    /* The helper's own */
    int                     is_surveyed; /* it is known what it may use: */
    cpu_set_t               allowed;
    cpu_set_t               bound;       /* what it moved to */
    uint64_t                turn_at;     /* ns */
    int                     rests;
    double                  waits;       /* share of its work that ranks would wait
                                            for at any time */
} uct_helper_place_t;

static uct_helper_place_t uct_helper_place;

void uct_helper_place_begin(void)
{
    uct_helper_place = (uct_helper_place_t){};
    ucs_waited_begin();
}

void uct_helper_place_add(const uct_helper_md_t *md)
{
    unsigned i;

    for (i = 0; i < UCS_CPU_SETSIZE / UCS_NCPUBITS; ++i) {
        ucs_store_relaxed(&uct_helper_place.near[i],
                          ucs_load_relaxed(&uct_helper_place.near[i]) |
                                  md->local_cpus.ucs_bits[i]);
    }
}

/* Those that the main thread, which stands for the application, is bound to; none if
 * that is not known */
static void uct_helper_application_cpus(cpu_set_t *cpus)
{
    if (sched_getaffinity(getpid(), sizeof(*cpus), cpus) != 0) {
        CPU_ZERO(cpus);
    }
}

/* Both types are arrays of unsigned long with one bit for each of 1024
 * processors */
static void uct_helper_place_near(cpu_set_t *cpus)
{
    unsigned i;

    for (i = 0; i < UCS_CPU_SETSIZE / UCS_NCPUBITS; ++i) {
        cpus->__bits[i] = ucs_load_relaxed(&uct_helper_place.near[i]);
    }
}

int uct_helper_md_is_idle(const uct_helper_config_t *config)
{
    return config->cpu_policy == UCT_HELPER_CPU_POLICY_IDLE;
}

/* A helper that takes idle time only may also use processors that the
 * application is bound to */
int uct_helper_md_choose_cpus(const uct_helper_md_t *md, cpu_set_t *cpus)
{
    cpu_set_t application;

    switch (md->config.cpu_mode) {
    case UCT_HELPER_CPU_LIST:
        memcpy(cpus, &md->config.cpus, sizeof(*cpus));
        return 1;
    case UCT_HELPER_CPU_AUTO:
        uct_helper_place_near(cpus);
        uct_helper_application_cpus(&application);
        if (!uct_helper_md_is_idle(&md->config) &&
            (CPU_COUNT(&application) == 1)) {
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
static int uct_helper_md_survey(const uct_helper_md_t *md)
{
    uct_helper_place_t *place = &uct_helper_place;

    if (!place->is_surveyed) {
        if (md->config.cpu_mode == UCT_HELPER_CPU_AUTO) {
            memset(&place->allowed, 0xff, sizeof(place->allowed));
            (void)sched_setaffinity(0, sizeof(place->allowed), &place->allowed);
        }
        place->is_surveyed = (sched_getaffinity(0, sizeof(place->allowed),
                                                &place->allowed) == 0);
    }
    return place->is_surveyed;
}

/* With its scout, to idle processors, near a device if there are such, and to its
 * @a own. The user's list comes first. */
static void uct_helper_md_move(const uct_helper_md_t *md, const cpu_set_t *idle,
                               const cpu_set_t *own)
{
    uct_helper_place_t *place = &uct_helper_place;
    cpu_set_t cpus;

    uct_helper_place_near(&cpus);
    CPU_AND(&cpus, &cpus, idle);
    if (CPU_COUNT(&cpus) == 0) {
        cpus = *idle;
    }
    CPU_OR(&cpus, &cpus, own);
    if (CPU_COUNT(&cpus) == 0) {
        cpus = place->allowed;
    }
    if ((md->config.cpu_mode != UCT_HELPER_CPU_AUTO) ||
        CPU_EQUAL(&cpus, &place->bound)) {
        return;
    }

    place->bound = cpus;
    if (!ucs_thread_move(md->thread, &cpus)) {
        ucs_helper_debug("%s: the helper thread is not bound", md->name);
    }
}

/* Each domain in its own step, for the process's turn is in one of them */
static void uct_helper_md_rest(uct_helper_md_t *md, int rests)
{
    /* relaxed: only this thread writes it */
    if (ucs_load_relaxed(&md->is_resting) == rests) {
        return;
    }

    ucs_store_relaxed(&md->is_resting, rests);
    ucs_helper_debug("%s: %s", md->name,
                     rests ? "the helper rests: no core is idle" :
                             "the helper resumes: a core is idle");
    if (rests) {
        ucs_regcache_rest(md->cache);
    } else {
        ucs_regcache_resume(md->cache);
    }
}

/* --- Registrations of the device ------------------------------------------ */

/* Of a large limit ranks that have a thousandth of it need not look at the others,
 * and what all slots could have that way is set aside */
#define UCT_HELPER_QUOTA_UNSEEN 1024

/* More registrations than that of one process are written over */
#define UCT_HELPER_QUOTA_SANE (UINT64_C(1) << 32)

void uct_helper_md_open_quota(uct_helper_md_t *md)
{
    uint64_t limit = (md->config.max_regions == UCT_HELPER_REGIONS_AUTO) ?
                             md->limits.regions : md->config.max_regions;
    char error[256], name[NAME_MAX];
    ucs_node_params_t params = {
        .name   = name,
        .budget = limit,
        .ram    = UCT_HELPER_QUOTA_SANE,
        .goes   = 1,
        .bells  = md->node,
        .now    = ucs_clock_now
    };

    if ((md->node == NULL) ||
        (ucs_ledger_name(getenv(UCS_NODE_SUFFIX_ENV), name, sizeof(name)) !=
         UCS_OK)) {
        return;
    }
    ucs_ledger_name_device(md->name, name, sizeof(name));
    if (limit != UINT64_MAX) {
        params.unseen  = limit / UCT_HELPER_QUOTA_UNSEEN;
        params.budget -= params.unseen * UCS_LEDGER_SLOTS;
    }
    if (ucs_node_open(&params, &md->quota, error, sizeof(error)) != UCS_OK) {
        ucs_helper_debug("%s: %s", md->name, error);
        md->quota = NULL;
    }
}

/* relaxed, both: a number */
void uct_helper_md_count(uct_helper_md_t *md)
{
    if (md->quota != NULL) {
        (void)ucs_node_claim(md->quota, 1, UCS_CLAIM_FORCE);
        ucs_add_relaxed(&md->direct, 1);
    }
}

/* What was attached or imported was not counted */
void uct_helper_md_discount(uct_helper_md_t *md)
{
    uint64_t direct = ucs_load_relaxed(&md->direct);

    while ((direct > 0) && (md->quota != NULL)) {
        if (ucs_cas_relaxed(&md->direct, &direct, direct - 1)) {
            ucs_node_unclaim(md->quota, 1);
            return;
        }
    }
}

/* Once for all domains */
static void uct_helper_md_turn(const uct_helper_md_t *md, uint64_t now)
{
    uct_helper_place_t *place = &uct_helper_place;
    cpu_set_t cpus            = place->allowed;
    cpu_set_t own             = {};
    unsigned processors       = CPU_COUNT(&place->allowed);
    unsigned others;
    pid_t beside;
    int has_core;

    if (!ucs_node_mend(md->node, now)) {
        ucs_helper_warn("another process wrote over the node's ledger: this "
                        "rank goes on by itself, with the whole of its budget");
    }

    place->waits = ucs_node_waits(md->node, now, ucs_waited_ns(), processors);
    beside       = ucs_node_beside(md->node, processors, &others);
    ucs_waited_beside(beside, others);
    has_core = ucs_node_find_core(md->node, &cpus);
    if (uct_helper_md_is_idle(&md->config)) {
        /* What a helper takes of another rank's processor is not seen in its own rank's
         * waits, so it leaves those to their own helpers */
        uct_helper_application_cpus(&own);
    }
    uct_helper_md_move(md, &cpus, &own);
    if (md->config.cpu_policy == UCT_HELPER_CPU_POLICY_CONSERVATIVE) {
        place->rests = !has_core;
        ucs_node_set_runs(md->node, has_core);
    }
}

uint64_t uct_helper_md_visit_node(uct_helper_md_t *md, uint64_t now)
{
    uct_helper_place_t *place = &uct_helper_place;
    uint64_t worked, delayed;

    if (md->node == NULL) {
        return 0;
    }

    ucs_node_serve(md->node);
    if (md->quota != NULL) {
        ucs_node_serve(md->quota);
        if (now >= md->mend_at) {
            md->mend_at = now + UCS_NODE_TURN_NS;
            (void)ucs_node_mend(md->quota, now);
        }
    }
    if ((now >= place->turn_at) && ucs_thread_hold_binding(md->thread)) {
        if (uct_helper_md_survey(md)) {
            place->turn_at = now + UCS_NODE_TURN_NS;
            uct_helper_md_turn(md, now);
        }
        ucs_thread_release_binding(md->thread);
    }
    uct_helper_md_rest(md, place->rests);
    ucs_thread_delays(md->thread, &worked, &delayed);
    ucs_regcache_set_wanted(md->cache,
                            ucs_node_wanted(md->node, now, worked, delayed),
                            place->waits);
    return place->rests ? place->turn_at : 0;
}

/* --- The process in the node's ledger --------------------------------------- */

/* What the application holds: its processors, which may be a core's hardware threads; if
 * there are more, as of a whole socket, as many as it has threads, wherever these run */
static void uct_helper_node_hold(ucs_node_params_t *params)
{
    const char *text = getenv("OMP_NUM_THREADS");
    long threads     = (text != NULL) ? strtol(text, NULL, 10) : 1;
    long count;

    params->cores = ((threads >= 1) && (threads <= UCS_LEDGER_CPUS)) ? threads :
                                                                       1;
    uct_helper_application_cpus(&params->cpus);
    count = CPU_COUNT(&params->cpus);
    if ((count > 0) && (count <= 2 * (long)params->cores) &&
        (count < sysconf(_SC_NPROCESSORS_ONLN))) {
        params->cores = 0;
    } else {
        CPU_ZERO(&params->cpus);
    }
}

static ucs_status_t uct_helper_node_try(const uct_helper_config_t *config,
                                        ucs_node_h *node_p, char *error,
                                        size_t max)
{
    char name[NAME_MAX];
    ucs_node_params_t params = {
        .name   = name,
        .budget = config->node_max_pinned, /* SIZE_MAX: none */
        .now    = ucs_clock_now
    };
    const char *suffix = getenv(UCS_NODE_SUFFIX_ENV);
    uint64_t memlock   = uct_helper_limits_memlock();

    if (ucs_ledger_name(suffix, name, sizeof(name)) != UCS_OK) {
        snprintf(error, max,
                 UCS_NODE_SUFFIX_ENV ": '%s' is not valid, allowed: up to 64 "
                 "letters, digits, '-' and '_'; the node's ledger is not used",
                 suffix);
        return UCS_ERR_INVALID_PARAM;
    }

    if (memlock != UINT64_MAX) {
        params.most = memlock - memlock / UCT_HELPER_NODE_POOLS;
        if (config->pin) {
            params.budget = ucs_min(params.budget, params.most);
        }
    }
    uct_helper_node_hold(&params);
    return ucs_node_open(&params, node_p, error, max);
}

ucs_node_h uct_helper_node_enter(const uct_helper_config_t *config)
{
    ucs_node_h node = NULL;
    int is_needed   = (config->node_max_pinned != SIZE_MAX) ||
                      (config->cpu_policy != UCT_HELPER_CPU_POLICY_IDLE);
    char error[UCT_HELPER_NODE_ERROR_MAX];

    if (uct_helper_node_try(config, &node, error, sizeof(error)) != UCS_OK) {
        ucs_helper_log(is_needed ? UCS_LOG_LEVEL_WARN : UCS_LOG_LEVEL_INFO,
                       "%s", error);
    }
    return node;
}

void uct_helper_node_add_figures(ucs_node_h node, ucs_node_figures_t *sum)
{
    ucs_node_figures_t before = *sum;

    ucs_node_figures(node, sum);
    sum->ranks        = ucs_max(sum->ranks, before.ranks);
    sum->peak_bytes   = ucs_max(sum->peak_bytes, before.peak_bytes);
    sum->forced      += before.forced;
    sum->given_bytes += before.given_bytes;
    sum->rests       += before.rests;
    sum->rest_ns     += before.rest_ns;
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "node_process.h"
#include "device_limits.h"
#include <ucs/sys/io/log.h>

#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UCT_HELPER_NODE_ERROR_MAX 512

/* Such a part of the memlock limit is left to UCX's own pools and the program. A driver
 * counts it by process, io_uring, by which the software NIC pins, by user. */
#define UCT_HELPER_NODE_POOLS 16

typedef struct uct_helper_node_process {
    ucs_node_h         node;
    unsigned           users;
    int                is_refused; /* and said so */
    int                has_figures;
    ucs_node_figures_t figures;    /* of earlier times, summed up */
} uct_helper_node_process_t;

/* Protects the process's slot; only the node's own locks are taken under it */
static pthread_mutex_t uct_helper_node_process_lock = PTHREAD_MUTEX_INITIALIZER;
static uct_helper_node_process_t uct_helper_node_process;

void uct_helper_application_cpus(cpu_set_t *cpus)
{
    if (sched_getaffinity(getpid(), sizeof(*cpus), cpus) != 0) {
        CPU_ZERO(cpus);
    }
}

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

static ucs_status_t uct_helper_node_enter(const uct_helper_config_t *config,
                                          char *error, size_t max)
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
    return ucs_node_open(&params, &uct_helper_node_process.node, error, max);
}

ucs_node_h uct_helper_node_open(const uct_helper_config_t *config)
{
    uct_helper_node_process_t *process = &uct_helper_node_process;
    int is_needed = (config->node_max_pinned != SIZE_MAX) ||
                    (config->cpu_policy != UCT_HELPER_CPU_POLICY_IDLE);
    char error[UCT_HELPER_NODE_ERROR_MAX];

    pthread_mutex_lock(&uct_helper_node_process_lock);
    if ((process->node == NULL) && !process->is_refused &&
        (uct_helper_node_enter(config, error, sizeof(error)) != UCS_OK)) {
        process->is_refused = 1;
        ucs_helper_log(is_needed ? UCS_LOG_LEVEL_WARN : UCS_LOG_LEVEL_INFO,
                       "%s", error);
    }
    process->users += (process->node != NULL);
    pthread_mutex_unlock(&uct_helper_node_process_lock);
    return process->node;
}

static void uct_helper_node_keep_figures(uct_helper_node_process_t *process)
{
    ucs_node_figures_t before = process->figures;
    ucs_node_figures_t *sum   = &process->figures;

    ucs_node_figures(process->node, sum);
    sum->ranks           = ucs_max(sum->ranks, before.ranks);
    sum->peak_bytes      = ucs_max(sum->peak_bytes, before.peak_bytes);
    sum->forced         += before.forced;
    sum->given_bytes    += before.given_bytes;
    sum->rests          += before.rests;
    sum->rest_ns        += before.rest_ns;
    process->has_figures = 1;
}

void uct_helper_node_close(ucs_node_h node)
{
    uct_helper_node_process_t *process = &uct_helper_node_process;

    if (node == NULL) {
        return;
    }

    pthread_mutex_lock(&uct_helper_node_process_lock);
    if (--process->users == 0) {
        uct_helper_node_keep_figures(process);
        ucs_node_close(process->node);
        process->node = NULL;
    }
    pthread_mutex_unlock(&uct_helper_node_process_lock);
}

void uct_helper_node_forget(void)
{
    pthread_mutex_init(&uct_helper_node_process_lock, NULL);
    memset(&uct_helper_node_process, 0, sizeof(uct_helper_node_process));
}

int uct_helper_node_process_figures(ucs_node_figures_t *figures)
{
    uct_helper_node_process_t *process = &uct_helper_node_process;
    uct_helper_node_process_t copy;

    pthread_mutex_lock(&uct_helper_node_process_lock);
    copy = *process;
    if (copy.node != NULL) {
        uct_helper_node_keep_figures(&copy);
    }
    pthread_mutex_unlock(&uct_helper_node_process_lock);
    *figures = copy.figures;
    return copy.has_figures;
}

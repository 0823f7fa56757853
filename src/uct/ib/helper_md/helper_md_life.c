/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "hear.h"
#include "helper_md_int.h"
#include "session.h"
#include <ucs/sys/io/log.h>
#include <uct/ib/helper_md/watch/events.h>
#include <uct/ib/helper_md/watch/monitor.h>
#include <uct/ib/helper_md/watch/trust.h>

#include <ucs/sys/math.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A decorated domain from its creation to its release, without its operations.
 */

#define UCT_HELPER_MD_NOTE_MAX  128
#define UCT_HELPER_MD_PROTO_ENV "UCX_PROTO_ENABLE"

/* Logged once a process */
static void uct_helper_md_no_userfaultfd(const char *reason)
{
    static _Atomic(int) said;
    char note[UCT_HELPER_MD_NOTE_MAX];

    if (ucs_add_relaxed(&said, 1) > 0) {
        return;
    }

    snprintf(note, sizeof(note), "%s: memory is watched by UCX's hooks alone",
             reason);
    ucs_helper_log(UCS_LOG_LEVEL_INFO, "%s", note);
    uct_helper_session_note(note);
}

int uct_helper_md_watch(const uct_helper_config_t *config)
{
    const char *reason;

    if (config->monitor == UCT_HELPER_MONITOR_UCM) {
        return 0;
    }

    reason = uct_helper_monitor_start();
    if (reason != NULL) {
        uct_helper_md_no_userfaultfd(reason);
    }
    return reason == NULL;
}

static uint64_t uct_helper_md_step(void *arg, uint64_t now)
{
    uct_helper_md_t *md = arg;
    uint64_t next, count_at;

    uct_helper_events_recheck(now);
    uct_helper_trust_step(now);
    uct_helper_hear_step(md);
    next = md->is_planned ? uct_helper_md_visit_node(md, now) : 0;
    if (next == 0) {
        next = ucs_regcache_step(md->cache, now);
        if (ucs_regcache_step_did_plans(md->cache)) {
            ucs_thread_count(md->thread);
        }
    } else {
        ucs_regcache_rested(md->cache);
    }
    /* A cache that keeps nothing needs no thread */
    return uct_helper_trust_is_near(&count_at) ? ucs_min(next, count_at) : next;
}

/* With a budget of the node, or of the device, another rank may ask for any
 * registration */
static int uct_helper_md_has_budget(const uct_helper_md_t *md)
{
    return ((md->node != NULL) && ucs_node_has_budget(md->node)) ||
           ((md->quota != NULL) && ucs_node_has_budget(md->quota));
}

static void uct_helper_md_bind(uct_helper_md_t *md)
{
    cpu_set_t cpus;

    /* With a ledger the helper looks for its place itself */
    if ((md->node != NULL) && (md->config.cpu_mode == UCT_HELPER_CPU_AUTO) &&
        !uct_helper_md_is_idle(&md->config)) {
        return;
    }

    if (!uct_helper_md_choose_cpus(md, &cpus) ||
        (ucs_thread_bind(md->thread, &cpus) == UCS_OK)) {
        return;
    }

    if (md->config.cpu_mode == UCT_HELPER_CPU_LIST) {
        ucs_helper_warn("UCX_MD_HELPER_CPU: none of the processors can be had; "
                        "the helper thread runs unbound");
    } else {
        ucs_helper_debug("the helper thread is not bound");
    }
}

/* Small requests do not start the thread */
void uct_helper_md_settle(uct_helper_md_t *md, size_t length)
{
    ucs_status_t status;

    if ((length < md->config.min_size) && !uct_helper_md_has_budget(md)) {
        return;
    }

    ucs_cancel_hold();
    status = ucs_job_start(md->job);
    if (status == UCS_OK) {
        if (md->is_planned) {
            uct_helper_md_bind(md);
            /* More than one thread may come here */
            if ((md->node != NULL) && (ucs_add_relaxed(&md->listens, 1) == 0)) {
                ucs_node_listen(md->node, 1);
                ucs_node_listen(md->quota, 1);
            }
        }
    } else {
        ucs_regcache_helper_refused(md->cache);
        uct_helper_session_note("the system refused a helper thread: "
                                "registrations were kept");
    }
    ucs_store_relaxed(&md->settled, 1);
}

/* UCP's old and new protocols use different figures in some releases */
static double uct_helper_md_hit_cost(void)
{
    const char *proto = getenv(UCT_HELPER_MD_PROTO_ENV);

    return ((proto != NULL) && (*proto != '\0') &&
            (strchr("yYtT1", *proto) != NULL)) ?
                   uct_abi_running->hit_cost_proto :
                   uct_abi_running->hit_cost;
}

static void uct_helper_md_init(uct_helper_md_t *md, uct_md_h uct_md,
                               const char *md_name,
                               const uct_helper_config_t *config,
                               const uct_abi_md_attr_t *attr)
{
    md->process     = uct_helper_session_process();
    md->lower       = uct_abi_md(uct_md)->ops;
    md->lower_flags = attr->flags;
    md->hit_cost    = uct_helper_md_hit_cost();
    md->md          = uct_md;
    md->config      = *config;
    md->local_cpus  = attr->local_cpus;
    snprintf(md->name, sizeof(md->name), "%s", md_name);
    pthread_mutex_init(&md->child_lock, NULL);
    ucs_list_head_init(&md->child_memhs);
}

/* What the domain below allows: a device of its driver, or the software NIC as the
 * user has set it */
static void uct_helper_md_ask_limits(uct_helper_md_t *md)
{
    md->limits      = (uct_helper_limits_t){.regions = UINT64_MAX};
    md->has_memlock = (uct_helper_limits_memlock() != UINT64_MAX);
    if (!strcmp(uct_abi_md_component_name(md->md), UCT_HELPER_MD_VERBS)) {
        uct_helper_limits_verbs(md->name, &md->limits);
    } else if (md->config.pin) {
        md->limits.regions = md->config.pin_max_regions;
    }
}

static ucs_status_t
uct_helper_md_create_device(uct_helper_md_t *md, const uct_abi_md_attr_t *attr)
{
    ucs_status_t status = uct_helper_device_create(md->md, md->lower, attr,
                                                   &md->device);

    if ((status == UCS_OK) &&
        (attr->reg_mem_types & ~UCS_BIT(UCS_MEMORY_TYPE_HOST))) {
        uct_helper_session_note("device memory is left registered between "
                                "uses, and is not in these figures");
    }
    return status;
}

ucs_status_t uct_helper_md_create(uct_md_h uct_md, const char *md_name,
                                  const uct_helper_config_t *config,
                                  uct_helper_md_t **md_p)
{
    uct_abi_md_attr_t attr;
    uct_helper_md_t *md;
    ucs_status_t status;

    status = uct_abi_md_query(uct_abi_md(uct_md)->ops, uct_md, &attr);
    if (status != UCS_OK) {
        return status;
    }

    md = calloc(1, sizeof(*md));
    if (md == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    uct_helper_md_init(md, uct_md, md_name, config, &attr);
    status = uct_helper_session_join(md, uct_helper_md_step);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_helper_md_create_device(md, &attr);
    if (status != UCS_OK) {
        goto err_part;
    }

    uct_helper_md_ask_limits(md);
    uct_helper_md_open_quota(md);
    status = uct_helper_md_create_cache(md);
    if (status != UCS_OK) {
        goto err_close_quota;
    }

    uct_helper_md_check_marks(md);
    md->is_planned = ucs_regcache_needs_helper(md->cache) ||
                     uct_helper_md_has_budget(md);
    ucs_store_relaxed(&md->settled,
                      !md->is_planned && !ucs_regcache_keeps_idle(md->cache));
    *md_p = md;
    return UCS_OK;

err_close_quota:
    ucs_node_close(md->quota);
    uct_helper_device_destroy(md->device);
err_part:
    uct_helper_session_part(md);
err_free:
    pthread_mutex_destroy(&md->child_lock);
    free(md);
    return status;
}

void uct_helper_md_release(uct_helper_md_t *md)
{
    ucs_job_stop(md->job);
    ucs_node_part(md->node, md->cache);
    ucs_node_part(md->quota, md->cache);
    ucs_regcache_destroy(md->cache);
    uct_helper_device_destroy(md->device);
    /* Last: a rank that asks meanwhile waits until all is deregistered. */
    if (ucs_load_relaxed(&md->listens)) {
        ucs_node_listen(md->node, 0);
        ucs_node_listen(md->quota, 0);
    }
    uct_helper_session_part(md);
    ucs_node_close(md->quota);
    pthread_mutex_destroy(&md->child_lock);
    free(md);
}

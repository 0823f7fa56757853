/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "helper_md.h"
#include "affinity.h"
#include "events.h"
#include "helper_md_int.h"
#include "log.h"
#include "session.h"

#include <ucs/datastruct/linear_func.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


void uct_helper_md_dereg_unpack(const uct_abi_md_mem_dereg_params_t *params,
                                uct_abi_md_mem_dereg_params_t *full)
{
    uint64_t mask = params->field_mask;

    full->field_mask = mask;
    full->memh  = (mask & UCT_ABI_MD_MEM_DEREG_FIELD_MEMH) ? params->memh :
                                                             NULL;
    full->flags = (mask & UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS) ? params->flags : 0;
    full->comp  = (mask & UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION) ?
                  params->comp : NULL;
}

/* The engine's world */

static ucs_status_t uct_helper_env_mem_reg(void *arg, void *address,
                                           size_t length, unsigned flags,
                                           uct_mem_h *memh_p)
{
    uct_helper_md_t *md = arg;
    ucs_status_t status;

    uct_helper_log_hush(flags & UCT_MD_MEM_FLAG_HIDE_ERRORS);
    status = md->lower->mem_reg(md->md, address, length, flags, memh_p);
    uct_helper_log_hush(0);
    return status;
}

static ucs_status_t uct_helper_env_mem_dereg(void *arg, uct_mem_h memh,
                                             uct_completion_t *comp)
{
    uct_helper_md_t *md = arg;
    uct_abi_md_mem_dereg_params_t params = {
        .field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH,
        .memh       = memh
    };

    if (comp != NULL) {
        params.field_mask |= UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS |
                             UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION;
        params.flags       = UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE;
        params.comp        = comp;
    }

    return md->lower->mem_dereg(md->md, &params);
}

static uint64_t uct_helper_env_now(void *arg)
{
    (void)arg;
    return ucs_clock_now();
}

static void uct_helper_env_wake(void *arg)
{
    uct_helper_md_t *md = arg;

    uct_helper_thread_wake(md->thread);
}

static void uct_helper_env_wait(void *arg, uint32_t *word, uint32_t value)
{
    (void)arg;
    uct_helper_wait(word, value);
}

static void uct_helper_env_wake_waiters(void *arg, uint32_t *word)
{
    (void)arg;
    uct_helper_wake_waiters(word);
}

static uint64_t uct_helper_env_walk(void *arg, uintptr_t sp, uintptr_t address,
                                    size_t length)
{
    uct_helper_md_t *md = arg;

    return uct_helper_site_walk(md->site, sp, address, length);
}

static uint64_t uct_helper_env_recall(void *arg, uintptr_t sp,
                                      uintptr_t address, size_t length)
{
    uct_helper_md_t *md = arg;

    return uct_helper_site_recall(md->site, sp, address, length);
}

static uint64_t uct_helper_md_step(void *arg, uint64_t now)
{
    uct_helper_md_t *md = arg;

    return uct_helper_engine_step(md->engine, now);
}

/* The operations */

static void uct_helper_md_bind(uct_helper_md_t *md)
{
    ucs_cpu_set_t cpus;

    if (!uct_helper_affinity_choose(&md->config, &md->local_cpus, &cpus) ||
        (uct_helper_thread_bind(md->thread, &cpus) == UCS_OK)) {
        return;
    }

    if (md->config.cpu_mode == UCT_HELPER_CPU_LIST) {
        uct_helper_warn("UCX_MD_HELPER_CPU: none of the processors can be had; "
                        "the helper thread runs unbound");
    } else {
        uct_helper_debug("the helper thread is not bound");
    }
}

/* Small requests do not need the thread, so they do not start it */
static UCS_F_NOINLINE void uct_helper_md_settle(uct_helper_md_t *md,
                                                size_t length)
{
    ucs_status_t status;

    if (length < md->config.min_size) {
        return;
    }

    status = uct_helper_thread_start(md->thread);
    if (status == UCS_OK) {
        uct_helper_md_bind(md);
    } else {
        uct_helper_engine_helper_refused(md->engine);
        uct_helper_session_note("the system refused a helper thread: "
                                "registrations were kept");
    }
    ucs_store_relaxed(&md->settled, 1);
}

static ucs_status_t uct_helper_md_mem_reg(uct_md_h uct_md, void *address,
                                          size_t length, unsigned flags,
                                          uct_mem_h *memh_p)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    ucs_status_t status;

    /* UCX's own pools live until finalize; they are not ours to manage */
    if (ucs_unlikely((flags & UCT_MD_MEM_FLAG_LOCK) || (length == 0))) {
        return md->lower->mem_reg(uct_md, address, length, flags, memh_p);
    }

    status = uct_helper_engine_get(md->engine, address, length, flags,
                                   (uintptr_t)__builtin_frame_address(0),
                                   memh_p);
    if (ucs_unlikely(!ucs_load_relaxed(&md->settled))) {
        uct_helper_md_settle(md, length);
    }

    return status;
}

static UCS_F_NOINLINE ucs_status_t
uct_helper_md_invalidate(uct_md_h uct_md,
                         const uct_abi_md_mem_dereg_params_t *params,
                         const uct_abi_md_mem_dereg_params_t *full)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    ucs_status_t status;

    if (!(md->lower_flags & UCT_MD_FLAG_INVALIDATE)) {
        return UCS_ERR_UNSUPPORTED;
    }

    if (full->comp == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }

    status = uct_helper_engine_put(md->engine, full->memh, full->comp);
    if (status == UCS_ERR_NO_ELEM) {
        return md->lower->mem_dereg(uct_md, params);
    }

    return status;
}

static ucs_status_t
uct_helper_md_mem_dereg(uct_md_h uct_md,
                        const uct_abi_md_mem_dereg_params_t *params)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    uct_abi_md_mem_dereg_params_t full;
    ucs_status_t status;

    uct_helper_md_dereg_unpack(params, &full);
    if (ucs_unlikely(full.flags & UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE)) {
        return uct_helper_md_invalidate(uct_md, params, &full);
    }

    status = uct_helper_engine_put(md->engine, full.memh, NULL);
    if (ucs_unlikely(status == UCS_ERR_NO_ELEM)) {
        return md->lower->mem_dereg(uct_md, params);
    }

    return status;
}

static ucs_status_t uct_helper_md_query(uct_md_h uct_md, uct_md_attr_t *attr)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    ucs_status_t status;

    status = md->lower->query(uct_md, attr);
    if (status == UCS_OK) {
        attr->reg_cost = ucs_linear_func_make(UCT_HELPER_MD_HIT_COST, 0);
    }

    return status;
}

static void uct_helper_md_release(uct_helper_md_t *md)
{
    uct_helper_engine_destroy(md->engine);
    uct_helper_site_destroy(md->site);
    uct_helper_thread_destroy(md->thread);
    pthread_mutex_destroy(&md->child_lock);
    free(md);
}

static void uct_helper_md_close(uct_md_h uct_md)
{
    uct_helper_md_t *md           = uct_helper_md_of(uct_md);
    const uct_abi_md_ops_t *lower = md->lower;

    uct_helper_thread_stop(md->thread);
    uct_helper_session_leave(md);
    uct_helper_events_leave(md->engine);
    uct_helper_md_release(md);
    uct_abi_md(uct_md)->ops = lower;
    lower->close(uct_md);
}

/* Attaching */

static ucs_status_t uct_helper_md_create_engine(uct_helper_md_t *md)
{
    const uct_helper_engine_params_t params = {
        .policy      = md->config.policy,
        .min_size    = md->config.min_size,
        .max_pinned  = md->config.max_pinned,
        .max_regions = md->config.max_regions
    };
    const uct_helper_env_t env = {
        .arg          = md,
        .mem_reg      = uct_helper_env_mem_reg,
        .mem_dereg    = uct_helper_env_mem_dereg,
        .now          = uct_helper_env_now,
        .wake         = uct_helper_env_wake,
        .wait         = uct_helper_env_wait,
        .wake_waiters = uct_helper_env_wake_waiters,
        .walk         = uct_helper_env_walk,
        .recall       = uct_helper_env_recall
    };

    return uct_helper_engine_create(&params, &env, &md->engine);
}

static void uct_helper_md_set_ops(uct_helper_md_t *md)
{
    md->ops           = *md->lower;
    md->ops.close     = uct_helper_md_close;
    md->ops.query     = uct_helper_md_query;
    md->ops.mem_reg   = uct_helper_md_mem_reg;
    md->ops.mem_dereg = uct_helper_md_mem_dereg;
}

static void uct_helper_md_init(uct_helper_md_t *md, uct_md_h uct_md,
                               const char *md_name,
                               const uct_helper_config_t *config,
                               const uct_md_attr_t *attr)
{
    md->lower       = uct_abi_md(uct_md)->ops;
    md->lower_flags = attr->cap.flags;
    md->md          = uct_md;
    md->config      = *config;
    md->local_cpus  = attr->local_cpus;
    snprintf(md->name, sizeof(md->name), "%s", md_name);
    pthread_mutex_init(&md->child_lock, NULL);
    ucs_list_head_init(&md->child_memhs);
    uct_helper_md_set_ops(md);

    if (attr->cap.reg_mem_types & ~UCS_BIT(UCS_MEMORY_TYPE_HOST)) {
        /* 1.13 does not tell a registration's memory type */
        uct_helper_session_note("the domain also registers device memory, "
                                "which is not told from host memory");
    }
}

static ucs_status_t uct_helper_md_create(uct_md_h uct_md, const char *md_name,
                                         const uct_helper_config_t *config,
                                         uct_helper_md_t **md_p)
{
    uct_md_attr_t attr;
    uct_helper_md_t *md;
    ucs_status_t status;

    status = uct_abi_md(uct_md)->ops->query(uct_md, &attr);
    if (status != UCS_OK) {
        return status;
    }

    md = calloc(1, sizeof(*md));
    if (md == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    uct_helper_md_init(md, uct_md, md_name, config, &attr);
    status = uct_helper_thread_create(uct_helper_md_step, md, &md->thread);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_helper_site_create(&md->site);
    if (status != UCS_OK) {
        goto err_destroy_thread;
    }

    status = uct_helper_md_create_engine(md);
    if (status != UCS_OK) {
        goto err_destroy_site;
    }

    ucs_store_relaxed(&md->settled,
                      !uct_helper_engine_needs_helper(md->engine));
    *md_p = md;
    return UCS_OK;

err_destroy_site:
    uct_helper_site_destroy(md->site);
err_destroy_thread:
    uct_helper_thread_destroy(md->thread);
err_free:
    pthread_mutex_destroy(&md->child_lock);
    free(md);
    return status;
}

ucs_status_t uct_helper_md_attach(uct_md_h uct_md, const char *md_name,
                                  const uct_helper_config_t *config)
{
    uct_helper_md_t *md = NULL;
    ucs_status_t status;

    status = uct_helper_events_check();
    if (status != UCS_OK) {
        return status;
    }

    ucs_clock_init();
    uct_helper_log_init();
    status = uct_helper_md_create(uct_md, md_name, config, &md);
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_helper_events_join(md->engine);
    if (status != UCS_OK) {
        goto err_release;
    }

    uct_helper_session_enter(md);
    uct_abi_md(uct_md)->ops = &md->ops;
    uct_helper_debug("%s: helper with policy %s", md_name,
                     uct_helper_policy_names[config->policy]);
    return UCS_OK;

err_release:
    uct_helper_md_release(md);
err:
    uct_helper_warn("%s: %s: the helper stays off", md_name,
                    ucs_status_string(status));
    return status;
}

uct_helper_engine_h uct_helper_md_engine(uct_md_h uct_md)
{
    if (uct_abi_md(uct_md)->ops->mem_reg != uct_helper_md_mem_reg) {
        return NULL;
    }

    return uct_helper_md_of(uct_md)->engine;
}

int uct_helper_md_has_thread(uct_md_h uct_md)
{
    return (uct_helper_md_engine(uct_md) != NULL) &&
           uct_helper_thread_is_running(uct_helper_md_of(uct_md)->thread);
}

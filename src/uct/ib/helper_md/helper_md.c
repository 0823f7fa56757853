/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "helper_md.h"
#include "affinity.h"
#include <uct/ib/helper_md/watch/events.h>
#include <uct/ib/helper_md/watch/monitor.h>
#include "helper_md_int.h"
#include <ucs/sys/log.h>
#include "node_process.h"
#include "session.h"
#include <uct/ib/helper_md/watch/trust.h>
#include <uct/ib/helper_md/report/trace_record.h>

#include <ucs/datastruct/linear_func.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>

#include <stdio.h>
#include <stdlib.h>

#define UCT_HELPER_MD_NOTE_MAX 128


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

/* The helper's step */

static uint64_t uct_helper_md_step(void *arg, uint64_t now)
{
    uct_helper_md_t *md = arg;
    uint64_t next, count_at;

    uct_helper_events_recheck(now);
    uct_helper_trust_step(now);
    next = uct_helper_md_visit_node(md, now);
    if (next == 0) {
        next = ucs_regcache_step(md->cache, now);
    } else {
        ucs_regcache_rested(md->cache);
    }
    /* A cache that distrusts memory has nothing to wake up for */
    return uct_helper_trust_is_near(&count_at) ? ucs_min(next, count_at) : next;
}

/* The operations */

static void uct_helper_md_bind(uct_helper_md_t *md)
{
    ucs_cpu_set_t cpus;

    /* With a ledger the helper looks for its place itself */
    if ((md->node != NULL) && (md->config.cpu_mode == UCT_HELPER_CPU_AUTO)) {
        return;
    }

    /* UCX's type and the C library's are the same bits */
    if (!uct_helper_affinity_choose(&md->config, &md->local_cpus, &cpus) ||
        (ucs_thread_bind(md->thread, (const cpu_set_t*)&cpus) == UCS_OK)) {
        return;
    }

    if (md->config.cpu_mode == UCT_HELPER_CPU_LIST) {
        ucs_helper_warn("UCX_MD_HELPER_CPU: none of the processors can be had; "
                        "the helper thread runs unbound");
    } else {
        ucs_helper_debug("the helper thread is not bound");
    }
}

/* Then whatever is registered may have to be given back */
static int uct_helper_md_has_budget(const uct_helper_md_t *md)
{
    return (md->node != NULL) && ucs_node_has_budget(md->node);
}

/* More than one thread may come here */
static void uct_helper_md_listen(uct_helper_md_t *md)
{
    if ((md->node != NULL) && !ucs_swap_acq_rel(&md->listens, 1)) {
        ucs_node_listen(md->node, 1);
    }
}

/* Small requests do not need the thread, so they do not start it */
static UCS_F_NOINLINE void uct_helper_md_settle(uct_helper_md_t *md,
                                                size_t length)
{
    ucs_status_t status;
    int cancel;

    if ((length < md->config.min_size) && !uct_helper_md_has_budget(md)) {
        return;
    }

    cancel = ucs_cancel_disable();
    status = ucs_thread_start(md->thread);
    if (status == UCS_OK) {
        uct_helper_md_bind(md);
        uct_helper_md_listen(md);
    } else {
        ucs_regcache_helper_refused(md->cache);
        uct_helper_session_note("the system refused a helper thread: "
                                "registrations were kept");
    }
    ucs_store_relaxed(&md->settled, 1);
    ucs_cancel_restore(cancel);
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_helper_md_get(uct_md_h uct_md, void *address, size_t length,
                  unsigned flags, uintptr_t sp, uct_mem_h *memh_p)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    ucs_status_t status;

    if (ucs_unlikely(!uct_helper_md_is_mine(md))) {
        uct_helper_child_enter(md);
        return md->ops.mem_reg(uct_md, address, length, flags, memh_p);
    }

    /* UCX's own pools live until finalize; they are not ours to manage */
    if (ucs_unlikely((flags & UCT_MD_MEM_FLAG_LOCK) || (length == 0))) {
        return md->lower->mem_reg(uct_md, address, length, flags, memh_p);
    }

    status = ucs_regcache_get(md->cache, address, length, flags, sp, memh_p);
    if (ucs_unlikely(status != UCS_OK)) {
        /* Nothing of ours shall be in the way, in any domain; then the domain
         * below is asked as it would be without us, and what it says is
         * final */
        if (ucs_regcache_status_is_exhausted(status)) {
            uct_helper_session_yield();
        }
        return md->lower->mem_reg(uct_md, address, length, flags, memh_p);
    }

    if (ucs_unlikely(!ucs_load_relaxed(&md->settled))) {
        uct_helper_md_settle(md, length);
    }

    return status;
}

static ucs_status_t uct_helper_md_mem_reg(uct_md_h uct_md, void *address,
                                          size_t length, unsigned flags,
                                          uct_mem_h *memh_p)
{
    return uct_helper_md_get(uct_md, address, length, flags,
                             (uintptr_t)__builtin_frame_address(0), memh_p);
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

    status = ucs_regcache_put(md->cache, full->memh, full->comp);
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

    if (ucs_unlikely(!uct_helper_md_is_mine(md))) {
        uct_helper_child_enter(md);
        return md->ops.mem_dereg(uct_md, params);
    }

    uct_helper_md_dereg_unpack(params, &full);
    if (ucs_unlikely(full.flags & UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE)) {
        return uct_helper_md_invalidate(uct_md, params, &full);
    }

    status = ucs_regcache_put(md->cache, full.memh, NULL);
    if (ucs_unlikely(status == UCS_ERR_NO_ELEM)) {
        return md->lower->mem_dereg(uct_md, params);
    }

    return status;
}

/* In the table instead of the plain one, so that that one need not ask */
static ucs_status_t
uct_helper_md_verify_mem_dereg(uct_md_h uct_md,
                               const uct_abi_md_mem_dereg_params_t *params)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    uct_abi_md_mem_dereg_params_t full;

    uct_helper_md_dereg_unpack(params, &full);
    if (full.memh != NULL) {
        md->verify(uct_md, full.memh);
    }

    return md->verified_dereg(uct_md, params);
}

/* While a trace is recorded these two are in the table instead */

static ucs_status_t
uct_helper_md_mem_reg_traced(uct_md_h uct_md, void *address, size_t length,
                             unsigned flags, uct_mem_h *memh_p)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    uintptr_t sp        = (uintptr_t)__builtin_frame_address(0);
    uint64_t now        = ucs_clock_now();
    ucs_status_t status;
    uint64_t signature;

    status = uct_helper_md_get(uct_md, address, length, flags, sp, memh_p);
    if ((status != UCS_OK) || (flags & UCT_MD_MEM_FLAG_LOCK) ||
        (length == 0) || !uct_helper_md_is_mine(md)) {
        return status;
    }

    /* Policies without a helper do not walk */
    signature = uct_helper_site_recall(md->site, sp, (uintptr_t)address,
                                       length);
    if (ucs_unlikely(signature == 0)) {
        signature = uct_helper_site_walk(md->site, sp, (uintptr_t)address,
                                         length);
    }
    uct_helper_trace_use(now, (uintptr_t)address, length,
                         flags & UCT_MD_MEM_ACCESS_ALL, signature, *memh_p);
    return UCS_OK;
}

static ucs_status_t
uct_helper_md_mem_dereg_traced(uct_md_h uct_md,
                               const uct_abi_md_mem_dereg_params_t *params)
{
    uint64_t now = ucs_clock_now();
    uct_abi_md_mem_dereg_params_t full;
    ucs_status_t status;

    /* A handle that is not the cache's was not recorded, and the recorder
     * leaves it out */
    uct_helper_md_dereg_unpack(params, &full);
    status = uct_helper_md_mem_dereg(uct_md, params);
    if ((status == UCS_OK) && uct_helper_md_is_mine(uct_helper_md_of(uct_md))) {
        uct_helper_trace_release(now, full.memh);
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

static void uct_helper_md_unwatch(uct_helper_md_t *md)
{
    if (md->watches) {
        md->watches = 0;
        uct_helper_monitor_stop();
    }
}

static void uct_helper_md_release(uct_helper_md_t *md)
{
    ucs_thread_stop(md->thread);
    if (md->node != NULL) {
        ucs_node_part(md->node, md->cache);
    }
    ucs_regcache_destroy(md->cache);
    /* Not before: who asks meanwhile waits until all has gone */
    if (ucs_load_relaxed(&md->listens)) {
        ucs_node_listen(md->node, 0);
    }
    uct_helper_site_destroy(md->site);
    ucs_thread_destroy(md->thread);
    uct_helper_node_release_process(md->node);
    free(md->topology);
    pthread_mutex_destroy(&md->child_lock);
    free(md);
}

static void uct_helper_md_close(uct_md_h uct_md)
{
    uct_helper_md_t *md           = uct_helper_md_of(uct_md);
    const uct_abi_md_ops_t *lower = md->lower;
    int cancel;

    if (!uct_helper_md_is_mine(md)) {
        uct_helper_child_enter(md);
        md->ops.close(uct_md);
        return;
    }

    cancel = ucs_cancel_disable();
    ucs_thread_stop(md->thread);
    uct_helper_session_leave(md);
    uct_helper_events_leave(md->cache);
    uct_helper_md_unwatch(md);
    uct_helper_md_release(md);
    uct_abi_md(uct_md)->ops = lower;
    ucs_cancel_restore(cancel);
    lower->close(uct_md);
}

/* Attaching */

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
    md->process     = uct_helper_session_process();
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
    status = ucs_thread_create(uct_helper_md_step, md, &md->thread);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_helper_site_create(&md->site);
    if (status != UCS_OK) {
        goto err_destroy_thread;
    }

    md->node = uct_helper_node_acquire(config);
    status   = uct_helper_md_create_cache(md);
    if (status != UCS_OK) {
        goto err_release_node;
    }

    uct_helper_md_check_marks(md);
    ucs_store_relaxed(&md->settled, !ucs_regcache_needs_helper(md->cache) &&
                                            !uct_helper_md_has_budget(md));
    *md_p = md;
    return UCS_OK;

err_release_node:
    uct_helper_node_release_process(md->node);
    uct_helper_site_destroy(md->site);
err_destroy_thread:
    ucs_thread_destroy(md->thread);
err_free:
    pthread_mutex_destroy(&md->child_lock);
    free(md);
    return status;
}

/* Said once a process */
static void uct_helper_md_no_userfaultfd(const char *reason)
{
    static _Atomic(int) said;
    char note[UCT_HELPER_MD_NOTE_MAX];

    if (ucs_swap_acq_rel(&said, 1)) {
        return;
    }

    snprintf(note, sizeof(note), "%s: memory is watched by UCX's hooks alone",
             reason);
    ucs_helper_log(UCS_LOG_LEVEL_INFO, "%s", note);
    uct_helper_session_note(note);
}

/* Without hooks the helper stays off, for the kernel alone tells too late of
 * what one thread unmaps and another one maps again */
static ucs_status_t
uct_helper_md_choose_monitor(const uct_helper_config_t *config, int *watches_p)
{
    const char *no_kernel = NULL, *no_hooks = NULL;

    if (uct_helper_events_check(&no_hooks) != UCS_OK) {
        ucs_helper_warn("%s: unmapped memory would be missed, the helper stays "
                        "off",
                        no_hooks);
        return UCS_ERR_UNSUPPORTED;
    }

    *watches_p = (config->monitor != UCT_HELPER_MONITOR_UCM) &&
                 (uct_helper_monitor_start(&no_kernel) == UCS_OK);
    if (no_kernel != NULL) {
        uct_helper_md_no_userfaultfd(no_kernel);
    }
    return UCS_OK;
}

ucs_status_t uct_helper_md_check(const uct_helper_config_t *config)
{
    int cancel = ucs_cancel_disable();
    ucs_status_t status;
    int watches;

    status = uct_helper_md_choose_monitor(config, &watches);
    if ((status == UCS_OK) && watches) {
        uct_helper_monitor_stop();
    }
    ucs_cancel_restore(cancel);
    return status;
}

static ucs_status_t uct_helper_md_decorate(uct_md_h uct_md, const char *md_name,
                                           const uct_helper_config_t *config)
{
    uct_helper_md_t *md = NULL;
    ucs_status_t status;
    int watches;

    status = uct_helper_md_choose_monitor(config, &watches);
    if (status != UCS_OK) {
        return status;
    }

    ucs_clock_init();
    ucs_helper_log_init();
    status = uct_helper_md_create(uct_md, md_name, config, &md);
    if (status != UCS_OK) {
        goto err_stop_monitor;
    }

    md->watches = watches;

    status = uct_helper_events_join(md->cache);
    if (status != UCS_OK) {
        goto err_release;
    }

    uct_helper_trust_join(md->cache);
    uct_helper_session_enter(md);
    if (ucs_load_relaxed(&uct_helper_trace_is_on)) {
        md->ops.mem_reg   = uct_helper_md_mem_reg_traced;
        md->ops.mem_dereg = uct_helper_md_mem_dereg_traced;
    }
    uct_abi_md(uct_md)->ops = &md->ops;
    ucs_helper_debug("%s: helper with policy %s", md_name,
                     ucs_regcache_policy_names[config->policy]);
    return UCS_OK;

err_release:
    uct_helper_md_release(md);
err_stop_monitor:
    if (watches) {
        uct_helper_monitor_stop();
    }
    ucs_helper_warn("%s: %s: the helper stays off", md_name,
                    ucs_status_string(status));
    return status;
}

ucs_status_t uct_helper_md_attach(uct_md_h uct_md, const char *md_name,
                                  const uct_helper_config_t *config)
{
    int cancel = ucs_cancel_disable();
    ucs_status_t status;

    status = uct_helper_md_decorate(uct_md, md_name, config);
    ucs_cancel_restore(cancel);
    return status;
}

ucs_regcache_h uct_helper_md_cache(uct_md_h uct_md)
{
    ucs_status_t (*mem_reg)(uct_md_h, void*, size_t, unsigned, uct_mem_h*) =
            uct_abi_md(uct_md)->ops->mem_reg;

    if (((mem_reg != uct_helper_md_mem_reg) &&
         (mem_reg != uct_helper_md_mem_reg_traced)) ||
        !uct_helper_md_is_mine(uct_helper_md_of(uct_md))) {
        return NULL;
    }

    return uct_helper_md_of(uct_md)->cache;
}

void uct_helper_md_set_verify(uct_md_h uct_md, uct_helper_verify_func_t verify)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);

    md->verify         = verify;
    md->verified_dereg = md->ops.mem_dereg;
    md->ops.mem_dereg  = uct_helper_md_verify_mem_dereg;
}

int uct_helper_md_is_gone(uct_md_h uct_md, uct_mem_h memh)
{
    return ucs_regcache_is_gone(uct_helper_md_of(uct_md)->cache, memh);
}

int uct_helper_md_has_thread(uct_md_h uct_md)
{
    return (uct_helper_md_cache(uct_md) != NULL) &&
           ucs_thread_is_running(uct_helper_md_of(uct_md)->thread);
}

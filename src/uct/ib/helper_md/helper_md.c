/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "helper_md.h"
#include "helper_md_int.h"
#include "session.h"
#include <ucs/sys/io/log.h>
#include <uct/ib/helper_md/report/trace_record.h>
#include <uct/ib/helper_md/watch/events.h>
#include <uct/ib/helper_md/watch/monitor.h>
#include <uct/ib/helper_md/watch/trust.h>

#include <ucs/datastruct/linear_func.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/proc/stack.h>

/*
 * The operations of a decorated domain, and how they get into its table.
 */

/* A function with the call path as its last argument. Expand in the operation
 * itself, whose frame it reads */
#define UCT_HELPER_MD_WITH_PATH(_func, ...) \
    _func(__VA_ARGS__, ucs_stack_position(__builtin_frame_address(0)))

/* UCX's own pools live until finalize. Symmetric keys and registrations of all
 * memory are not ours to manage either. */
static UCS_F_ALWAYS_INLINE int
uct_helper_md_is_managed(size_t length, unsigned flags)
{
    return ucs_likely((length != 0) && !(flags & UCT_HELPER_MD_UNMANAGED));
}

/* Below the cache, as asked: it counts as one of the device's all the same */
static UCS_F_NOINLINE ucs_status_t
uct_helper_md_get_directly(uct_helper_md_t *md, void *address, size_t length,
                           unsigned flags,
                           const uct_abi_md_mem_reg_params_t *params,
                           uct_mem_h *memh_p)
{
    ucs_status_t status = uct_abi_mem_reg_as_asked(md->lower, md->md, address,
                                                   length, flags, params,
                                                   memh_p);

    if (status == UCS_OK) {
        uct_helper_md_count(md);
    }
    return status;
}

/* The caller gave flags or, from 1.14 on, parameters. Unmanaged requests go
 * down unchanged. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_helper_md_get(uct_md_h uct_md, void *address, size_t length, unsigned flags,
                  const uct_abi_md_mem_reg_params_t *params, uct_mem_h *memh_p,
                  uintptr_t sp)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    ucs_regcache_memh_t memh;
    ucs_status_t status;

    if (ucs_unlikely(!uct_helper_md_is_mine(md))) {
        uct_helper_child_enter(md);
        return uct_abi_mem_reg_as_asked(&md->ops, uct_md, address, length,
                                        flags, params, memh_p);
    }

    if (!uct_helper_md_is_managed(length, flags)) {
        return uct_helper_md_get_directly(md, address, length, flags, params,
                                          memh_p);
    }

    if (ucs_unlikely(md->device != NULL) &&
        uct_helper_device_is_mine(md->device, address, length, params)) {
        return uct_helper_device_get(md->device, address, length, flags, params,
                                     memh_p);
    }

    status = ucs_regcache_get(md->cache, address, length, flags, sp, &memh);
    if (ucs_unlikely(status != UCS_OK)) {
        /* Drop what all domains hold idle, then ask the domain below as UCX
         * would without the helper, and return its answer. */
        if (ucs_regcache_status_is_exhausted(status)) {
            uct_helper_session_yield();
        }
        return uct_helper_md_get_directly(md, address, length, flags, params,
                                          memh_p);
    }

    *memh_p = memh;
    if (ucs_unlikely(!ucs_load_relaxed(&md->settled))) {
        uct_helper_md_settle(md, length);
    }

    return status;
}

#define UCT_HELPER_MD_GET(...) \
    UCT_HELPER_MD_WITH_PATH(uct_helper_md_get, __VA_ARGS__)

UCT_ABI_MD_MEM_REG(uct_helper_md_mem_reg, UCT_HELPER_MD_GET)

/* The handle is not the cache's: device memory, or UCX's own */
static UCS_F_NOINLINE ucs_status_t
uct_helper_md_put_other(uct_helper_md_t *md,
                        const uct_abi_md_mem_dereg_params_t *full,
                        const uct_abi_md_mem_dereg_params_t *params)
{
    ucs_status_t status = UCS_ERR_NO_ELEM;

    if (md->device != NULL) {
        status = uct_helper_device_put(md->device, full->memh, full->comp);
    }
    if (status == UCS_ERR_NO_ELEM) {
        status = md->lower->mem_dereg(md->md, params);
        if (status == UCS_OK) {
            uct_helper_md_discount(md);
        }
    }
    return status;
}

static UCS_F_NOINLINE ucs_status_t
uct_helper_md_invalidate(uct_helper_md_t *md,
                         const uct_abi_md_mem_dereg_params_t *full,
                         const uct_abi_md_mem_dereg_params_t *params)
{
    ucs_status_t status;

    if (!(md->lower_flags & UCT_ABI_MD_FLAGS_INVALIDATE)) {
        return UCS_ERR_UNSUPPORTED;
    }

    if (full->comp == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }

    status = ucs_regcache_put(md->cache, full->memh,
                              (ucs_regcache_comp_t)full->comp);
    return (status == UCS_ERR_NO_ELEM) ?
           uct_helper_md_put_other(md, full, params) : status;
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

    uct_abi_md_mem_dereg_unpack(params, &full);
    if (ucs_unlikely(full.flags & UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE)) {
        return uct_helper_md_invalidate(md, &full, params);
    }

    status = ucs_regcache_put(md->cache, full.memh, NULL);
    if (ucs_unlikely(status == UCS_ERR_NO_ELEM)) {
        /* UCP gives a completion with any; here it means nothing */
        full.comp = NULL;
        return uct_helper_md_put_other(md, &full, params);
    }

    return status;
}

/* A second table entry, so that the plain one needs no check */
static ucs_status_t
uct_helper_md_verify_mem_dereg(uct_md_h uct_md,
                               const uct_abi_md_mem_dereg_params_t *params)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    uct_abi_md_mem_dereg_params_t full;

    uct_abi_md_mem_dereg_unpack(params, &full);
    if (full.memh != NULL) {
        md->verify(uct_md, full.memh);
    }

    return md->verified_dereg(uct_md, params);
}

/* Table entries while a trace is recorded */

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_helper_md_get_traced(uct_md_h uct_md, void *address, size_t length,
                         unsigned flags,
                         const uct_abi_md_mem_reg_params_t *params,
                         uct_mem_h *memh_p, uintptr_t sp)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    uint64_t now        = ucs_clock_now();
    ucs_status_t status;

    status = uct_helper_md_get(uct_md, address, length, flags, params, memh_p,
                               sp);
    if ((status != UCS_OK) || !uct_helper_md_is_managed(length, flags) ||
        !uct_helper_md_is_mine(md) ||
        ((md->device != NULL) &&
         uct_helper_device_is_mine(md->device, address, length, params))) {
        return status;
    }

    uct_helper_trace_use(now, (uintptr_t)address, length,
                         flags & UCT_MD_MEM_ACCESS_ALL, sp, *memh_p);
    return UCS_OK;
}

#define UCT_HELPER_MD_GET_TRACED(...) \
    UCT_HELPER_MD_WITH_PATH(uct_helper_md_get_traced, __VA_ARGS__)

UCT_ABI_MD_MEM_REG(uct_helper_md_mem_reg_traced, UCT_HELPER_MD_GET_TRACED)

static ucs_status_t
uct_helper_md_mem_dereg_traced(uct_md_h uct_md,
                               const uct_abi_md_mem_dereg_params_t *params)
{
    uint64_t now = ucs_clock_now();
    uct_abi_md_mem_dereg_params_t full;
    ucs_status_t status;

    /* The recorder ignores handles that are not the cache's */
    uct_abi_md_mem_dereg_unpack(params, &full);
    status = uct_helper_md_mem_dereg(uct_md, params);
    if ((status == UCS_OK) && uct_helper_md_is_mine(uct_helper_md_of(uct_md))) {
        uct_helper_trace_release(now, full.memh);
    }
    return status;
}

/* Report a hit's cost, so that UCP chooses the same protocols as with its own
 * cache */
static ucs_status_t uct_helper_md_query(uct_md_h uct_md, void *attr)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);
    ucs_status_t status = md->lower->query(uct_md, attr);

    if (status == UCS_OK) {
        *uct_abi_md_attr_reg_cost(attr) = ucs_linear_func_make(md->hit_cost, 0);
    }
    return status;
}

static void uct_helper_md_detach(uct_md_h uct_md)
{
    uct_helper_md_t *md           = uct_helper_md_of(uct_md);
    const uct_abi_md_ops_t *lower = md->lower;
    ucs_cancel_hold();

    ucs_job_stop(md->job);
    uct_helper_session_leave(md);
    uct_helper_events_leave(md->cache);
    if (md->watches) {
        md->watches = 0;
        uct_helper_monitor_stop();
    }
    uct_helper_md_release(md);
    uct_abi_md(uct_md)->ops = lower;
}

static void uct_helper_md_close(uct_md_h uct_md)
{
    uct_helper_md_t *md = uct_helper_md_of(uct_md);

    if (uct_helper_md_is_mine(md)) {
        uct_helper_md_detach(uct_md);
    } else {
        uct_helper_child_enter(md);
    }
    uct_abi_md(uct_md)->ops->close(uct_md);
}

/* Attaching */

static void uct_helper_md_set_ops(uct_helper_md_t *md)
{
    uct_abi_md_ops_copy(&md->ops, md->lower, uct_abi_md(md->md)->component);
    md->ops.close     = uct_helper_md_close;
    md->ops.query     = uct_helper_md_query;
    md->ops.mem_dereg = uct_helper_md_mem_dereg;
    UCT_ABI_MD_SET_MEM_REG(&md->ops, uct_helper_md_mem_reg);
}

/* Without hooks the helper stays off: the kernel's event comes too late when
 * one thread unmaps memory and another maps it again */
ucs_status_t uct_helper_md_check(void)
{
    const char *reason;
    ucs_cancel_hold();

    reason = uct_helper_events_check();
    if (reason == NULL) {
        return UCS_OK;
    }
    ucs_helper_warn("%s: unmapped memory would be missed, the helper stays off",
                    reason);
    return UCS_ERR_UNSUPPORTED;
}

ucs_status_t uct_helper_md_attach(uct_md_h uct_md, const char *md_name,
                                  const uct_helper_config_t *config)
{
    uct_helper_md_t *md;
    ucs_status_t status;
    int watches;
    ucs_cancel_hold();

    if (!uct_abi_is_known()) {
        ucs_helper_warn("%s: this release of UCX is not known: the helper "
                        "stays off", md_name);
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_helper_md_check();
    if (status != UCS_OK) {
        return status;
    }

    watches = uct_helper_md_watch(config);
    ucs_clock_init();
    ucs_helper_log_init();
    status = uct_helper_md_create(uct_md, md_name, config, &md);
    if (status != UCS_OK) {
        goto err_stop_monitor;
    }

    md->watches = watches;
    uct_helper_md_set_ops(md);

    status = uct_helper_events_join(md->cache);
    if (status != UCS_OK) {
        goto err_release;
    }

    uct_helper_trust_join(md->cache);
    uct_helper_session_enter(md);
    if (ucs_load_relaxed(&uct_helper_trace_is_on)) {
        md->ops.mem_dereg = uct_helper_md_mem_dereg_traced;
        UCT_ABI_MD_SET_MEM_REG(&md->ops, uct_helper_md_mem_reg_traced);
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

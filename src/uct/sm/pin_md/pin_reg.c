/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "pin_md_int.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/io/log.h>
#include <ucs/sys/mem/own_memory.h>
#include <ucs/sys/proc/cancel.h>

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

static ucs_status_t
uct_pin_md_reg_failed(const uct_pin_md_t *pin, const void *address,
                      size_t length, unsigned flags, int error)
{
    ucs_log_level_t level = (flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) ?
                            UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_ERROR;
    struct rlimit limit   = {};

    switch (error) {
    case ENOSPC:
        ucs_helper_log_plain(level, "pin_md: registering %p length %zu: the "
                             "table of %u regions is full", address, length,
                             pin->config.max_regions);
        return UCS_ERR_NO_MEMORY;
    case EDQUOT:
        ucs_helper_log_plain(level, "pin_md: registering %p length %zu: all "
                             "processes of the node together have "
                             "UCX_MD_PIN_MAX_REGIONS=%lu registrations", address,
                             length, pin->config.node_regions);
        return UCS_ERR_NO_MEMORY;
    case ENOMEM:
        getrlimit(RLIMIT_MEMLOCK, &limit);
        ucs_helper_log_plain(level, "pin_md: registering %p length %zu: %s "
                             "(memlock limit is %lld bytes)", address, length,
                             strerror(error), (long long)limit.rlim_cur);
        return UCS_ERR_NO_MEMORY;
    default:
        ucs_helper_log_plain(level, "pin_md: registering %p length %zu: %s",
                             address, length, strerror(error));
        return UCS_ERR_IO_ERROR;
    }
}

/* As a card is lost whose driver's descriptors the program has closed. But a program
 * that closes all that it does not know goes on without us. */
static void uct_pin_md_complain(void)
{
    static _Atomic(int) said;

    if (ucs_add_relaxed(&said, 1) == 0) {
        ucs_helper_log_plain(UCS_LOG_LEVEL_WARN,
                             "pin_md: the program has closed or replaced the "
                             "software NIC's descriptors, memory is not pinned "
                             "any more");
    }
}

/* Those of processes that were killed are free again. @return 0 or -EDQUOT. */
static int uct_pin_md_claim(uct_pin_md_t *pin)
{
    if ((pin->node == NULL) || ucs_node_claim(pin->node, 1, UCS_CLAIM_USE)) {
        return 0;
    }
    (void)ucs_node_sum(pin->node); /* reaps */
    return ucs_node_claim(pin->node, 1, UCS_CLAIM_USE) ? 0 : -EDQUOT;
}

static void uct_pin_md_unclaim(uct_pin_md_t *pin)
{
    if (pin->node != NULL) {
        ucs_node_unclaim(pin->node, 1);
    }
}

static ucs_status_t uct_pin_md_pin(uct_pin_md_t *pin, void *address,
                                   size_t length, unsigned flags,
                                   uct_pin_region_t **region_p)
{
    uintptr_t mask  = pin->page_size - 1;
    uintptr_t start = (uintptr_t)address & ~mask;
    uintptr_t end   = ((uintptr_t)address + length + mask) & ~mask;
    int ret;

    if ((length == 0) || (end <= start)) {
        return UCS_ERR_INVALID_PARAM;
    }

    if (!uct_pin_md_is_owner(pin)) {
        *region_p = uct_pin_region_alloc((void*)start, end - start, 0);
        return (*region_p == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
    }

    ret = uct_pin_md_claim(pin);
    if (ret == 0) {
        ret = uct_pin_table_pin(&pin->table, (void*)start, end - start,
                                region_p);
        if (ret < 0) {
            uct_pin_md_unclaim(pin);
        }
    }
    if (ret == -EBADF) {
        uct_pin_md_complain();
        *region_p = uct_pin_region_alloc((void*)start, end - start, 0);
        return (*region_p == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
    }
    if (ret < 0) {
        return uct_pin_md_reg_failed(pin, address, length, flags, -ret);
    }

    (*region_p)->serial = ucs_add_relaxed(&pin->serial, 1) + 1;
    uct_pin_cost_wait(&pin->config, (end - start) / pin->page_size, 1);
    return UCS_OK;
}

static void uct_pin_md_unpin(uct_pin_md_t *pin, uct_pin_region_t *region)
{
    size_t length = region->length;

    if ((region->ring == NULL) || !uct_pin_md_is_owner(pin)) {
        /* Not pinned, or pinned by the parent and its to unpin */
        ucs_own_free(region);
        return;
    }

    uct_pin_table_unpin(&pin->table, region);
    uct_pin_md_unclaim(pin);
    uct_pin_cost_wait(&pin->config, length / pin->page_size,
                      UCT_PIN_COST_DEREG);
}

static ucs_status_t
uct_pin_md_register(uct_md_h md, void *address, size_t length, unsigned flags,
                    const uct_abi_md_mem_reg_params_t *params,
                    uct_mem_h *memh_p)
{
    uct_pin_md_t *pin    = uct_pin_md_find(md);
    uct_mem_h lower_memh = NULL;
    uct_pin_region_t *region;
    ucs_status_t status = UCS_OK;
    ucs_cancel_hold();

    if (pin->is_keyed) {
        status = uct_abi_mem_reg_as_asked(pin->lower, md, address, length,
                                          flags, params, &lower_memh);
    }
    if (status != UCS_OK) {
        return status;
    }

    status = uct_pin_md_pin(pin, address, length, flags, &region);
    if (status != UCS_OK) {
        goto err_lower_dereg;
    }

    region->lower_memh = lower_memh;
    *memh_p            = region;
    return UCS_OK;

err_lower_dereg:
    if (pin->is_keyed) {
        (void)uct_abi_mem_dereg(pin->lower, md, lower_memh, NULL);
    }
    return status;
}

UCT_ABI_MD_MEM_REG(uct_pin_md_mem_reg, uct_pin_md_register)

static ucs_status_t
uct_pin_md_mem_dereg(uct_md_h md, const uct_abi_md_mem_dereg_params_t *params)
{
    uct_pin_md_t *pin                          = uct_pin_md_find(md);
    uct_abi_md_mem_dereg_params_t lower_params = *params;
    uct_abi_md_mem_dereg_params_t full;
    uct_pin_difference_t difference;
    uct_pin_region_t *region;
    ucs_status_t status;
    ucs_cancel_hold();

    uct_abi_md_mem_dereg_unpack(params, &full);
    if (full.memh == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }

    if (pin->config.verify && !pin->is_delegated &&
        uct_pin_md_compare(md, full.memh, &difference)) {
        uct_pin_md_stale(md, full.memh, &difference);
    }

    /* The domain below decides about invalidation and calls the completion.
     * What it refuses stays registered, and so stays pinned. */
    region            = full.memh;
    lower_params.memh = region->lower_memh;
    status            = pin->is_keyed ?
                        pin->lower->mem_dereg(md, &lower_params) : UCS_OK;
    if (status != UCS_OK) {
        return status;
    }

    uct_pin_md_unpin(pin, region);
    if (!pin->is_keyed) {
        /* What has no keys nobody could reach */
        uct_abi_md_mem_dereg_complete(&full);
    }
    return UCS_OK;
}

/* From 1.19 on cma does not register at all, so keys are made here: they are
 * empty, for the data move through virtual addresses. The types are those of
 * the releases that need them, from 1.19 on. */

static ucs_status_t
uct_pin_md_mkey_pack(uct_md_h md, uct_mem_h memh, void *address, size_t length,
                     const void *params, void *buffer)
{
    return UCS_OK;
}

static ucs_status_t
uct_pin_md_rkey_unpack(uct_component_h component, const void *buffer,
                       const void *params, uct_rkey_t *rkey_p, void **handle_p)
{
    *rkey_p   = 0;
    *handle_p = NULL;
    return UCS_OK;
}

static ucs_status_t
uct_pin_md_rkey_compare(uct_component_h component, uct_rkey_t rkey1,
                        uct_rkey_t rkey2, const void *params, int *result_p)
{
    *result_p = (rkey1 > rkey2) - (rkey1 < rkey2);
    return UCS_OK;
}

/* The component keeps them: a key may outlive the domain */
static void uct_pin_md_make_keys(uct_pin_md_t *pin)
{
    uct_abi_component_t *component =
            (uct_abi_component_t*)uct_abi_md(pin->md)->component;

    pin->ops.mkey_pack      = (uct_abi_opaque_func_t)uct_pin_md_mkey_pack;
    component->rkey_unpack  = (uct_abi_opaque_func_t)uct_pin_md_rkey_unpack;
    component->rkey_compare = (uct_abi_opaque_func_t)uct_pin_md_rkey_compare;
}

void uct_pin_md_init_reg_ops(uct_pin_md_t *pin)
{
    pin->ops.mem_dereg = uct_pin_md_mem_dereg;
    UCT_ABI_MD_SET_MEM_REG(&pin->ops, uct_pin_md_mem_reg);
    if (!pin->is_keyed) {
        uct_pin_md_make_keys(pin);
    }
}

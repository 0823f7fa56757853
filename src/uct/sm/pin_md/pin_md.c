/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "pin_md.h"
#include "pin_cost.h"
#include "pin_table.h"
#include "pin_verify.h"

#include <uct/base/uct_abi.h>
#include <ucs/sys/cancel.h>
#include <ucs/debug/log_def.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>


/** Decorated domains in a process at most. */
#define UCT_PIN_MD_MAX_DOMAINS 64

/* Timed registrations of each size. Few where the kernel unpins late, because
 * the pages of each then count against the memlock limit for a while. */
#define UCT_PIN_MD_COST_TRIES      8
#define UCT_PIN_MD_COST_TRIES_LAZY 2

typedef struct uct_pin_md {
    uct_abi_md_ops_t       ops;        /* What the domain points at */
    const uct_abi_md_ops_t *lower;
    uct_md_h               md;
    uct_pin_config_t       config;
    ucs_linear_func_t      reg_cost;   /* Seconds over bytes */
    pid_t                  owner;      /* Only this process uses the rings */
    size_t                 page_size;
    int                    is_lazy;    /* The kernel unpins late */
    int                    is_keyed;   /* The domain below registers, too */
    _Atomic(uint64_t)      serial;     /* Of the last registration */
    int                    is_delegated; /* The end of a use is told above */
    uct_pin_table_t        table;
} uct_pin_md_t;

/* Which decorator belongs to a domain. Its table cannot tell, because another
 * decorator on top points md->ops at a table of its own. An entry with md set
 * is constant until that domain is closed, so a look-up takes no lock. */
static struct {
    _Atomic(uct_md_h)      md;
    _Atomic(uct_pin_md_t*) pin;
} uct_pin_md_entries[UCT_PIN_MD_MAX_DOMAINS];


static uct_pin_md_t *uct_pin_md_find(uct_md_h md)
{
    unsigned i;

    for (i = 0; i < UCT_PIN_MD_MAX_DOMAINS; ++i) {
        /* acquire [P-ENTRY]: pairs with uct_pin_md_publish() */
        if (ucs_load_acquire(&uct_pin_md_entries[i].md) == md) {
            return ucs_load_relaxed(&uct_pin_md_entries[i].pin);
        }
    }

    return NULL;
}

static ucs_status_t uct_pin_md_publish(uct_pin_md_t *pin)
{
    uct_pin_md_t *expected;
    unsigned i;

    for (i = 0; i < UCT_PIN_MD_MAX_DOMAINS; ++i) {
        expected = NULL;
        /* acquire [P-FREE]: pairs with uct_pin_md_unpublish(). The
         * release orders nothing: what the entry means is told by md */
        if (ucs_cas_acq_rel(&uct_pin_md_entries[i].pin, &expected, pin)) {
            /* release [P-ENTRY]: pairs with uct_pin_md_find(), which sees
             * the decorator where it finds md */
            ucs_store_release(&uct_pin_md_entries[i].md, pin->md);
            return UCS_OK;
        }
    }

    ucs_warn("pin_md: more than %d domains, memory will not be pinned",
             UCT_PIN_MD_MAX_DOMAINS);
    return UCS_ERR_EXCEEDS_LIMIT;
}

static void uct_pin_md_unpublish(uct_pin_md_t *pin)
{
    unsigned i;

    for (i = 0; i < UCT_PIN_MD_MAX_DOMAINS; ++i) {
        if (ucs_load_relaxed(&uct_pin_md_entries[i].pin) == pin) {
            ucs_store_relaxed(&uct_pin_md_entries[i].md, NULL);
            /* release [P-FREE]: pairs with uct_pin_md_publish(), so
             * that md is cleared before the reuse */
            ucs_store_release(&uct_pin_md_entries[i].pin, NULL);
        }
    }
}

static int uct_pin_md_is_owner(const uct_pin_md_t *pin)
{
    return pin->owner == getpid();
}

static void uct_pin_md_close(uct_md_h md)
{
    uct_pin_md_t *pin             = uct_pin_md_find(md);
    const uct_abi_md_ops_t *lower = pin->lower;
    int cancel                    = ucs_cancel_disable();

    assert(uct_pin_md_is_valid(md));
    uct_abi_md(md)->ops = lower;
    uct_pin_md_unpublish(pin);
    if (uct_pin_md_is_owner(pin)) {
        uct_pin_table_cleanup(&pin->table);
    } else {
        uct_pin_table_abandon(&pin->table);
    }
    free(pin);
    ucs_cancel_restore(cancel);

    lower->close(md);
}

/* NEED_MEMH makes UCP register the buffer of the side that moves the data,
 * NEED_RKEY that of its peer */
static ucs_status_t
uct_pin_md_change_attr(const uct_pin_md_t *pin, void *attr, ucs_status_t status)
{
    if (status == UCS_OK) {
        *uct_abi_md_attr_flags(attr)   |= UCT_MD_FLAG_NEED_MEMH |
                                          UCT_MD_FLAG_NEED_RKEY;
        *uct_abi_md_attr_reg_cost(attr) = pin->reg_cost;
        if (!pin->is_keyed) {
            uct_abi_md_attr_add_host(attr);
        }
    }
    return status;
}

static ucs_status_t uct_pin_md_query(uct_md_h md, uct_md_attr_t *attr)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);

    return uct_pin_md_change_attr(pin, attr, pin->lower->query(md, attr));
}

static ucs_status_t uct_pin_md_query_v2(uct_md_h md, void *attr)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);

    return uct_pin_md_change_attr(pin, attr, pin->lower->query_v2(md, attr));
}

static ucs_status_t
uct_pin_md_reg_failed(const uct_pin_md_t *pin, const void *address,
                      size_t length, unsigned flags, int error)
{
    ucs_log_level_t level = (flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) ?
                            UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_ERROR;
    struct rlimit limit   = {};

    switch (error) {
    case ENOSPC:
        ucs_log(level, "pin_md: registering %p length %zu: the table of %u "
                "regions is full", address, length, pin->config.max_regions);
        return UCS_ERR_NO_MEMORY;
    case ENOMEM:
        getrlimit(RLIMIT_MEMLOCK, &limit);
        ucs_log(level, "pin_md: registering %p length %zu: %s (memlock limit "
                "is %lld bytes)", address, length, strerror(error),
                (long long)limit.rlim_cur);
        return UCS_ERR_NO_MEMORY;
    default:
        ucs_log(level, "pin_md: registering %p length %zu: %s", address,
                length, strerror(error));
        return UCS_ERR_IO_ERROR;
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

    ret = uct_pin_table_pin(&pin->table, (void*)start, end - start, region_p);
    if (ret < 0) {
        return uct_pin_md_reg_failed(pin, address, length, flags, -ret);
    }

    (*region_p)->serial = ucs_add_relaxed(&pin->serial, 1) + 1;
    if (pin->config.verify != UCT_PIN_VERIFY_NO) {
        uct_pin_verify_mark(*region_p);
    }
    uct_pin_cost_wait(&pin->config, (end - start) / pin->page_size);
    return UCS_OK;
}

static void uct_pin_md_unpin(uct_pin_md_t *pin, uct_pin_region_t *region)
{
    size_t length = region->length;

    if ((region->ring == NULL) || !uct_pin_md_is_owner(pin)) {
        /* Not pinned, or pinned by the parent and its to unpin */
        uct_pin_region_free(region);
        return;
    }

    uct_pin_table_unpin(&pin->table, region);
    uct_pin_cost_wait_dereg(&pin->config, length / pin->page_size);
}

static ucs_status_t
uct_pin_md_register(uct_md_h md, void *address, size_t length, unsigned flags,
                    const uct_abi_md_mem_reg_params_t *params,
                    uct_mem_h *memh_p)
{
    uct_pin_md_t *pin                         = uct_pin_md_find(md);
    uct_abi_md_mem_dereg_params_t lower_dereg = {
        .field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH
    };
    uct_pin_region_t *region;
    ucs_status_t status = UCS_OK;

    if (pin->is_keyed) {
        status = uct_abi_mem_reg_as_asked(pin->lower, md, address, length,
                                          flags, params, &lower_dereg.memh);
    }
    if (status != UCS_OK) {
        return status;
    }

    status = uct_pin_md_pin(pin, address, length, flags, &region);
    if (status != UCS_OK) {
        goto err_lower_dereg;
    }

    region->lower_memh = lower_dereg.memh;
    *memh_p            = region;
    return UCS_OK;

err_lower_dereg:
    if (pin->is_keyed) {
        pin->lower->mem_dereg(md, &lower_dereg);
    }
    return status;
}

static ucs_status_t uct_pin_md_mem_reg(uct_md_h md, void *address,
                                       size_t length, unsigned flags,
                                       uct_mem_h *memh_p)
{
    int cancel = ucs_cancel_disable();
    ucs_status_t status;

    status = uct_pin_md_register(md, address, length, flags, NULL, memh_p);
    ucs_cancel_restore(cancel);
    return status;
}

static ucs_status_t
uct_pin_md_mem_reg_params(uct_md_h md, void *address, size_t length,
                          const uct_abi_md_mem_reg_params_t *params,
                          uct_mem_h *memh_p)
{
    int cancel = ucs_cancel_disable();
    ucs_status_t status;

    status = uct_pin_md_register(md, address, length,
                                 uct_abi_md_mem_reg_flags(params), params,
                                 memh_p);
    ucs_cancel_restore(cancel);
    return status;
}

/* An invalidation of what has no keys is over at once */
static void uct_pin_md_complete(const uct_abi_md_mem_dereg_params_t *params)
{
    uct_abi_md_mem_dereg_params_t full;

    uct_abi_md_mem_dereg_unpack(params, &full);
    if ((full.flags & UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE) &&
        (full.comp != NULL) && (--full.comp->count == 0)) {
        full.comp->func(full.comp);
    }
}

static ucs_status_t
uct_pin_md_deregister(uct_md_h md, const uct_abi_md_mem_dereg_params_t *params)
{
    uct_pin_md_t *pin                          = uct_pin_md_find(md);
    uct_abi_md_mem_dereg_params_t lower_params = *params;
    uct_pin_difference_t difference;
    uct_pin_region_t *region;
    ucs_status_t status;

    if (!(params->field_mask & UCT_ABI_MD_MEM_DEREG_FIELD_MEMH)) {
        return UCS_ERR_INVALID_PARAM;
    }

    if ((pin->config.verify != UCT_PIN_VERIFY_NO) && !pin->is_delegated &&
        uct_pin_md_compare(md, params->memh, &difference)) {
        uct_pin_md_stale(md, params->memh, &difference);
    }

    /* The domain below decides about invalidation and calls the completion.
     * What it refuses stays registered, and so stays pinned. */
    region            = params->memh;
    lower_params.memh = region->lower_memh;
    status            = pin->is_keyed ?
                        pin->lower->mem_dereg(md, &lower_params) : UCS_OK;
    if (status != UCS_OK) {
        return status;
    }

    uct_pin_md_unpin(pin, region);
    if (!pin->is_keyed) {
        uct_pin_md_complete(params);
    }
    return UCS_OK;
}

static ucs_status_t
uct_pin_md_mem_dereg(uct_md_h md, const uct_abi_md_mem_dereg_params_t *params)
{
    int cancel = ucs_cancel_disable();
    ucs_status_t status;

    status = uct_pin_md_deregister(md, params);
    ucs_cancel_restore(cancel);
    return status;
}

/* From 1.19 on cma does not register at all, so keys are made here: they are
 * empty, for the data move through virtual addresses. The types are those of
 * the releases that need them, from 1.19 on. */

static ucs_status_t
uct_pin_md_mkey_pack(uct_md_h md, uct_mem_h memh, void *address, size_t length,
                     const void *params, void *buffer)
{
    (void)md;
    (void)memh;
    (void)address;
    (void)length;
    (void)params;
    (void)buffer;
    return UCS_OK;
}

static ucs_status_t
uct_pin_md_rkey_unpack(uct_component_h component, const void *buffer,
                       const void *params, uct_rkey_t *rkey_p, void **handle_p)
{
    (void)component;
    (void)buffer;
    (void)params;
    *rkey_p   = 0;
    *handle_p = NULL;
    return UCS_OK;
}

static ucs_status_t
uct_pin_md_rkey_compare(uct_component_h component, uct_rkey_t rkey1,
                        uct_rkey_t rkey2, const void *params, int *result_p)
{
    (void)component;
    (void)params;
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

static void uct_pin_md_init_ops(uct_pin_md_t *pin)
{
    /* Slots that are not replaced go to the domain below as they are: cma's
     * mkey_pack() and the like do not look at a memory handle */
    uct_abi_md_ops_copy(&pin->ops, pin->lower, uct_abi_md(pin->md)->component);
    pin->ops.close     = uct_pin_md_close;
    pin->ops.mem_dereg = uct_pin_md_mem_dereg;
    if (uct_abi_running->has_reg_params) {
        pin->ops.query_v2       = uct_pin_md_query_v2;
        pin->ops.mem_reg_params = uct_pin_md_mem_reg_params;
    } else {
        pin->ops.query   = uct_pin_md_query;
        pin->ops.mem_reg = uct_pin_md_mem_reg;
    }
    if (!pin->is_keyed) {
        uct_pin_md_make_keys(pin);
    }
}

static uct_pin_md_t *uct_pin_md_alloc(uct_md_h md,
                                      const uct_pin_config_t *config)
{
    uct_pin_md_t *pin = calloc(1, sizeof(*pin));

    if (pin == NULL) {
        return NULL;
    }

    pin->md        = md;
    pin->lower     = uct_abi_md(md)->ops;
    pin->config    = *config;
    pin->owner     = getpid();
    pin->page_size = sysconf(_SC_PAGESIZE);
    if ((config->max_regions == 0) ||
        (config->max_regions > UCT_PIN_MD_MAX_REGIONS)) {
        pin->config.max_regions = UCT_PIN_MD_MAX_REGIONS;
    }
    return pin;
}

static ucs_status_t uct_pin_md_init_lower(uct_pin_md_t *pin)
{
    uct_abi_md_attr_t attr;
    ucs_status_t status;

    status = uct_abi_md_query(pin->lower, pin->md, &attr);
    if (status == UCS_OK) {
        pin->is_keyed = !!(attr.flags & UCT_MD_FLAG_REG);
        uct_pin_md_init_ops(pin);
    }
    return status;
}

static void uct_pin_md_calibrate(uct_pin_md_t *pin)
{
    pin->is_lazy = uct_pin_cost_is_lazy(&pin->table);
    if (pin->is_lazy) {
        ucs_diag("pin_md: this kernel releases pinned pages up to a second "
                 "after their deregistration, VmPin will lag");
    }

    if (pin->config.told_ns > 0) {
        pin->reg_cost = ucs_linear_func_make(pin->config.told_ns * 1e-9, 0);
        return;
    }

    pin->reg_cost = uct_pin_cost_measure(&pin->table, &pin->config,
                                         pin->is_lazy ?
                                         UCT_PIN_MD_COST_TRIES_LAZY :
                                         UCT_PIN_MD_COST_TRIES);
}

static unsigned uct_pin_md_ring_flags(const uct_pin_config_t *config)
{
    return (config->verify == UCT_PIN_VERIFY_NO) ? 0 : UCT_PIN_RING_FLAG_VIEW;
}

static ucs_status_t uct_pin_md_decorate(uct_md_h md,
                                        const uct_pin_config_t *config)
{
    ucs_status_t status;
    uct_pin_md_t *pin;

    /* Written so that a NaN fails too */
    if (!(config->cost_base_ns >= 0) || !(config->cost_per_page_ns >= 0) ||
        !(config->told_ns >= 0)) {
        return UCS_ERR_INVALID_PARAM;
    }

    if (uct_pin_md_is_attached(md)) {
        return UCS_ERR_ALREADY_EXISTS;
    }

    if (!uct_abi_is_known()) {
        ucs_warn("pin_md: this release of UCX is not known, memory will not be "
                 "pinned");
        return UCS_ERR_UNSUPPORTED;
    }

    pin = uct_pin_md_alloc(md, config);
    if (pin == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_pin_md_init_lower(pin);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_pin_table_init(&pin->table, pin->config.max_regions,
                                uct_pin_md_ring_flags(&pin->config));
    if (status != UCS_OK) {
        goto err_free;
    }

    uct_pin_md_calibrate(pin);
    if (config->verify != UCT_PIN_VERIFY_NO) {
        uct_pin_verify_init();
    }
    status = uct_pin_md_publish(pin);
    if (status != UCS_OK) {
        goto err_table_cleanup;
    }

    uct_abi_md(md)->ops = &pin->ops;
    return UCS_OK;

err_table_cleanup:
    uct_pin_table_cleanup(&pin->table);
err_free:
    free(pin);
    return status;
}

ucs_status_t uct_pin_md_attach(uct_md_h md, const uct_pin_config_t *config)
{
    int cancel = ucs_cancel_disable();
    ucs_status_t status;

    status = uct_pin_md_decorate(md, config);
    ucs_cancel_restore(cancel);
    return status;
}

int uct_pin_md_is_attached(uct_md_h md)
{
    return uct_pin_md_find(md) != NULL;
}

size_t uct_pin_md_pinned_bytes(uct_md_h md)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);

    return ((pin == NULL) || !uct_pin_md_is_owner(pin)) ?
           0 : uct_pin_table_bytes(&pin->table);
}

int uct_pin_md_is_valid(uct_md_h md)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);

    return (pin == NULL) || !uct_pin_md_is_owner(pin) ||
           uct_pin_table_is_valid(&pin->table);
}

const uct_pin_config_t *uct_pin_md_config(uct_md_h md)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);

    return (pin == NULL) ? NULL : &pin->config;
}

int uct_pin_md_is_lazy(uct_md_h md)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);

    return (pin != NULL) && pin->is_lazy;
}

void uct_pin_md_delegate_verify(uct_md_h md)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);

    if (pin != NULL) {
        pin->is_delegated = 1;
    }
}

/* The pinned region of a handle, NULL if there is nothing to look at */
static uct_pin_region_t *uct_pin_md_visible(const uct_pin_md_t *pin,
                                            uct_mem_h memh)
{
    uct_pin_region_t *region = memh;

    return ((pin != NULL) && (pin->config.verify != UCT_PIN_VERIFY_NO) &&
            uct_pin_md_is_owner(pin) && (region->ring != NULL)) ?
           region : NULL;
}

int uct_pin_md_compare(uct_md_h md, uct_mem_h memh,
                       uct_pin_difference_t *difference)
{
    uct_pin_md_t *pin        = uct_pin_md_find(md);
    uct_pin_region_t *region = uct_pin_md_visible(pin, memh);
    int cancel, differs;

    if (region == NULL) {
        return 0;
    }

    cancel  = ucs_cancel_disable();
    differs = uct_pin_verify_compare(region, pin->config.verify,
                                     pin->page_size, difference);
    ucs_cancel_restore(cancel);
    return differs;
}

void uct_pin_md_history(uct_md_h md, uct_mem_h memh, char *text, size_t max)
{
    uct_pin_region_t *region = uct_pin_md_visible(uct_pin_md_find(md), memh);

    if (region == NULL) {
        snprintf(text, max, "not pinned by this process");
        return;
    }

    uct_pin_verify_history(region, text, max);
}

void uct_pin_md_stale(uct_md_h md, uct_mem_h memh,
                      const uct_pin_difference_t *difference)
{
    char history[512];

    uct_pin_md_history(md, memh, history, sizeof(history));
    ucs_error("pin_md: stale registration: the byte at %p is 0x%02x through "
              "the registration and 0x%02x through the virtual address; %s",
              (void*)difference->address, difference->seen, difference->shown,
              history);
    abort();
}

/* @return UCS_OK if the range lies within the registered pages */
static ucs_status_t uct_pin_md_check_range(const uct_pin_region_t *region,
                                           uintptr_t address, size_t length)
{
    uintptr_t start = (uintptr_t)((region != NULL) ? region->address : NULL);

    if (region == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    return ((address < start) || (length > region->length) ||
            (address - start > region->length - length)) ?
           UCS_ERR_INVALID_PARAM : UCS_OK;
}

static ucs_status_t
uct_pin_md_copy(uct_md_h md, uct_mem_h memh, uct_pin_view_way_t way,
                uintptr_t address, void *data, size_t length)
{
    uct_pin_region_t *region = uct_pin_md_visible(uct_pin_md_find(md), memh);
    ucs_status_t status      = uct_pin_md_check_range(region, address, length);
    int cancel, ret;

    if (status != UCS_OK) {
        return status;
    }

    cancel = ucs_cancel_disable();
    ret    = uct_pin_region_copy(region, way,
                                 address - (uintptr_t)region->address, data,
                                 length);
    ucs_cancel_restore(cancel);
    return (ret == 0) ? UCS_OK : UCS_ERR_IO_ERROR;
}

ucs_status_t uct_pin_md_read(uct_md_h md, uct_mem_h memh, uintptr_t address,
                             void *data, size_t length)
{
    return uct_pin_md_copy(md, memh, UCT_PIN_VIEW_READ, address, data, length);
}

ucs_status_t uct_pin_md_write(uct_md_h md, uct_mem_h memh, uintptr_t address,
                              const void *data, size_t length)
{
    return uct_pin_md_copy(md, memh, UCT_PIN_VIEW_WRITE, address, (void*)data,
                           length);
}

uint64_t uct_pin_md_serial(uct_mem_h memh)
{
    return ((uct_pin_region_t*)memh)->serial;
}

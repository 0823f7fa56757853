/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "pin_md_int.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/proc/cancel.h>
#include <ucs/sys/mem/own_memory.h>

#include <limits.h>
#include <stdlib.h>

/* More regions than those of so many domains are written over */
#define UCT_PIN_MD_DOMAINS 64

/* A ledger of its own, which the helper does not know */
static ucs_status_t uct_pin_md_open_node(uct_pin_md_t *pin)
{
    char error[512] = "the ledger's name is not valid";
    char name[NAME_MAX];
    ucs_node_params_t params = {
        .name   = name,
        .budget = pin->config.node_regions,
        .ram    = UCT_PIN_MD_MAX_REGIONS * UCT_PIN_MD_DOMAINS,
        .goes   = 1,
        .now    = ucs_clock_now
    };
    ucs_status_t status;

    if (pin->config.node_regions == 0) {
        return UCS_OK;
    }
    status = ucs_ledger_name(getenv(UCS_NODE_SUFFIX_ENV), name, sizeof(name));
    if (status == UCS_OK) {
        ucs_ledger_name_device("software-nic", name, sizeof(name));
        status = ucs_node_open(&params, &pin->node, error, sizeof(error));
    }
    if (status != UCS_OK) {
        ucs_warn("pin_md: UCX_MD_PIN_MAX_REGIONS: %s; memory will not be pinned",
                 error);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

static void uct_pin_md_close(uct_md_h md)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);
    ucs_cancel_hold();

    uct_abi_md(md)->ops = pin->lower;
    uct_pin_md_unpublish(pin);
    if (uct_pin_md_is_owner(pin)) {
        uct_pin_table_cleanup(&pin->table);
        ucs_node_close(pin->node);
    } else {
        uct_pin_table_abandon(&pin->table);
    }
    ucs_own_free(pin);
    uct_abi_md(md)->ops->close(md);
}

/* NEED_MEMH makes UCP register the buffer of the side that moves the data,
 * NEED_RKEY that of its peer */
static ucs_status_t uct_pin_md_query(uct_md_h md, void *attr)
{
    uct_pin_md_t *pin   = uct_pin_md_find(md);
    ucs_status_t status = pin->lower->query(md, attr);

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

static void uct_pin_md_init_ops(uct_pin_md_t *pin)
{
    /* Slots that are not replaced go to the domain below as they are: cma's
     * mkey_pack() and the like do not look at a memory handle */
    uct_abi_md_ops_copy(&pin->ops, pin->lower, uct_abi_md(pin->md)->component);
    pin->ops.close = uct_pin_md_close;
    pin->ops.query = uct_pin_md_query;
    uct_pin_md_init_reg_ops(pin);
}

static uct_pin_md_t *uct_pin_md_alloc(uct_md_h md,
                                      const uct_pin_config_t *config)
{
    uct_pin_md_t *pin = ucs_own_alloc(sizeof(*pin));

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

static ucs_status_t uct_pin_md_may_decorate(uct_md_h md,
                                            const uct_pin_config_t *config)
{
    /* Written so that a NaN fails too */
    if (!(config->cost_base_ns >= 0) || !(config->cost_per_page_ns >= 0) ||
        !(config->told_ns >= 0)) {
        return UCS_ERR_INVALID_PARAM;
    }

    if (uct_pin_md_find(md) != NULL) {
        return UCS_ERR_ALREADY_EXISTS;
    }

    if (!uct_abi_is_known()) {
        ucs_warn("pin_md: this release of UCX is not known, memory will not be "
                 "pinned");
        return UCS_ERR_UNSUPPORTED;
    }

    return UCS_OK;
}

ucs_status_t uct_pin_md_attach(uct_md_h md, const uct_pin_config_t *config)
{
    ucs_status_t status;
    uct_pin_md_t *pin;
    ucs_cancel_hold();

    status = uct_pin_md_may_decorate(md, config);
    if (status != UCS_OK) {
        return status;
    }

    pin = uct_pin_md_alloc(md, config);
    if (pin == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_pin_md_init_lower(pin);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_pin_md_open_node(pin);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_pin_table_init(&pin->table, pin->config.max_regions,
                                pin->config.verify);
    if (status != UCS_OK) {
        goto err_close_node;
    }

    pin->reg_cost = (pin->config.told_ns > 0) ?
                            ucs_linear_func_make(pin->config.told_ns * 1e-9, 0) :
                            uct_pin_cost_measure(&pin->table, &pin->config);
    status = uct_pin_md_publish(pin);
    if (status != UCS_OK) {
        goto err_table_cleanup;
    }

    uct_abi_md(md)->ops = &pin->ops;
    return UCS_OK;

err_table_cleanup:
    uct_pin_table_cleanup(&pin->table);
err_close_node:
    ucs_node_close(pin->node);
err_free:
    ucs_own_free(pin);
    return status;
}

void uct_pin_md_delegate_verify(uct_md_h md)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);

    if (pin != NULL) {
        pin->is_delegated = 1;
    }
}

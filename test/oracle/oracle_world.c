/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"

#include <ucs/sys/clock.h>
#include <uct/ib/helper_md/helper_md.h>

#include <stdlib.h>
#include <string.h>

/* So that slots fall on both sides, into the managed class and into the small
 * leave-pinned cache */
#define ORACLE_MIN_SIZE 8192

/* Of the policies with a ceiling: less than the slots of two workers */
#define ORACLE_LRU_CEILING (512ul << 10)

/* The domain at the bottom registers nothing: pin_md does */

static void oracle_md_close(uct_md_h md)
{
}

static ucs_status_t oracle_md_query(uct_md_h md, void *to)
{
    uct_md_attr_t *attr = to;

    memset(attr, 0, sizeof(*attr));
    attr->cap.flags         = UCT_MD_FLAG_REG;
    attr->cap.reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    return UCS_OK;
}

static ucs_status_t oracle_md_mem_reg(uct_md_h md, void *address,
                                      size_t length, unsigned flags,
                                      uct_mem_h *memh_p)
{
    *memh_p = md;
    return UCS_OK;
}

static ucs_status_t
oracle_md_mem_dereg(uct_md_h md, const uct_abi_md_mem_dereg_params_t *params)
{
    return UCS_OK;
}

static const uct_abi_md_ops_t oracle_md_ops = {
    .close     = oracle_md_close,
    .query     = oracle_md_query,
    .mem_reg   = oracle_md_mem_reg,
    .mem_dereg = oracle_md_mem_dereg
};

uct_md_h oracle_md(oracle_world_t *world)
{
    return (uct_md_h)&world->super;
}

oracle_world_t *oracle_world_open(ucs_regcache_policy_t policy,
                                  uct_helper_monitor_t monitor,
                                  ucs_regcache_cover_kind_t coalesce)
{
    const uct_pin_config_t pin_config = {.verify = 1};
    const uct_helper_config_t config  = {
             .policy          = policy,
             .monitor         = monitor,
             .coalesce        = coalesce,
             .min_size        = ORACLE_MIN_SIZE,
             .max_pinned      = ((policy == UCS_REGCACHE_POLICY_LRU) ||
                                 (policy == UCS_REGCACHE_POLICY_OVERLAP)) ?
                                        ORACLE_LRU_CEILING :
                                        SIZE_MAX,
             .max_regions     = ULONG_MAX,
             .node_max_pinned = SIZE_MAX,
             .cpu_mode        = UCT_HELPER_CPU_INHERIT,
             .cpu_policy      = UCT_HELPER_CPU_POLICY_AGGRESSIVE,
             .log_level       = UCS_LOG_LEVEL_WARN};
    oracle_world_t *world = calloc(1, sizeof(*world));

    if (world == NULL) {
        oracle_die("out of memory");
    }

    strcpy(world->component.name, "oracle");
    world->super.ops       = &oracle_md_ops;
    world->super.component = (uct_component_h)&world->component;
    if (uct_pin_md_attach(oracle_md(world), &pin_config) != UCS_OK) {
        oracle_die("io_uring registered buffers cannot be had");
    }
    uct_pin_md_delegate_verify(oracle_md(world));
    world->pin_ops = world->super.ops;
    if (uct_helper_md_attach(oracle_md(world), "oracle", &config) != UCS_OK) {
        oracle_die("the helper does not attach");
    }
    return world;
}

void oracle_world_close(oracle_world_t *world, ucs_regcache_stats_t *stats)
{
    uct_md_h md = oracle_md(world);

    ucs_regcache_stats(uct_helper_md_cache(md), ucs_clock_now(), stats);
    if (!uct_pin_md_is_valid(md)) {
        oracle_die("the table of pins is damaged");
    }
    world->super.ops->close(md);
    free(world);
}

static uct_mem_h oracle_reg(const uct_abi_md_ops_t *ops, uct_md_h md,
                            void *address, size_t length, unsigned access)
{
    uct_mem_h memh;

    if (ops->mem_reg(md, address, length, access, &memh) != UCS_OK) {
        oracle_die("a registration was refused");
    }
    return memh;
}

static void oracle_dereg(const uct_abi_md_ops_t *ops, uct_md_h md,
                         uct_mem_h memh)
{
    const uct_abi_md_mem_dereg_params_t params = {
        .field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH,
        .memh       = memh
    };

    if (ops->mem_dereg(md, &params) != UCS_OK) {
        oracle_die("a deregistration was refused");
    }
}

uct_mem_h oracle_get(oracle_world_t *world, void *address, size_t length)
{
    return oracle_get_access(world, address, length, UCT_MD_MEM_ACCESS_ALL);
}

uct_mem_h oracle_get_access(oracle_world_t *world, void *address,
                            size_t length, unsigned access)
{
    return oracle_reg(world->super.ops, oracle_md(world), address, length,
                      access);
}

int oracle_is_refused(oracle_world_t *world, void *address, size_t length)
{
    uct_mem_h memh;

    if (world->super.ops->mem_reg(oracle_md(world), address, length,
                                  UCT_MD_MEM_ACCESS_ALL |
                                  UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh) !=
        UCS_OK) {
        return 1;
    }
    oracle_put(world, memh);
    return 0;
}

void oracle_put(oracle_world_t *world, uct_mem_h memh)
{
    oracle_dereg(world->super.ops, oracle_md(world), memh);
}

uct_mem_h oracle_lower_get(oracle_world_t *world, void *address, size_t length)
{
    return oracle_reg(world->pin_ops, oracle_md(world), address, length,
                      UCT_MD_MEM_ACCESS_ALL);
}

void oracle_lower_put(oracle_world_t *world, uct_mem_h memh)
{
    oracle_dereg(world->pin_ops, oracle_md(world), memh);
}

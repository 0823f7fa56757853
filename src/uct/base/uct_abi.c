/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "uct_abi.h"

#include <ucp/api/ucp.h>

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#define UCT_ABI_UCP_LIBRARY "libucp.so.0"

/* The component whose domains have a larger table */
#define UCT_ABI_IB "ib"

#define UCT_ABI_REG_METHODS_ODP "rcache,odp,direct"
#define UCT_ABI_REG_METHODS     "rcache,direct"

/* IB's own cache reports the first (uct_md_rcache_overhead()); UCP assumes the
 * second for its own (UCP_RCACHE_OVERHEAD_DEFAULT) */
#define UCT_ABI_HIT_COST_IB  180e-9
#define UCT_ABI_HIT_COST_UCP 50e-9

/* What has stayed since */
#define UCT_ABI_FROM_16 \
    .num_ib_slots = 1, .has_reg_params = 1, .attr_flags = 24, \
    .attr_reg_mem_types = 32, .attr_cache_mem_types = 48, \
    .component_list = 200, .has_config_entry = 1, \
    .hit_cost = UCT_ABI_HIT_COST_UCP, .hit_cost_proto = UCT_ABI_HIT_COST_UCP
#define UCT_ABI_FROM_18 \
    UCT_ABI_FROM_16, .attr_reg_cost = 96, .attr_local_cpus = 136, \
    .config_field = 88

/*
 * One row for each stretch of releases whose layouts are the same, read from
 * the tag that is named, and compared with those in between: uct_md.h,
 * uct_component.h and uct_md.c of src/uct/base, uct_v2.h of src/uct/api/v2,
 * ib_md.h of src/uct/ib/base, parser.h of src/ucs/config.
 *
 * 1.14 takes parameters and version 2 of the attributes, and has one slot more
 * (mem_attach, before is_sockaddr_accessible, which 1.16 takes away again).
 * 1.15 reads options by table entry, which got a field. 1.16 has rkey_compare
 * in the component, a derived table in IB (one entry behind the slots) and
 * UCP's cache instead of IB's; 1.17 a function more in an option's parser;
 * 1.18 gva_mem_types among the attributes; 1.21 mem_elem_pack; 1.22 the type of
 * memory among the parameters; 1.23 (tag: the main branch of August 2026)
 * mem_elem_release.
 */
static const uct_abi_t uct_abi_rows[] = {
    {.minor_min = 13, .minor_max = 13, .tag = "v1.13.1",
     .num_slots = 11, .num_ib_slots = 0,
     .attr_flags = 16, .attr_reg_mem_types = 24,
     .attr_reg_cost = 56, .attr_local_cpus = 96, .attr_size = 224,
     .component_list = 176, .config_field = 80,
     .reg_methods = UCT_ABI_REG_METHODS_ODP,
     .hit_cost = UCT_ABI_HIT_COST_IB, .hit_cost_proto = UCT_ABI_HIT_COST_IB},

    {.minor_min = 14, .minor_max = 14, .tag = "v1.14.1",
     .num_slots = 12, .num_ib_slots = 0, .has_reg_params = 1,
     .attr_flags = 24, .attr_reg_mem_types = 32, .attr_cache_mem_types = 40,
     .attr_reg_cost = 80, .attr_local_cpus = 120, .attr_size = 512,
     .component_list = 176, .config_field = 80,
     .reg_methods = UCT_ABI_REG_METHODS_ODP,
     .hit_cost = UCT_ABI_HIT_COST_IB, .hit_cost_proto = UCT_ABI_HIT_COST_IB},

    {.minor_min = 15, .minor_max = 15, .tag = "v1.15.0",
     .num_slots = 12, .num_ib_slots = 0, .has_reg_params = 1,
     .attr_flags = 24, .attr_reg_mem_types = 32, .attr_cache_mem_types = 48,
     .attr_reg_cost = 88, .attr_local_cpus = 128, .attr_size = 520,
     .component_list = 192, .has_config_entry = 1, .config_field = 80,
     .reg_methods = UCT_ABI_REG_METHODS,
     .hit_cost = UCT_ABI_HIT_COST_IB, .hit_cost_proto = UCT_ABI_HIT_COST_UCP},

    {.minor_min = 16, .minor_max = 16, .tag = "v1.16.0", UCT_ABI_FROM_16,
     .num_slots = 11, .attr_reg_cost = 88, .attr_local_cpus = 128,
     .attr_size = 528, .config_field = 80},

    {.minor_min = 17, .minor_max = 17, .tag = "v1.17.0", UCT_ABI_FROM_16,
     .num_slots = 11, .attr_reg_cost = 88, .attr_local_cpus = 128,
     .attr_size = 528, .config_field = 88},

    {.minor_min = 18, .minor_max = 20, .tag = "v1.18.1", UCT_ABI_FROM_18,
     .num_slots = 11, .attr_size = 536},

    {.minor_min = 21, .minor_max = 21, .tag = "v1.21.0", UCT_ABI_FROM_18,
     .num_slots = 12, .attr_size = 536},

    {.minor_min = 22, .minor_max = 22, .tag = "v1.22.0", UCT_ABI_FROM_18,
     .num_slots = 12, .attr_size = 544, .has_reg_mem_type = 1},

    {.minor_min = 23, .minor_max = 23, .tag = "9466d104a3", UCT_ABI_FROM_18,
     .num_slots = 13, .attr_size = 544, .has_reg_mem_type = 1}
};

#define UCT_ABI_NUM_ROWS (sizeof(uct_abi_rows) / sizeof(uct_abi_rows[0]))

const uct_abi_t *uct_abi_running;

/* An MPI may have loaded UCX outside the global scope, so the library is looked
 * up by name. Its handle is released, so that a program can still unload
 * libucp; a library that was loaded for this stays, for it may have left
 * pointers to itself elsewhere. */
static void uct_abi_version_ask(uct_abi_version_t *version, int dlopen_flags)
{
    __typeof__(&ucp_get_version) get_version;
    __typeof__(&ucp_get_version_string) get_string;
    unsigned release;
    void *handle;

    version->major = 0;
    version->minor = 0;
    snprintf(version->text, sizeof(version->text), "unknown");

    handle = dlopen(UCT_ABI_UCP_LIBRARY, RTLD_LAZY | dlopen_flags);
    if (handle == NULL) {
        return;
    }

    get_version = dlsym(handle, "ucp_get_version");
    get_string  = dlsym(handle, "ucp_get_version_string");
    if ((get_version != NULL) && (get_string != NULL)) {
        get_version(&version->major, &version->minor, &release);
        snprintf(version->text, sizeof(version->text), "%s", get_string());
    }
    if (dlopen_flags & RTLD_NOLOAD) {
        dlclose(handle);
    }
}

void uct_abi_version_get(uct_abi_version_t *version)
{
    uct_abi_version_ask(version, RTLD_NOLOAD);
}

const uct_abi_t *uct_abi_row(unsigned index)
{
    return (index < UCT_ABI_NUM_ROWS) ? &uct_abi_rows[index] : NULL;
}

const uct_abi_t *uct_abi_find(unsigned major, unsigned minor)
{
    const uct_abi_t *abi;
    unsigned i;

    for (i = 0; (abi = uct_abi_row(i)) != NULL; ++i) {
        if ((major == UCT_ABI_MAJOR) && (minor >= abi->minor_min) &&
            (minor <= abi->minor_max)) {
            return abi;
        }
    }

    return NULL;
}

void uct_abi_select(const uct_abi_t *abi)
{
    uct_abi_running = abi;
}

int uct_abi_is_known(void)
{
    uct_abi_version_t version;

    if (uct_abi_running == NULL) {
        uct_abi_version_ask(&version, 0);
        uct_abi_select(uct_abi_find(version.major, version.minor));
    }

    return uct_abi_running != NULL;
}

ucs_status_t uct_abi_md_query(const uct_abi_md_ops_t *ops, uct_md_h md,
                              uct_abi_md_attr_t *attr)
{
    const uct_abi_t *abi = uct_abi_running;
    union {
        uint64_t field_mask; /* the first one, from 1.14 on */
        char     room[UCT_ABI_MD_ATTR_MAX];
    } full;
    ucs_status_t status;

    memset(&full, 0, sizeof(full));
    if (abi->has_reg_params) {
        full.field_mask = UINT64_MAX;
    }
    status = ops->query(md, &full);
    if (status != UCS_OK) {
        return status;
    }

    memcpy(&attr->flags, full.room + abi->attr_flags, sizeof(attr->flags));
    memcpy(&attr->reg_mem_types, full.room + abi->attr_reg_mem_types,
           sizeof(attr->reg_mem_types));
    memcpy(&attr->reg_cost, full.room + abi->attr_reg_cost,
           sizeof(attr->reg_cost));
    memcpy(&attr->local_cpus, full.room + abi->attr_local_cpus,
           sizeof(attr->local_cpus));
    return UCS_OK;
}

void uct_abi_md_ops_copy(uct_abi_md_ops_t *dst, const uct_abi_md_ops_t *src,
                         uct_component_h component)
{
    unsigned num_slots = uct_abi_running->num_slots;

    if (!strcmp(uct_abi_component_name(component), UCT_ABI_IB)) {
        num_slots += uct_abi_running->num_ib_slots;
    }

    memset(dst, 0, sizeof(*dst));
    memcpy(dst, src, num_slots * sizeof(uct_abi_opaque_func_t));
}

ucs_status_t uct_abi_mem_reg_flags(const uct_abi_md_ops_t *ops, uct_md_h md,
                                   void *address, size_t length,
                                   unsigned flags, uct_mem_h *memh_p)
{
    const uct_abi_t *abi               = uct_abi_running;
    uct_abi_md_mem_reg_params_t params = {
        .field_mask = UCT_ABI_MD_MEM_REG_FIELD_FLAGS,
        .flags      = flags,
        .dmabuf_fd  = -1,
        .mem_type   = UCS_MEMORY_TYPE_HOST
    };

    if (!abi->has_reg_params) {
        return ops->mem_reg(md, address, length, flags, memh_p);
    }

    if (abi->has_reg_mem_type) {
        params.field_mask |= UCT_ABI_MD_MEM_REG_FIELD_MEM_TYPE;
    }
    return ops->mem_reg_params(md, address, length, &params, memh_p);
}

ucs_status_t uct_abi_mem_dereg(const uct_abi_md_ops_t *ops, uct_md_h md,
                               uct_mem_h memh, uct_completion_t *comp)
{
    uct_abi_md_mem_dereg_params_t params = {
        .field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH,
        .memh       = memh,
        .comp       = comp
    };

    if (comp != NULL) {
        params.field_mask |= UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS |
                             UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION;
        params.flags       = UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE;
    }
    return ops->mem_dereg(md, &params);
}

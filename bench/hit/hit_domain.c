/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hit_bench.h"

#include <uct/ib/helper_md/helper_md.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

static bench_domain_t *bench_domain_from_md(uct_md_h md)
{
    return (bench_domain_t*)md;
}

static void bench_lower_close(uct_md_h md)
{
    /* The memory belongs to bench_domain_close() */
}

/* In the layout of the running UCX */
static ucs_status_t bench_lower_query(uct_md_h md, void *attr)
{
    memset(attr, 0, uct_abi_running->attr_size);
    *uct_abi_md_attr_flags(attr) |= UCT_MD_FLAG_NEED_MEMH;
    uct_abi_md_attr_add_host(attr);
    return UCS_OK;
}

static void bench_lower_nap(bench_domain_t *domain)
{
    struct timespec nap = {
        .tv_sec  = (time_t)(domain->params.slow_ns / 1000000000ul),
        .tv_nsec = (long)(domain->params.slow_ns % 1000000000ul)
    };

    /* relaxed: tells a sampler which class a hit belongs to, orders nothing */
    ucs_add_relaxed(&domain->slow_seq, 1);
    nanosleep(&nap, NULL);
    ucs_add_relaxed(&domain->slow_seq, 1);
}

static ucs_status_t bench_lower_mem_reg(uct_md_h md, void *address,
                                        size_t length, unsigned flags,
                                        uct_mem_h *memh_p)
{
    bench_domain_t *domain = bench_domain_from_md(md);

    ucs_add_relaxed(&domain->num_regs, 1);
    if (length >= domain->params.slow_length) {
        bench_lower_nap(domain);
    }

    /* Any value that is not UCT_MEM_HANDLE_NULL */
    *memh_p = address;
    return UCS_OK;
}

static ucs_status_t
bench_lower_mem_reg_params(uct_md_h md, void *address, size_t length,
                           const uct_abi_md_mem_reg_params_t *params,
                           uct_mem_h *memh_p)
{
    return bench_lower_mem_reg(md, address, length, 0, memh_p);
}

static ucs_status_t
bench_lower_mem_dereg(uct_md_h md, const uct_abi_md_mem_dereg_params_t *params)
{
    return UCS_OK;
}

static bench_domain_t *bench_lower_open(const bench_domain_params_t *params)
{
    bench_domain_t *domain = calloc(1, sizeof(*domain));

    if (domain == NULL) {
        return NULL;
    }

    strcpy(domain->component.name, "bench");
    domain->ops.close       = bench_lower_close;
    domain->ops.query       = bench_lower_query;
    if (uct_abi_running->has_reg_params) {
        domain->ops.mem_reg_params = bench_lower_mem_reg_params;
    } else {
        domain->ops.mem_reg = bench_lower_mem_reg;
    }
    domain->ops.mem_dereg   = bench_lower_mem_dereg;
    domain->super.ops       = &domain->ops;
    domain->super.component = (uct_component_h)&domain->component;
    domain->params          = *params;
    return domain;
}

ucs_status_t bench_domain_open(const bench_domain_params_t *params,
                               bench_domain_t **domain_p)
{
    uct_helper_config_t *config;
    bench_domain_t *domain;
    ucs_status_t status;

    if (!uct_abi_is_known()) {
        return UCS_ERR_UNSUPPORTED;
    }

    /* Read as a job reads it, so that UCX_MD_HELPER_* can be tried here, too */
    setenv("UCX_MD_HELPER_POLICY", params->policy, 1);
    setenv("UCX_MD_HELPER_CPU_POLICY", "aggressive", 0); /* others may run */
    /* Room for all, or the soft ceiling would first learn what it is worth */
    setenv("UCX_MD_HELPER_MAX_PINNED", "1t", 0);
    domain = bench_lower_open(params);
    config = calloc(1, sizeof(*config));
    if ((domain == NULL) || (config == NULL)) {
        status = UCS_ERR_NO_MEMORY;
        goto out_free;
    }

    status = uct_helper_config_read(config);
    if (status != UCS_OK) {
        goto out_free;
    }

    status = uct_helper_md_attach(bench_domain_md(domain), "bench", config);
    if (status != UCS_OK) {
        goto out_free;
    }

    *domain_p = domain;
    domain    = NULL;

out_free:
    free(config);
    free(domain);
    return status;
}

void bench_domain_close(bench_domain_t *domain)
{
    domain->super.ops->close(bench_domain_md(domain));
    free(domain);
}

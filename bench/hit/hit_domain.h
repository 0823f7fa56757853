/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_HIT_DOMAIN_H_
#define BENCH_HIT_DOMAIN_H_

#include <ucs/sys/sync/atomic.h>
#include <uct/base/uct_abi.h>

/**
 * @file hit_domain.h
 *
 * The domain under test: the helper on top of a memory domain that costs
 * nothing, so that what is measured is the helper and not a NIC. One region
 * length can be made slow, to see who waits for it.
 */

typedef struct bench_domain_params {
    const char *policy;     /**< UCX_MD_HELPER_POLICY */
    size_t     slow_length; /**< Registrations this long, bytes, take a nap */
    uint64_t   slow_ns;     /**< The nap, nanoseconds (modelled cost) */
} bench_domain_params_t;

typedef struct bench_domain {
    uct_abi_md_t          super;    /* First: this is what uct_md_h points to */
    uct_abi_md_ops_t      ops;      /* Of this domain alone */
    uct_abi_component_t   component;
    char                  reserved[4096]; /* Rest of a real component, zero */
    bench_domain_params_t params;
    _Atomic uint64_t      num_regs; /* Calls that reached the lower domain */
    _Atomic unsigned      slow_seq; /* Naps begun and ended; odd: one is on */
} bench_domain_t;

/**
 * Open the lower domain and attach the helper to it.
 *
 * @param [out] domain_p  Owned by the caller, for bench_domain_close().
 *
 * @return UCS_OK or the error of the attach.
 */
ucs_status_t bench_domain_open(const bench_domain_params_t *params,
                               bench_domain_t **domain_p);

/** Close through the table, as uct_md_close() does. */
void bench_domain_close(bench_domain_t *domain);

static inline uct_md_h bench_domain_md(bench_domain_t *domain)
{
    return (uct_md_h)&domain->super;
}

/** One use of a range; registered and given back through the table. */
static inline ucs_status_t
bench_domain_use(bench_domain_t *domain, void *address, size_t length)
{
    uct_abi_md_mem_dereg_params_t params = {
        .field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH
    };
    const uct_abi_md_ops_t *ops          = domain->super.ops;
    ucs_status_t status;

    status = !uct_abi_running->has_reg_params ?
             ops->mem_reg(bench_domain_md(domain), address, length,
                          UCT_MD_MEM_ACCESS_RMA, &params.memh) :
             uct_abi_mem_reg_flags(ops, bench_domain_md(domain), address,
                                   length, UCT_MD_MEM_ACCESS_RMA,
                                   &params.memh);
    if (status != UCS_OK) {
        return status;
    }

    return ops->mem_dereg(bench_domain_md(domain), &params);
}

#endif

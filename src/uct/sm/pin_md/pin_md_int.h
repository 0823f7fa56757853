/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_PIN_MD_INT_H_
#define UCT_PIN_MD_INT_H_

#include "pin_md.h"
#include "pin_table.h"

#include <ucs/datastruct/linear_func.h>
#include <ucs/node/node.h>
#include <uct/base/uct_abi.h>

#include <sys/types.h>
#include <unistd.h>

/**
 * @file pin_md_int.h
 *
 * Inside of the domain. Calls go down this list only:
 *
 *   pin_md.c       attaches to a domain, describes and closes it
 *   pin_reg.c      registers and deregisters
 *   pin_compare.c  what a registration shows, beside the virtual address
 *   pin_domains.c  which decorator belongs to a domain
 *
 * Below it: pin_cost.h, pin_verify.h, pin_table.h, pin_ring.h, pin_view.h.
 */

BEGIN_C_DECLS

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
    ucs_node_h             node;       /* Counts the regions of all processes;
                                          NULL if there is no limit */
    uct_pin_table_t        table;
} uct_pin_md_t;

/** @return Nonzero unless this process has inherited the domain by fork(). */
static inline int uct_pin_md_is_owner(const uct_pin_md_t *pin)
{
    return pin->owner == getpid();
}

/* --- pin_domains.c: by any thread, without a lock --- */

/** @return What decorates @a md, NULL if nothing does. */
uct_pin_md_t *uct_pin_md_find(uct_md_h md);

/** From now on it is found. @return UCS_OK, or UCS_ERR_EXCEEDS_LIMIT, which is
 *  warned of. */
ucs_status_t uct_pin_md_publish(uct_pin_md_t *pin);

/** It is found no more; no other thread is inside. */
void uct_pin_md_unpublish(uct_pin_md_t *pin);

/* --- pin_reg.c --- */

/** Set the functions of a domain that register, deregister and, if the domain
 *  below has none, make keys. */
void uct_pin_md_init_reg_ops(uct_pin_md_t *pin);

END_C_DECLS

#endif

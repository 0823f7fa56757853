/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_MD_INT_H_
#define UCT_HELPER_MD_INT_H_

#include "helper_md.h"
#include <ucs/node/node.h>
#include <ucs/sys/proc/process.h>
#include "device_limits.h"
#include <uct/ib/helper_md/device/device.h>
#include <ucs/sys/proc/thread.h>

#include <ucs/datastruct/list.h>
#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/proc/cancel.h>
#include <uct/base/uct_abi.h>

#include <pthread.h>

/*
 * Inside of a decorated domain, for the decorator, the world of its cache, its
 * node, its session and its forked child.
 */

/** Flags of registrations that go straight to the domain below. The last two
 *  are UCT_MD_MEM_SYMMETRIC_RKEY (1.16) and UCT_MD_MEM_GVA (1.18). */
#define UCT_HELPER_MD_UNMANAGED \
    (UCT_MD_MEM_FLAG_LOCK | UCS_BIT(10) | UCS_BIT(11))

/** The component whose domains register with a device's driver. */
#define UCT_HELPER_MD_VERBS "ib"

/** A decorated domain; what a hit touches comes first. */
typedef struct uct_helper_md {
    uct_abi_md_ops_t         ops;         /* what md->ops points to */
    ucs_regcache_h           cache;
    const uct_abi_md_ops_t   *lower;
    uint32_t                 process;     /* number of the opening process */
    _Atomic int              settled;     /* nothing is left to do about the
                                             thread */
    uint64_t                 lower_flags; /* UCT_MD_FLAG_xx of the lower one */
    uct_helper_device_h      device;      /* NULL: host memory alone */
    double                   hit_cost;    /* what query() says, seconds */
    uct_md_h                 md;
    uct_helper_verify_func_t verify;      /* NULL unless set */
    ucs_status_t           (*verified_dereg)(
            uct_md_h md, const uct_abi_md_mem_dereg_params_t *params);
    ucs_thread_h             thread;      /* of the process */
    ucs_job_h                job;         /* of this domain there */
    uct_helper_config_t      config;
    ucs_cpu_set_t            local_cpus;
    ucs_node_h               node;        /* NULL: it has no ledger */
    ucs_node_h               quota;       /* of the device's registrations; NULL:
                                             likewise */
    _Atomic(uint64_t)        direct;      /* registrations below the cache */
    uct_helper_limits_t      limits;      /* of the device */
    int                      has_memlock; /* bytes that may be locked are limited */
    _Atomic(int)             listens;     /* the node's ledger says so */
    int                      is_planned;  /* the helper does more than
                                             deregister unmapped memory */
    uint64_t                 mend_at;     /* ns, the quota; the helper's own */
    _Atomic(int)             is_resting;
    int                      watches;     /* the monitor was started */
    char                     name[UCT_MD_NAME_MAX];
    ucs_list_link_t          list;        /* in the session */
    struct uct_helper_md     *hear_next;  /* of those that idle steps serve */
    uint64_t                 heard;       /* operations of the process's log */
    /* In a forked child: what it registered itself. The lock is a leaf and
     * is never taken in the parent, so the child finds it free. */
    pthread_mutex_t          child_lock;
    ucs_list_link_t          child_memhs;
} uct_helper_md_t;

/** @return The decorator of a domain, whose table of functions is its own. */
static inline uct_helper_md_t *uct_helper_md_of(uct_md_h md)
{
    return ucs_container_of(uct_abi_md(md)->ops, uct_helper_md_t, ops);
}

/** @return Nonzero but in a child of the process that opened the domain. */
static inline int uct_helper_md_is_mine(const uct_helper_md_t *md)
{
    return ucs_process_is(md->process);
}

/** Have the kernel tell of unmapped memory, too, if @a config says so; log once a
 *  process what is missing. @return Nonzero if the monitor has been started: the caller
 *  must stop it. */
int uct_helper_md_watch(const uct_helper_config_t *config);

/** Create a domain's helper without its operations: its job of the thread (not
 *  started), call sites, node and cache. Cleans up on error. */
ucs_status_t uct_helper_md_create(uct_md_h uct_md, const char *md_name,
                                  const uct_helper_config_t *config,
                                  uct_helper_md_t **md_p);

/** The counterpart. Stops the job and deregisters what is left. */
void uct_helper_md_release(uct_helper_md_t *md);

/** After a use of @a length bytes: start the domain's job if it is needed. Any
 *  thread; once md->settled is set, the call is not needed. */
void uct_helper_md_settle(uct_helper_md_t *md, size_t length);

/** Create md->cache, with the domain's node if it has a ledger. Job and call
 *  sites exist already. */
ucs_status_t uct_helper_md_create_cache(uct_helper_md_t *md);

/** Have the cache distrust memory if the domain below marks what it
 *  registers. */
void uct_helper_md_check_marks(uct_helper_md_t *md);

/** The helper thread is made: it has not been moved yet. Under the session's lock. */
void uct_helper_place_begin(void);

/** It may run near this domain's device as well. Under the session's lock. */
void uct_helper_place_add(const uct_helper_md_t *md);

/**
 * Processors of a helper thread without a ledger.
 *
 * `auto`: those near any of the devices, but not the only processor that the main
 * thread is bound to (as by `mpirun --bind-to hwthread`): there the helper
 * would take the application's time.
 *
 * @param [out] cpus  Set if the result is nonzero.
 *
 * @return Nonzero if the thread should be bound at all.
 */
int uct_helper_md_choose_cpus(const uct_helper_md_t *md, cpu_set_t *cpus);

/** @return Nonzero if the helper takes only idle processor time. */
int uct_helper_md_is_idle(const uct_helper_config_t *config);

/** Open the quota of the device's registrations, if the domain has a ledger. The
 *  node is open. */
void uct_helper_md_open_quota(uct_helper_md_t *md);

/** A registration that goes straight to the domain below has been made. */
void uct_helper_md_count(uct_helper_md_t *md);

/** One that may have been counted is none any more. */
void uct_helper_md_discount(uct_helper_md_t *md);

/** Enter the node's ledger. @return NULL, after one line, if it cannot be used; the line
 *  is a warning if an option needs the ledger. */
ucs_node_h uct_helper_node_enter(const uct_helper_config_t *config);

/** Add this process's figures of its node to those of earlier times. */
void uct_helper_node_add_figures(ucs_node_h node, ucs_node_figures_t *sum);

/** Serve the node; in each step of the helper. @return When the next step is
 *  due if the helper rests, 0 if it runs. */
uint64_t uct_helper_md_visit_node(uct_helper_md_t *md, uint64_t now);

/** Give a domain the operations of a forked child, without cache and thread. In
 *  a child only. */
void uct_helper_child_enter(uct_helper_md_t *md);

#endif

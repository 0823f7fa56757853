/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_NODE_CPUS_H_
#define UCT_HELPER_NODE_CPUS_H_

#include "place.h"

/**
 * @file cpus.h
 *
 * What this process can know of the node's processors: which ones its helper
 * may run on, how far each is from the device, and which ones the application
 * holds.
 */

BEGIN_C_DECLS

typedef struct uct_helper_topology {
    uct_helper_cpus_t allowed;
    uint8_t           distances[UCT_HELPER_LEDGER_CPUS]; /**< 0: near */
} uct_helper_topology_t;


/** What the application holds. */
typedef struct uct_helper_hold {
    int               is_bound; /**< to no more cores than it uses */
    uct_helper_cpus_t cpus;     /**< if so */
    unsigned          cores;    /**< that it uses, at least 1 */
} uct_helper_hold_t;


/**
 * Widen the calling thread to every processor that the system lets it have, and
 * see which these are.
 *
 * @param [in]  widen  Zero: only see what it has.
 *
 * @return Zero if the system does not tell.
 */
int uct_helper_cpus_allow(int widen, uct_helper_cpus_t *allowed);


/** Bind the calling thread. @return Zero if the system refuses. */
int uct_helper_cpus_bind(const uct_helper_cpus_t *cpus);


/**
 * Distances from a device. With libnuma, by the tables of the firmware, else
 * near (0) and far (1).
 *
 * @param [in] device  Name of an RDMA device, for its node in sysfs; another
 *                     name: the node of @a near.
 * @param [in] near    Processors near it, as UCX tells.
 */
void uct_helper_cpus_distances(const char *device,
                               const uct_helper_cpus_t *near,
                               uint8_t *distances);


/** See what the main thread is bound to. The cores that it uses are
 *  OMP_NUM_THREADS, without it one. */
void uct_helper_cpus_hold(uct_helper_hold_t *hold);

END_C_DECLS

#endif

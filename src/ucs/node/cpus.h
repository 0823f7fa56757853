/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_NODE_CPUS_H_
#define UCS_NODE_CPUS_H_

#include "place.h"

/**
 * @file cpus.h
 *
 * What this process can know of the node's processors: which ones its helper
 * may run on, how far each is from the device, and which ones the application
 * holds.
 */

BEGIN_C_DECLS

/** What the application holds. */
typedef struct ucs_cpus_held {
    int       is_bound; /**< to no more cores than it uses */
    cpu_set_t cpus;     /**< if so */
    unsigned  cores;    /**< that it uses, at least 1 */
} ucs_cpus_held_t;


/**
 * Widen the calling thread to every processor that the system lets it have, and
 * see which these are.
 *
 * @param [in]  widen  Zero: only see what it has.
 *
 * @return Zero if the system does not tell.
 */
int ucs_cpus_allow(int widen, cpu_set_t *allowed);


/**
 * Distances from a device. With libnuma, by the tables of the firmware, else
 * near (0) and far (1).
 *
 * @param [in] device  Name of an RDMA device, for its node in sysfs; another
 *                     name: the node of @a near.
 * @param [in] near    Processors near it, as UCX tells.
 */
void ucs_cpus_distances(const char *device, const cpu_set_t *near,
                        uint8_t *distances);


/** See what the main thread is bound to. The cores that it uses are
 *  OMP_NUM_THREADS, without it one. */
void ucs_cpus_hold(ucs_cpus_held_t *hold);

END_C_DECLS

#endif

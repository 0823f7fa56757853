/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_NODE_CPUS_H_
#define UCS_NODE_CPUS_H_

#include "place.h"

/**
 * @file cpus.h
 *
 * The node's processors: which ones the helper may run on, how far each is from
 * the device, and which ones the application is bound to.
 */

BEGIN_C_DECLS

/** Where the application runs. */
typedef struct ucs_cpus_held {
    int       is_bound; /**< to no more cores than it uses */
    cpu_set_t cpus;     /**< if so */
    unsigned  cores;    /**< that it uses, at least 1 */
} ucs_cpus_held_t;


/**
 * Bind the calling thread to every processor that the system allows, and return
 * these.
 *
 * @param [in]  widen  Zero: only return the present ones.
 *
 * @return Zero on failure.
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


/** Read what the main thread is bound to. It uses OMP_NUM_THREADS cores, by
 *  default one. */
void ucs_cpus_hold(ucs_cpus_held_t *hold);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_WIRE_SIM_H_
#define UCP_WIRE_SIM_H_

#include <ucp/wire/wire.h>

/**
 * @file wire_sim.h
 *
 * A virtual network of some nodes in one process, in virtual time, for tests,
 * fuzzing and models of cost. All that is left to chance follows from a seed,
 * so a run can be repeated. One thread.
 *
 * Each node has a processor, whose time passes by what it does (sending,
 * registering, copying), and a link, on which its bytes leave one after the
 * other. The driver asks @ref ucp_wire_sim_next which node is to run, lets the
 * protocol of that node progress, and asks again.
 *
 * The network checks what a real one would not: each put and get is held
 * against the registrations of both ends when its bytes move, and keys against
 * those that exist. What is found is counted and the first one described.
 */

BEGIN_C_DECLS

typedef struct ucp_wire_sim ucp_wire_sim_t;

/** Costs and chances; all zero is a network that is free and reliable. */
typedef struct ucp_wire_sim_params {
    unsigned num_nodes;        /**< 1 to 1024 */
    uint64_t seed;
    uint64_t latency;          /**< ns from link to link */
    uint64_t jitter;           /**< ns, at most, on top, by chance; puts and
                                *   messages of a peer pass each other by it */
    double   ns_per_byte;      /**< of a link */
    double   copy_per_byte;    /**< ns of the processor at each end, for the
                                *   payload of a message */
    uint64_t send_cost;        /**< ns of the processor for each operation */
    uint64_t reg_base;         /**< ns of the processor to register */
    double   reg_per_page;     /**< ns for each page of 4096 bytes */
    uint64_t dereg_base;       /**< ns of the processor to deregister */
    double   dereg_per_page;   /**< ns for each page */
    unsigned reg_fails;        /**< of a million registrations, by chance */
    unsigned send_fails;       /**< of a million sends: UCS_ERR_NO_MEMORY */
    unsigned inline_chance;    /**< of a million operations that could, so many
                                *   complete before the function returns */
} ucp_wire_sim_params_t;

/** What a node has registered. */
typedef struct ucp_wire_sim_stats {
    unsigned registered;       /**< ranges, now */
    unsigned registered_peak;
    size_t   bytes;            /**< now; ranges that overlap count each */
    size_t   bytes_peak;
    uint64_t registrations;    /**< since the start */
    uint64_t keys;             /**< unpacked and not released, now */
    uint64_t messages;         /**< sent */
    uint64_t puts;
    uint64_t gets;
} ucp_wire_sim_stats_t;

/** @return A network, or NULL: no memory. The wires of its nodes are destroyed
 *          before it is. */
ucp_wire_sim_t *ucp_wire_sim_create(const ucp_wire_sim_params_t *params);

void ucp_wire_sim_destroy(ucp_wire_sim_t *sim);

/**
 * Get the wire of a node, once for each node.
 *
 * @param [in] handlers  NULL: the caller sets them later.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_wire_sim_open(ucp_wire_sim_t *sim, unsigned node,
                               const ucp_wire_handlers_t *handlers,
                               ucp_wire_t **wire_p);

/**
 * Let time pass until a node has something to do.
 *
 * @return The node, whose progress will find it; -1: nothing is under way.
 */
int ucp_wire_sim_next(ucp_wire_sim_t *sim);

/** Let the processor of a node work for some nanoseconds. */
void ucp_wire_sim_work(ucp_wire_sim_t *sim, unsigned node, uint64_t ns);

/** @return The time of a node in nanoseconds. */
uint64_t ucp_wire_sim_time(ucp_wire_sim_t *sim, unsigned node);

/** A node dies: nothing reaches it or leaves it from now on, and all others
 *  hear of it, each at some time between one latency and eight. */
void ucp_wire_sim_kill(ucp_wire_sim_t *sim, unsigned node);

/** The next registration of a node after @a skip others fails; once. */
void ucp_wire_sim_fail_reg(ucp_wire_sim_t *sim, unsigned node, unsigned skip);

/** Memory of a node is unmapped: from now on a put to it or from it is an
 *  error, even if it is still registered. */
void ucp_wire_sim_unmap(ucp_wire_sim_t *sim, unsigned node, const void *start,
                        size_t length);

/** @return Errors of the protocol that were found; 0: none. */
unsigned ucp_wire_sim_errors(const ucp_wire_sim_t *sim);

/** @return The first of them in words, or "". */
const char *ucp_wire_sim_error(const ucp_wire_sim_t *sim);

void ucp_wire_sim_get_stats(const ucp_wire_sim_t *sim, unsigned node,
                            ucp_wire_sim_stats_t *stats);

END_C_DECLS

#endif

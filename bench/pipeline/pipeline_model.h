/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_PIPELINE_MODEL_H_
#define BENCH_PIPELINE_MODEL_H_

#include <ucp/pipeline/pipeline_core.h>
#include "../wire/wire_sim.h"
#include <tools/replay/replay_process.h>

/**
 * @file pipeline_model.h
 *
 * Ways to move a message, side by side over one virtual network at modelled
 * costs: the pipeline of src/ucp/pipeline as it is, and a rendezvous as UCP's,
 * whose registrations go through the registration cache of this tree under one
 * of its policies. docs/paper_b.md has what is modelled and what is not.
 */

BEGIN_C_DECLS

typedef enum {
    PIPE_LEAVE_PINNED, /**< the sender registers, then the receiver */
    PIPE_HELPER,       /**< the same by the policy `predict` */
    PIPE_COPY,         /**< copied through buffers that are registered */
    PIPE_PIPELINE,     /**< each fragment deregistered once it is over */
    PIPE_CACHING,      /**< fragments are kept */
    PIPE_NUM_SYSTEMS
} pipe_system_t;

extern const char *pipe_system_names[PIPE_NUM_SYSTEMS];

/** One machine and its network. */
typedef struct pipe_costs {
    const char    *name;
    double        wire_ns;     /**< a byte on a link */
    double        copy_ns;     /**< a byte copied, of a processor */
    uint64_t      latency_ns;  /**< link to link */
    uint64_t      op_ns;       /**< of a processor, for each operation */
    replay_cost_t reg, dereg;  /**< of a registration */
} pipe_costs_t;

typedef struct pipe_world pipe_world_t;
typedef struct pipe_request pipe_request_t;

/** Say what is wrong, and end the program with 2. */
void pipe_die(const char *format, ...)
        __attribute__((format(printf, 1, 2), noreturn));

/** What a node does next, called when all it began is complete: it begins
 *  sends and receives, @return zero if there is nothing left to do. */
typedef int (*pipe_script_func_t)(void *arg, pipe_world_t *world,
                                  unsigned node);

/** Pipelines have the default options, in the system's mode. */
pipe_world_t *pipe_world_open(pipe_system_t system, const pipe_costs_t *costs,
                              unsigned num_nodes);

/** The network must have found nothing wrong, or the program ends. */
void pipe_world_close(pipe_world_t *world);

/** Messages between two nodes match in the order in which they are begun. */
void pipe_send(pipe_world_t *world, unsigned node, unsigned peer,
               const void *buffer, size_t length);
void pipe_recv(pipe_world_t *world, unsigned node, unsigned peer, void *buffer,
               size_t length);

/** Run until every node's script has ended. @return Nanoseconds that took. */
uint64_t pipe_world_run(pipe_world_t *world, pipe_script_func_t script,
                        void *arg);

/** @return The time of a node in nanoseconds. */
uint64_t pipe_world_time(const pipe_world_t *world, unsigned node);

/** @return Bytes that were registered at most, of the node with most. */
size_t pipe_world_peak(const pipe_world_t *world);

/*
 * pipeline_rndv.c
 */

/** A node that sends as UCP does, and its cache. */
typedef struct pipe_rndv pipe_rndv_t;
typedef struct pipe_rndv_request pipe_rndv_request_t;

pipe_rndv_t *pipe_rndv_open(ucp_wire_sim_t *sim, unsigned node,
                            pipe_system_t system, const pipe_costs_t *costs);
void pipe_rndv_close(pipe_rndv_t *self);
pipe_rndv_request_t *pipe_rndv_send(pipe_rndv_t *self, unsigned peer,
                                    const void *buffer, size_t length);
pipe_rndv_request_t *pipe_rndv_recv(pipe_rndv_t *self, unsigned peer,
                                    void *buffer, size_t length);
int pipe_rndv_test(const pipe_rndv_request_t *req);
void pipe_rndv_free(pipe_rndv_request_t *req);
unsigned pipe_rndv_progress(pipe_rndv_t *self);
size_t pipe_rndv_peak(const pipe_rndv_t *self);

/* pipeline_patterns.c: what the paper measures, as scripts of nodes */

/**
 * Two nodes send to and fro, out of one buffer and into another, after a few
 * messages with others.
 *
 * @param [in]  uses    Of the same buffers, by a message each way.
 * @param [out] ends    When each pair of messages has ended, in nanoseconds
 *                      since the first began.
 *
 * @return Bytes registered at most, of the node with most.
 */
size_t pipe_pingpong(pipe_system_t system, const pipe_costs_t *costs,
                     size_t size, unsigned uses, uint64_t *ends);

/**
 * Ping-pong with memory that is new for each message and unmapped after it, by a
 * pipeline.
 *
 * @param [in] messages  A way.
 *
 * @return Bandwidth in 10^6 bytes a second.
 */
double pipe_new(pipe_system_t system, const pipe_costs_t *costs,
                size_t size, unsigned messages);

/** Of all nodes together, 10^6 bytes a second. */
typedef struct pipe_beff {
    double beff;    /**< mean over sizes, rings and random orders */
    double at_lmax; /**< the same for the longest messages alone */
} pipe_beff_t;

/**
 * Rabenseifner's b_eff, as far as a model has it: 21 sizes up to @a lmax, rings
 * of 2, 4 and all in natural order and rings in random order, every node to and
 * from both neighbours at once. Each pattern uses its buffers three times, as
 * often as there are methods in b_eff, and then others.
 */
void pipe_beff(pipe_system_t system, const pipe_costs_t *costs,
               unsigned num_nodes, size_t lmax, pipe_beff_t *result);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_SIM_QUEUE_H_
#define BENCH_SIM_QUEUE_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

/**
 * @file sim_queue.h
 *
 * Events by time; those of one time come out as they went in, so that a run
 * can be repeated.
 */

__BEGIN_DECLS

typedef struct sim_event {
    uint64_t time_ns;
    uint64_t order;
    void     *arg;  /**< what it is about, the user's */
    uint64_t kind;
} sim_event_t;

/** A heap: no event is before its parent. */
typedef struct sim_queue {
    sim_event_t *events;
    size_t      count;
    size_t      capacity;
    uint64_t    pushed;   /**< so far */
} sim_queue_t;

void sim_queue_init(sim_queue_t *queue);
void sim_queue_cleanup(sim_queue_t *queue);

void sim_queue_push(sim_queue_t *queue, uint64_t time_ns, uint64_t kind,
                    void *arg);

/** The same in an order of the user's among those of one time. */
void sim_queue_put(sim_queue_t *queue, sim_event_t event);

/** @return The time of the next one; UINT64_MAX if there is none. */
uint64_t sim_queue_next(const sim_queue_t *queue);

/** @return Zero if there is none. */
int sim_queue_pop(sim_queue_t *queue, sim_event_t *event);

__END_DECLS

#endif

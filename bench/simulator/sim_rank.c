/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "sim_int.h"

void sim_rank_schedule(sim_world_t *world, sim_rank_t *rank, uint64_t time_ns)
{
    /* A rank that took a packet is busy until then */
    if (time_ns < rank->now_ns) {
        time_ns = rank->now_ns;
    }
    if (time_ns < rank->due_ns) {
        rank->due_ns = time_ns;
        sim_queue_push(&world->queue, time_ns, SIM_EVENT_RANK, rank);
    }
}

void sim_rank_wait(sim_world_t *world, sim_rank_t *rank)
{
    if (rank->idle_ns != UINT64_MAX) {
        return;
    }
    rank->idle_ns = sim_engine_wait(world, rank);
    if (rank->idle_ns != UINT64_MAX) {
        sim_queue_push(&world->idles, rank->idle_ns, SIM_EVENT_IDLE, rank);
    }
}

void sim_rank_unwait(sim_rank_t *rank)
{
    rank->idle_ns = UINT64_MAX;
}

void sim_rank_idle(sim_world_t *world, sim_rank_t *rank, uint64_t now_ns)
{
    if (rank->idle_ns != now_ns) {
        return; /* it went on meanwhile */
    }
    /* A message that comes during the step waits for its end */
    rank->now_ns  = now_ns;
    rank->idle_ns = sim_engine_idle(world, rank);
    if (rank->idle_ns != UINT64_MAX) {
        sim_queue_push(&world->idles, rank->idle_ns, SIM_EVENT_IDLE, rank);
    }
}

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

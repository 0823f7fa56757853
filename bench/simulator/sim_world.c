/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "sim_int.h"

#include <tools/replay/replay_process.h>
#include <tools/tool.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIM_NEVER UINT64_MAX

#define SIM_NSEC 1e9

/*
 * Operations
 */

static void sim_rank_compute(sim_world_t *world, sim_rank_t *rank, double flops)
{
    const sim_params_t *params = world->params;
    double factor              = 1;
    uint64_t ns;

    if (flops <= 0) {
        return;
    }
    if (params->noise > 0) {
        factor += params->noise * fabs(replay_random_normal(&rank->random));
    }
    if (rank->index == world->shape->ranks / 2) {
        factor += params->straggler;
    }
    ns                = SIM_NSEC * flops / params->flops * factor;
    rank->now_ns     += ns;
    rank->compute_ns += ns;
}

static unsigned sim_sync_rounds(uint64_t members)
{
    unsigned rounds = 0;

    while ((UINT64_C(1) << rounds) < members) {
        ++rounds;
    }
    return rounds;
}

/* All leave as long after the last has come as a message each round takes */
static void sim_rank_sync(sim_world_t *world, sim_rank_t *rank,
                          const sim_op_t *op)
{
    const sim_network_t *network = &world->params->network;
    sim_sync_t *sync             = &world->syncs[op->peer];
    sim_rank_t *next;
    uint64_t end;

    rank->state     = SIM_SYNCING;
    rank->sync_next = sync->ranks;
    sync->ranks     = rank;
    if (sync->latest_ns < rank->now_ns) {
        sync->latest_ns = rank->now_ns;
    }
    if (++sync->count < op->bytes) {
        sim_rank_wait(world, rank);
        return;
    }
    end = sync->latest_ns + sim_sync_rounds(op->bytes) *
                                    (2 * network->overhead_ns +
                                     network->latency_ns);
    for (rank = sync->ranks; rank != NULL; rank = next) {
        next        = rank->sync_next;
        rank->state = SIM_RUNNING;
        sim_rank_unwait(rank);
        if (rank->now_ns < end) { /* or it is still in an idle step */
            rank->now_ns = end;
        }
        sim_rank_schedule(world, rank, end);
    }
    memset(sync, 0, sizeof(*sync));
}

static void sim_rank_do(sim_world_t *world, sim_rank_t *rank,
                        const sim_op_t *op)
{
    switch (op->kind) {
    case SIM_OP_COMPUTE:
        sim_rank_compute(world, rank, op->flops);
        break;
    case SIM_OP_SEND:
        sim_net_send(world, sim_request_new(world, rank, op));
        break;
    case SIM_OP_RECV:
        sim_net_post(world, sim_request_new(world, rank, op));
        break;
    case SIM_OP_WAIT:
        rank->state = SIM_WAITING;
        break;
    default:
        sim_rank_sync(world, rank, op);
        break;
    }
}

/* @return Nonzero if the rank can go on at once */
static int sim_rank_progress(sim_world_t *world, sim_rank_t *rank)
{
    sim_message_t *message = rank->inbox.head;

    if (rank->open == 0) {
        rank->state = SIM_RUNNING;
        sim_rank_unwait(rank);
        return 1;
    }
    if (message == NULL) {
        sim_rank_wait(world, rank);
        return 0; /* the rank that sends one wakes it */
    }
    if (message->time_ns > rank->now_ns) {
        sim_rank_wait(world, rank);
        sim_rank_schedule(world, rank, message->time_ns);
        return 0;
    }
    sim_rank_unwait(rank);
    sim_net_take(world, rank);
    return 1;
}

/* As far as it comes without time going on: what others do until then must
 * have been done */
static void sim_rank_go(sim_world_t *world, sim_rank_t *rank, uint64_t now_ns)
{
    sim_op_t op;

    rank->due_ns = SIM_NEVER;
    if (rank->now_ns < now_ns) {
        rank->now_ns = now_ns;
    }
    while (rank->now_ns == now_ns) {
        if (rank->state == SIM_WAITING) {
            if (!sim_rank_progress(world, rank)) {
                return;
            }
        } else if (rank->state != SIM_RUNNING) {
            return;
        } else if (sim_cursor_next(world->shape, rank->index,
                                   world->params->iterations, &rank->at, &op)) {
            sim_rank_do(world, rank, &op);
        } else {
            rank->state = SIM_ENDED;
            ++world->ended;
            if (world->result->time_ns < now_ns) {
                world->result->time_ns = now_ns;
            }
        }
    }
    if ((rank->state == SIM_RUNNING) || (rank->state == SIM_WAITING)) {
        sim_rank_schedule(world, rank, rank->now_ns);
    }
}

/*
 * World
 */

static void sim_world_ranks(sim_world_t *world)
{
    uint32_t count = world->shape->ranks, i;

    world->ranks = tool_realloc(NULL, count * sizeof(*world->ranks));
    world->syncs = tool_realloc(NULL, count * sizeof(*world->syncs));
    memset(world->ranks, 0, count * sizeof(*world->ranks));
    memset(world->syncs, 0, count * sizeof(*world->syncs));
    for (i = 0; i < count; ++i) {
        world->ranks[i].index   = i;
        world->ranks[i].due_ns  = SIM_NEVER;
        world->ranks[i].idle_ns = SIM_NEVER;
        world->ranks[i].random  = world->params->process.seed + i;
        (void)ucs_hash_random(&world->ranks[i].random);
        world->ranks[i].random ^= world->params->process.seed << 32;
        sim_cursor_init(world->shape, &world->ranks[i].at);
        sim_rank_schedule(world, &world->ranks[i], 0);
    }
}

/* Idle steps come after all else of their time, and end with all else */
static int sim_world_next(sim_world_t *world, sim_event_t *event)
{
    int is_idle = (world->queue.count > 0) &&
                  (sim_queue_next(&world->idles) <
                   sim_queue_next(&world->queue));

    return sim_queue_pop(is_idle ? &world->idles : &world->queue, event);
}

static void sim_world_go(sim_world_t *world)
{
    sim_event_t event;
    sim_rank_t *rank;

    while (sim_world_next(world, &event)) {
        if (event.kind == SIM_EVENT_IDLE) {
            sim_rank_idle(world, event.arg, event.time_ns);
        } else if (event.kind != SIM_EVENT_RANK) {
            sim_net_event(world, &event);
        } else {
            rank = event.arg;
            if (rank->due_ns == event.time_ns) {
                sim_rank_go(world, rank, event.time_ns);
            }
        }
        ++world->result->events;
    }
}

static void sim_world_end(sim_world_t *world)
{
    sim_result_t *result = world->result;
    double compute       = 0;
    uint32_t i;

    for (i = 0; i < world->shape->ranks; ++i) {
        compute += world->ranks[i].compute_ns;
        if (world->ranks[i].state != SIM_ENDED) {
            if (result->stuck++ == 0) {
                result->stuck_rank = i;
            }
            if (result->time_ns < world->ranks[i].now_ns) {
                result->time_ns = world->ranks[i].now_ns;
            }
        }
    }
    result->compute_ns = compute / world->shape->ranks;
    sim_net_check(world);
    sim_engines_stats(world);
}

static void sim_world_cleanup(sim_world_t *world)
{
    sim_engines_close(world);
    sim_net_cleanup(world);
    sim_queue_cleanup(&world->idles);
    sim_queue_cleanup(&world->queue);
    free(world->syncs);
    free(world->ranks);
}

ucs_status_t sim_world_run(const sim_shape_t *shape, const sim_params_t *params,
                           sim_result_t *result)
{
    uint32_t engines  = ((params->engines == 0) ||
                        (params->engines > shape->ranks)) ? shape->ranks :
                                                            params->engines;
    sim_world_t world = {.shape = shape, .params = params, .result = result};
    ucs_status_t status;

    memset(result, 0, sizeof(*result));
    world.stride  = (shape->ranks + engines - 1) / engines;
    result->ranks = shape->ranks;
    if (params->process.policy != SIM_NO_POLICY) {
        result->engines = (shape->ranks + world.stride - 1) / world.stride;
    }
    sim_queue_init(&world.queue);
    sim_queue_init(&world.idles);
    sim_net_init(&world);
    sim_world_ranks(&world);
    status = sim_engines_open(&world);
    if (status == UCS_OK) {
        sim_world_go(&world);
        sim_world_end(&world);
    }
    sim_world_cleanup(&world);
    return status;
}

int sim_result_is_sound(const sim_result_t *result)
{
    return (result->stuck == 0) && (result->unmatched == 0) &&
           (result->sends == result->receives) &&
           (result->sent_bytes == result->received_bytes);
}

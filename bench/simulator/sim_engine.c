/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "sim_int.h"

#include <tools/replay/replay_process.h>
#include <tools/tool.h>
#include <ucs/sys/hash.h>
#include <ucs/trace/trace.h>

#include <stdlib.h>
#include <string.h>

#define SIM_PAGE 4096

/* Of engines that are one of many; the DQ of each is drained in every wait */
#define SIM_SMALL_DQ       256
#define SIM_SMALL_EVENTS   128
#define SIM_MAX_EVENTS     (1u << 16)
#define SIM_PRODUCTION     4096

/* As messages do, each use gives others access */
#define SIM_ACCESS UCS_TRACE_ACCESS_REMOTE

uint64_t sim_uses(const sim_shape_t *shape, const sim_network_t *network,
                  uint32_t rank)
{
    sim_cursor_t at = {0, 0, 0};
    uint64_t uses   = 0;
    sim_op_t op;

    while (sim_cursor_next(shape, rank, 1, &at, &op)) {
        uses += ((op.kind == SIM_OP_SEND) || (op.kind == SIM_OP_RECV)) &&
                (op.bytes >= network->eager_bytes);
    }
    return uses;
}

/* Two iterations must be remembered, and a little of what was before */
static unsigned sim_engine_events(const sim_shape_t *shape,
                                  const sim_params_t *params)
{
    uint64_t uses = sim_uses(shape, &params->network, shape->ranks / 2);
    unsigned events;

    events = params->is_small ? SIM_SMALL_EVENTS : SIM_PRODUCTION;
    while ((events < 5 * uses / 2) && (events < SIM_MAX_EVENTS)) {
        events *= 2;
    }
    return events;
}

size_t sim_engine_bytes(const sim_shape_t *shape, const sim_params_t *params)
{
    size_t events = sim_engine_events(shape, params);
    uint64_t uses = sim_uses(shape, &params->network, shape->ranks / 2);
    const ucs_regcache_params_t cache = {
        .dq_length    = params->is_small ? SIM_SMALL_DQ : 0,
        .max_contexts = events
    };

    return ucs_regcache_max_bytes(&cache, uses) + sizeof(sim_engine_t) +
           2 * sizeof(uint32_t) * uses * (params->iterations + 2);
}

static ucs_status_t sim_engine_open(sim_world_t *world, uint32_t index)
{
    const sim_params_t *params    = world->params;
    sim_engine_t *engine          = &world->engines[index];
    replay_params_t *process      = &world->process_params[index];
    unsigned events               = sim_engine_events(world->shape, params);

    *process         = params->process;
    process->is_deaf = (params->helper == SIM_HELPER_THREAD);
    process->seed ^= index * UCS_HASH_FACTOR;

    engine->process.params       = process;
    engine->process.page_size    = SIM_PAGE;
    engine->process.min_size     = params->network.eager_bytes;
    engine->process.dq_length    = params->is_small ? SIM_SMALL_DQ : 0;
    engine->process.max_contexts = events;
    return replay_process_open(&engine->process);
}

ucs_status_t sim_engines_open(sim_world_t *world)
{
    uint32_t count = world->result->engines, i;
    ucs_status_t status;

    world->engines        = tool_realloc(NULL, (count + 1) *
                                                       sizeof(*world->engines));
    world->process_params = tool_realloc(NULL,
                                         (count + 1) *
                                                 sizeof(*world->process_params));
    memset(world->engines, 0, (count + 1) * sizeof(*world->engines));
    for (i = 0; i < count; ++i) {
        status = sim_engine_open(world, i);
        if (status != UCS_OK) {
            world->result->engines = i;
            return status;
        }
        world->ranks[i * world->stride].engine = &world->engines[i];
    }
    return UCS_OK;
}

/* The helper does what it has to do before this time */
static void sim_engine_help(replay_process_t *process, uint64_t now_ns)
{
    while (replay_process_help_time(process) <= now_ns) {
        replay_process_help(process);
    }
    if (process->main_ns < now_ns) {
        process->main_ns = now_ns;
    }
}

/*
 * Delays, kept for the ranks that have no engine
 */

static void sim_engine_note(sim_world_t *world, sim_engine_t *engine,
                            uint64_t use, int is_end, uint64_t delay)
{
    size_t capacity;

    if (world->stride == 1) {
        return;
    }
    if (use >= engine->capacity) {
        capacity         = 2 * engine->capacity + 64;
        engine->delays   = tool_realloc(engine->delays,
                                        2 * capacity *
                                                sizeof(*engine->delays));
        memset(engine->delays + 2 * engine->capacity, 0xff,
               2 * (capacity - engine->capacity) * sizeof(*engine->delays));
        engine->capacity = capacity;
    }
    engine->delays[2 * use + is_end] = (delay < UINT32_MAX) ? delay :
                                                              UINT32_MAX - 1;
    engine->count = (use < engine->count) ? engine->count : use + 1;
}

/* What the model rank's use of the same number took; if that has not been yet,
 * its latest that has */
static uint64_t sim_engine_borrow(sim_world_t *world, const sim_rank_t *rank,
                                  uint64_t use, int is_end)
{
    const sim_engine_t *engine = &world->engines[rank->index / world->stride];
    size_t at;

    ++world->result->borrowed;
    if ((use < engine->count) &&
        (engine->delays[2 * use + is_end] != UINT32_MAX)) {
        return engine->delays[2 * use + is_end];
    }
    ++world->result->guessed;
    for (at = (use < engine->count) ? use : engine->count; at > 0; --at) {
        if (engine->delays[2 * (at - 1) + is_end] != UINT32_MAX) {
            return engine->delays[2 * (at - 1) + is_end];
        }
    }
    return 0;
}

/*
 * Uses
 */

static uint64_t sim_engine_signature(const sim_request_t *request)
{
    uint64_t state = request->site;

    return ucs_hash_random(&state);
}

static void sim_engine_tell(sim_world_t *world, const sim_request_t *request,
                            int is_end)
{
    if (world->params->on_use != NULL) {
        world->params->on_use(world->params->arg, request->rank->index,
                              request->use, is_end, request->rank->now_ns,
                              request->address, request->bytes, SIM_ACCESS,
                              sim_engine_signature(request));
    }
}

/* By chance, and by the same chance under each policy */
static void sim_engine_late(sim_world_t *world, const sim_request_t *request)
{
    const replay_params_t *params = &world->params->process;
    uint64_t pages                = (request->bytes + SIM_PAGE - 1) / SIM_PAGE;
    uint64_t ns                   = params->register_cost.base_ns +
                                    params->register_cost.page_ns * pages;

    if (sim_hash(params->seed, request->rank->index, request->use) <
        world->params->late) {
        request->rank->now_ns  += ns;
        world->result->late_ns += ns;
    }
}

void sim_engine_begin(sim_world_t *world, sim_request_t *request)
{
    sim_rank_t *rank = request->rank;
    replay_process_t *process;

    request->use = rank->uses++;
    sim_engine_late(world, request);
    if (world->params->process.policy == SIM_NO_POLICY) {
        return;
    }
    if (rank->engine == NULL) {
        rank->now_ns += sim_engine_borrow(world, rank, request->use, 0);
        return;
    }
    process = &rank->engine->process;
    sim_engine_tell(world, request, 0);
    sim_engine_help(process, rank->now_ns);
    request->memh = replay_process_get(process, request->address,
                                       request->bytes, SIM_ACCESS,
                                       sim_engine_signature(request));
    sim_engine_note(world, rank->engine, request->use, 0,
                    process->main_ns - rank->now_ns);
    rank->now_ns = process->main_ns;
}

void sim_engine_end(sim_world_t *world, sim_request_t *request)
{
    sim_rank_t *rank = request->rank;
    replay_process_t *process;

    if (world->params->process.policy == SIM_NO_POLICY) {
        return;
    }
    if (rank->engine == NULL) {
        rank->now_ns += sim_engine_borrow(world, rank, request->use, 1);
        return;
    }
    process = &rank->engine->process;
    sim_engine_tell(world, request, 1);
    sim_engine_help(process, rank->now_ns);
    replay_process_put(process, request->memh);
    sim_engine_note(world, rank->engine, request->use, 1,
                    process->main_ns - rank->now_ns);
    rank->now_ns = process->main_ns;
}

/*
 * What is said, and what is done while a rank waits
 */

/* As the door's: the place, the kind, and the class of the size */
static uint32_t sim_engine_label(const sim_request_t *request,
                                 ucs_operation_kind_t kind)
{
    uint64_t size  = 63 - __builtin_clzll(request->bytes | 1);
    uint64_t state = request->site ^ ((uint64_t)kind << 32) ^ (size << 40);

    return (uint32_t)ucs_hash_random(&state) | 1;
}

static int sim_engine_hears(const sim_world_t *world, const sim_rank_t *rank)
{
    return (rank->engine != NULL) && (world->params->helper == SIM_HELPER_IDLE);
}

void sim_engine_say(sim_world_t *world, sim_request_t *request,
                    ucs_operation_kind_t kind)
{
    sim_rank_t *rank          = request->rank;
    ucs_operation_t operation = {.kind = kind};

    if (!sim_engine_hears(world, rank)) {
        return;
    }
    if (kind == UCS_OPERATION_RECEIVE) {
        request->id = ++rank->posts;
    }
    operation.id = request->id;
    if (kind != UCS_OPERATION_RECEIVED) {
        operation.address = request->address;
        operation.length  = request->bytes;
        operation.label   = sim_engine_label(request, kind);
    }
    sim_engine_help(&rank->engine->process, rank->now_ns);
    replay_process_say(&rank->engine->process, &operation);
}

uint64_t sim_engine_wait(sim_world_t *world, sim_rank_t *rank)
{
    if (!sim_engine_hears(world, rank)) {
        return UCS_REGCACHE_TIME_NEVER;
    }
    sim_engine_help(&rank->engine->process, rank->now_ns);
    return replay_process_wait(&rank->engine->process);
}

uint64_t sim_engine_idle(sim_world_t *world, sim_rank_t *rank)
{
    uint64_t next;

    sim_engine_help(&rank->engine->process, rank->now_ns);
    next         = replay_process_wait_step(&rank->engine->process);
    rank->now_ns = rank->engine->process.main_ns;
    ++world->result->idle_steps;
    return next;
}

/*
 * Figures
 */

static void sim_engine_add(sim_result_t *result, const ucs_regcache_stats_t *s)
{
    ucs_regcache_stats_add(&result->stats, s);
    if (s->pinned_peak_bytes > result->peak_max_bytes) {
        result->peak_max_bytes = s->pinned_peak_bytes;
    }
    if (s->pinned_byte_ns > result->byte_ns_max) {
        result->byte_ns_max = s->pinned_byte_ns;
    }
    if (s->leave_pinned_peak_bytes > result->leave_peak_max_bytes) {
        result->leave_peak_max_bytes = s->leave_pinned_peak_bytes;
    }
}

void sim_engines_stats(sim_world_t *world)
{
    sim_result_t *result      = world->result;
    ucs_regcache_stats_t *sum = &result->stats;
    ucs_regcache_stats_t stats;
    uint32_t i;

    for (i = 0; i < result->engines; ++i) {
        sim_engine_help(&world->engines[i].process, result->time_ns);
        replay_process_settle(&world->engines[i].process);
        ucs_regcache_stats(world->engines[i].process.engine, result->time_ns,
                           &stats);
        sim_engine_add(result, &stats);
    }
    if (result->engines > 0) {
        sum->pinned_peak_bytes       /= result->engines;
        sum->pinned_byte_ns          /= result->engines;
        sum->leave_pinned_peak_bytes /= result->engines;
        sum->leave_pinned_byte_ns    /= result->engines;
        sum->in_use_peak_bytes       /= result->engines;
        sum->regions_peak            /= result->engines;
        sum->region_ns               /= result->engines;
        sum->leave_pinned_regions_peak /= result->engines;
        for (i = 0; i < UCS_REGCACHE_HELD_LAST; ++i) {
            sum->why.held_byte_ns[i] /= result->engines;
        }
    }
}

void sim_engines_close(sim_world_t *world)
{
    uint32_t i;

    for (i = 0; i < world->result->engines; ++i) {
        replay_process_settle(&world->engines[i].process);
        replay_process_close(&world->engines[i].process);
        free(world->engines[i].delays);
    }
    free(world->engines);
    free(world->process_params);
}

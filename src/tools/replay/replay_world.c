/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay_world.h"

#include <tools/tool.h>

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

typedef struct replay_world {
    const replay_trace_t *trace;
    replay_process_t     process;
    size_t               next;    /* event of the trace */
    ucs_regcache_memh_t  *memhs;  /* by use, NULL when not open */
    ucs_regcache_stats_t *once;
} replay_world_t;

/* The two threads are a little out of order */
void replay_curve_add(void *arg, uint64_t time_ns, uint64_t bytes)
{
    replay_curve_t *curve = arg;
    uint64_t at           = ucs_max(curve->time_ns, curve->from_ns);
    uint64_t bin, end;

    for (; at < time_ns; at = end) {
        bin = (at - curve->from_ns) / curve->width_ns;
        if (bin >= REPLAY_CURVE_BINS) {
            break;
        }
        end = ucs_min(time_ns, curve->from_ns + (bin + 1) * curve->width_ns);
        curve->byte_ns[bin] += (double)curve->bytes * (end - at);
    }
    curve->time_ns = ucs_max(curve->time_ns, time_ns);
    curve->bytes   = bytes;
}

static void replay_world_use(replay_world_t *world, uint32_t index)
{
    const replay_use_t *use = &world->trace->uses[index];

    world->memhs[index] = replay_process_get(&world->process, use->address,
                                             use->length, use->access,
                                             use->signature);
}

static void replay_world_release(replay_world_t *world, uint32_t index)
{
    replay_process_put(&world->process, world->memhs[index]);
    world->memhs[index] = NULL;
}

static void replay_world_stats(const replay_world_t *world, uint64_t time_ns,
                               ucs_regcache_stats_t *stats)
{
    ucs_regcache_stats(world->process.engine, time_ns, stats);
    stats->lost_ns = world->process.lost_ns;
}

static void replay_world_event(replay_world_t *world)
{
    const replay_event_t *event = &world->trace->events[world->next++];
    const replay_unmap_t *unmap;

    if ((event->kind != REPLAY_SAY) && (world->trace->repeated.times > 1) &&
        (world->once->pinned_peak_bytes == 0) &&
        (event->time_ns >= world->trace->repeated.again_ns)) {
        replay_world_stats(world, world->process.main_ns, world->once);
    }

    if (world->process.main_ns < event->time_ns) {
        world->process.main_ns = event->time_ns;
    }
    switch (event->kind) {
    case REPLAY_USE:
        replay_world_use(world, event->index);
        break;
    case REPLAY_RELEASE:
        replay_world_release(world, event->index);
        break;
    case REPLAY_UNMAP:
        unmap = &world->trace->unmaps[event->index];
        ucs_regcache_unmapped(world->process.engine, unmap->start,
                              unmap->end - unmap->start);
        break;
    case REPLAY_SAY:
        replay_process_say(&world->process,
                           &world->trace->operations[event->index]);
        break;
    }
}

/* Is it an event that only comes while the rank is inside the library: a
 * registration for a receive that was posted before, or the end of a use? What
 * a recording does not say is taken for granted: since what it did last, the
 * rank has waited for it. */
static int replay_world_waits_for(const replay_world_t *world,
                                  const replay_event_t *event)
{
    const replay_trace_t *trace = world->trace;

    return (trace->operation_count > 0) &&
           ((event->kind == REPLAY_RELEASE) ||
            ((event->kind == REPLAY_USE) &&
             trace->uses[event->index].is_posted));
}

static void replay_world_go(replay_world_t *world)
{
    replay_process_t *process   = &world->process;
    const replay_trace_t *trace = world->trace;
    const replay_event_t *event;
    uint64_t main_ns;

    while (world->next < trace->event_count) {
        event   = &trace->events[world->next];
        main_ns = ucs_max(event->time_ns, process->main_ns);
        if (replay_world_waits_for(world, event)) {
            replay_process_wait_until(process, main_ns);
        }
        main_ns = ucs_max(main_ns, process->main_ns);
        if (replay_process_help_time(process) <= main_ns) {
            replay_process_help(process);
        } else {
            replay_world_event(world);
        }
    }
    replay_process_settle(process);
}

ucs_status_t replay_world_run(const replay_trace_t *trace,
                              const replay_params_t *params,
                              replay_curve_t *curve,
                              ucs_regcache_stats_t *once,
                              ucs_regcache_stats_t *all)
{
    replay_world_t world = {
        .trace   = trace,
        .once    = once,
        .process = {
            .params     = params,
            .page_size  = trace->page_size,
            .min_size   = trace->min_size,
            .main_ns    = trace->start_ns,
            .on_pinned  = (curve != NULL) ? replay_curve_add : NULL,
            .pinned_arg = curve
        }
    };
    ucs_status_t status;

    memset(once, 0, sizeof(*once));
    world.memhs = tool_calloc(trace->use_count, sizeof(*world.memhs));
    status = replay_process_open(&world.process);
    if (status == UCS_OK) {
        replay_world_go(&world);
        replay_world_stats(&world, trace->end_ns, all);
        replay_process_close(&world.process);
    }
    free(world.memhs);
    return status;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_warp.h"
#include "replay_random.h"

#include <tools/tool.h>

#include <ucs/predict/paper/periodicity.h>

#include <stdlib.h>
#include <string.h>

/* Windows that are tried, the longest first: a short one takes an inner loop
 * for the iteration */
static const unsigned replay_warp_windows[] = {1024, 256, 64, 16, 4, 2};

/* The inserted phase: few buffers of its own, in turn */
#define REPLAY_WARP_BUFFERS  4
#define REPLAY_WARP_USES     100
#define REPLAY_WARP_LENGTH   UINT64_C(65536)
#define REPLAY_WARP_GAP_NS   UINT64_C(1000000)
#define REPLAY_WARP_HOLD_NS  UINT64_C(10000)
#define REPLAY_WARP_ADDRESS  UINT64_C(0x100000000000)
#define REPLAY_WARP_PATH     UINT64_C(0x7761727068617365)


/*
 * Times
 */

static double replay_warp_factor(const replay_warp_t *warp, uint64_t *random)
{
    double factor = 1;

    if (warp->is_scaled) {
        factor *= exp2(2 * replay_random_uniform(random) - 1);
    }
    if (warp->noise > 0) {
        factor *= 1 + warp->noise * replay_random_normal(random);
    }
    return (factor > 0) ? factor : 0;
}

static void replay_warp_times(const replay_warp_t *warp, ucs_trace_t *trace)
{
    uint64_t random = warp->seed;
    uint64_t before = 0; /* as recorded */
    uint64_t now    = 0;
    uint64_t gap;
    size_t i;

    for (i = 0; i < trace->count; ++i) {
        gap = (i > 0) ? trace->events[i].time_ns - before : 0;
        before = trace->events[i].time_ns;
        now    = (i > 0) ? now + gap * replay_warp_factor(warp, &random) :
                           before;
        trace->events[i].time_ns = now;
    }
}

/*
 * Iterations
 */

static uint64_t replay_warp_value(const ucs_trace_event_t *event)
{
    return (event->signature * 31) ^ event->address;
}

/* The first use in the second half, or if there is none the last, that ends
 * two equal windows. @return The number of uses of the iteration before it, 0
 * if there is none; *from_p is set to the use. */
static unsigned replay_warp_period(const ucs_trace_t *trace, unsigned window,
                                   size_t *from_p)
{
    unsigned found = 0;
    ucs_predict_periodicity_h detector;
    unsigned period;
    size_t i;

    if (ucs_predict_periodicity_create(window, &detector) != UCS_OK) {
        return 0;
    }
    for (i = 0; (i < trace->count) &&
                ((found == 0) || (*from_p < trace->count / 2)); ++i) {
        if (trace->events[i].kind != UCS_TRACE_USE) {
            continue;
        }
        ucs_predict_periodicity_add(detector,
                                    replay_warp_value(&trace->events[i]),
                                    trace->events[i].time_ns);
        period = ucs_predict_periodicity_period(detector);
        if (period > 0) {
            found   = period;
            *from_p = i;
        }
    }
    ucs_predict_periodicity_destroy(detector);
    return found;
}

/* @return The event of the @a uses-th use from @a from on, or the end */
static size_t replay_warp_skip(const ucs_trace_t *trace, size_t from,
                               unsigned uses)
{
    for (; from < trace->count; ++from) {
        if ((trace->events[from].kind == UCS_TRACE_USE) && (uses-- == 0)) {
            break;
        }
    }
    return from;
}

/* Releases stay, at the cut: those of uses before it belong to them, and the
 * others find no use */
static void replay_warp_cut(ucs_trace_t *trace, size_t from, size_t until)
{
    uint64_t time_ns = trace->events[from].time_ns;
    uint64_t span    = (until < trace->count) ?
                               trace->events[until].time_ns - time_ns :
                               0;
    size_t kept      = from;
    size_t i;

    for (i = from; i < trace->count; ++i) {
        if ((i < until) && (trace->events[i].kind != UCS_TRACE_RELEASE)) {
            continue;
        }
        trace->events[kept]          = trace->events[i];
        trace->events[kept].time_ns -= (i < until) ?
                                       trace->events[i].time_ns - time_ns :
                                       span;
        ++kept;
    }
    trace->count = kept;
}

static int replay_warp_drop(const char *name, ucs_trace_t *trace)
{
    unsigned period = 0;
    size_t from     = 0;
    size_t i;

    for (i = 0; (i < sizeof(replay_warp_windows) / sizeof(unsigned)) &&
                (period == 0); ++i) {
        period = replay_warp_period(trace, replay_warp_windows[i], &from);
    }
    if (period == 0) {
        tool_message("%s: no iteration is found that could be dropped", name);
        return -1;
    }
    replay_warp_cut(trace, from, replay_warp_skip(trace, from, period));
    return 0;
}

/*
 * Phases
 */

static void replay_warp_insert(ucs_trace_t *trace)
{
    size_t from     = trace->count / 2;
    size_t added    = 2 * REPLAY_WARP_USES;
    uint64_t span   = REPLAY_WARP_USES * REPLAY_WARP_GAP_NS;
    ucs_trace_event_t event = {
        .kind      = UCS_TRACE_USE,
        .length    = REPLAY_WARP_LENGTH,
        .signature = REPLAY_WARP_PATH,
        .time_ns   = (trace->count > 0) ? trace->events[from].time_ns : 0
    };
    size_t i;

    trace->events = tool_realloc(trace->events, (trace->count + added) *
                                                        sizeof(event));
    memmove(&trace->events[from + added], &trace->events[from],
            (trace->count - from) * sizeof(event));
    trace->count += added;
    for (i = from + added; i < trace->count; ++i) {
        trace->events[i].time_ns += span;
    }
    for (i = 0; i < REPLAY_WARP_USES; ++i) {
        event.address = REPLAY_WARP_ADDRESS +
                        (i % REPLAY_WARP_BUFFERS) * REPLAY_WARP_LENGTH;
        trace->events[from + 2 * i]              = event;
        trace->events[from + 2 * i + 1]          = event;
        trace->events[from + 2 * i + 1].kind     = UCS_TRACE_RELEASE;
        trace->events[from + 2 * i + 1].time_ns += REPLAY_WARP_HOLD_NS;
        event.time_ns                           += REPLAY_WARP_GAP_NS;
    }
}

int replay_warp_apply(const replay_warp_t *warp, const char *name,
                      ucs_trace_t *trace)
{
    if (!warp->is_scaled && (warp->noise == 0) && !warp->drop &&
        !warp->insert) {
        return 0;
    }

    if (warp->drop && (replay_warp_drop(name, trace) != 0)) {
        return -1;
    }
    if (warp->insert) {
        replay_warp_insert(trace);
    }
    replay_warp_times(warp, trace);
    return 0;
}

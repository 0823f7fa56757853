/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay_trace.h"

#include <tools/tool.h>
#include <ucs/sys/math.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* With fewer uses there is nothing between start and end */
#define REPLAY_REPEAT_USES_MIN 6

/* Beginnings of the steady part, each of which takes a pass over all uses */
#define REPLAY_REPEAT_TRIES 32

/* Each event takes some 150 bytes */
#define REPLAY_REPEAT_EVENTS_MAX (UINT64_C(1) << 27)

/* Where in the recording something begins */
typedef enum replay_zone {
    REPLAY_BEFORE,
    REPLAY_STEADY,
    REPLAY_AFTER
} replay_zone_t;

/* Under construction: one pass after the other over what was recorded */
typedef struct replay_repeating {
    const tool_trace_t *raw;
    const uint32_t     *ends;
    uint32_t           *uses;       /* which events are uses */
    size_t             use_count;
    uint32_t           from, until; /* events */
    uint64_t           span_ns;     /* between these */
    uint64_t           times;
    uint32_t           id_stride;   /* of operations */
    tool_trace_t       *longer;
} replay_repeating_t;

/* --- The steady part ------------------------------------------------------ */

static void replay_repeat_list_uses(replay_repeating_t *r)
{
    size_t i;

    r->uses = tool_calloc(r->raw->count, sizeof(*r->uses));
    for (i = 0; i < r->raw->count; ++i) {
        if ((r->raw->events[i].kind == UCS_TRACE_USE) &&
            (r->ends[i] != REPLAY_NONE)) {
            r->uses[r->use_count++] = i;
        }
    }
}

static int replay_repeat_is_same(const ucs_trace_event_t *a,
                                 const ucs_trace_event_t *b)
{
    return (a->address == b->address) && (a->length == b->length) &&
           (a->signature == b->signature);
}

/* The uses before @a from backwards, then all backwards */
static const ucs_trace_event_t *replay_repeat_at(const replay_repeating_t *r,
                                                 size_t from, size_t i)
{
    return &r->raw->events[r->uses[(i < from) ? from - 1 - i :
                                   r->use_count - 1 - (i - from)]];
}

/* The Z function: same[i] is how many from i on are as those from 0 on */
static size_t *replay_repeat_same(const replay_repeating_t *r, size_t from)
{
    size_t count = from + r->use_count;
    size_t *same = tool_calloc(count + 1, sizeof(*same));
    size_t left  = 0;
    size_t right = 0;
    size_t i, n;

    for (i = 1; i < count; ++i) {
        n = (i < right) ? same[i - left] : 0;
        n = (i + n < right) ? n : ((i < right) ? right - i : 0);
        while ((i + n < count) && (n < from) &&
               replay_repeat_is_same(replay_repeat_at(r, from, n),
                                     replay_repeat_at(r, from, i + n))) {
            ++n;
        }
        same[i] = n;
        if (i + n > right) {
            left  = i;
            right = i + n;
        }
    }
    return same;
}

/* The best end of a part that begins at @a from, if it is better than the best
 * so far */
static void replay_repeat_try(const replay_repeating_t *r, size_t from,
                              replay_repeated_t *repeated)
{
    size_t count = r->use_count;
    size_t *same = replay_repeat_same(r, from);
    size_t i, n;

    for (i = from + count / 3; i < count; ++i) {
        n = same[from + count - i];
        if ((repeated->until == 0) || (n > repeated->matched) ||
            ((n == repeated->matched) && (repeated->from == from))) {
            repeated->from    = from;
            repeated->until   = i;
            repeated->matched = n;
        }
    }
    free(same);
}

static void replay_repeat_find(const replay_repeating_t *r,
                               replay_repeated_t *repeated)
{
    size_t third = r->use_count / 3;
    size_t step  = 1 + third / 2 / REPLAY_REPEAT_TRIES;
    size_t from;

    for (from = third; from <= third + third / 2; from += step) {
        replay_repeat_try(r, from, repeated);
    }
}

/* --- Playing it on -------------------------------------------------------- */

/* An end stays with its beginning */
static replay_zone_t replay_repeat_zone(const replay_repeating_t *r, size_t i)
{
    uint32_t begin = r->ends[i];

    return (begin < r->from)  ? REPLAY_BEFORE :
           (begin < r->until) ? REPLAY_STEADY :
                                REPLAY_AFTER;
}

/* What lasts through all of the steady part still does */
static void replay_repeat_pass(const replay_repeating_t *r, replay_zone_t zone,
                               uint64_t pass)
{
    ucs_trace_event_t *copy;
    uint32_t begin;
    size_t i;

    for (i = 0; i < r->raw->count; ++i) {
        begin = r->ends[i];
        if ((begin == REPLAY_NONE) || (zone != replay_repeat_zone(r, i))) {
            continue;
        }
        copy           = &r->longer->events[r->longer->count++];
        *copy          = r->raw->events[i];
        copy->time_ns += (((begin < r->from) && (i >= r->until)) ?
                                  r->times - 1 : pass) * r->span_ns;
        copy->id      += (copy->id != 0) ? pass * r->id_stride : 0;
    }
}

/* @return At most so many come of it */
static uint64_t replay_repeat_events(const replay_repeating_t *r)
{
    uint64_t steady = 0;
    size_t i;

    for (i = 0; i < r->raw->count; ++i) {
        steady += (replay_repeat_zone(r, i) == REPLAY_STEADY);
    }
    return r->raw->count + (r->times - 1) * steady;
}

static void replay_repeat_play(replay_repeating_t *r)
{
    uint64_t pass;
    size_t i;

    for (i = 0; i < r->raw->count; ++i) {
        r->id_stride = ucs_max(r->id_stride, r->raw->events[i].id + 1);
    }
    *r->longer        = *r->raw;
    r->longer->count  = 0;
    r->longer->events = tool_calloc(replay_repeat_events(r),
                                    sizeof(*r->longer->events));
    replay_repeat_pass(r, REPLAY_BEFORE, 0);
    for (pass = 0; pass < r->times; ++pass) {
        replay_repeat_pass(r, REPLAY_STEADY, pass);
    }
    replay_repeat_pass(r, REPLAY_AFTER, r->times - 1);
    replay_trace_sort(r->longer);
}

static uint64_t replay_repeat_times(const replay_repeat_t *repeat,
                                    const replay_repeating_t *r)
{
    const ucs_trace_event_t *events = r->raw->events;
    uint64_t lasts = events[r->raw->count - 1].time_ns - events[0].time_ns;

    if (repeat->times > 0) {
        return repeat->times;
    }
    return (repeat->ns > lasts) ?
                   1 + (repeat->ns - lasts + r->span_ns - 1) / r->span_ns : 1;
}

/* @return 0, or -1 after a message */
static int replay_repeat_steady(const replay_repeat_t *repeat,
                                replay_repeating_t *r, replay_trace_t *trace)
{
    replay_repeated_t *repeated = &trace->repeated;
    uint64_t events;

    if (r->use_count < REPLAY_REPEAT_USES_MIN) {
        tool_message("%s: --repeat needs %d uses, it has %zu", trace->name,
                     REPLAY_REPEAT_USES_MIN, r->use_count);
        return -1;
    }
    replay_repeat_find(r, repeated);
    r->from            = r->uses[repeated->from];
    r->until           = r->uses[repeated->until];
    repeated->again_ns = r->raw->events[r->until].time_ns;
    r->span_ns         = repeated->again_ns - r->raw->events[r->from].time_ns;
    if (r->span_ns == 0) {
        tool_message("%s: --repeat: the uses have all the same time",
                     trace->name);
        return -1;
    }
    r->times = repeated->times = replay_repeat_times(repeat, r);
    events = replay_repeat_events(r);
    if (events > REPLAY_REPEAT_EVENTS_MAX) {
        tool_message("%s: --repeat: %" PRIu64 " times, %" PRIu64 " events, are "
                     "more than %" PRIu64, trace->name, r->times, events,
                     REPLAY_REPEAT_EVENTS_MAX);
        return -1;
    }
    return 0;
}

int replay_repeat_apply(const replay_repeat_t *repeat, const tool_trace_t *raw,
                        const uint32_t *ends, replay_trace_t *trace,
                        tool_trace_t *longer)
{
    replay_repeating_t r = {.raw = raw, .ends = ends, .longer = longer};
    int ret;

    replay_repeat_list_uses(&r);
    ret = replay_repeat_steady(repeat, &r, trace);
    if (ret == 0) {
        replay_repeat_play(&r);
    }
    free(r.uses);
    return ret;
}

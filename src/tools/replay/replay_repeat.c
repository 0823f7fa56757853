/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay_trace.h"

#include <tools/hash.h>
#include <tools/tool.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* With fewer uses there is nothing between start and end */
#define REPLAY_REPEAT_USES_MIN 6

/* Beginnings of the steady part, each of which takes a pass over all uses */
#define REPLAY_REPEAT_TRIES 32

/* Each use takes some 150 bytes */
#define REPLAY_REPEAT_USES_MAX (UINT64_C(1) << 26)

/* When a receive was posted, by its number */
KHASH_MAP_INIT_INT64(replay_posts, uint64_t)

/* Where in the recording something begins */
typedef enum replay_zone {
    REPLAY_BEFORE,
    REPLAY_STEADY,
    REPLAY_AFTER
} replay_zone_t;

/* Under construction: one pass after the other over what was recorded */
typedef struct replay_repeating {
    replay_trace_t  *trace;
    replay_trace_t  longer;
    size_t          from, until;             /* uses */
    size_t          unmap_from, unmap_until;
    uint64_t        from_ns, until_ns;
    uint64_t        times;
    uint64_t        id_stride;               /* of operations */
    khash_t(replay_posts) posts;
} replay_repeating_t;

/* --- The steady part ------------------------------------------------------ */

static int replay_repeat_is_same(const replay_use_t *a, const replay_use_t *b)
{
    return (a->address == b->address) && (a->length == b->length) &&
           (a->signature == b->signature);
}

/* The uses before @a from backwards, then all backwards */
static const replay_use_t *replay_repeat_at(const replay_trace_t *trace,
                                            size_t from, size_t i)
{
    return (i < from) ? &trace->uses[from - 1 - i] :
                        &trace->uses[trace->use_count - 1 - (i - from)];
}

/* The Z function: same[i] is how many from i on are as those from 0 on */
static size_t *replay_repeat_same(const replay_trace_t *trace, size_t from)
{
    size_t count = from + trace->use_count;
    size_t *same = tool_calloc(count + 1, sizeof(*same));
    size_t left  = 0;
    size_t right = 0;
    size_t i, n;

    for (i = 1; i < count; ++i) {
        n = (i < right) ? same[i - left] : 0;
        n = (i + n < right) ? n : ((i < right) ? right - i : 0);
        while ((i + n < count) && (n < from) &&
               replay_repeat_is_same(replay_repeat_at(trace, from, n),
                                     replay_repeat_at(trace, from, i + n))) {
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
static void replay_repeat_try(const replay_trace_t *trace, size_t from,
                              replay_repeated_t *repeated)
{
    size_t count = trace->use_count;
    size_t *same = replay_repeat_same(trace, from);
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

static void replay_repeat_find(const replay_trace_t *trace,
                               replay_repeated_t *repeated)
{
    size_t third = trace->use_count / 3;
    size_t step  = 1 + third / 2 / REPLAY_REPEAT_TRIES;
    size_t from;

    for (from = third; from <= third + third / 2; from += step) {
        replay_repeat_try(trace, from, repeated);
    }
}

/* --- Playing it on -------------------------------------------------------- */

/* Of an index or a time */
static replay_zone_t replay_repeat_zone(uint64_t at, uint64_t from,
                                        uint64_t until)
{
    return (at < from) ? REPLAY_BEFORE :
           (at < until) ? REPLAY_STEADY : REPLAY_AFTER;
}

static uint64_t replay_repeat_span(const replay_repeating_t *r)
{
    return r->until_ns - r->from_ns;
}

/* What lasts through all of the steady part still does */
static void replay_repeat_use(replay_repeating_t *r, size_t index,
                              uint64_t pass)
{
    replay_use_t *use = &r->longer.uses[r->longer.use_count++];

    *use           = r->trace->uses[index];
    use->start_ns += pass * replay_repeat_span(r);
    use->end_ns   += ((index < r->from) && (use->end_ns >= r->until_ns)) ?
                           (r->times - 1) * replay_repeat_span(r) :
                           pass * replay_repeat_span(r);
}

/* Uses and unmaps are in order of time, and so are their copies */
static void replay_repeat_event(replay_repeating_t *r,
                                const replay_event_t *event,
                                replay_zone_t zone, uint64_t pass)
{
    replay_event_t *copy = &r->longer.events[r->longer.event_count];
    int is_unmap         = event->kind == REPLAY_UNMAP;
    size_t from          = is_unmap ? r->unmap_from : r->from;
    size_t until         = is_unmap ? r->unmap_until : r->until;

    if (replay_repeat_zone(event->index, from, until) != zone) {
        return;
    }
    *copy          = *event;
    copy->time_ns += pass * replay_repeat_span(r);
    copy->index   += pass * (until - from);
    if (event->kind == REPLAY_USE) {
        replay_repeat_use(r, event->index, pass);
    } else if (is_unmap) {
        r->longer.unmaps[r->longer.unmap_count++] =
                r->trace->unmaps[event->index];
    } else {
        copy->time_ns = r->longer.uses[copy->index].end_ns;
    }
    ++r->longer.event_count;
}

static uint64_t replay_repeat_number(const ucs_operation_t *operation)
{
    return ((uint64_t)operation->thread << 32) | operation->id;
}

/* The end of a receive goes with its post, wherever it lies */
static replay_zone_t replay_repeat_said(const replay_repeating_t *r,
                                        const ucs_operation_t *operation)
{
    uint64_t time_ns = operation->time;
    khiter_t post    = kh_get(replay_posts, &r->posts,
                              replay_repeat_number(operation));

    if ((operation->id != 0) && (post != kh_end(&r->posts))) {
        time_ns = kh_value(&r->posts, post);
    }
    return replay_repeat_zone(time_ns, r->from_ns, r->until_ns);
}

static void replay_repeat_operation(replay_repeating_t *r,
                                    const ucs_operation_t *operation,
                                    replay_zone_t zone, uint64_t pass)
{
    ucs_operation_t *copy = &r->longer.operations[r->longer.operation_count];

    if (replay_repeat_said(r, operation) == zone) {
        *copy       = *operation;
        copy->time += pass * replay_repeat_span(r);
        copy->id   += (copy->id != 0) ? pass * r->id_stride : 0;
        ++r->longer.operation_count;
    }
}

static void replay_repeat_pass(replay_repeating_t *r, replay_zone_t zone,
                               uint64_t pass)
{
    size_t i;

    for (i = 0; i < r->trace->event_count; ++i) {
        replay_repeat_event(r, &r->trace->events[i], zone, pass);
    }
    for (i = 0; i < r->trace->operation_count; ++i) {
        replay_repeat_operation(r, &r->trace->operations[i], zone, pass);
    }
}

static void replay_repeat_posts(replay_repeating_t *r)
{
    const ucs_operation_t *operation;
    khiter_t iter;
    size_t i;
    int ret;

    for (i = 0; i < r->trace->operation_count; ++i) {
        operation = &r->trace->operations[i];
        if (operation->id == 0) {
            continue;
        }
        if (operation->id >= r->id_stride) {
            r->id_stride = operation->id + 1;
        }
        if (operation->kind == UCS_OPERATION_RECEIVE) {
            iter = kh_put(replay_posts, &r->posts,
                          replay_repeat_number(operation), &ret);
            kh_value(&r->posts, iter) = operation->time;
        }
    }
}

static void replay_repeat_unmaps(replay_repeating_t *r)
{
    const replay_event_t *event = r->trace->events;

    for (; event < r->trace->events + r->trace->event_count; ++event) {
        if (event->kind == REPLAY_UNMAP) {
            r->unmap_from  += event->time_ns < r->from_ns;
            r->unmap_until += event->time_ns < r->until_ns;
        }
    }
}

static void replay_repeat_begin(replay_repeating_t *r)
{
    const replay_trace_t *trace = r->trace;
    replay_trace_t *longer      = &r->longer;
    size_t times                = r->times;

    longer->events     = tool_calloc(times * trace->event_count,
                                     sizeof(*longer->events));
    longer->uses       = tool_calloc(times * trace->use_count,
                                     sizeof(*longer->uses));
    longer->unmaps     = tool_calloc(times * trace->unmap_count,
                                     sizeof(*longer->unmaps));
    longer->operations = tool_calloc(times * trace->operation_count,
                                     sizeof(*longer->operations));
    replay_repeat_posts(r);
    replay_repeat_unmaps(r);
}

/* In place of what was recorded */
static void replay_repeat_end(replay_repeating_t *r)
{
    replay_trace_t *trace = r->trace;

    free(trace->events);
    free(trace->uses);
    free(trace->unmaps);
    free(trace->operations);
    trace->events          = r->longer.events;
    trace->event_count     = r->longer.event_count;
    trace->uses            = r->longer.uses;
    trace->use_count       = r->longer.use_count;
    trace->unmaps          = r->longer.unmaps;
    trace->unmap_count     = r->longer.unmap_count;
    trace->operations      = r->longer.operations;
    trace->operation_count = r->longer.operation_count;
    trace->end_ns         += (r->times - 1) * replay_repeat_span(r);
    kh_destroy_inplace(replay_posts, &r->posts);
    replay_sort(trace->events, trace->event_count, sizeof(*trace->events),
                offsetof(replay_event_t, time_ns));
    replay_sort(trace->operations, trace->operation_count,
                sizeof(*trace->operations), offsetof(ucs_operation_t, time));
}

static uint64_t replay_repeat_times(const replay_repeat_t *repeat,
                                    const replay_repeating_t *r)
{
    uint64_t lasts = r->trace->end_ns - r->trace->start_ns;
    uint64_t span  = replay_repeat_span(r);

    if (repeat->times > 0) {
        return repeat->times;
    }
    return (repeat->ns > lasts) ? 1 + (repeat->ns - lasts + span - 1) / span :
                                  1;
}

int replay_repeat_apply(const replay_repeat_t *repeat, replay_trace_t *trace)
{
    replay_repeated_t *repeated = &trace->repeated;
    replay_repeating_t r        = {.trace = trace, .id_stride = 1};
    uint64_t pass;

    if ((repeat->times == 0) && (repeat->ns == 0)) {
        return 0;
    }
    if (trace->use_count < REPLAY_REPEAT_USES_MIN) {
        tool_message("%s: --repeat needs %d uses, it has %zu", trace->name,
                     REPLAY_REPEAT_USES_MIN, trace->use_count);
        return -1;
    }
    replay_repeat_find(trace, repeated);
    r.from     = repeated->from;
    r.until    = repeated->until;
    r.from_ns  = trace->uses[r.from].start_ns;
    r.until_ns = trace->uses[r.until].start_ns;
    if (r.until_ns == r.from_ns) {
        tool_message("%s: --repeat: the uses have all the same time",
                     trace->name);
        return -1;
    }
    r.times = repeated->times = replay_repeat_times(repeat, &r);
    if (r.times > REPLAY_REPEAT_USES_MAX / trace->use_count) {
        tool_message("%s: --repeat: %" PRIu64 " times %zu uses are more than "
                     "%" PRIu64, trace->name, r.times, trace->use_count,
                     REPLAY_REPEAT_USES_MAX);
        return -1;
    }
    repeated->again_ns = r.until_ns;

    replay_repeat_begin(&r);
    replay_repeat_pass(&r, REPLAY_BEFORE, 0);
    for (pass = 0; pass < r.times; ++pass) {
        replay_repeat_pass(&r, REPLAY_STEADY, pass);
    }
    replay_repeat_pass(&r, REPLAY_AFTER, r.times - 1);
    replay_repeat_end(&r);
    return 0;
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay_trace.h"

#include <tools/tool.h>

#include <stdlib.h>
#include <string.h>

/* Events are counted in 32 bits, and each takes two bytes at least */
#define REPLAY_READ_MAX (1u << 30)

/* Posted receives that are open at once, at most; of more the latest are */
#define REPLAY_POSTS_MAX 256

/* --- Order ---------------------------------------------------------------- */

typedef struct replay_order {
    uint64_t time_ns;
    size_t   index;
} replay_order_t;

static int replay_order_compare(const void *a, const void *b)
{
    const replay_order_t *x = a;
    const replay_order_t *y = b;

    if (x->time_ns != y->time_ns) {
        return (x->time_ns < y->time_ns) ? -1 : 1;
    }
    return (x->index > y->index) - (x->index < y->index);
}

void replay_trace_sort(tool_trace_t *raw)
{
    replay_order_t *order = tool_calloc(raw->count, sizeof(*order));
    int is_ordered        = 1;
    ucs_trace_event_t *sorted;
    size_t i;

    for (i = 0; i < raw->count; ++i) {
        order[i]    = (replay_order_t){raw->events[i].time_ns, i};
        is_ordered &= (i == 0) || (order[i - 1].time_ns <= order[i].time_ns);
    }
    if (!is_ordered) {
        qsort(order, raw->count, sizeof(*order), replay_order_compare);
        sorted = tool_calloc(raw->count, sizeof(*sorted));
        for (i = 0; i < raw->count; ++i) {
            sorted[i] = raw->events[order[i].index];
        }
        free(raw->events);
        raw->events = sorted;
    }
    free(order);
}

/* --- Files ---------------------------------------------------------------- */

int replay_trace_read(const char *file, tool_trace_t *raw)
{
    tool_trace_error_t error;
    char *buffer;
    size_t size;
    int ret;

    buffer = tool_input_read(file, REPLAY_READ_MAX, &size);
    if (buffer == NULL) {
        return -1;
    }

    ret = tool_trace_decode(buffer, size, raw, &error);
    free(buffer);
    if (ret != 0) {
        tool_message("%s: byte %zu: %s", file, error.offset, error.text);
        return -1;
    }
    if (raw->is_cut) {
        tool_message("%s: cut short, as when its process is killed; events "
                     "read: %zu, bytes of one more left out: %zu",
                     file, raw->count, raw->cut);
    }
    replay_trace_sort(raw);
    return 0;
}

/* --- Pairs ---------------------------------------------------------------- */

/* An event that begins or ends something, by what both have in common: of a use all
 * but the time, of an operation, which has no length here, its number and its thread */
typedef struct replay_mark {
    uint64_t address, length, signature;
    uint32_t access;
    uint32_t index; /* of the event; no part of that */
} replay_mark_t;

static replay_mark_t replay_mark(const ucs_trace_event_t *e, uint32_t index)
{
    return (e->kind == UCS_TRACE_OPERATION) ?
                   (replay_mark_t){.address = e->id,
                                   .access  = e->access /
                                              UCS_TRACE_OPERATION_THREAD,
                                   .index   = index} :
                   (replay_mark_t){e->address, e->length, e->signature,
                                   e->access, index};
}

static int replay_mark_differs(const replay_mark_t *x, const replay_mark_t *y)
{
    return memcmp(x, y, offsetof(replay_mark_t, index));
}

static int replay_mark_compare(const void *a, const void *b)
{
    const replay_mark_t *x = a;
    const replay_mark_t *y = b;
    int differs            = replay_mark_differs(x, y);

    return (differs != 0) ? differs :
                            (x->index > y->index) - (x->index < y->index);
}

static int replay_mark_begins(const tool_trace_t *raw,
                              const replay_mark_t *mark)
{
    const ucs_trace_event_t *e = &raw->events[mark->index];

    return (e->kind == UCS_TRACE_USE) ||
           ((e->kind == UCS_TRACE_OPERATION) &&
            ((e->access & UCS_TRACE_OPERATION_KIND) == UCS_OPERATION_RECEIVE));
}

/* @return How many; the others are left out, and counted, or stand alone */
static size_t replay_trace_marks(replay_trace_t *trace, const tool_trace_t *raw,
                                 replay_mark_t *marks, uint32_t *ends)
{
    size_t count = 0;
    const ucs_trace_event_t *e;
    size_t i;

    for (i = 0; i < raw->count; ++i) {
        e       = &raw->events[i];
        ends[i] = i;
        if (e->kind == UCS_TRACE_LOST) {
            trace->lost += e->length;
            ends[i]      = REPLAY_NONE;
        } else if ((e->kind <= UCS_TRACE_RELEASE) &&
                   (e->length < trace->min_size)) {
            trace->small += (e->kind == UCS_TRACE_USE);
            ends[i]       = REPLAY_NONE;
        } else if ((e->kind <= UCS_TRACE_RELEASE) ||
                   ((e->kind == UCS_TRACE_OPERATION) && (e->id != 0))) {
            marks[count++] = replay_mark(e, i);
        }
    }
    return count;
}

/* An end is that of the first of those that look the same and are open. A release
 * without a use is left out, the end of an operation is heard all the same.
 * @return As in @ref replay_repeat_apply */
static uint32_t *replay_trace_pairs(replay_trace_t *trace,
                                    const tool_trace_t *raw)
{
    uint32_t *ends       = tool_calloc(raw->count, sizeof(*ends));
    replay_mark_t *marks = tool_calloc(raw->count, sizeof(*marks));
    size_t count         = replay_trace_marks(trace, raw, marks, ends);
    size_t open          = 0;
    size_t i;

    qsort(marks, count, sizeof(*marks), replay_mark_compare);
    for (i = 0; i < count; ++i) {
        if ((i > 0) && replay_mark_differs(&marks[i - 1], &marks[i])) {
            open = i;
        }
        if (replay_mark_begins(raw, &marks[i])) {
            continue;
        }
        while ((open < i) && !replay_mark_begins(raw, &marks[open])) {
            ++open;
        }
        if (open < i) {
            ends[marks[i].index] = marks[open++].index;
        } else if (raw->events[marks[i].index].kind == UCS_TRACE_RELEASE) {
            ends[marks[i].index] = REPLAY_NONE;
            ++trace->unmatched;
        }
    }
    free(marks);
    return ends;
}

/* --- Trace ---------------------------------------------------------------- */

static void replay_trace_add_event(replay_trace_t *trace, uint64_t time_ns,
                                   replay_kind_t kind, size_t index)
{
    trace->events[trace->event_count++] = (replay_event_t){time_ns, index, kind};
}

static void replay_trace_add_use(replay_trace_t *trace,
                                 const ucs_trace_event_t *e)
{
    replay_trace_add_event(trace, e->time_ns, REPLAY_USE, trace->use_count);
    trace->uses[trace->use_count++] = (replay_use_t){
        .start_ns  = e->time_ns,
        .end_ns    = UINT64_MAX,
        .address   = e->address,
        .length    = e->length,
        .signature = e->signature,
        .access    = e->access
    };
}

/* A kind that a later version knows says nothing here */
static void replay_trace_add_operation(replay_trace_t *trace,
                                       const ucs_trace_event_t *e)
{
    uint32_t kind = e->access & UCS_TRACE_OPERATION_KIND;

    if (kind < UCS_OPERATION_LAST) {
        replay_trace_add_event(trace, e->time_ns, REPLAY_SAY,
                               trace->operation_count);
        trace->operations[trace->operation_count++] = (ucs_operation_t){
            .time    = e->time_ns,
            .address = e->address,
            .length  = e->length,
            .label   = (uint32_t)e->signature,
            .id      = e->id,
            .kind    = kind,
            .thread  = e->access / UCS_TRACE_OPERATION_THREAD
        };
    }
}

/* @a ends has of a use that was added its index in place of the event's own */
static void replay_trace_add(replay_trace_t *trace, const ucs_trace_event_t *e,
                             uint32_t *ends, size_t i)
{
    uint64_t mask = trace->page_size - 1;
    uint64_t end;

    switch (e->kind) {
    case UCS_TRACE_USE:
        ends[i] = trace->use_count;
        replay_trace_add_use(trace, e);
        break;
    case UCS_TRACE_RELEASE:
        trace->uses[ends[ends[i]]].end_ns = e->time_ns;
        replay_trace_add_event(trace, e->time_ns, REPLAY_RELEASE,
                               ends[ends[i]]);
        break;
    case UCS_TRACE_UNMAP:
        end = e->address + e->length;
        trace->unmaps[trace->unmap_count] = (replay_unmap_t){
            .start = e->address & ~mask,
            .end   = (end > UINT64_MAX - mask) ? ~mask : (end + mask) & ~mask
        };
        replay_trace_add_event(trace, e->time_ns, REPLAY_UNMAP,
                               trace->unmap_count++);
        break;
    default:
        replay_trace_add_operation(trace, e);
        break;
    }
}

/* Each posted receive has one use at most, the next of its range. Linear in
 * what is open, which are few. */
static void replay_trace_match_posts(replay_trace_t *trace)
{
    const ucs_operation_t *posts[REPLAY_POSTS_MAX];
    const ucs_operation_t *operation;
    size_t next  = 0;
    size_t count = 0;
    size_t i, j;

    for (i = 0; i < trace->use_count; ++i) {
        for (; (next < trace->operation_count) &&
               (trace->operations[next].time <= trace->uses[i].start_ns);
             ++next) {
            operation = &trace->operations[next];
            if ((operation->kind == UCS_OPERATION_RECEIVE) &&
                (operation->length > 0)) {
                posts[count++ % REPLAY_POSTS_MAX] = operation;
            }
        }
        for (j = 0; (j < count) && (j < REPLAY_POSTS_MAX); ++j) {
            if ((posts[j] != NULL) &&
                (posts[j]->address == trace->uses[i].address) &&
                (posts[j]->length >= trace->uses[i].length)) {
                trace->uses[i].is_posted = 1;
                posts[j]                 = NULL;
                break;
            }
        }
    }
}

static void replay_trace_close(replay_trace_t *trace)
{
    size_t i;

    for (i = 0; i < trace->use_count; ++i) {
        if (trace->uses[i].end_ns == UINT64_MAX) {
            trace->uses[i].end_ns = trace->end_ns;
            replay_trace_add_event(trace, trace->end_ns, REPLAY_RELEASE, i);
            ++trace->open;
        }
    }
}

static void replay_trace_fill(replay_trace_t *trace, const tool_trace_t *raw,
                              uint32_t *ends)
{
    size_t count = raw->count;
    size_t i;

    trace->events     = tool_calloc(2 * count, sizeof(*trace->events));
    trace->uses       = tool_calloc(count, sizeof(*trace->uses));
    trace->unmaps     = tool_calloc(count, sizeof(*trace->unmaps));
    trace->operations = tool_calloc(count, sizeof(*trace->operations));
    if (count > 0) {
        trace->start_ns = raw->events[0].time_ns;
        trace->end_ns   = raw->events[count - 1].time_ns;
    }
    for (i = 0; i < count; ++i) {
        if (ends[i] != REPLAY_NONE) {
            replay_trace_add(trace, &raw->events[i], ends, i);
        }
    }
    replay_trace_close(trace);
    replay_trace_match_posts(trace);
}

int replay_trace_prepare(const tool_trace_t *raw, const char *name,
                         uint64_t min_size, const replay_repeat_t *repeat,
                         replay_trace_t *trace)
{
    tool_trace_t longer = {};
    uint32_t *ends;
    int ret = 0;

    memset(trace, 0, sizeof(*trace));
    trace->name      = tool_strdup(name);
    trace->page_size = raw->header.page_size;
    trace->min_size  = min_size;
    ends             = replay_trace_pairs(trace, raw);
    if ((repeat != NULL) && ((repeat->times > 0) || (repeat->ns > 0))) {
        ret = replay_repeat_apply(repeat, raw, ends, trace, &longer);
        raw = &longer;
        free(ends);
        ends = replay_trace_pairs(trace, raw);
    }
    if (ret == 0) {
        replay_trace_fill(trace, raw, ends);
    } else {
        replay_trace_cleanup(trace);
    }
    tool_trace_cleanup(&longer);
    free(ends);
    return ret;
}

void replay_trace_cleanup(replay_trace_t *trace)
{
    free(trace->name);
    free(trace->events);
    free(trace->uses);
    free(trace->unmaps);
    free(trace->operations);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_integral.h"
#include "replay_random.h"

#include <tools/tool.h>

#include <ucs/predict/paper/periodicity.h>

#include <stdlib.h>

/* Overdue by this share of the period: it does not come any more. The wider of
 * the two tolerances by which Li et al. rate predictions. */
#define REPLAY_PERIODIC_SLACK 0.05

/* A window of one or two takes every repetition for a period */
#define REPLAY_PERIODIC_WINDOW_MIN 4u

/* An idle item is registered in [from_ns, until_ns); while it is in use,
 * from_ns is since when */
typedef struct replay_periodic_item {
    uint64_t from_ns;
    uint64_t until_ns;
    uint64_t due_ns;     /* of its latest use, 0: no prediction */
    uint64_t period_ns;
    uint32_t users;
    uint8_t  is_planned; /* idle, and the interval above counts */
    uint8_t  is_ahead;   /* of which the start is a registration ahead */
    uint8_t  is_gone;    /* unmapped while in use */
} replay_periodic_item_t;

typedef struct replay_change {
    uint64_t time_ns;
    uint64_t bytes;      /* wraps for less */
} replay_change_t;

/* Intervals are known when they end; the integral wants them in order */
typedef struct replay_periodic {
    const replay_trace_t      *trace;
    const replay_params_t     *params;
    ucs_predict_periodicity_h detector;
    replay_periodic_item_t    *items;
    uint32_t                  *served;   /* by use: the item that it uses */
    replay_change_t           *changes;
    size_t                    count;
    size_t                    capacity;
    replay_figures_t          *figures;
} replay_periodic_t;


static void replay_periodic_change(replay_periodic_t *periodic,
                                   uint64_t time_ns, uint64_t bytes)
{
    periodic->changes = tool_grow(periodic->changes, periodic->count,
                                  &periodic->capacity,
                                  sizeof(*periodic->changes));
    periodic->changes[periodic->count].time_ns = time_ns;
    periodic->changes[periodic->count].bytes   = bytes;
    ++periodic->count;
}

static void replay_periodic_interval(replay_periodic_t *periodic,
                                     uint32_t item, uint64_t from_ns,
                                     uint64_t until_ns)
{
    uint64_t bytes = replay_item_bytes(&periodic->trace->items[item]);

    if (from_ns < until_ns) {
        replay_periodic_change(periodic, from_ns, bytes);
        replay_periodic_change(periodic, until_ns, -bytes);
    }
}

static int replay_periodic_is_live(const replay_periodic_item_t *item,
                                   uint64_t now)
{
    return !item->is_gone &&
           ((item->users > 0) || (item->is_planned && (item->from_ns <= now) &&
                                  (now < item->until_ns)));
}

/* The item itself, or a registered one that contains it */
static uint32_t replay_periodic_find(const replay_periodic_t *periodic,
                                     uint32_t item, uint64_t now)
{
    const replay_trace_t *trace = periodic->trace;
    uint32_t i, cover;

    if (replay_periodic_is_live(&periodic->items[item], now)) {
        return item;
    }
    for (i = trace->cover_first[item]; i < trace->cover_first[item + 1]; ++i) {
        cover = trace->covers[i];
        if (replay_periodic_is_live(&periodic->items[cover], now)) {
            return cover;
        }
    }
    return item;
}

/* What an idle item was registered for is over at @a now */
static void replay_periodic_end(replay_periodic_t *periodic, uint32_t index,
                                uint64_t now)
{
    replay_periodic_item_t *item = &periodic->items[index];

    if (!item->is_planned) {
        return;
    }
    item->is_planned = 0;
    periodic->figures->wasted += item->is_ahead && (item->from_ns < now);
    replay_periodic_interval(periodic, index, item->from_ns,
                             (item->until_ns < now) ? item->until_ns : now);
}

static void replay_periodic_learn(replay_periodic_t *periodic,
                                  const replay_use_t *use, uint32_t index)
{
    replay_periodic_item_t *item = &periodic->items[index];

    ucs_predict_periodicity_add(periodic->detector,
                                replay_hash(use->signature,
                                                   use->address),
                                use->start_ns);
    item->due_ns = 0;
    if (ucs_predict_periodicity_due(periodic->detector, &item->due_ns)) {
        item->period_ns = item->due_ns - use->start_ns;
    }
}

static void replay_periodic_use(replay_periodic_t *periodic, uint32_t index)
{
    const replay_use_t *use   = &periodic->trace->uses[index];
    replay_figures_t *figures = periodic->figures;
    uint32_t served           = replay_periodic_find(periodic, use->item,
                                                     use->start_ns);
    replay_periodic_item_t *item = &periodic->items[served];

    ++figures->uses;
    periodic->served[index] = served;
    if (replay_periodic_is_live(item, use->start_ns)) {
        ++figures->on_time;
        item->is_planned = 0; /* and goes on as it was */
    } else {
        figures->missed += !use->is_cold;
        figures->cold   += use->is_cold;
        replay_integral_register(
                figures, periodic->trace,
                replay_item_bytes(&periodic->trace->items[use->item]));
        replay_periodic_end(periodic, served, use->start_ns);
        if (item->users == 0) {
            item->from_ns = use->start_ns;
        }
    }
    ++item->users;
    replay_periodic_learn(periodic, use, served);
}

static void replay_periodic_release(replay_periodic_t *periodic,
                                    uint32_t index, uint64_t now)
{
    const replay_params_t *params = periodic->params;
    uint32_t served               = periodic->served[index];
    replay_periodic_item_t *item  = &periodic->items[served];
    uint64_t bytes                = replay_item_bytes(
            &periodic->trace->items[served]);
    double lead                   = replay_model_lead_ns(periodic->trace,
                                                         params, bytes);
    double slack                  = REPLAY_PERIODIC_SLACK * item->period_ns;
    double drop                   = params->deregister_cost.base_ns +
                                    params->deregister_cost.page_ns *
                                    (bytes / periodic->trace->page_size);

    if (--item->users > 0) {
        return;
    }
    if (item->is_gone || (item->due_ns == 0)) {
        item->is_gone = 0;
        replay_periodic_interval(periodic, served, item->from_ns, now);
        return;
    }
    item->is_planned = 1;
    item->until_ns   = item->due_ns + ((slack > lead) ? slack : lead);
    item->until_ns   = (item->until_ns > now) ? item->until_ns : now;
    item->is_ahead   = (item->due_ns > now + lead + drop);
    if (item->is_ahead) {
        replay_periodic_interval(periodic, served, item->from_ns, now);
        item->from_ns = item->due_ns - lead;
    }
}

static void replay_periodic_unmap(replay_periodic_t *periodic,
                                  const replay_unmap_t *unmap, uint64_t now)
{
    const replay_item_t *items = periodic->trace->items;
    uint32_t i;

    for (i = 0; i < periodic->trace->item_count; ++i) {
        if (replay_item_is_touched(&items[i], unmap)) {
            periodic->items[i].is_gone = (periodic->items[i].users > 0);
            replay_periodic_end(periodic, i, now);
        }
    }
}

static int replay_periodic_compare(const void *a, const void *b)
{
    const replay_change_t *x = a;
    const replay_change_t *y = b;

    if (x->time_ns != y->time_ns) {
        return (x->time_ns < y->time_ns) ? -1 : 1;
    }
    /* What goes at a time goes before what comes */
    return ((int64_t)x->bytes > (int64_t)y->bytes) -
           ((int64_t)x->bytes < (int64_t)y->bytes);
}

static void replay_periodic_integrate(replay_periodic_t *periodic,
                                      replay_integral_t *integral)
{
    const replay_change_t *change = periodic->changes;

    if (periodic->count > 0) {
        qsort(periodic->changes, periodic->count, sizeof(*change),
              replay_periodic_compare);
    }
    for (; change < periodic->changes + periodic->count; ++change) {
        replay_integral_to(integral, change->time_ns);
        replay_integral_add(integral, change->bytes);
    }
}

static void replay_periodic_events(replay_periodic_t *periodic)
{
    const replay_trace_t *trace = periodic->trace;
    const replay_event_t *event;
    size_t i;

    for (i = 0; i < trace->event_count; ++i) {
        event = &trace->events[i];
        switch (event->kind) {
        case REPLAY_USE:
            replay_periodic_use(periodic, event->index);
            break;
        case REPLAY_RELEASE:
            replay_periodic_release(periodic, event->index, event->time_ns);
            break;
        default:
            replay_periodic_unmap(periodic, &trace->unmaps[event->index],
                                  event->time_ns);
            break;
        }
    }
    for (i = 0; i < trace->item_count; ++i) {
        replay_periodic_end(periodic, i, trace->end_ns);
    }
}

static void replay_periodic_window(const replay_trace_t *trace,
                                   const replay_params_t *params,
                                   unsigned window, replay_figures_t *figures)
{
    replay_periodic_t periodic = {.trace   = trace,
                                  .params  = params,
                                  .figures = figures};
    replay_integral_t integral;

    if (ucs_predict_periodicity_create(window, &periodic.detector) != UCS_OK) {
        tool_out_of_memory();
    }
    periodic.items  = tool_calloc(trace->item_count, sizeof(*periodic.items));
    periodic.served = tool_calloc(trace->use_count, sizeof(*periodic.served));
    replay_integral_init(&integral, trace, figures, NULL);
    replay_periodic_events(&periodic);
    replay_periodic_integrate(&periodic, &integral);
    ucs_predict_periodicity_destroy(periodic.detector);
    free(periodic.items);
    free(periodic.served);
    free(periodic.changes);
}

void replay_model_periodicity(const replay_trace_t *trace,
                              const replay_params_t *params, unsigned window,
                              replay_figures_t *figures)
{
    unsigned smaller;
    replay_figures_t attempt;

    replay_periodic_window(trace, params, window, figures);
    for (smaller = REPLAY_PERIODIC_WINDOW_MIN; smaller < window;
         smaller *= 2) {
        replay_periodic_window(trace, params, smaller, &attempt);
        if (attempt.on_time > figures->on_time) {
            *figures = attempt;
        }
    }
}

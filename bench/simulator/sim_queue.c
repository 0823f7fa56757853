/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "sim_queue.h"

#include <stdlib.h>
#include <string.h>

/* Children of a node: a cache line or two */
#define SIM_QUEUE_WAYS 4

void sim_queue_init(sim_queue_t *queue)
{
    memset(queue, 0, sizeof(*queue));
}

void sim_queue_cleanup(sim_queue_t *queue)
{
    free(queue->events);
}

static int sim_event_is_before(const sim_event_t *a, const sim_event_t *b)
{
    return (a->time_ns != b->time_ns) ? (a->time_ns < b->time_ns) :
                                        (a->order < b->order);
}

void sim_queue_push(sim_queue_t *queue, uint64_t time_ns, uint64_t kind,
                    void *arg)
{
    sim_queue_put(queue, (sim_event_t){time_ns, queue->pushed++, arg, kind});
}

void sim_queue_put(sim_queue_t *queue, sim_event_t event)
{
    size_t at = queue->count++, parent;

    if (at == queue->capacity) {
        queue->capacity = 2 * queue->capacity + 64;
        queue->events   = realloc(queue->events,
                                  queue->capacity * sizeof(*queue->events));
        if (queue->events == NULL) {
            abort(); /* a test machine that has no memory cannot go on */
        }
    }
    for (; at > 0; at = parent) {
        parent = (at - 1) / SIM_QUEUE_WAYS;
        if (!sim_event_is_before(&event, &queue->events[parent])) {
            break;
        }
        queue->events[at] = queue->events[parent];
    }
    queue->events[at] = event;
}

static size_t sim_queue_first_child(const sim_queue_t *queue, size_t at)
{
    size_t child = SIM_QUEUE_WAYS * at + 1, end = child + SIM_QUEUE_WAYS;
    size_t first = child;

    end = (end > queue->count) ? queue->count : end;
    for (; child < end; ++child) {
        if (sim_event_is_before(&queue->events[child],
                                &queue->events[first])) {
            first = child;
        }
    }
    return first;
}

uint64_t sim_queue_next(const sim_queue_t *queue)
{
    return (queue->count > 0) ? queue->events[0].time_ns : UINT64_MAX;
}

int sim_queue_pop(sim_queue_t *queue, sim_event_t *event)
{
    size_t at = 0, child;
    sim_event_t last;

    if (queue->count == 0) {
        return 0;
    }
    *event = queue->events[0];
    last   = queue->events[--queue->count];
    while ((child = sim_queue_first_child(queue, at)) < queue->count) {
        if (!sim_event_is_before(&queue->events[child], &last)) {
            break;
        }
        queue->events[at] = queue->events[child];
        at                = child;
    }
    if (queue->count > 0) {
        queue->events[at] = last;
    }
    return 1;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "wire_sim_int.h"

#include <stdlib.h>
#include <string.h>

/*
 * When the links carry what. Each direction of a link has a calendar, and the
 * bytes go in pieces, each at the first time at which the sender's link is free,
 * then the receiver's; between the two they wait in a switch that has room. One
 * number for an end ("free from then on") was not enough: bytes that wait for
 * their sender's link held a place at the receiver's that nothing else was let
 * into, and in a ring all nodes waited for each other in turn.
 */

/* Bytes that travel in one go: those of others may pass between two */
#define UCP_WIRE_SIM_PIECE 65536u

/* What is over cannot be asked for again */
static void ucp_wire_sim_forget(ucp_wire_sim_calendar_t *calendar, uint64_t now)
{
    unsigned over = 0;

    while ((over < calendar->count) && (calendar->busy[over].end <= now)) {
        ++over;
    }
    if (over == 0) {
        return; /* there may be nothing at all, not even memory */
    }
    calendar->count -= over;
    memmove(calendar->busy, calendar->busy + over,
            calendar->count * sizeof(*calendar->busy));
}

/* The first time from `start` on with `length` nanoseconds that are free */
static uint64_t ucp_wire_sim_free_from(const ucp_wire_sim_calendar_t *calendar,
                                       uint64_t start, uint64_t length)
{
    unsigned i;

    for (i = 0; i < calendar->count; ++i) {
        if (start + length <= calendar->busy[i].start) {
            break;
        }
        if (start < calendar->busy[i].end) {
            start = calendar->busy[i].end;
        }
    }
    return start;
}

/* The time is free; spans that touch become one */
static void ucp_wire_sim_occupy(ucp_wire_sim_calendar_t *calendar,
                                uint64_t start, uint64_t length)
{
    ucp_wire_sim_span_t span = {start, start + length};
    unsigned at = calendar->count, first;

    if (length == 0) {
        return;
    }
    while ((at > 0) && (calendar->busy[at - 1].start >= span.end)) {
        --at;
    }
    first = at; /* those from `first` to `at` are taken into the span */
    if ((at < calendar->count) && (calendar->busy[at].start == span.end)) {
        span.end = calendar->busy[at++].end;
    }
    if ((first > 0) && (calendar->busy[first - 1].end == span.start)) {
        span.start = calendar->busy[--first].start;
    }
    if (calendar->count == calendar->capacity) {
        calendar->capacity = calendar->capacity * 2 + 16;
        calendar->busy     = realloc(calendar->busy,
                                     calendar->capacity * sizeof(span));
        if (calendar->busy == NULL) {
            abort(); /* a test machine that has no memory cannot go on */
        }
    }
    memmove(calendar->busy + first + 1, calendar->busy + at,
            (calendar->count - at) * sizeof(span));
    calendar->busy[first] = span;
    calendar->count      += first + 1 - at;
}

uint64_t ucp_wire_sim_link(ucp_wire_sim_node_t *from, unsigned to,
                           uint64_t start, size_t length, uint64_t *arrives_p)
{
    ucp_wire_sim_t *sim          = from->sim;
    ucp_wire_sim_calendar_t *in  = &sim->nodes[to].in;
    ucp_wire_sim_calendar_t *out = &from->out;
    uint64_t latency             = sim->params.latency, time, there;
    size_t piece;

    ucp_wire_sim_forget(out, sim->now);
    ucp_wire_sim_forget(in, sim->now);
    do {
        piece = (length > UCP_WIRE_SIM_PIECE) ? UCP_WIRE_SIM_PIECE : length;
        time  = (uint64_t)(sim->params.ns_per_byte * piece);
        start = ucp_wire_sim_free_from(out, start, time);
        there = ucp_wire_sim_free_from(in, start + latency, time);
        ucp_wire_sim_occupy(out, start, time);
        ucp_wire_sim_occupy(in, there, time);
        start  += time;
        there  += time;
        length -= piece;
    } while (length > 0);
    *arrives_p = there + ucp_wire_sim_random(sim, sim->params.jitter + 1);
    return start;
}

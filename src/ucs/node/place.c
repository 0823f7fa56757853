/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "place.h"

#include <string.h>

_Static_assert(sizeof(cpu_set_t) * 8 == UCS_LEDGER_CPUS,
               "a slot names the processors that a set holds");

/* A rank with a helper needs less memory because of it, and must not lose it to
 * one that needs a little more */
#define UCS_PLACE_INCUMBENT 4 /* a quarter more */

const char *ucs_place_policy_names[] = {
        [UCS_PLACE_POLICY_IDLE]         = "idle",
        [UCS_PLACE_POLICY_CONSERVATIVE] = "conservative",
        [UCS_PLACE_POLICY_AGGRESSIVE]   = "aggressive",
        [UCS_PLACE_POLICY_LAST]         = NULL};

const char *ucs_place_reasons[] = {
        [UCS_PLACE_UNASKED] = "no registration needed it yet",
        [UCS_PLACE_SPARE]   = "it takes what processor time nobody wants",
        [UCS_PLACE_IDLE]    = "a core is idle",
        [UCS_PLACE_ALL]     = "the policy lets every rank have one",
        [UCS_PLACE_NO_CORE] = "no core is idle"};


/* @return Nonzero if some ranks are not bound: then only the number of idle
 *         cores is known */
static int ucs_place_idle(const ucs_place_rank_t *ranks, unsigned count,
                          const cpu_set_t *allowed, ucs_place_t *place)
{
    unsigned floating = 0;
    unsigned i, left;
    cpu_set_t held;

    place->idle = *allowed;
    for (i = 0; i < count; ++i) {
        if (!(ranks[i].state & UCS_LEDGER_BOUND)) {
            floating += ranks[i].cores;
            continue;
        }
        CPU_AND(&held, &place->idle, &ranks[i].cpus);
        CPU_XOR(&place->idle, &place->idle, &held);
    }

    left              = CPU_COUNT(&place->idle);
    place->idle_cores = (left > floating) ? left - floating : 0;
    return floating > 0;
}

static uint64_t ucs_place_weight(const ucs_place_rank_t *rank)
{
    uint64_t weight = rank->demand;

    if (rank->state & UCS_LEDGER_RUNS) {
        weight += weight / UCS_PLACE_INCUMBENT;
    }
    return weight;
}

/* How many ranks with a helper come before this one; ties go to the lower
 * slot */
static unsigned ucs_place_position(const ucs_place_rank_t *ranks,
                                   unsigned count, unsigned self)
{
    uint64_t own      = ucs_place_weight(&ranks[self]);
    unsigned position = 0;
    uint64_t weight;
    unsigned i;

    for (i = 0; i < count; ++i) {
        weight = ucs_place_weight(&ranks[i]);
        position += (i != self) && (ranks[i].state & UCS_LEDGER_LISTENS) &&
                    ((weight > own) ||
                     ((weight == own) && (ranks[i].slot < ranks[self].slot)));
    }
    return position;
}

/* The idle core at this place in the order of distances, then of numbers */
static int ucs_place_core(const cpu_set_t *idle, const uint8_t *distances,
                          unsigned position)
{
    unsigned histogram[UINT8_MAX + 1] = {0};
    unsigned distance                 = 0;
    int cpu;

    for (cpu = 0; cpu < UCS_LEDGER_CPUS; ++cpu) {
        histogram[distances[cpu]] += CPU_ISSET(cpu, idle);
    }
    while (position >= histogram[distance]) {
        position -= histogram[distance++];
    }
    for (cpu = 0;; ++cpu) {
        if (CPU_ISSET(cpu, idle) && (distances[cpu] == distance) &&
            (position-- == 0)) {
            return cpu;
        }
    }
}

/* A helper sleeps after a step, so a step is its time slice */
static void ucs_place_sharing(const ucs_place_rank_t *ranks, unsigned count,
                              unsigned self, ucs_place_t *place)
{
    unsigned i;

    for (i = 0; (i < count) && (place->cpu != UCS_PLACE_ANY); ++i) {
        if ((i != self) && (ranks[i].state & UCS_LEDGER_RUNS) &&
            (ranks[i].cpu == place->cpu)) {
            place->shared_ns += ranks[i].step_ns + UCS_PLACE_SWITCH_NS;
        }
    }
}

static ucs_place_why_t
ucs_place_why(ucs_place_policy_t policy, int has_idle)
{
    if (policy == UCS_PLACE_POLICY_IDLE) {
        return UCS_PLACE_SPARE;
    }
    return has_idle                                 ? UCS_PLACE_IDLE :
           (policy == UCS_PLACE_POLICY_AGGRESSIVE) ? UCS_PLACE_ALL :
                                                      UCS_PLACE_NO_CORE;
}

void ucs_place_decide(const ucs_place_rank_t *ranks, unsigned count,
                      unsigned self, ucs_place_policy_t policy,
                      const ucs_place_topology_t *topology, ucs_place_t *place)
{
    const cpu_set_t *allowed = &topology->allowed;
    unsigned position        = ucs_place_position(ranks, count, self);
    int is_floating;

    memset(place, 0, sizeof(*place));
    place->cpu  = UCS_PLACE_ANY;
    is_floating = ucs_place_idle(ranks, count, allowed, place);
    place->why  = ucs_place_why(policy, position < place->idle_cores);
    place->runs = place->why < UCS_PLACE_NO_CORE;
    if (!place->runs || (place->why == UCS_PLACE_SPARE) || is_floating ||
        (place->idle_cores == 0)) {
        return;
    }

    place->cpu = ucs_place_core(&place->idle, topology->distances,
                                position % place->idle_cores);
    ucs_place_sharing(ranks, count, self, place);
}

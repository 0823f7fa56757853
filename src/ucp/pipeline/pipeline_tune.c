/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <ucp/pipeline/pipeline_int.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where an option says "derived" it follows from what a registration costs
 * here, which is measured at the start, and what a byte costs on the wire,
 * which each sender measures of writes that were alone and tells with MATCH. */

#define UCP_PIPELINE_PROBE_SMALL 4096u
#define UCP_PIPELINE_PROBE_LARGE (256u * 1024)

/* The least of some tries, of registering and deregistering once each */
static double ucp_pipeline_probe(ucx_pipeline_h self, char *memory,
                                 size_t length)
{
    double best = INFINITY, time;
    ucp_wire_mem_t *mem;
    uint64_t start;
    unsigned i;

    for (i = 0; i < UCP_PIPELINE_PROBES; ++i) {
        start = ucp_wire_time(self->wire);
        if (ucp_wire_mem_reg(self->wire, memory, length, &mem) != UCS_OK) {
            return 0;
        }
        ucp_wire_mem_dereg(self->wire, mem);
        time = ucp_wire_time(self->wire) - start;
        best = ucs_min(best, time);
    }
    return best;
}

void ucp_pipeline_tune_init(ucx_pipeline_h self)
{
    ucp_pipeline_tune_t *tune = &self->tune;
    double small, large;
    char *memory;

    tune->is_derived = self->options.fragment == 0;
    tune->fragment   = tune->is_derived ? UCP_PIPELINE_FRAGMENT :
                                          self->options.fragment;
    memory           = malloc(UCP_PIPELINE_PROBE_LARGE);
    if (memory == NULL) {
        return; /* free as it is: fragments keep the size that they begin with */
    }
    memset(memory, 1, UCP_PIPELINE_PROBE_LARGE);
    if (tune->is_derived || (self->options.mode == UCX_PIPELINE_MODE_CACHE)) {
        small          = ucp_pipeline_probe(self, memory,
                                            UCP_PIPELINE_PROBE_SMALL);
        large          = ucp_pipeline_probe(self, memory,
                                            UCP_PIPELINE_PROBE_LARGE);
        tune->byte_ns  = ucs_max(large - small, 0) /
                         (UCP_PIPELINE_PROBE_LARGE - UCP_PIPELINE_PROBE_SMALL);
        tune->base_ns  = ucs_max(small - tune->byte_ns *
                                                UCP_PIPELINE_PROBE_SMALL, 0);
    }
    free(memory);
}

double ucp_pipeline_tune_cost(double base_ns, double byte_ns, double wire_ns,
                              size_t fragment)
{
    double length   = UCP_PIPELINE_TUNE_LENGTH;
    double register_ns = byte_ns +
                         (base_ns + UCP_PIPELINE_PIECE_NS) / fragment;

    /* what takes longer, a processor or the link; and that the first fragment
     * is registered before anything moves, and the last one moves alone */
    return length * ucs_max(register_ns, wire_ns) +
           fragment * (byte_ns + ucs_min(register_ns, wire_ns));
}

/* The power of two with the least cost. Once it was derived a change has to be
 * worth it, because what is kept has the size that fragments had. */
void ucp_pipeline_tune_match(ucx_pipeline_h self, uint64_t told)
{
    ucp_pipeline_tune_t *tune = &self->tune;
    double wire = ucs_max((double)told / UCP_PIPELINE_WIRE_UNIT, tune->wire_ns);
    size_t fragment, best;
    double cost, best_cost;

    if (!tune->is_derived || (wire == 0) || (wire == tune->used_ns)) {
        return;
    }
    best      = tune->fragment;
    best_cost = ucp_pipeline_tune_cost(tune->base_ns, tune->byte_ns, wire,
                                       best) *
                ((tune->used_ns > 0) ? UCP_PIPELINE_TUNE_WORTH : 1);
    tune->used_ns = wire;
    for (fragment = UCP_PIPELINE_FRAGMENT_MIN;
         fragment <= UCP_PIPELINE_FRAGMENT_MAX; fragment *= 2) {
        cost = ucp_pipeline_tune_cost(tune->base_ns, tune->byte_ns, wire,
                                      fragment);
        if (cost < best_cost) {
            best      = fragment;
            best_cost = cost;
        }
    }
    tune->fragment = best;
}

/* A write began alone and is over */
void ucp_pipeline_tune_written(ucx_pipeline_h self, size_t length, uint64_t ns)
{
    ucp_pipeline_tune_t *tune = &self->tune;
    double byte_ns            = (double)ns / length;

    if (length < UCP_PIPELINE_FRAGMENT_MIN) {
        return; /* its latency says nothing of the wire */
    }
    if ((tune->wire_ns == 0) || (byte_ns < tune->wire_ns)) {
        tune->wire_ns = byte_ns;
    } else {
        tune->wire_ns += (byte_ns - tune->wire_ns) / UCP_PIPELINE_WIRE_SAMPLES;
    }
}

uint64_t ucp_pipeline_tune_tell(ucx_pipeline_h self)
{
    return (uint64_t)(self->tune.wire_ns * UCP_PIPELINE_WIRE_UNIT);
}

/* How long memory that nobody uses may stay for what it costs to register it
 * again: all that was ever kept is worth a share of the time */
double ucp_pipeline_tune_rent(ucx_pipeline_h self, size_t length)
{
    const ucp_pipeline_tune_t *tune = &self->tune;
    double worth                    = self->options.max_slowdown * length;

    return (worth > 0) ? (tune->base_ns + tune->byte_ns * length) *
                                 self->cache.peak / worth :
                         INFINITY;
}

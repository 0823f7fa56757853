/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <ucp/pipeline/pipeline_int.h>

#include <ucs/sys/hash.h>

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

static double ucp_pipeline_tune_cost(const ucp_pipeline_tune_t *tune,
                                     double wire_ns, size_t fragment)
{
    double length      = UCP_PIPELINE_TUNE_LENGTH;
    double register_ns = tune->byte_ns +
                         (tune->base_ns + UCP_PIPELINE_PIECE_NS) / fragment;

    /* what takes longer, a processor or the link; and that the first fragment
     * is registered before anything moves, and the last one moves alone */
    return length * ucs_max(register_ns, wire_ns) +
           fragment * (tune->byte_ns + ucs_min(register_ns, wire_ns));
}

static double ucp_pipeline_tune_least(const ucp_pipeline_tune_t *tune,
                                      double wire_ns)
{
    double least = INFINITY;
    size_t fragment;

    for (fragment = UCP_PIPELINE_FRAGMENT_MIN;
         fragment <= UCP_PIPELINE_FRAGMENT_MAX; fragment *= 2) {
        least = ucs_min(least, ucp_pipeline_tune_cost(tune, wire_ns, fragment));
    }
    return least;
}

/* How many times the least cost a fragment takes, wherever the wire's cost lies
 * between what it may be */
static double ucp_pipeline_tune_regret(const ucp_pipeline_tune_t *tune,
                                       size_t fragment)
{
    double least = ucp_pipeline_tune_cost(tune, tune->used.least, fragment) /
                   ucp_pipeline_tune_least(tune, tune->used.least);
    double most  = ucp_pipeline_tune_cost(tune, tune->used.most, fragment) /
                   ucp_pipeline_tune_least(tune, tune->used.most);

    return ucs_max(least, most);
}

/* The power of two with the least regret. Once it was derived a change has to
 * be worth it, because what is kept has the size that fragments had. */
static void ucp_pipeline_tune_derive(ucp_pipeline_tune_t *tune, double worth)
{
    size_t fragment, best = tune->fragment;
    double best_regret    = ucp_pipeline_tune_regret(tune, best) * worth;
    double regret;

    for (fragment = UCP_PIPELINE_FRAGMENT_MIN;
         fragment <= UCP_PIPELINE_FRAGMENT_MAX; fragment *= 2) {
        regret = ucp_pipeline_tune_regret(tune, fragment);
        if (regret < best_regret) {
            best        = fragment;
            best_regret = regret;
        }
    }
    tune->fragment = best;
}

void ucp_pipeline_tune_match(ucx_pipeline_h self,
                             const ucp_pipeline_header_t *header)
{
    ucp_pipeline_tune_t *tune  = &self->tune;
    ucp_pipeline_range_t range = tune->wire;
    double worth               = (tune->used.most > 0) ?
                                 UCP_PIPELINE_TUNE_WORTH : 1;

    range.most  = ucs_max(range.most, header->address / UCP_PIPELINE_WIRE_UNIT);
    range.least = ucs_max(range.least, header->offset / UCP_PIPELINE_WIRE_UNIT);
    range.least = ucs_min(range.least, range.most);
    if (!tune->is_derived || (range.most == 0) ||
        ((range.most == tune->used.most) &&
         (range.least == tune->used.least))) {
        return;
    }
    tune->used = range;
    ucp_pipeline_tune_derive(tune, worth);
}

void ucp_pipeline_tune_look(ucx_pipeline_h self)
{
    ucp_pipeline_tune_t *tune = &self->tune;
    uint64_t now              = ucp_wire_time(self->wire);

    if ((tune->looked == 0) || (now > tune->looked + UCP_PIPELINE_PAUSE_NS)) {
        tune->since = now;
    }
}

void ucp_pipeline_tune_looked(ucx_pipeline_h self, unsigned count)
{
    self->tune.looked = (count > 0) ? ucp_wire_time(self->wire) : 0;
}

/* A write began alone and is over. Its end is seen once the process looks, so it
 * took no longer than `ns`, and no less than that without what the process did
 * meanwhile, or than until there was nothing to do. All of it was once taken for
 * the wire's: then fragments were made short, the process was busier with them
 * and the wire looked slower still. */
void ucp_pipeline_tune_written(ucx_pipeline_h self, size_t length,
                               uint64_t start, uint64_t busy_ns)
{
    ucp_pipeline_range_t *wire = &self->tune.wire;
    uint64_t ns                = ucp_wire_time(self->wire) - start;
    double most                = (double)ns / length;
    double least               = (double)(ns - ucs_min(busy_ns, ns)) / length;

    if (self->tune.since > start) {
        least = ucs_max(least, (double)(self->tune.since - start) / length);
    }
    if (length < UCP_PIPELINE_FRAGMENT_MIN) {
        return; /* its latency says nothing of the wire */
    }
    if ((wire->most == 0) || (most < wire->most)) {
        wire->most = most;
    } else if (least > wire->most) {
        wire->most += (least - wire->most) / UCP_PIPELINE_WIRE_SAMPLES;
    }
    wire->least = ucs_min(ucs_max(least, wire->least), wire->most);
}

void ucp_pipeline_tune_tell(ucx_pipeline_h self, ucp_pipeline_header_t *header)
{
    header->offset  = (uint64_t)(self->tune.wire.least * UCP_PIPELINE_WIRE_UNIT);
    header->address = (uint64_t)(self->tune.wire.most * UCP_PIPELINE_WIRE_UNIT);
}

/* A message with `length` bytes took that long to be given to the wire */
void ucp_pipeline_tune_copied(ucx_pipeline_h self, size_t length, uint64_t ns)
{
    ucp_pipeline_tune_t *tune = &self->tune;
    double byte_ns            = (double)ns / length;

    if (length >= UCP_PIPELINE_COPY_MIN) {
        tune->copy_ns += (tune->copy_ns == 0) ? byte_ns :
                         (byte_ns - tune->copy_ns) / UCP_PIPELINE_WIRE_SAMPLES;
    }
}

/* How much longer a message takes that is copied than one that is written to
 * and from memory that is registered: the copies are what takes longest, or the
 * first and the last part's are not hidden behind the wire */
static double ucp_pipeline_tune_excess(const ucp_pipeline_tune_t *tune,
                                       size_t length)
{
    double copy  = tune->copy_ns;
    double wire  = (tune->used.most > 0) ? tune->used.most : copy;
    double parts = (copy + ucs_min(copy, wire)) / UCP_PIPELINE_COPY_PARTS;

    return length * (ucs_max(copy, wire) + parts - wire) -
           UCP_PIPELINE_PIECE_NS;
}

/* A message is to be copied into this buffer. Has that been done so often that
 * it would have paid to register it, and the one that it comes from? Then it is
 * worth it now: whatever comes, no more than twice what had to be is lost. */
int ucp_pipeline_tune_buys(ucx_pipeline_h self, const void *buffer,
                           size_t length)
{
    ucp_pipeline_tune_t *tune = &self->tune;
    uintptr_t start           = (uintptr_t)buffer;
    ucp_pipeline_seen_t *seen;

    seen = &tune->seen[ucs_hash_mix(start) % UCP_PIPELINE_SEEN];
    if ((seen->start != start) || (seen->length != length)) {
        *seen = (ucp_pipeline_seen_t){start, length, 0};
    }
    if ((seen->lost_ns > 0) &&
        (seen->lost_ns >= 2 * (tune->base_ns + tune->byte_ns * length))) {
        seen->lost_ns = 0;
        return 1;
    }
    seen->lost_ns += ucs_max(ucp_pipeline_tune_excess(tune, length), 0);
    return 0;
}

/* How long memory that nobody uses may stay for what it costs to register it
 * again: all that was ever kept is worth a share of the time */
double ucp_pipeline_tune_rent(ucx_pipeline_h self, size_t length)
{
    const ucp_pipeline_tune_t *tune = &self->tune;
    double worth                    = self->options.max_slowdown * length;

    return (worth > 0) ? (tune->base_ns + tune->byte_ns * length) *
                                 ucs_max(self->cache.peak, length) / worth :
                         INFINITY;
}

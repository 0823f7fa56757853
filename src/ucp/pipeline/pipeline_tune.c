/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where an option says "derived" it follows from what a registration costs
 * here, which is measured at the start. What the wire costs is not asked: at the
 * costs of 2006 and at those of today (docs/paper_b.md) the fragment is the same
 * with it and without. */

#define UCP_PIPELINE_PROBE_SMALL 4096u
#define UCP_PIPELINE_PROBE_LARGE (256u * 1024)

/* The least of some tries, of registering and deregistering once each, and what
 * of it registering took */
static double ucp_pipeline_probe(ucx_pipeline_h self, char *memory,
                                 size_t length, double *reg_ns_p)
{
    double best = INFINITY, time;
    ucp_wire_mem_t *mem;
    uint64_t start, registered;
    unsigned i;

    for (i = 0; i < UCP_PIPELINE_PROBES; ++i) {
        start = ucp_wire_time(self->wire);
        if (ucp_wire_mem_reg(self->wire, memory, length, &mem) != UCS_OK) {
            return 0;
        }
        registered = ucp_wire_time(self->wire) - start;
        ucp_wire_mem_dereg(self->wire, mem);
        time = ucp_wire_time(self->wire) - start;
        if (time < best) {
            best      = time;
            *reg_ns_p = registered;
        }
    }
    return best;
}

/* That a processor registers and serves all fragments; that the first one is
 * registered before anything moves, and the last one moves alone */
static double ucp_pipeline_tune_cost(const ucp_pipeline_tune_t *tune,
                                     size_t fragment)
{
    double each_ns = tune->base_ns + UCP_PIPELINE_PIECE_NS;

    return UCP_PIPELINE_TUNE_LENGTH * each_ns / fragment +
           fragment * (tune->byte_ns + UCP_PIPELINE_MOVE_NS);
}

static size_t ucp_pipeline_tune_derive(const ucp_pipeline_tune_t *tune)
{
    size_t fragment = UCP_PIPELINE_FRAGMENT_MIN;

    while ((fragment < UCP_PIPELINE_FRAGMENT_MAX) &&
           (ucp_pipeline_tune_cost(tune, 2 * fragment) <
            ucp_pipeline_tune_cost(tune, fragment))) {
        fragment *= 2;
    }
    return fragment;
}

/* Without memory to try it in, registering is taken to cost nothing */
void ucp_pipeline_tune_init(ucx_pipeline_h self)
{
    ucp_pipeline_tune_t *tune = &self->tune;
    char *memory              = malloc(UCP_PIPELINE_PROBE_LARGE);
    double small, large, reg_ns = 0;

    if ((memory != NULL) && ((self->options.fragment == 0) ||
                             (self->options.mode == UCX_PIPELINE_MODE_CACHE))) {
        memset(memory, 1, UCP_PIPELINE_PROBE_LARGE);
        small           = ucp_pipeline_probe(self, memory,
                                             UCP_PIPELINE_PROBE_SMALL, &reg_ns);
        large           = ucp_pipeline_probe(self, memory,
                                             UCP_PIPELINE_PROBE_LARGE, &reg_ns);
        tune->byte_ns   = ucs_max(large - small, 0) /
                          (UCP_PIPELINE_PROBE_LARGE - UCP_PIPELINE_PROBE_SMALL);
        tune->base_ns   = ucs_max(small - tune->byte_ns *
                                                 UCP_PIPELINE_PROBE_SMALL, 0);
        tune->reg_share = (large > 0) ? reg_ns / large : 0;
    }
    tune->fragment = (self->options.fragment == 0) ?
                             ucp_pipeline_tune_derive(tune) :
                             self->options.fragment;
    free(memory);
}

/* Up to where a message is copied, if that is derived: what covers the time until
 * the first fragment moves */
size_t ucp_pipeline_tune_offset(ucx_pipeline_h self)
{
    return ucs_min(self->tune.fragment, (size_t)UCP_PIPELINE_RDMA_OFFSET_MAX);
}

/* A message so short is no faster in fragments, at the first time or later */
int ucp_pipeline_tune_is_whole(ucx_pipeline_h self, size_t length)
{
    return length <= UCP_PIPELINE_WHOLE * ucp_pipeline_tune_offset(self);
}

void ucp_pipeline_tune_begin(ucx_pipeline_request_h req)
{
    req->began = ucp_wire_time(req->pipeline->wire);
    req->among = req->pipeline->num_active;
}

static ucp_pipeline_times_t *ucp_pipeline_tune_times(ucp_pipeline_tune_t *tune,
                                                     size_t length)
{
    return &tune->times[ucs_ilog2(length)];
}

/* Of the time since it began the message had a share, as others were under way:
 * with all of it a process that exchanges many at once would take copies for
 * as many times dearer. The least sample is what nothing disturbed; a link that
 * became slower is seen in time. */
void ucp_pipeline_tune_sample(ucx_pipeline_request_h req, int is_read)
{
    ucp_pipeline_times_t *times = ucp_pipeline_tune_times(&req->pipeline->tune,
                                                          req->total);
    double *byte_ns = is_read ? &times->read : &times->copied;
    uint64_t ns     = ucp_wire_time(req->pipeline->wire) - req->began;
    double sample   = (double)ns / req->total / req->among;

    if ((*byte_ns == 0) || (sample < *byte_ns)) {
        *byte_ns = sample;
    } else {
        *byte_ns += (sample - *byte_ns) / UCP_PIPELINE_SAMPLES;
    }
}

/* How much longer a message takes that is copied than one that is read from and
 * into memory that is registered */
static double ucp_pipeline_tune_excess(ucp_pipeline_tune_t *tune, size_t length)
{
    const ucp_pipeline_times_t *times = ucp_pipeline_tune_times(tune, length);
    double read = (times->read > 0) ? times->read :
                                      UCP_PIPELINE_READ_GUESS * times->copied;

    return length * ucs_max(times->copied - read, 0);
}

/* Where the copies of this buffer are added up: the place of that which was copied
 * into least recently, if it has none */
static ucp_pipeline_seen_t *
ucp_pipeline_tune_seen(ucp_pipeline_tune_t *tune, uintptr_t start, size_t length)
{
    ucp_pipeline_seen_t *oldest = &tune->seen[0];
    ucp_pipeline_seen_t *seen;

    for (seen = tune->seen; seen < tune->seen + UCP_PIPELINE_SEEN; ++seen) {
        if ((seen->start == start) && (seen->length == length)) {
            seen->turn = ++tune->turn;
            return seen;
        }
        if (seen->turn < oldest->turn) {
            oldest = seen;
        }
    }
    *oldest = (ucp_pipeline_seen_t){start, length, 0, ++tune->turn};
    return oldest;
}

/* A message is to be copied into this buffer, which it was before. Has that lost
 * as much as registering one end takes? Both ends do that at once, so a process
 * that had registered one after the other at first has not been ahead, and if
 * the buffer never comes again no more than twice what had to be is lost. */
int ucp_pipeline_tune_buys(ucx_pipeline_h self, const void *buffer,
                           size_t length)
{
    ucp_pipeline_tune_t *tune = &self->tune;
    double reg_ns = tune->reg_share * (tune->base_ns + tune->byte_ns * length);
    double excess = ucp_pipeline_tune_excess(tune, length);
    ucp_pipeline_seen_t *seen =
            ucp_pipeline_tune_seen(tune, (uintptr_t)buffer, length);

    if ((seen->lost_ns > 0) &&
        (seen->lost_ns + excess + UCP_PIPELINE_PIECE_NS >= reg_ns)) {
        seen->lost_ns = 0;
        return 1;
    }
    seen->lost_ns += excess;
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

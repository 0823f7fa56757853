/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "worth.h"

#include "firehose_tuning.h"

#include <string.h>

typedef ucp_firehose_worth_t worth_t;

/* ns of run time that a bucket held for a nanosecond is worth */
static double ucp_firehose_worth_price(const worth_t *worth)
{
    return UCP_FIREHOSE_PRICE / (double)worth->victims;
}

static double ucp_firehose_worth_cost(const worth_t *worth)
{
    return (double)(worth->pin_ns + worth->unpin_ns);
}

void ucp_firehose_worth_init(worth_t *worth, size_t victims)
{
    memset(worth, 0, sizeof(*worth));
    worth->victims = victims;
    worth->keep_ns = UINT64_MAX; /* until it is known what a pin costs */
}

static void ucp_firehose_worth_average(uint64_t *average, uint64_t ns)
{
    *average = (*average == 0) ? ns : *average - *average / 8 + ns / 8;
}

void ucp_firehose_worth_pinned(worth_t *worth, uint64_t ns)
{
    ucp_firehose_worth_average(&worth->pin_ns, ns);
}

void ucp_firehose_worth_unpinned(worth_t *worth, uint64_t ns)
{
    ucp_firehose_worth_average(&worth->unpin_ns, ns);
}

static void ucp_firehose_worth_seen(worth_t *worth, uint64_t idle_ns)
{
    ++worth->reuses[63 - __builtin_clzll(idle_ns | 1)];
    ++worth->count;
}

void ucp_firehose_worth_revived(worth_t *worth, uint64_t idle_ns)
{
    ucp_firehose_worth_seen(worth, idle_ns);
}

void ucp_firehose_worth_evicted(worth_t *worth)
{
    ++worth->never;
    ++worth->count;
}

void ucp_firehose_worth_repinned(worth_t *worth, uint64_t idle_ns)
{
    if (worth->never > 0) {
        --worth->never;
        --worth->count;
    }
    ucp_firehose_worth_seen(worth, idle_ns);
}

/* What all that was seen would have cost if it had been held for up to `keep` ns.
 * A distance of a bin is taken for its upper end: rather too dear. */
static double ucp_firehose_worth_total(const worth_t *worth, double keep)
{
    const double price = ucp_firehose_worth_price(worth);
    const double lost  = ucp_firehose_worth_cost(worth) + price * keep;
    double total       = worth->never * price * keep, idle = 2;
    unsigned bin;

    for (bin = 0; bin < UCP_FIREHOSE_WORTH_BINS; ++bin, idle *= 2) {
        total += worth->reuses[bin] * ((idle <= keep) ? price * idle : lost);
    }
    return total;
}

/* The past fades, so that another phase of the program is seen */
static void ucp_firehose_worth_fade(worth_t *worth)
{
    unsigned bin;

    worth->count = worth->never /= 2;
    for (bin = 0; bin < UCP_FIREHOSE_WORTH_BINS; ++bin) {
        worth->reuses[bin] /= 2;
        worth->count       += worth->reuses[bin];
    }
    worth->chosen = worth->count;
}

void ucp_firehose_worth_choose(worth_t *worth)
{
    double keep = ucp_firehose_worth_cost(worth) /
                  ucp_firehose_worth_price(worth);
    double best, total, idle;
    unsigned bin;

    if ((worth->pin_ns == 0) ||
        ((worth->keep_ns != UINT64_MAX) &&
         (worth->count < worth->chosen + UCP_FIREHOSE_WORTH_SEEN))) {
        return;
    }
    /* The ski rental's time is one of the choices, and the one for no past */
    best = ucp_firehose_worth_total(worth, keep);
    for (bin = 0, idle = 0; worth->count >= UCP_FIREHOSE_WORTH_SEEN &&
                            (bin < UCP_FIREHOSE_WORTH_BINS - 1);
         ++bin, idle = (idle == 0) ? 2 : 2 * idle) {
        total = ucp_firehose_worth_total(worth, idle);
        if (total < best) {
            best = total;
            keep = idle;
        }
    }
    worth->keep_ns = (keep < 9e18) ? (uint64_t)keep : UINT64_MAX - 1;
    worth->chosen  = worth->count;
    if (worth->count >= 8 * UCP_FIREHOSE_WORTH_SEEN) {
        ucp_firehose_worth_fade(worth);
    }
}

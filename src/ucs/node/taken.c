/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "taken.h"

#include <ucs/sys/math.h>

int ucs_taken_is_due(const ucs_taken_t *taken, uint64_t now)
{
    return (taken->since == 0) || (now - taken->since >= UCS_TAKEN_WINDOW_NS);
}

/* The first thread is one of so many that ran at once, and the helper preempts
 * any of them */
static double ucs_taken_waited(const ucs_taken_t *taken,
                               const ucs_busy_count_t *count, double spent_ns,
                               double elapsed_ns)
{
    double ran_ns = (double)(count->ran_ns - taken->count.ran_ns) - spent_ns;

    if (!count->has_waited || !taken->count.has_waited) {
        return (ran_ns > 0) ? spent_ns : 0;
    }
    return (double)(count->waited_ns - taken->count.waited_ns) *
           ucs_max(1, ran_ns / elapsed_ns);
}

static void ucs_taken_close(ucs_taken_t *taken, double elapsed_ns,
                            double spent_ns, double waited_ns)
{
    double kept = UCS_TAKEN_MEMORY_NS / (UCS_TAKEN_MEMORY_NS + elapsed_ns);

    taken->waited_ns = kept * taken->waited_ns + waited_ns;
    taken->helper_ns = kept * taken->helper_ns + spent_ns;
    if (taken->helper_ns > 0) {
        taken->share = ucs_min(1, taken->waited_ns / taken->helper_ns);
    }
}

void ucs_taken_note(ucs_taken_t *taken, uint64_t now, uint64_t spent_ns,
                    const ucs_busy_count_t *count)
{
    double elapsed_ns = now - taken->since;
    double helper_ns  = spent_ns - taken->spent_ns;

    if ((taken->since != 0) && (elapsed_ns > 0)) {
        ucs_taken_close(taken, elapsed_ns, helper_ns,
                        ucs_taken_waited(taken, count, helper_ns, elapsed_ns));
    }

    taken->since    = now;
    taken->count    = *count;
    taken->spent_ns = spent_ns;
}

double ucs_taken_share(const ucs_taken_t *taken)
{
    return (taken->helper_ns > 0) ? taken->share : -1;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "periodicity.h"

#include <ucs/sys/own_memory.h>

#include <stdlib.h>

typedef struct ucs_predict_sample {
    uint64_t value;
    uint64_t time_ns;
} ucs_predict_sample_t;

/* Invariant: equal[m] is the number of latest samples, up to the window, that
 * equal the one m before them, without a gap. So the two windows of the
 * definition are identical for m if equal[m] == window. */
struct ucs_predict_periodicity {
    unsigned             window;
    uint64_t             count;   /* samples so far */
    unsigned             *equal;  /* by m, 1 to window */
    ucs_predict_sample_t ring[];  /* window + 1 of them, by count */
};


ucs_status_t ucs_predict_periodicity_create(unsigned window,
                                            ucs_predict_periodicity_h *det_p)
{
    ucs_predict_periodicity_h detector;

    if ((window == 0) || (window > UCS_PREDICT_PERIODICITY_MAX)) {
        return UCS_ERR_INVALID_PARAM;
    }

    detector = ucs_own_alloc(sizeof(*detector) +
                                 (window + 1) * sizeof(detector->ring[0]));
    if (detector == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    detector->equal = ucs_own_alloc((window + 1) * sizeof(*detector->equal));
    if (detector->equal == NULL) {
        ucs_own_free(detector);
        return UCS_ERR_NO_MEMORY;
    }
    detector->window = window;
    *det_p           = detector;
    return UCS_OK;
}

void ucs_predict_periodicity_destroy(ucs_predict_periodicity_h detector)
{
    ucs_own_free(detector->equal);
    ucs_own_free(detector);
}

/* The sample @a back before the latest one */
static ucs_predict_sample_t *
ucs_predict_periodicity_sample(ucs_predict_periodicity_h detector,
                               unsigned back)
{
    return &detector->ring[(detector->count - 1 - back) %
                           (detector->window + 1)];
}

void ucs_predict_periodicity_add(ucs_predict_periodicity_h detector,
                                 uint64_t value, uint64_t time_ns)
{
    ucs_predict_sample_t *latest, *before;
    unsigned m;

    ++detector->count;
    latest          = ucs_predict_periodicity_sample(detector, 0);
    latest->value   = value;
    latest->time_ns = time_ns;
    before          = latest;
    for (m = 1; (m <= detector->window) && (m < detector->count); ++m) {
        before = (before == detector->ring) ?
                         &detector->ring[detector->window] :
                         before - 1;
        if (before->value != value) {
            detector->equal[m] = 0;
        } else if (detector->equal[m] < detector->window) {
            ++detector->equal[m];
        }
    }
}

unsigned ucs_predict_periodicity_period(ucs_predict_periodicity_h detector)
{
    unsigned m;

    for (m = 1; m <= detector->window; ++m) {
        if (detector->equal[m] == detector->window) {
            return m;
        }
    }
    return 0;
}

int ucs_predict_periodicity_due(ucs_predict_periodicity_h detector,
                                uint64_t *due_ns)
{
    unsigned period = ucs_predict_periodicity_period(detector);
    uint64_t now;

    if (period == 0) {
        return 0;
    }
    now     = ucs_predict_periodicity_sample(detector, 0)->time_ns;
    *due_ns = now + (now - ucs_predict_periodicity_sample(detector,
                                                          period)->time_ns);
    return 1;
}

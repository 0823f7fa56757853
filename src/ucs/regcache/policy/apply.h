/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_APPLY_H_
#define UCS_REGCACHE_APPLY_H_

#include <ucs/regcache/plan/rq.h>

#include <ucs/predict/order/order.h>

/*
 * Applies a forecast: puts the buffer's item into the list of the registration
 * queue where it belongs, and deregisters what is given up.
 *
 *   used not long ago   HELD: stays registered for a while
 *   due soon            EXPECTED: stays registered, waited for
 *   due later           PENDING: registered when the time has come
 *   due, time unknown   WATCHED: the key that tells the time may come any time
 *   in use              HELD, or EXPECTED if its end is looked for
 *   given up            none
 */

/** A buffer that a predictor knows, and the region in which it was last registered.
 *  That region stays DORMANT for as long as the buffer is known. The helper's. */
typedef struct ucs_regcache_buffer {
    ucs_regcache_region_t *region;        /* NULL: none */
    uint64_t              generation;     /* of the region */
    uint64_t              begun;          /* ns, start of the latest use learned */
    uint32_t              ref_generation; /* of the predictor's reference */
    int                   refused;        /* the helper is not to register it now */
    int                   is_whole;       /* the region is as long as the buffer */
} ucs_regcache_buffer_t;

/** All buffers, by the index of the predictor's references. The state of a policy
 *  that has them begins with this. */
typedef struct ucs_regcache_buffers {
    ucs_regcache_buffer_t *list;
    unsigned              count;
} ucs_regcache_buffers_t;

/** @param [in] buffer  Current. */
void ucs_regcache_apply(ucs_regcache_h cache, const ucs_regcache_buffer_t *buffer,
                        const ucs_predict_forecast_t *forecast, uint64_t now);

#endif

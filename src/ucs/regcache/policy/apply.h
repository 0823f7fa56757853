/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_APPLY_H_
#define UCS_REGCACHE_APPLY_H_

#include <ucs/regcache/policy/buffer.h>

#include <ucs/predict/order/order.h>

/**
 * @file apply.h
 *
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

BEGIN_C_DECLS

/** @param [in] buffer  Current. */
void ucs_regcache_apply(ucs_regcache_h cache, const ucs_regcache_buffer_t *buffer,
                        const ucs_predict_forecast_t *forecast, uint64_t now);

END_C_DECLS

#endif

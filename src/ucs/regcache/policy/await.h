/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_AWAIT_H_
#define UCS_REGCACHE_AWAIT_H_

#include <ucs/regcache/policy/home.h>

#include <ucs/predict/order/order.h>

/**
 * @file await.h
 *
 * Brings the registration queue into line with what is forecast of a buffer:
 *
 *   used not long ago   HELD: stays registered for a while
 *   due soon            EXPECTED: stays registered, waited for
 *   due later           PENDING: registered when the time has come
 *   to be told          WATCHED: what says when it is due may come any time
 *   in use              HELD, or EXPECTED if its end is looked for
 *
 * What is given up is deregistered, and not known to the queue until something
 * else is forecast.
 */

BEGIN_C_DECLS

/** @param [in] home  Of the buffer; current. */
void ucs_regcache_await(ucs_regcache_h cache, const ucs_regcache_home_t *home,
                        const ucs_predict_forecast_t *forecast, uint64_t now);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_AWAIT_H_
#define UCS_REGCACHE_AWAIT_H_

#include <ucs/regcache/plan/home.h>
#include <ucs/regcache/plan/share.h>

#include <ucs/predict/order.h>

/**
 * @file await.h
 *
 * Brings the registration queue into line with what is forecast of a buffer:
 *
 *   soon     EXPECTED: stays registered, waited for
 *   later    PENDING: registered when the time has come
 *   in use   EXPECTED, so that its end is looked for
 *
 * What is given up is deregistered, and not known to the queue until it is
 * announced again.
 */

BEGIN_C_DECLS

/** What is the same for all buffers of a plan. */
typedef struct ucs_regcache_await {
    const ucs_regcache_share_t *share;
    uint64_t                   lead; /* ns before its use that a buffer is to be
                                        registered at most */
    uint64_t                   now;  /* ns */
} ucs_regcache_await_t;

/** @param [in] home  Of the buffer; current. */
void ucs_regcache_await(ucs_regcache_h cache, const ucs_regcache_home_t *home,
                        const ucs_predict_forecast_t *forecast,
                        const ucs_regcache_await_t *await);

END_C_DECLS

#endif

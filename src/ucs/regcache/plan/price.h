/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_PRICE_H_
#define UCS_REGCACHE_PRICE_H_

#include <ucs/regcache/region/region.h>
#include <ucs/regcache/regcache.h>

#include <ucs/predict/condition.h>
#include <ucs/predict/price.h>

/**
 * @file price.h
 *
 * What a region's registration is worth now: the cost model, what would be left
 * pinned, as the predictor wants them.
 */

BEGIN_C_DECLS

/** What holding and registering a region costs, and what the helper's work on
 *  it takes. */
typedef struct ucs_regcache_price {
    ucs_predict_terms_t terms;
    ucs_predict_price_t buffer;
} ucs_regcache_price_t;

/** Ask for all of it. Takes the index lock. */
void ucs_regcache_price(ucs_regcache_h cache, ucs_regcache_region_t *region,
                        ucs_regcache_price_t *price);

/**
 * When is it time to look whether the uses have ended that are waited for? A
 * look counts for a hundredth of what its step takes, for it is not quite for
 * nothing, and each moment
 * without one holds what nobody uses any more. The longer a use is late, the
 * longer it may still be; with looks after the square root of
 *
 *     2 * look * late / (lambda * bytes)
 *
 * both costs are the same at the most likely end.
 *
 * @param [in] leave_bytes  That leaving all pinned would hold.
 *
 * @return ns; UCS_REGCACHE_TIME_NEVER if none is waited for.
 */
uint64_t ucs_regcache_price_look(ucs_regcache_h cache, double leave_bytes,
                                 uint64_t now);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_PRICE_H_
#define UCS_PREDICT_PRICE_H_

#include <ucs/sys/compiler_def.h>

/**
 * @file price.h
 *
 * What memory is worth. The user says what all of the memory that would be left
 * pinned is worth as a share of run time, mu; so a byte held for a second costs
 *
 *     lambda = mu / leave-pinned bytes
 *
 * seconds. All that a buffer's plans cost is counted in one unit, its missed
 * use: what the use loses when it has to register. Then holding has one number
 * for each buffer, the *rent time*, for which it costs one missed use.
 *
 * Pure functions; times are nanoseconds.
 */

BEGIN_C_DECLS

/** What is the same for all plans of a buffer, at one moment. */
typedef struct ucs_predict_price {
    double rent_ns;     /**< holding for so long costs one missed use; above
                             0 */
    double register_ns; /**< so long before it is needed the helper has to
                             begin a registration, its wake-up included */
    double react_ns;    /**< after a use has ended, or something else happened,
                             the helper knows of it */
    double late_ns;     /**< the same in the mean: what is not to be held is held
                             for so long */
    double saved;       /**< of a missed use, where the use was announced: so
                             much less a use costs that a plan would have
                             missed; 0: it was not */
    double drop_work;   /**< where the thread that ends a use deregisters before
                             it goes on */
} ucs_predict_price_t;


/** @return Nonzero if what is not to be held is better deregistered by the
 *          thread that ends its use than held until the helper comes. */
static inline int ucs_predict_price_drops(const ucs_predict_price_t *price)
{
    return price->drop_work < price->late_ns / price->rent_ns;
}


/**
 * For how long does holding a registration cost what registering costs? Who
 * drops it then, and not before, loses at most twice what the best choice
 * between keeping and dropping in each gap would have lost, whatever the
 * program does (Karlin, Manasse, Rudolph, Sleator: Competitive Snoopy Caching,
 * Algorithmica 3, 1988).
 *
 * @param [in] max_slowdown  mu, a share of run time, above 0.
 * @param [in] leave_bytes   That leave-pinned would hold.
 * @param [in] bytes         Of the registration; 0 counts as 1.
 * @param [in] cost_ns       Of a missed use.
 *
 * @return Nanoseconds, at most 1e18.
 */
static inline double ucs_predict_price_rent_ns(double max_slowdown,
                                               double leave_bytes, double bytes,
                                               double cost_ns)
{
    double most = 1e18;
    double rent;

    bytes = (bytes > 1) ? bytes : 1;
    /* What is registered is a part of what would be left pinned */
    leave_bytes = (leave_bytes > bytes) ? leave_bytes : bytes;
    rent        = cost_ns * leave_bytes / (max_slowdown * bytes);
    return (rent < most) ? rent : most;
}

END_C_DECLS

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_PRICE_H_
#define UCS_PREDICT_PRICE_H_

#include <ucs/sys/compiler_def.h>

/*
 * What memory is worth (docs/prediction.md). With mu the share of the run time that
 * all memory is worth, a byte that is held for a second costs
 *
 *     lambda = mu / leave-pinned bytes
 *
 * seconds. Costs are counted in missed uses, so that holding a buffer has one
 * number: the *rent time*, for which it costs one missed use. Pure functions; times
 * are nanoseconds.
 */

BEGIN_C_DECLS

/** What is the same for all plans of a buffer, at one moment. */
typedef struct ucs_predict_price {
    double rent_ns;     /**< the rent time; above 0 */
    double register_ns; /**< so long before it is needed the helper has to begin a
                             registration, its wake-up included */
    double react_ns;    /**< so late the helper knows that a use has ended */
    double late_ns;     /**< the same in the mean: a buffer that is to be dropped is
                             held for so long */
    double saved;       /**< share of a missed use that an announcement saves; 0: the
                             use was not announced */
    double drop_work;   /**< missed uses that a deregistration costs if the thread
                             that ends the use makes it */
    double wanted;      /**< share of the helper's work that somebody else waits for,
                             0 to 1 */
    double saved_late;  /**< as saved, also where a plan comes too late: an announcement
                             that was left to it saves nothing then */
    double look;        /**< missed uses that a look of the helper for a key costs */
} ucs_predict_price_t;

/** @return Nonzero if it is cheaper that the thread that ends a use deregisters
 *          its buffer than to hold it until the helper comes. */
static inline int ucs_predict_price_drops(const ucs_predict_price_t *price)
{
    return price->drop_work < price->late_ns / price->rent_ns;
}

/**
 * The rent time. Who drops a buffer after it, and not before, loses at most twice
 * what the best choice between keeping and dropping in each gap would have lost
 * (Karlin, Manasse, Rudolph, Sleator: Competitive Snoopy Caching, Algorithmica 3,
 * 1988).
 *
 * @param [in] max_slowdown  mu, above 0.
 * @param [in] leave_bytes   What leave-pinned would hold.
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

/** @return Missed uses that the helper's work for one gap costs, if it deregisters and
 *          registers again. A registration takes as long as a missed use. */
static inline double ucs_predict_price_work(const ucs_predict_price_t *price)
{
    return price->wanted * (1 + price->drop_work);
}

END_C_DECLS

#endif

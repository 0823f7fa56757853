/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_CONDITION_H_
#define UCS_PREDICT_CONDITION_H_

#include <ucs/predict/saturate.h>

#include <stdint.h>

/*
 * Is there time enough? Inequality (1) of Li et al., CF'11, section 3.2,
 *
 *     t_c + t_p <= t_d
 *
 * with t_c the current time, t_p what the helper has to do and t_d the
 * registration deadline. Pure functions; times are nanoseconds, and sums stop at
 * UINT64_MAX, which is no deadline.
 */

/** Terms of t_p: what each part of the helper's work takes, in nanoseconds. */
typedef struct ucs_predict_terms {
    uint64_t hash_ns;       /**< t_hash: look-up and update of a call site */
    uint64_t cache_ns;      /**< t_cache: search of the registration cache */
    uint64_t insert_ns;     /**< t_insert: insertion into the registration
                                 queue */
    uint64_t update_ns;     /**< t_update: finding a region's next deadline */
    uint64_t deregister_ns; /**< t_deregister, @ref ucs_predict_cost_estimate */
    uint64_t register_ns;   /**< t_register, @ref ucs_predict_cost_estimate */
    uint64_t wakeup_ns;     /**< from the time that the helper wants to be woken
                                 until it runs. Not in the paper, whose helper
                                 spins. */
} ucs_predict_terms_t;

/** @return t_p of a deregistration, after which the region can still be
 *          registered again. */
static inline uint64_t
ucs_predict_deregister_cost(const ucs_predict_terms_t *terms)
{
    uint64_t cost = ucs_predict_sat_add(terms->deregister_ns,
                                        terms->insert_ns);

    cost = ucs_predict_sat_add(cost, terms->register_ns);
    cost = ucs_predict_sat_add(cost, terms->update_ns);
    return ucs_predict_sat_add(cost, terms->wakeup_ns);
}

/** @return t_p of a registration, before which one item of the deregistration
 *          queue is served. */
static inline uint64_t
ucs_predict_register_cost(const ucs_predict_terms_t *terms)
{
    uint64_t cost = ucs_predict_sat_add(terms->hash_ns, terms->cache_ns);

    return ucs_predict_sat_add(cost, ucs_predict_deregister_cost(terms));
}

/** @return The least distance between neighbours in the registration queue
 *          ("Adjusting Registration Deadlines"): one item of each queue. Between
 *          items that close the helper stays awake. */
static inline uint64_t ucs_predict_rq_gap(const ucs_predict_terms_t *terms)
{
    return ucs_predict_sat_sub(ucs_predict_register_cost(terms),
                               terms->wakeup_ns);
}

/** @return Nonzero if a region can be deregistered now and still be registered
 *          again by its earliest deadline. */
static inline int ucs_predict_may_deregister(uint64_t now,
                                             const ucs_predict_terms_t *terms,
                                             uint64_t deadline)
{
    return ucs_predict_sat_add(now, ucs_predict_deregister_cost(terms)) <=
           deadline;
}

/** @return Nonzero if a registration can wait until one item of the
 *          deregistration queue has been served. The paper's text says "earlier
 *          than" the deadline, its inequality "not later than": this follows the
 *          inequality. */
static inline int ucs_predict_may_delay(uint64_t now,
                                        const ucs_predict_terms_t *terms,
                                        uint64_t deadline)
{
    return ucs_predict_sat_add(now, ucs_predict_register_cost(terms)) <=
           deadline;
}

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_CONDITION_H_
#define UCS_PREDICT_CONDITION_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file condition.h
 *
 * Is there time enough? Inequality (1) of Li et al., CF'11, section 3.2,
 *
 *     t_c + t_p <= t_d
 *
 * with t_c the current time, t_p what the helper has to do and t_d the
 * registration deadline. Pure functions; all times are nanoseconds and all
 * sums stop at UINT64_MAX.
 */

BEGIN_C_DECLS

/** Terms of t_p: what each part of the helper's work takes, in nanoseconds. */
typedef struct ucs_predict_terms {
    uint64_t hash_ns;       /**< t_hash: look-up and update of a call site */
    uint64_t cache_ns;      /**< t_cache: search of the registration cache */
    uint64_t insert_ns;     /**< t_insert: insertion into the registration
                                 queue, @ref ucs_predict_queue_cost */
    uint64_t update_ns;     /**< t_update: finding a region's next deadline,
                                 @ref ucs_predict_queue_cost */
    uint64_t deregister_ns; /**< t_deregister, @ref ucs_predict_cost_estimate */
    uint64_t register_ns;   /**< t_register, @ref ucs_predict_cost_estimate */
    uint64_t wakeup_ns;     /**< From the time that the helper wants to be
                                 woken until it runs. Not in the paper, whose
                                 helper spins; 0 gives the paper's t_p. */
} ucs_predict_terms_t;


/**
 * t_p of the deregistration condition: t_deregister + t_insert + t_register +
 * t_update, and the wake-up for the registration that is to follow.
 */
uint64_t ucs_predict_deregister_cost(const ucs_predict_terms_t *terms);


/**
 * t_p of the registration condition: t_hash + t_cache + t_deregister +
 * t_insert (one item of the deregistration queue, served first) + t_register +
 * t_update (then the registration itself), and the wake-up.
 */
uint64_t ucs_predict_register_cost(const ucs_predict_terms_t *terms);


/**
 * The deregistration condition.
 *
 * @param [in] now       Current time.
 * @param [in] deadline  The earliest deadline of the region; UINT64_MAX if
 *                       there is none, which always allows.
 *
 * @return Nonzero if the region can be deregistered now and still be
 *         registered again by its deadline.
 */
int ucs_predict_may_deregister(uint64_t now, const ucs_predict_terms_t *terms,
                               uint64_t deadline);


/**
 * The registration condition. The paper's text says "earlier than" the
 * deadline, its inequality (1) "not later than": this follows the inequality.
 *
 * @param [in] now       Current time.
 * @param [in] deadline  The region's registration deadline.
 *
 * @return Nonzero if the registration can wait until one item of the
 *         deregistration queue has been served. The latest such @a now is
 *         @a deadline - @ref ucs_predict_register_cost.
 */
int ucs_predict_may_delay(uint64_t now, const ucs_predict_terms_t *terms,
                          uint64_t deadline);


/**
 * The least distance between neighbours in the registration queue: the cost of
 * one of its items plus one of the deregistration queue ("Adjusting
 * Registration Deadlines"). No wake-up: between items that close the helper
 * stays awake.
 */
uint64_t ucs_predict_rq_gap(const ucs_predict_terms_t *terms);


/**
 * t_insert, t_update, or t_cache where it is a linear search: conservatively,
 * every item is compared.
 *
 * @param [in] per_item_ns  Nanoseconds of one comparison, at least 0.
 * @param [in] items        Number of items in the queue.
 *
 * @return Nanoseconds, rounded up.
 */
uint64_t ucs_predict_queue_cost(double per_item_ns, size_t items);

END_C_DECLS

#endif

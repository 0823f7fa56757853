/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_PLANS_H_
#define UCS_PREDICT_PLANS_H_

#include <ucs/predict/price.h>
#include <ucs/predict/tuning.h>
#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * Plans for the time between two uses of a buffer, side by side
 * (docs/prediction.md). When a gap is over each plan is charged with what it, made
 * with what was known when the gap began, would have cost. The plan that was
 * cheapest so far is followed. A plan that foretells is not judged by a gap in which
 * nothing was known yet to foretell it by. Costs are in missed uses.
 *
 * **Guarantee.** The plan that is followed may cost an eighth more than renting, and
 * two missed uses. Past that the buffer is rented, after its uses from that call
 * site, until the gaps that were rented have made up for it. A gap is judged when it
 * is over, so one may go beyond that:
 *
 *     cost <= 1.125 * rent + 2 + one gap
 *          <= 2.25 * offline keep-or-drop + 2 + one gap
 *
 * beside the helper's delays. One gap is 4 where its plan held for the rent time at
 * most: looks for a key cost one missed use at most.
 */

BEGIN_C_DECLS

typedef enum ucs_predict_plan {
    UCS_PREDICT_PLAN_RENT,   /**< hold for the rent time */
    UCS_PREDICT_PLAN_DROP,   /**< do not hold */
    UCS_PREDICT_PLAN_KEY,    /**< register so long after the key that told the
                                  use best */
    UCS_PREDICT_PLAN_BURST,  /**< hold for as long as was best in the latest gaps,
                                  and then as the key tells: for uses that come
                                  several at once */
    UCS_PREDICT_PLAN_LAST
} ucs_predict_plan_t;

/** What a plan comes to in a gap. Nanoseconds after the gap began. */
typedef struct ucs_predict_course {
    double hold_ns; /**< registered until then */
    double due_ns;  /**< and from then on again; below 0: never */
    int    drops;   /**< the thread that ends the use deregisters it */
    double looks;   /**< of the helper, for the key that tells due_ns */
} ucs_predict_course_t;

/** How plans have done. All zero: nothing is known. */
typedef struct ucs_predict_scores {
    float cost[UCS_PREDICT_PLAN_LAST]; /**< decayed sums */
    float weight;                      /**< gaps, likewise */
    float foretold;                    /**< those of them that something could
                                            have foretold, likewise */
} ucs_predict_scores_t;

/** Of a buffer after its uses from one call site. All zero: there was one. */
typedef struct ucs_predict_judge {
    ucs_predict_scores_t scores;
    float                debt;   /**< what was followed has cost more than
                                      renting, less what it may */
    uint8_t              choice; /**< ucs_predict_plan_t that is followed */
} ucs_predict_judge_t;

/**
 * @param [in] gap_ns  The next use came so long after the gap began.
 *
 * @return What the course costs in this gap. What is registered in vain is held
 *         for the rent time at most.
 */
double ucs_predict_course_cost(const ucs_predict_course_t *course,
                               const ucs_predict_price_t *price,
                               double gap_ns);

/** Scores of a buffer of which nothing is known, before any buffer is. */
void ucs_predict_scores_init(ucs_predict_scores_t *all);

/** @return Nonzero if a plan says when the next use comes. */
static inline int ucs_predict_plan_foretells(int plan)
{
    return plan >= UCS_PREDICT_PLAN_KEY;
}

/**
 * A gap of any buffer is over.
 *
 * @param [in] is_foretold  Something was known to foretell its end by. If not,
 *                          plans that foretell are not judged by it.
 */
void ucs_predict_scores_gap(ucs_predict_scores_t *all,
                            const double cost[UCS_PREDICT_PLAN_LAST],
                            int is_foretold,
                            const ucs_predict_tuning_t *tuning);

/**
 * A gap is over.
 *
 * @param [inout] cost       Of each plan; of the one that was followed @a extra
 *                           is added, for the helper was late.
 * @param [in] is_foretold   As of @ref ucs_predict_scores_gap.
 * @param [inout] buffer     Scores of the buffer from all call sites.
 */
void ucs_predict_judge_gap(ucs_predict_judge_t *judge,
                           double cost[UCS_PREDICT_PLAN_LAST], double extra,
                           int is_foretold, const ucs_predict_tuning_t *tuning,
                           ucs_predict_scores_t *buffer);

/** Choose the plan for the next gap: the one that has cost least so far, after
 *  such uses; where there were few, after all of the buffer; and where those
 *  were few, of all buffers. */
void ucs_predict_judge_choose(ucs_predict_judge_t *judge,
                              const ucs_predict_tuning_t *tuning,
                              const ucs_predict_scores_t *buffer,
                              const ucs_predict_scores_t *all);

END_C_DECLS

#endif

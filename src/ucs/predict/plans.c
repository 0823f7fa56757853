/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "plans.h"

#include <ucs/sys/math.h>

/* But for what the helper looks for */
static double ucs_predict_course_held(const ucs_predict_course_t *course,
                                      const ucs_predict_price_t *price,
                                      double gap_ns)
{
    /* What is not held at all goes when the helper hears of it, unless it is
     * gone by then */
    double dropped = course->drops         ? 0 :
                     (course->hold_ns > 0) ? course->hold_ns :
                                             price->late_ns;
    double due     = course->due_ns;
    double begin   = due - price->register_ns;
    double missed  = 1 - price->saved;
    double early   = 1 - price->saved_late; /* it comes before the plan is due */
    double cost, kept;

    if ((due >= 0) && (begin <= dropped)) {
        /* No time to do without: held until it is given up */
        kept = due + price->rent_ns;
        return (gap_ns <= kept) ? gap_ns / price->rent_ns :
                                  (kept / price->rent_ns) + missed;
    }
    if (gap_ns <= dropped) {
        return gap_ns / price->rent_ns;
    }

    cost = (dropped / price->rent_ns) +
           (course->drops ? 1 : price->wanted) * price->drop_work;
    if (due < 0) {
        return cost + missed;
    }
    if (gap_ns <= begin) {
        return cost + early;
    }
    cost += price->wanted;
    if (gap_ns < due) {
        /* It waits for what is left of the registration */
        return cost + ucs_min((due - gap_ns) / price->register_ns, early);
    }
    kept = ucs_min(gap_ns - begin, due - begin + price->rent_ns);
    return cost + (kept / price->rent_ns) +
           ((gap_ns > due + price->rent_ns) ? missed : 0);
}

double ucs_predict_course_cost(const ucs_predict_course_t *course,
                               const ucs_predict_price_t *price, double gap_ns)
{
    return ucs_predict_course_held(course, price, gap_ns) +
           (course->looks * price->look);
}

/* A little in favour of renting, whose cost is bounded */
void ucs_predict_scores_init(ucs_predict_scores_t *all)
{
    int plan;

    for (plan = 0; plan < UCS_PREDICT_PLAN_LAST; ++plan) {
        all->cost[plan] = (plan == UCS_PREDICT_PLAN_RENT) ? 0.9f : 1;
    }
    all->weight   = 1;
    all->foretold = 1;
}

static void ucs_predict_scores_add(ucs_predict_scores_t *scores,
                                   const double cost[UCS_PREDICT_PLAN_LAST],
                                   int is_foretold, double decay)
{
    int plan;

    for (plan = 0; plan < UCS_PREDICT_PLAN_LAST; ++plan) {
        if (is_foretold || !ucs_predict_plan_foretells(plan)) {
            scores->cost[plan] = (float)(scores->cost[plan] * decay +
                                         cost[plan]);
        }
    }
    scores->weight = (float)(scores->weight * decay + 1);
    if (is_foretold) {
        scores->foretold = (float)(scores->foretold * decay + 1);
    }
}

/* @return By how many gaps a plan has been judged */
static float ucs_predict_scores_weight(const ucs_predict_scores_t *scores,
                                       int plan)
{
    return ucs_predict_plan_foretells(plan) ? scores->foretold :
                                              scores->weight;
}

void ucs_predict_scores_gap(ucs_predict_scores_t *all,
                            const double cost[UCS_PREDICT_PLAN_LAST],
                            int is_foretold,
                            const ucs_predict_tuning_t *tuning)
{
    ucs_predict_scores_add(all, cost, is_foretold, tuning->plan_decay_all);
}

void ucs_predict_judge_gap(ucs_predict_judge_t *judge,
                           double cost[UCS_PREDICT_PLAN_LAST], double extra,
                           int is_foretold, const ucs_predict_tuning_t *tuning,
                           ucs_predict_scores_t *buffer)
{
    cost[judge->choice] += extra;
    judge->debt += (float)(cost[judge->choice] -
                           cost[UCS_PREDICT_PLAN_RENT] *
                                   (1 + tuning->plan_allowance));
    judge->debt  = ucs_max(judge->debt, 0.0f);
    ucs_predict_scores_add(&judge->scores, cost, is_foretold,
                           tuning->plan_decay);
    ucs_predict_scores_add(buffer, cost, is_foretold, tuning->plan_decay);
}

static float ucs_predict_scores_mean(const ucs_predict_scores_t *scores,
                                     int plan, float prior)
{
    return (scores->cost[plan] + prior) /
           (ucs_predict_scores_weight(scores, plan) + 1);
}

void ucs_predict_judge_choose(ucs_predict_judge_t *judge,
                              const ucs_predict_tuning_t *tuning,
                              const ucs_predict_scores_t *buffer,
                              const ucs_predict_scores_t *all)
{
    float least = 0;
    float cost;
    int plan;

    judge->choice = UCS_PREDICT_PLAN_RENT;
    if (judge->debt > tuning->plan_credit) {
        return;
    }
    for (plan = 0; plan < UCS_PREDICT_PLAN_LAST; ++plan) {
        cost = all->cost[plan] / ucs_predict_scores_weight(all, plan);
        cost = ucs_predict_scores_mean(buffer, plan, cost);
        cost = ucs_predict_scores_mean(&judge->scores, plan, cost);
        if ((plan == 0) || (cost < least)) {
            least         = cost;
            judge->choice = plan;
        }
    }
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "condition.h"
#include "saturate.h"

static uint64_t predict_dq_item_cost(const ucs_predict_terms_t *terms)
{
    uint64_t cost = ucs_predict_sat_add(terms->hash_ns, terms->cache_ns);

    cost = ucs_predict_sat_add(cost, terms->deregister_ns);
    return ucs_predict_sat_add(cost, terms->insert_ns);
}

static uint64_t predict_rq_item_cost(const ucs_predict_terms_t *terms)
{
    return ucs_predict_sat_add(terms->register_ns, terms->update_ns);
}

static int predict_in_time(uint64_t now, uint64_t cost, uint64_t deadline)
{
    return ucs_predict_sat_add(now, cost) <= deadline;
}

uint64_t ucs_predict_deregister_cost(const ucs_predict_terms_t *terms)
{
    uint64_t cost = ucs_predict_sat_add(terms->deregister_ns,
                                        terms->insert_ns);

    cost = ucs_predict_sat_add(cost, predict_rq_item_cost(terms));
    return ucs_predict_sat_add(cost, terms->wakeup_ns);
}

uint64_t ucs_predict_register_cost(const ucs_predict_terms_t *terms)
{
    return ucs_predict_sat_add(ucs_predict_rq_gap(terms), terms->wakeup_ns);
}

int ucs_predict_may_deregister(uint64_t now, const ucs_predict_terms_t *terms,
                               uint64_t deadline)
{
    return predict_in_time(now, ucs_predict_deregister_cost(terms), deadline);
}

int ucs_predict_may_delay(uint64_t now, const ucs_predict_terms_t *terms,
                          uint64_t deadline)
{
    return predict_in_time(now, ucs_predict_register_cost(terms), deadline);
}

uint64_t ucs_predict_rq_gap(const ucs_predict_terms_t *terms)
{
    return ucs_predict_sat_add(predict_dq_item_cost(terms),
                               predict_rq_item_cost(terms));
}

uint64_t ucs_predict_queue_cost(double per_item_ns, size_t items)
{
    if (!(per_item_ns > 0)) {
        return 0;
    }

    return ucs_predict_sat_ceil(per_item_ns * (double)items);
}

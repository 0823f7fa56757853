/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/paper/callsite.h>
#include <ucs/sys/mem/own_memory.h>

/* Of the helper's wake-up before it has been measured, ns */
#define UCS_REGCACHE_LATENESS_NS 100000

ucs_status_t ucs_regcache_plan_init(ucs_regcache_h cache,
                                    const ucs_regcache_params_t *params)
{
    ucs_regcache_plan_t *plan = &cache->plan;

    plan->ops      = ucs_regcache_policies[params->policy];
    ucs_store_relaxed(&plan->next_due, UCS_REGCACHE_TIME_NEVER);
    plan->is_deaf  = (params->policy == UCS_REGCACHE_POLICY_RENT);
    plan->sweep.at = UCS_REGCACHE_TIME_NEVER;
    plan->leaving.due = UCS_REGCACHE_TIME_NEVER;
    plan->lateness = UCS_REGCACHE_LATENESS_NS;
    plan->late_ns  = UCS_REGCACHE_LATENESS_NS;
    plan->queue_length    = params->dq_length;
    plan->max_contexts    = params->max_contexts;
    if (!ucs_regcache_plan_is_used(cache)) {
        return UCS_OK;
    }

    cache->walking.is_on = plan->ops->minds_price && !plan->is_deaf &&
                           (params->cover.kind != UCS_REGCACHE_COVER_OFF);
    ucs_store_relaxed(&cache->walking.react_ns, UCS_REGCACHE_LATENESS_NS);
    cache->soft.is_kept = plan->ops->minds_price &&
                          (cache->config.max_pinned == SIZE_MAX);
    if (plan->ops->keeps) {
        return ucs_regcache_plan_open(cache); /* any thread unpins, and writes there */
    }
    return (params->max_contexts <= UCS_PREDICT_MAX_ENTRIES) ?
                   UCS_OK :
                   UCS_ERR_INVALID_PARAM;
}

ucs_status_t ucs_regcache_plan_open(ucs_regcache_h cache)
{
    ucs_regcache_plan_t *plan = &cache->plan;
    ucs_status_t status;
    void *state;

    if (plan->state != NULL) {
        return UCS_OK;
    }
    status = ucs_regcache_rq_init(&plan->rq, plan->max_contexts);
    if (status != UCS_OK) {
        return status;
    }
    status = plan->ops->init(cache, plan->max_contexts, &state);
    if (status != UCS_OK) {
        ucs_regcache_rq_cleanup(&plan->rq);
        return status;
    }
    ucs_regcache_lock(cache);
    plan->state = state;
    ucs_regcache_unlock(cache);
    return UCS_OK;
}

void ucs_regcache_plan_cleanup(ucs_regcache_h cache)
{
    ucs_regcache_listen_end(cache);
    ucs_own_free(cache->plan.hearing);
    if (cache->plan.state != NULL) {
        ucs_regcache_rq_cleanup(&cache->plan.rq);
        cache->plan.ops->cleanup(cache->plan.state);
    }
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/paper/callsite.h>
#include <ucs/predict/saturate.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

/*
 * The policy of Li et al., CF'11: a use is expected when the shortest period of
 * its context has passed.
 */

/* The policy's own, in plan.state, is the table. Contexts are counted as it counts
 * them, and so are the items of the queue. */

static ucs_status_t ucs_regcache_paper_init(ucs_regcache_h cache, unsigned max,
                                            void **state_p)
{
    ucs_predict_table_h table = NULL;
    ucs_predict_params_t predict;
    ucs_status_t status;

    ucs_predict_params_init(&predict);
    predict.max_entries = max;
    status              = ucs_predict_table_create(&predict, &table);
    *state_p            = table;
    return status;
}

static void ucs_regcache_paper_cleanup(void *state)
{
    ucs_predict_table_destroy(state);
}

/* Any use of the region is the one that was waited for */
static void ucs_regcache_paper_satisfy(ucs_regcache_h cache,
                                       ucs_regcache_region_t *region,
                                       uint64_t end_ns)
{
    ucs_regcache_rq_item_t *item, *next;

    for (item = ucs_regcache_rq_of_region(region); item != NULL; item = next) {
        next = item->region_next;
        if ((item->list == UCS_REGCACHE_RQ_EXPECTED) ||
            (item->deadline <= end_ns)) {
            ucs_regcache_rq_remove(&cache->plan.rq, item);
        }
    }
}

static void ucs_regcache_paper_expect(ucs_regcache_h cache,
                                      ucs_regcache_region_t *region,
                                      ucs_predict_ref_t ref,
                                      const ucs_use_t *use)
{
    ucs_predict_table_h table    = cache->plan.state;
    ucs_regcache_rq_item_t *item = &cache->plan.rq.items[ref.index];
    ucs_predict_terms_t terms;
    uint64_t deadline;

    if (!ucs_regcache_rq_may_expect(&cache->plan.rq, ref) ||
        !ucs_predict_table_deadline(table, ref, &deadline)) {
        return;
    }
    /* The table may have given another context's place to this one */
    if (item->region != region) {
        ucs_regcache_plan_cancel(cache, item);
    }
    ucs_regcache_terms(cache, region, &terms);
    ucs_regcache_rq_expect(&cache->plan.rq, region, ref,
                           deadline - ucs_predict_table_margin(table, ref),
                           ucs_predict_rq_gap(&terms));
    item->deadline = deadline;
    item->use_end  = deadline +
                     ucs_predict_sat_sub(use->end_ns, use->start_ns);
}

static void ucs_regcache_paper_use(ucs_regcache_h cache, const ucs_use_t *use)
{
    ucs_regcache_region_t *region = use->region;
    ucs_predict_use_t learned     = ucs_regcache_policy_learns(use);
    ucs_predict_ref_t ref;

    ref = ucs_predict_table_record(cache->plan.state, &learned);
    if (ucs_regcache_region_gen(region) != use->generation) {
        ucs_regcache_plan_cancel(cache, &cache->plan.rq.items[ref.index]);
        return;
    }

    ucs_regcache_paper_satisfy(cache, region, use->end_ns);
    ucs_regcache_paper_expect(cache, region, ref, use);
    ucs_regcache_plan_replan(cache, region);
    ucs_regcache_plan_deregister(cache, region);
}

static uint64_t ucs_regcache_paper_until(ucs_regcache_h cache,
                                         const ucs_regcache_rq_item_t *item,
                                         uint64_t now)
{
    return ucs_max(item->deadline, now) +
           ucs_predict_table_slack(cache->plan.state, item->ref);
}

static void ucs_regcache_paper_expired(ucs_regcache_h cache,
                                       ucs_regcache_rq_item_t *item,
                                       uint64_t now)
{
    ucs_predict_table_unused(cache->plan.state, item->ref);
    ucs_regcache_plan_cancel(cache, item);
}

const ucs_regcache_policy_ops_t ucs_regcache_policy_paper = {
    .idle    = UCS_REGCACHE_IDLE_QUEUE,
    .init    = ucs_regcache_paper_init,
    .cleanup = ucs_regcache_paper_cleanup,
    .use     = ucs_regcache_paper_use,
    .until   = ucs_regcache_paper_until,
    .expired = ucs_regcache_paper_expired
};

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

/*
 * The policy of Li et al., CF'11: a use is expected when the shortest period of
 * its context has passed.
 */

static ucs_status_t ucs_regcache_paper_init(ucs_regcache_h cache,
                                            unsigned max_contexts)
{
    ucs_predict_params_t params;

    ucs_predict_params_init(&params);
    params.max_entries = max_contexts;
    params.borrow      = 1;
    return ucs_predict_table_create(&params, &cache->plan.table);
}

static void ucs_regcache_paper_cleanup(ucs_regcache_h cache)
{
    ucs_predict_table_destroy(cache->plan.table);
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
    ucs_regcache_rq_item_t *item = &cache->plan.rq.items[ref.index];
    ucs_predict_terms_t terms;
    uint64_t duration = (use->end_ns > use->start_ns) ?
                                use->end_ns - use->start_ns :
                                0;
    uint64_t deadline;

    if (!ucs_regcache_rq_may_expect(&cache->plan.rq, ref) ||
        !ucs_predict_table_deadline(cache->plan.table, ref, &deadline)) {
        return;
    }
    /* The table may have given another context's place to this one */
    if (item->region != region) {
        ucs_regcache_step_cancel(cache, item);
    }
    ucs_regcache_step_terms(cache, region, &terms);
    ucs_regcache_rq_expect(
            &cache->plan.rq, region, ref,
            deadline - ucs_predict_table_margin(cache->plan.table, ref),
            deadline, deadline + duration, ucs_predict_rq_gap(&terms));
}

static void ucs_regcache_paper_use(ucs_regcache_h cache, const ucs_use_t *use)
{
    ucs_regcache_region_t *region = use->region;
    ucs_predict_use_t learned = {
        .start_ns = use->start_ns,
        .path     = ucs_regcache_step_path(cache, use),
        .address  = use->address,
        .length   = use->length,
        .type     = ucs_load_relaxed(&region->access)
    };
    ucs_predict_ref_t ref;

    ref = ucs_predict_table_record(cache->plan.table, &learned);
    if (ucs_regcache_region_gen(region) != use->generation) {
        ucs_regcache_step_cancel(cache, &cache->plan.rq.items[ref.index]);
        return;
    }

    ucs_regcache_paper_satisfy(cache, region, use->end_ns);
    ucs_regcache_paper_expect(cache, region, ref, use);
    ucs_regcache_step_replan(cache, region);
    ucs_regcache_step_deregister(cache, region);
}

static uint64_t ucs_regcache_paper_until(ucs_regcache_h cache,
                                         const ucs_regcache_rq_item_t *item,
                                         uint64_t now)
{
    return ucs_max(item->deadline, now) +
           ucs_predict_table_slack(cache->plan.table, item->ref);
}

static void ucs_regcache_paper_unused(ucs_regcache_h cache,
                                      const ucs_regcache_rq_item_t *item)
{
    ucs_predict_table_unused(cache->plan.table, item->ref);
}

const ucs_regcache_policy_ops_t ucs_regcache_policy_paper = {
        .init    = ucs_regcache_paper_init,
        .cleanup = ucs_regcache_paper_cleanup,
        .use     = ucs_regcache_paper_use,
        .until   = ucs_regcache_paper_until,
        .unused  = ucs_regcache_paper_unused};

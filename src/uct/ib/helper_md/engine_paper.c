/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

/*
 * The policy of Li et al., CF'11: a use is expected when the shortest period of
 * its context has passed.
 */

static ucs_status_t uct_helper_paper_init(uct_helper_engine_h engine,
                                          unsigned max_contexts)
{
    ucs_predict_params_t params;

    ucs_predict_params_init(&params);
    params.max_entries = max_contexts;
    params.borrow      = 1;
    return ucs_predict_table_create(&params, &engine->table);
}

static void uct_helper_paper_cleanup(uct_helper_engine_h engine)
{
    ucs_predict_table_destroy(engine->table);
}

/* Any use of the region is the one that was waited for */
static void uct_helper_paper_satisfy(uct_helper_engine_h engine,
                                    uct_helper_region_t *region,
                                    uint64_t end_ns)
{
    uct_helper_rq_item_t *item, *next;

    for (item = uct_helper_rq_of_region(region); item != NULL; item = next) {
        next = item->region_next;
        if ((item->list == UCT_HELPER_RQ_EXPECTED) ||
            (item->deadline <= end_ns)) {
            uct_helper_rq_remove(&engine->rq, item);
        }
    }
}

static void uct_helper_paper_expect(uct_helper_engine_h engine,
                                   uct_helper_region_t *region,
                                   ucs_predict_ref_t ref,
                                   const uct_helper_use_t *use)
{
    uct_helper_rq_item_t *item = &engine->rq.items[ref.index];
    ucs_predict_terms_t terms;
    uint64_t duration = (use->end_ns > use->start_ns) ?
                                use->end_ns - use->start_ns :
                                0;
    uint64_t deadline;

    if (!uct_helper_rq_may_expect(&engine->rq, ref) ||
        !ucs_predict_table_deadline(engine->table, ref, &deadline)) {
        return;
    }
    /* The table may have given another context's place to this one */
    if (item->region != region) {
        uct_helper_step_cancel(engine, item);
    }
    uct_helper_step_terms(engine, region, &terms);
    uct_helper_rq_expect(&engine->rq, region, ref,
                         deadline - ucs_predict_table_margin(engine->table,
                                                             ref),
                         deadline, deadline + duration,
                         ucs_predict_rq_gap(&terms));
}

static void uct_helper_paper_use(uct_helper_engine_h engine,
                                 const uct_helper_use_t *use)
{
    uct_helper_region_t *region = use->region;
    ucs_predict_use_t learned   = {
        .start_ns = use->start_ns,
        .path     = uct_helper_step_path(engine, use),
        .address  = use->address,
        .length   = use->length,
        .type     = ucs_load_relaxed(&region->access)
    };
    ucs_predict_ref_t ref;

    ref = ucs_predict_table_record(engine->table, &learned);
    if (uct_helper_region_gen(region) != use->generation) {
        uct_helper_step_cancel(engine, &engine->rq.items[ref.index]);
        return;
    }

    uct_helper_paper_satisfy(engine, region, use->end_ns);
    uct_helper_paper_expect(engine, region, ref, use);
    uct_helper_step_replan(engine, region);
    uct_helper_step_deregister(engine, region);
}

static uint64_t uct_helper_paper_until(uct_helper_engine_h engine,
                                       const uct_helper_rq_item_t *item,
                                       uint64_t now)
{
    return ucs_max(item->deadline, now) +
           ucs_predict_table_slack(engine->table, item->ref);
}

static void uct_helper_paper_unused(uct_helper_engine_h engine,
                                    const uct_helper_rq_item_t *item)
{
    ucs_predict_table_unused(engine->table, item->ref);
}

const uct_helper_steer_t uct_helper_steer_paper = {
    .init    = uct_helper_paper_init,
    .cleanup = uct_helper_paper_cleanup,
    .use     = uct_helper_paper_use,
    .until   = uct_helper_paper_until,
    .unused  = uct_helper_paper_unused
};

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/hash.h>

#include <stdlib.h>

/*
 * What the program says is put aside, and heard when the uses that came before
 * it have been learned from: what follows what is all that the predictor knows.
 */

static void ucs_regcache_hear_one(ucs_regcache_h cache,
                                  const ucs_operation_t *operation)
{
    if (operation->kind == UCS_OPERATION_RECEIVED) {
        ucs_regcache_announced_end(cache, operation);
        return;
    }
    if (cache->plan.ops->hear != NULL) {
        cache->plan.ops->hear(cache,
                              operation->address ^
                                      ((uint64_t)operation->label *
                                       UCS_HASH_ROUND_1) ^
                                      operation->kind,
                              operation->time);
    }
    if (operation->kind == UCS_OPERATION_RECEIVE) {
        ucs_regcache_announce(cache, operation);
    }
}

void ucs_regcache_listen(ucs_regcache_h cache, uint64_t time)
{
    ucs_regcache_hearing_t *hearing = cache->plan.hearing;
    const ucs_operation_t *operation;

    if (hearing == NULL) {
        return;
    }
    for (; hearing->heard < hearing->count; ++hearing->heard) {
        operation = &hearing->said[hearing->heard % UCS_REGCACHE_SAID];
        if (operation->time > time) {
            break;
        }
        ucs_regcache_hear_one(cache, operation);
    }
}

void ucs_regcache_listen_use(ucs_regcache_h cache, const ucs_use_t *use)
{
    cache->plan.access   = ucs_load_relaxed(&use->region->access);
    cache->plan.is_known = 1;
    if (cache->plan.hearing == NULL) {
        return;
    }
    ucs_regcache_listen(cache, use->start_ns);
    ucs_regcache_announced_use(cache, use);
}

void ucs_regcache_hear(ucs_regcache_h cache, const ucs_operation_t *operations,
                       unsigned count)
{
    ucs_regcache_plan_t *plan = &cache->plan;
    unsigned i;

    ucs_add_relaxed(&plan->heard, count);
    if (!ucs_regcache_plan_is_used(cache) || plan->is_deaf ||
        ((plan->ops->hear == NULL) && !plan->ops->keeps)) {
        return;
    }
    if (plan->hearing == NULL) {
        plan->hearing = calloc(1, sizeof(*plan->hearing));
        if (plan->hearing == NULL) {
            return; /* as without */
        }
    }
    for (i = 0; i < count; ++i) {
        if (plan->hearing->count - plan->hearing->heard == UCS_REGCACHE_SAID) {
            ucs_regcache_listen(
                    cache,
                    plan->hearing->said[plan->hearing->heard %
                                        UCS_REGCACHE_SAID].time);
        }
        plan->hearing->said[plan->hearing->count++ % UCS_REGCACHE_SAID] =
                operations[i];
    }
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/hash.h>
#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_memory.h>

/*
 * Operations are put aside, and told to the predictor when it has learned from the
 * uses that came before them: it goes by the order alone.
 */

/*
 * Short operations are wanted only while they may foretell something, and the
 * environment is told when that begins and ends. The state is one word that is changed
 * by read-modify-write alone: no change is overwritten, so each beginning has its end,
 * and a use that begins while a step ends is not missed. Relaxed: nothing is published
 * by it.
 */

static void ucs_regcache_listen_tell(ucs_regcache_h cache, int listens)
{
    if (cache->env.listen != NULL) {
        cache->env.listen(cache->env.arg, listens);
    }
}

void ucs_regcache_listen_begin(ucs_regcache_h cache, unsigned access)
{
    ucs_store_relaxed(&cache->plan.asked, access | UCS_REGCACHE_ASKED);
    if ((cache->plan.ops->listens != NULL) && !cache->plan.is_deaf &&
        (ucs_swap_relaxed(&cache->plan.listening, UCS_REGCACHE_LISTENS_ANEW) ==
         UCS_REGCACHE_LISTENS_NOT)) {
        ucs_regcache_listen_tell(cache, 1);
    }
}

void ucs_regcache_listen_anew(ucs_regcache_h cache)
{
    unsigned before = UCS_REGCACHE_LISTENS_ANEW;

    if (ucs_cas_relaxed(&cache->plan.listening, &before,
                        UCS_REGCACHE_LISTENS)) {
        cache->plan.ops->begin(cache);
    }
}

void ucs_regcache_listen_on(ucs_regcache_h cache)
{
    const ucs_regcache_policy_ops_t *ops = cache->plan.ops;
    int listens     = (ops->listens != NULL) && !cache->plan.is_deaf &&
                      ops->listens(cache);
    unsigned before = listens ? UCS_REGCACHE_LISTENS_NOT : UCS_REGCACHE_LISTENS;
    unsigned after  = listens ? UCS_REGCACHE_LISTENS : UCS_REGCACHE_LISTENS_NOT;

    if (ucs_cas_relaxed(&cache->plan.listening, &before, after)) {
        ucs_regcache_listen_tell(cache, listens);
    }
}

void ucs_regcache_listen_end(ucs_regcache_h cache)
{
    if (ucs_swap_relaxed(&cache->plan.listening, UCS_REGCACHE_LISTENS_NOT) !=
        UCS_REGCACHE_LISTENS_NOT) {
        ucs_regcache_listen_tell(cache, 0);
    }
}

uint64_t ucs_regcache_wants_from(ucs_regcache_h cache)
{
    const ucs_regcache_plan_t *plan = &cache->plan;

    return (!plan->is_deaf && ((plan->ops->hear != NULL) || plan->ops->keeps)) ?
                   ucs_max(cache->config.min_size, 1) :
                   UINT64_MAX;
}

/* --- Hearing -------------------------------------------------------------- */

static void ucs_regcache_operation(ucs_regcache_h cache,
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
    } else if (operation->kind == UCS_OPERATION_SEND) {
        ucs_regcache_announced_sent(cache, operation);
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
        ucs_regcache_operation(cache, operation);
    }
}

void ucs_regcache_listen_use(ucs_regcache_h cache, const ucs_use_t *use)
{
    if (cache->plan.hearing == NULL) {
        return;
    }
    ucs_regcache_listen(cache, use->start_ns);
    ucs_regcache_announced_use(cache, use);
}

void ucs_regcache_tell(ucs_regcache_h cache, const ucs_operation_t *operations,
                       unsigned count)
{
    ucs_regcache_plan_t *plan = &cache->plan;
    unsigned i;

    ucs_add_relaxed(&plan->heard, count);
    if (!ucs_regcache_plan_is_used(cache) || plan->is_deaf ||
        ((plan->ops->hear == NULL) && !plan->ops->keeps) ||
        (ucs_regcache_plan_open(cache) != UCS_OK)) {
        return;
    }
    if (plan->hearing == NULL) {
        plan->hearing = ucs_own_alloc(sizeof(*plan->hearing));
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

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/price.h>
#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

void ucs_regcache_announced_set(ucs_regcache_announced_t *announced,
                                ucs_regcache_announcement_t *of,
                                ucs_regcache_announced_state_t state)
{
    int more = (state == UCS_REGCACHE_ANNOUNCED_READY) -
               (of->state == UCS_REGCACHE_ANNOUNCED_READY);

    of->state               = state;
    announced->ready       += more;
    announced->ready_bytes += more * of->bytes;
    if (more != 0) {
        ucs_regcache_plan_announced(of->region, of->generation, more > 0);
    }
    while ((announced->first != announced->next) &&
           (ucs_regcache_announced_at(announced, announced->first)->state ==
            UCS_REGCACHE_ANNOUNCED_NONE)) {
        ++announced->first;
    }
}

/* It keeps its region no longer */
static void ucs_regcache_announced_drop(ucs_regcache_h cache,
                                        ucs_regcache_announcement_t *of,
                                        ucs_regcache_announced_state_t state)
{
    int was_ready = (of->state == UCS_REGCACHE_ANNOUNCED_READY);

    ucs_regcache_announced_set(&cache->plan.hearing->announced, of, state);
    if (was_ready && (ucs_regcache_region_gen(of->region) == of->generation)) {
        ucs_regcache_plan_deregister(cache, of->region);
    }
}

/* Its use has come: what would the plan have lost? */
static void ucs_regcache_announced_rate(ucs_regcache_h cache,
                                        const ucs_regcache_announcement_t *of,
                                        const ucs_use_t *use)
{
    float decay = (float)cache->tuning.predict.plan_decay_all;
    double lost;

    if ((of->planned == 0) ||
        (use->region->announced_gen != use->generation)) {
        return;
    }
    lost = (double)ucs_predict_sat_sub(of->planned, use->start_ns) /
           (double)of->takes;
    use->region->plan_uses = use->region->plan_uses * decay + 1;
    use->region->plan_lost = use->region->plan_lost * decay +
                             (float)ucs_min(lost, 1);
}

/* It is over without a use */
static void ucs_regcache_announced_unused(ucs_regcache_announced_t *announced,
                                          ucs_regcache_announcement_t *of)
{
    /* At worst it was held for the rent time */
    announced->debt += !of->is_over && of->has_acted;
    of->is_over      = 1;
}

/* No two receives write to the same memory at once: an earlier one there is over, and its
 * end was not told. It ends at the end of the step, for the new one may take over what it
 * has registered. */
static void
ucs_regcache_announced_replace(ucs_regcache_h cache,
                               const ucs_operation_t *operation)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;
    ucs_regcache_announcement_t *of;
    unsigned i;

    ucs_regcache_announced_for_each(of, i, announced) {
        if ((of->start < operation->address + operation->length) &&
            (of->end > operation->address)) {
            of->until = 0; /* as its end would have told */
            ucs_regcache_announced_unused(announced, of);
        }
    }
}

/* What it costs its use, in missed uses, that it is registered when it is due */
static double
ucs_regcache_announced_cost(const ucs_regcache_announcement_t *of,
                            const ucs_use_t *use)
{
    double after = (double)(of->due - of->posted);
    double delay = (double)(use->start_ns - of->posted);
    double rent  = (double)of->rent;
    double takes = (double)of->takes;

    if (delay <= after) {
        return 1;
    }
    if (delay < after + takes) {
        return (after + takes - delay) / takes; /* it waits for the rest */
    }
    if (delay > after + rent) {
        return 2; /* given up, and missed */
    }
    return (delay - after) / rent;
}

/* What registering and holding it costs */
static void ucs_regcache_announced_price(ucs_regcache_h cache,
                                         ucs_regcache_announcement_t *of)
{
    uintptr_t first = ucs_regcache_page_down(cache, of->start);
    uintptr_t last  = ucs_regcache_page_up(cache, of->end);
    double bytes    = ucs_regcache_held_bytes(cache, last - first);
    double leave_bytes;

    of->bytes = last - first;
    ucs_regcache_lock(cache);
    of->takes   = ucs_predict_cost_estimate(
            &cache->cost.reg, of->bytes / (cache->config.page_mask + 1));
    leave_bytes = ucs_regcache_leave_bytes(cache);
    if (!ucs_extents_covers(&cache->memory.seen, first, last)) {
        leave_bytes += bytes; /* it will be seen */
    }
    ucs_regcache_unlock(cache);
    of->takes = ucs_max(of->takes, 1);
    of->rent  = 1 + (uint64_t)ucs_predict_price_rent_ns(
                            cache->config.max_slowdown, leave_bytes, bytes,
                            of->takes);
}

/* @return Nonzero if nobody has used this place yet */
static int ucs_regcache_announced_is_new(ucs_regcache_h cache, uintptr_t start)
{
    uintptr_t first = ucs_regcache_page_down(cache, start);
    int is_seen;

    ucs_regcache_lock(cache);
    is_seen = ucs_extents_covers(&cache->memory.seen, first,
                                 first + cache->config.page_mask + 1);
    ucs_regcache_unlock(cache);
    return !is_seen;
}

/* What is registered in vain is paid by announcements that save a use. Past the
 * credit one in ten is tried. */
static int ucs_regcache_announced_is_worth(ucs_regcache_h cache)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;

    if (cache->plan.ops->keeps ||
        (announced->debt <= cache->tuning.predict.plan_credit)) {
        return 1;
    }
    announced->debt -= 0.1;
    return 0;
}

/* How a new buffer will be used other uses tell: by the access of the latest, and as far
 * as the longest message. Programs post more than they are sent. @return Zero as long as
 * there was no other use. */
static int
ucs_regcache_announced_is_clear(ucs_regcache_h cache,
                                const ucs_regcache_announcement_t *of)
{
    return (ucs_load_relaxed(&cache->plan.asked) != 0) &&
           (!of->is_new || (cache->plan.hearing->announced.longest > 0));
}

/* It is registered as soon as it is clear how, and given up when holding it has cost a
 * missed use */
void ucs_regcache_announced_settle(ucs_regcache_h cache,
                                   ucs_regcache_announcement_t *of)
{
    of->is_settled = ucs_regcache_announced_is_clear(cache, of);
    of->due        = of->posted;
    of->until      = UCS_REGCACHE_TIME_NEVER;
    if (of->is_settled && of->is_new) {
        of->end = of->start + ucs_min(of->end - of->start,
                                      cache->plan.hearing->announced.longest);
    }
    ucs_regcache_announced_price(cache, of);
    if (of->is_settled && !cache->plan.ops->keeps) {
        of->due   = ucs_max(of->posted, ucs_regcache_now(cache));
        of->until = ucs_predict_sat_add(of->due, of->rent);
    }
}

void ucs_regcache_announce(ucs_regcache_h cache,
                           const ucs_operation_t *operation)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;
    ucs_regcache_announcement_t *of;

    if ((operation->address == 0) ||
        (operation->length < ucs_max(cache->config.min_size, 1)) ||
        (operation->length > UINTPTR_MAX - operation->address) ||
        ucs_load_relaxed(&cache->distrust)) {
        return;
    }
    ucs_add_relaxed(&cache->plan.announced, 1);
    ucs_regcache_announced_replace(cache, operation);
    of = ucs_regcache_announced_at(announced, announced->next); /* the oldest */
    ucs_regcache_announced_drop(cache, of, UCS_REGCACHE_ANNOUNCED_NONE);
    ++announced->next;
    *of = (ucs_regcache_announcement_t){
            .posted = operation->time,
            .start  = operation->address,
            .end    = operation->address + operation->length,
            .id     = operation->id,
            .thread = operation->thread,
            .is_new = !cache->plan.ops->keeps &&
                      ucs_regcache_announced_is_new(cache, operation->address)};
    ucs_regcache_announced_settle(cache, of);
    ucs_regcache_announced_set(announced, of,
                               ucs_regcache_announced_is_worth(cache) ?
                                       UCS_REGCACHE_ANNOUNCED_WAITING :
                                       UCS_REGCACHE_ANNOUNCED_PASSED);
}

void ucs_regcache_announced_sent(ucs_regcache_h cache,
                                 const ucs_operation_t *operation)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;

    if (operation->length >= cache->config.min_size) {
        announced->longest = ucs_max(announced->longest, operation->length);
    }
}

/* The use may not have been learned from yet, so the end waits for that of the step */
void ucs_regcache_announced_end(ucs_regcache_h cache,
                                const ucs_operation_t *operation)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;
    ucs_regcache_announcement_t *of;
    unsigned i;

    if (operation->id == 0) {
        return;
    }
    ucs_regcache_announced_for_each(of, i, announced) {
        if ((of->id == operation->id) && (of->thread == operation->thread)) {
            of->until = 0;
        }
    }
}

/* The oldest that this may be the use of */
static ucs_regcache_announcement_t *
ucs_regcache_announced_find(ucs_regcache_announced_t *announced,
                            uintptr_t start, uintptr_t end, uint64_t start_ns)
{
    ucs_regcache_announcement_t *found = NULL;
    ucs_regcache_announcement_t *of;
    unsigned i;

    ucs_regcache_announced_for_each(of, i, announced) {
        if (!of->is_over && (of->posted <= start_ns) &&
            (of->start >= start) && (of->start < end) &&
            ((found == NULL) || (of->posted < found->posted))) {
            found = of;
        }
    }
    return found;
}

/* What a registration has cost others, in missed uses. The helper's costs those who
 * wanted its processor. The message may have come in the midst of one in the rank's own
 * wait, nobody knows when: half of it counts if the message was there at the end, and
 * the less the longer the rank went on waiting. */
static double
ucs_regcache_announced_work(ucs_regcache_h cache,
                            const ucs_regcache_announcement_t *of,
                            const ucs_use_t *use)
{
    double takes = (double)of->takes;
    double after = (double)ucs_predict_sat_sub(use->start_ns, of->ready);

    if (!of->has_acted) {
        return 0;
    }
    return of->in_wait ? ucs_max(takes - after, 0) / (2 * takes) :
                         ucs_regcache_wanted(cache);
}

void ucs_regcache_announced_use(ucs_regcache_h cache, const ucs_use_t *use)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;
    ucs_regcache_announcement_t *of;
    double cost;

    announced->saved     = 0;
    announced->was_ready = 0;
    announced->was_left  = 0;
    of = ucs_regcache_announced_find(announced, use->address,
                                     use->address + use->length,
                                     use->start_ns);
    if (of == NULL) {
        return;
    }
    announced->longest = ucs_max(announced->longest,
                                 use->address + use->length - of->start);
    announced->was_ready = (of->state == UCS_REGCACHE_ANNOUNCED_READY) &&
                           (of->ready <= use->start_ns);
    announced->was_left  = of->is_left;
    ucs_regcache_announced_rate(cache, of, use);
    ucs_add_relaxed(&cache->plan.announced_on_time, announced->was_ready);
    ucs_add_relaxed(&cache->plan.announced_late,
                    (of->state == UCS_REGCACHE_ANNOUNCED_READY) &&
                            of->has_acted && !announced->was_ready);
    ucs_add_relaxed(&cache->plan.announced_first,
                    announced->was_ready && of->is_first);
    if ((of->state == UCS_REGCACHE_ANNOUNCED_WAITING) ||
        (of->state == UCS_REGCACHE_ANNOUNCED_READY)) {
        cost = ucs_regcache_announced_cost(of, use) +
               ucs_regcache_announced_work(cache, of, use);
        announced->saved = 1 - ucs_min(cost, 1);
        announced->debt  = ucs_max(announced->debt - announced->saved, 0);
    }
    if ((of->region == use->region) && (of->generation == use->generation)) {
        ucs_regcache_announced_set(announced, of, UCS_REGCACHE_ANNOUNCED_NONE);
    } else {
        /* A use that came while the helper registered has one of its own, and
         * nobody else knows of the helper's */
        ucs_regcache_announced_drop(cache, of, UCS_REGCACHE_ANNOUNCED_NONE);
    }
}

int ucs_regcache_announced_saved(ucs_regcache_h cache,
                                 ucs_predict_price_t *price)
{
    const ucs_regcache_hearing_t *hearing = cache->plan.hearing;

    if (hearing == NULL) {
        return 0;
    }
    price->saved      = hearing->announced.saved;
    price->saved_late = hearing->announced.was_left ? 0 : price->saved;
    return hearing->announced.was_ready;
}

void ucs_regcache_announced_expire(ucs_regcache_h cache, uint64_t now)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;
    ucs_regcache_announcement_t *of;
    unsigned i;

    ucs_regcache_announced_for_each(of, i, announced) {
        if (of->until == 0) {
            ucs_regcache_announced_unused(announced, of);
            ucs_regcache_announced_drop(cache, of, UCS_REGCACHE_ANNOUNCED_NONE);
        } else if ((of->state != UCS_REGCACHE_ANNOUNCED_PASSED) &&
                   (of->until <= now)) {
            ucs_regcache_announced_drop(cache, of,
                                        UCS_REGCACHE_ANNOUNCED_PASSED);
        }
    }
}

uint64_t ucs_regcache_announced_next(ucs_regcache_h cache)
{
    uint64_t next = UCS_REGCACHE_TIME_NEVER;
    const ucs_regcache_announcement_t *of;
    unsigned i;

    if (cache->plan.hearing == NULL) {
        return next;
    }
    ucs_regcache_announced_for_each(of, i, &cache->plan.hearing->announced) {
        if ((of->state == UCS_REGCACHE_ANNOUNCED_WAITING) &&
            ucs_regcache_announced_is_clear(cache, of)) {
            next = ucs_min(next, ucs_max(of->due, of->planned));
        } else if (of->state == UCS_REGCACHE_ANNOUNCED_READY) {
            next = ucs_min(next, of->until);
        }
    }
    return next;
}

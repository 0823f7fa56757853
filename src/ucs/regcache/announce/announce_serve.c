/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/plan/rank.h>

#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

/* A registration at the post that takes longer, ns, is worth to wake the helper
 * for: the system call takes the rank some 2 us, and the helper comes 5 to 50 us
 * later */
#define UCS_REGCACHE_WAKE_NS 20000

/* The plan registers its buffer at @a due. A plan that comes too late loses what the
 * announcement would have saved; as for a key, one such use is counted that has not come
 * yet. @return Nonzero if it is left to the plan: holding it until then costs more. */
static int ucs_regcache_announced_leave(ucs_regcache_announcement_t *of,
                                        ucs_regcache_region_t *region,
                                        uint64_t due, uint64_t now)
{
    double held = (double)ucs_predict_sat_sub(due, now) / (double)of->rent;

    ucs_regcache_plan_announced_life(region, ucs_regcache_region_gen(region));
    of->planned = due;
    if (held * (region->plan_uses + 1) <= region->plan_lost + 1) {
        return 0;
    }
    of->is_left = 1;
    of->until   = ucs_predict_sat_add(due, of->rent);
    return 1;
}

void ucs_regcache_announced_plan(ucs_regcache_h cache,
                                 ucs_regcache_region_t *region, uint64_t due)
{
    ucs_regcache_announced_t *announced;
    ucs_regcache_announcement_t *of;
    unsigned i;

    if (!ucs_regcache_plan_is_announced(region)) {
        return; /* as where nothing was ever said */
    }
    announced = &cache->plan.hearing->announced;
    ucs_regcache_announced_for_each(of, i, announced) {
        if ((of->state == UCS_REGCACHE_ANNOUNCED_READY) &&
            (of->region == region) && (of->until != 0) &&
            (of->generation == ucs_regcache_region_gen(region)) &&
            ucs_regcache_announced_leave(of, region, due,
                                         ucs_regcache_now(cache))) {
            ucs_regcache_announced_set(announced, of,
                                       UCS_REGCACHE_ANNOUNCED_WAITING);
        }
    }
}

/* Under the lock: as ucs_regcache_announced_look() will find it */
static int ucs_regcache_announced_is_missing(ucs_regcache_h cache,
                                             uintptr_t start, uintptr_t end)
{
    ucs_regcache_region_t *region = ucs_regcache_index_find(&cache->index,
                                                            start, end, 0);

    return (region == NULL) ?
                   (ucs_regcache_index_first(&cache->index, start, end) ==
                    NULL) :
                   (ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
                    UCS_REGCACHE_STATE_DORMANT);
}

/* Where the lock is busy somebody works on this cache: a wake-up too many at worst */
int ucs_regcache_post_is_urgent(ucs_regcache_h cache, uintptr_t address,
                                size_t length)
{
    uintptr_t end = address + length;
    size_t pages;
    int is_urgent;

    if (!cache->plan.ops->keeps || (length < cache->config.min_size) ||
        (end < address) || !ucs_regcache_needs_helper(cache)) {
        return 0;
    }
    if (!ucs_regcache_try_lock(cache)) {
        return 1;
    }
    pages     = (ucs_regcache_page_up(cache, end) -
                 ucs_regcache_page_down(cache, address)) /
                (cache->config.page_mask + 1);
    is_urgent = (cache->cost.reg.samples > 0) &&
                (ucs_predict_cost_estimate(&cache->cost.reg, pages) >
                 UCS_REGCACHE_WAKE_NS) &&
                ucs_regcache_announced_is_missing(cache, address, end);
    ucs_regcache_unlock(cache);
    return is_urgent;
}

/* REGISTERING, of nobody. Unless it is known when it is used next, what lies idle makes
 * room for it. */
static void ucs_regcache_announced_begin(ucs_regcache_h cache,
                                         ucs_regcache_region_t *region)
{
    if (ucs_load_relaxed(&region->next_use) == 0) {
        ucs_regcache_rank_first(region);
    }
    ucs_store_relaxed(&region->speculative, 1);
    ucs_regcache_region_plan_end(cache, region, 0);
}

/* A buffer that is not known. What overlaps it is another use's, and would be
 * pinned twice. */
static ucs_regcache_announced_state_t
ucs_regcache_announced_open(ucs_regcache_h cache,
                            ucs_regcache_announcement_t *of, unsigned access,
                            uint64_t now)
{
    ucs_regcache_request_t request = {
        .start      = of->start,
        .end        = of->end,
        .first      = ucs_regcache_page_down(cache, of->start),
        .last       = ucs_regcache_page_up(cache, of->end),
        .access     = access,
        .flags      = access,
        .size_class = UCS_REGCACHE_CLASS_MANAGED,
        .now        = now
    };

    if (ucs_regcache_index_first(&cache->index, request.start, request.end) !=
        NULL) {
        return UCS_REGCACHE_ANNOUNCED_PASSED;
    }
    of->is_first = !ucs_extents_covers(&cache->memory.seen, request.first,
                                       request.last);
    ucs_regcache_account(cache, now);
    ucs_extents_add(&cache->memory.seen, request.first, request.last);
    ucs_regcache_soft_posted(cache, cache->plan.hearing->announced.ready_bytes +
                                            of->bytes);
    of->region = ucs_regcache_region_begin(cache, NULL, &request);
    ucs_regcache_announced_begin(cache, of->region);
    /* relaxed: the state changes under the lock alone, which is held */
    ucs_sub_relaxed(&of->region->word, UCS_REGCACHE_WORD_REF);
    return UCS_REGCACHE_ANNOUNCED_READY;
}

/* Under the lock, with a region in reserve: what comes of one that is due, and of which
 * region. @return PASSED: nothing ever; WAITING: nothing now; READY: the region is LIVE,
 * or REGISTERING for this. */
static ucs_regcache_announced_state_t
ucs_regcache_announced_look(ucs_regcache_h cache,
                            ucs_regcache_announcement_t *of, uint64_t now)
{
    unsigned access = (unsigned)ucs_load_relaxed(&cache->plan.asked);
    ucs_regcache_region_t *region;
    uint64_t word, due;

    if (ucs_regcache_was_struck(cache, of->start, of->end, of->posted)) {
        of->is_over = 1; /* the memory is another by now */
        return UCS_REGCACHE_ANNOUNCED_PASSED;
    }
    region = ucs_regcache_index_find(&cache->index, of->start, of->end, access);
    if (region == NULL) {
        return ucs_regcache_announced_open(cache, of, access, now);
    }

    of->region = region;
    word       = ucs_load_relaxed(&region->word);
    switch (ucs_regcache_word_state(word)) {
    case UCS_REGCACHE_STATE_LIVE:
        return (!ucs_load_relaxed(&region->speculative) &&
                (ucs_load_relaxed(&region->use_start) >= of->posted)) ?
                       UCS_REGCACHE_ANNOUNCED_PASSED : /* it has come */
                       UCS_REGCACHE_ANNOUNCED_READY;
    case UCS_REGCACHE_STATE_DORMANT:
        due = ucs_regcache_plan_earliest(region);
        if ((due > now) && (due != UCS_REGCACHE_TIME_NEVER) &&
            ucs_regcache_announced_leave(of, region, due, now)) {
            return UCS_REGCACHE_ANNOUNCED_WAITING;
        }
        ucs_regcache_announced_begin(cache, region);
        ucs_store_release(&region->word, /* [R-LIVE] */
                          ucs_regcache_word_set_state(
                                  word, UCS_REGCACHE_STATE_REGISTERING));
        return UCS_REGCACHE_ANNOUNCED_READY;
    case UCS_REGCACHE_STATE_REGISTERING:
        return UCS_REGCACHE_ANNOUNCED_WAITING;
    default:
        return UCS_REGCACHE_ANNOUNCED_PASSED;
    }
}

/* Where all stays that fits, a buffer of one posted receive is not evicted for another,
 * or each would find its own evicted; so it is not the least recently used one either.
 * @return Zero if there is no room: later. */
static int ucs_regcache_announced_fits(ucs_regcache_h cache,
                                       ucs_regcache_announcement_t *of,
                                       uint64_t now)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;
    ucs_regcache_announcement_t *other;
    unsigned i;

    if (!cache->plan.ops->keeps) {
        return 1;
    }
    if ((announced->ready_bytes + of->bytes > cache->config.max_pinned) ||
        (announced->ready >= cache->config.max_regions)) {
        of->due = UCS_REGCACHE_TIME_NEVER;
        return 0;
    }
    ucs_regcache_announced_for_each(other, i, announced) {
        if ((other->state == UCS_REGCACHE_ANNOUNCED_READY) &&
            (ucs_regcache_region_gen(other->region) == other->generation)) {
            /* relaxed: for the choice of what to evict, of which any will do */
            ucs_store_relaxed(&other->region->last_use, now + 1);
        }
    }
    return 1;
}

/* In an idle step as well, however dear: what the thread does not do now it
 * does when the receive comes */
static void ucs_regcache_announced_due(ucs_regcache_h cache,
                                       ucs_regcache_announcement_t *of,
                                       uint64_t now)
{
    ucs_regcache_announced_state_t state = UCS_REGCACHE_ANNOUNCED_PASSED;
    int acts                             = 0;

    if (!of->is_settled) {
        ucs_regcache_announced_settle(cache, of);
    }
    if (!of->is_settled || ((of->due > now) && !cache->plan.ops->keeps) ||
        !ucs_regcache_announced_fits(cache, of, now)) {
        return;
    }
    if (!ucs_regcache_serve_is_backing_off(cache) &&
        ucs_regcache_needs_helper(cache) &&
        (ucs_regcache_lock_reserved(cache) == UCS_OK)) {
        state = ucs_regcache_announced_look(cache, of, now);
        if (state == UCS_REGCACHE_ANNOUNCED_READY) {
            of->generation = ucs_regcache_region_gen(of->region);
            acts = (ucs_regcache_word_state(ucs_load_relaxed(&of->region->word)) ==
                    UCS_REGCACHE_STATE_REGISTERING);
        }
        ucs_regcache_unlock(cache);
    }
    if (acts) {
        cache->plan.idling.is_used = 1;
        if (ucs_regcache_serve_unasked(cache, of->region,
                                       UCS_REGCACHE_HELD_OTHER) != UCS_OK) {
            state = UCS_REGCACHE_ANNOUNCED_PASSED;
        }
    }
    if (state == UCS_REGCACHE_ANNOUNCED_READY) {
        of->ready     = ucs_regcache_now(cache);
        of->has_acted = acts;
        of->in_wait   = ucs_regcache_is_idling(cache);
    }
    ucs_regcache_announced_set(&cache->plan.hearing->announced, of, state);
}

void ucs_regcache_announced_serve(ucs_regcache_h cache)
{
    uint64_t now = ucs_regcache_now(cache);
    ucs_regcache_announced_t *announced;
    ucs_regcache_announcement_t *of;
    unsigned i;

    if (cache->plan.hearing == NULL) {
        return;
    }
    announced = &cache->plan.hearing->announced;
    ucs_regcache_announced_for_each(of, i, announced) {
        if ((of->state == UCS_REGCACHE_ANNOUNCED_WAITING) && (of->until > now) &&
            ((ucs_max(of->due, of->planned) <= now) || cache->plan.ops->keeps)) {
            ucs_regcache_announced_due(cache, of, now);
        }
    }
    ucs_regcache_announced_expire(cache, now);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "announce_int.h"

#include <ucs/regcache/plan/rank.h>

#include <ucs/regcache/regcache_int.h>
#include <ucs/regcache/register/register.h>
#include <ucs/regcache/region/state.h>

#include <ucs/sys/math.h>

/*
 * What is registered for announcements, and when.
 */

/* A registration at the post that takes longer, ns, is worth to wake the helper
 * for: the system call takes the rank some 2 us, and the helper comes 5 to 50 us
 * later */
#define UCS_REGCACHE_WAKE_NS 20000

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

/* What is to be done for an announcement that is due */
typedef enum ucs_regcache_announced_act {
    UCS_REGCACHE_ANNOUNCED_PASS,     /* nothing, and never */
    UCS_REGCACHE_ANNOUNCED_VOID,     /* likewise, and it says nothing of others:
                                        the memory is another by now */
    UCS_REGCACHE_ANNOUNCED_LATER,    /* nothing now */
    UCS_REGCACHE_ANNOUNCED_KEEP,     /* it is registered */
    UCS_REGCACHE_ANNOUNCED_REGISTER  /* the region is REGISTERING */
} ucs_regcache_announced_act_t;

/* REGISTERING, of nobody */
static void ucs_regcache_announced_begin(ucs_regcache_h cache,
                                         ucs_regcache_region_t *region)
{
    ucs_store_relaxed(&region->speculative, 1);
    ucs_regcache_region_plan_end(cache, region, 0);
}

/* Under the lock: what overlaps it is another use's, and would be pinned twice; but for
 * the part of it that was registered for itself, whose place it takes. */
static int
ucs_regcache_announced_is_free(ucs_regcache_h cache,
                               const ucs_regcache_announcement_t *of)
{
    ucs_regcache_region_t *region = ucs_regcache_index_first(
            &cache->index, of->start, of->end);

    return (region == NULL) ||
           (of->is_whole && (region == of->region) &&
            (ucs_regcache_region_gen(region) == of->generation) &&
            (ucs_regcache_index_next(&cache->index, region, of->start,
                                     of->end) == NULL));
}

/* A buffer that is not known */
static ucs_regcache_region_t *
ucs_regcache_announced_open(ucs_regcache_h cache,
                            ucs_regcache_announcement_t *announcement,
                            unsigned access, uint64_t now)
{
    ucs_regcache_request_t request = {
        .start      = announcement->start,
        .end        = announcement->end,
        .first      = ucs_regcache_page_down(cache, announcement->start),
        .last       = ucs_regcache_page_up(cache, announcement->end),
        .access     = access,
        .flags      = access,
        .size_class = UCS_REGCACHE_CLASS_MANAGED,
        .now        = now
    };
    ucs_regcache_region_t *region;

    if (!ucs_regcache_announced_is_free(cache, announcement)) {
        return NULL;
    }
    announcement->is_first = !ucs_extents_covers(&cache->memory.seen,
                                                 request.first, request.last);
    ucs_regcache_account(cache, now);
    ucs_extents_add(&cache->memory.seen, request.first, request.last);
    ucs_regcache_soft_posted(cache, cache->plan.hearing->announced.ready_bytes +
                                            request.last - request.first);
    region = ucs_regcache_region_begin(cache, NULL, &request);
    ucs_regcache_rank_first(region);
    ucs_regcache_announced_begin(cache, region);
    /* relaxed: the state changes under the lock alone, which is held */
    ucs_sub_relaxed(&region->word, UCS_REGCACHE_WORD_REF);
    return region;
}

/* Under the lock, with a region in reserve */
static ucs_regcache_announced_act_t
ucs_regcache_announced_look(ucs_regcache_h cache,
                            ucs_regcache_announcement_t *announcement,
                            ucs_regcache_region_t **region_p, uint64_t now)
{
    unsigned access = (unsigned)ucs_load_relaxed(&cache->plan.asked);
    ucs_regcache_region_t *region;
    uint64_t word;

    if (ucs_regcache_was_struck(cache, announcement->start, announcement->end,
                                announcement->posted)) {
        return UCS_REGCACHE_ANNOUNCED_VOID;
    }
    region = ucs_regcache_index_find(&cache->index, announcement->start,
                                     announcement->end, access);
    if (region == NULL) {
        *region_p = ucs_regcache_announced_open(cache, announcement, access,
                                                now);
        return (*region_p == NULL) ? UCS_REGCACHE_ANNOUNCED_PASS :
                                     UCS_REGCACHE_ANNOUNCED_REGISTER;
    }

    *region_p = region;
    word      = ucs_load_relaxed(&region->word);
    switch (ucs_regcache_word_state(word)) {
    case UCS_REGCACHE_STATE_LIVE:
        return (!ucs_load_relaxed(&region->speculative) &&
                (ucs_load_relaxed(&region->use_start) >=
                 announcement->posted)) ?
                       UCS_REGCACHE_ANNOUNCED_PASS : /* it has come */
                       UCS_REGCACHE_ANNOUNCED_KEEP;
    case UCS_REGCACHE_STATE_DORMANT:
        ucs_regcache_announced_begin(cache, region);
        ucs_store_release(&region->word, /* [R-LIVE] */
                          ucs_regcache_word_set_state(
                                  word, UCS_REGCACHE_STATE_REGISTERING));
        return UCS_REGCACHE_ANNOUNCED_REGISTER;
    case UCS_REGCACHE_STATE_REGISTERING:
        return UCS_REGCACHE_ANNOUNCED_LATER;
    default:
        return UCS_REGCACHE_ANNOUNCED_PASS;
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
    size_t bytes = ucs_regcache_page_up(cache, of->end) -
                   ucs_regcache_page_down(cache, of->start);
    ucs_regcache_announcement_t *other;
    unsigned i;

    of->bytes = bytes;
    if (!cache->plan.ops->keeps) {
        return 1;
    }
    if ((announced->ready_bytes + bytes > cache->config.max_pinned) ||
        (announced->ready >= cache->config.max_regions)) {
        of->due = UCS_REGCACHE_TIME_NEVER;
        return 0;
    }
    for (i = announced->first; i != announced->next; ++i) {
        other = ucs_regcache_announced_at(announced, i);
        if ((other->state == UCS_REGCACHE_ANNOUNCED_READY) &&
            (ucs_regcache_region_gen(other->region) == other->generation)) {
            /* relaxed: for the choice of what to evict, of which any will do */
            ucs_store_relaxed(&other->region->last_use, now + 1);
        }
    }
    return 1;
}

/* What has waited is brought into memory, too, for it will be when its message comes; but
 * no more than the longest message so far, and than little. */
static unsigned
ucs_regcache_announced_question(ucs_regcache_h cache,
                                const ucs_regcache_announcement_t *of)
{
    size_t most = ucs_max(cache->plan.hearing->announced.longest,
                          cache->tuning.posted_new);

    return (of->is_whole && (of->end - of->start <= most)) ?
                   0 :
                   UCS_REGCACHE_INSPECT_SPECULATE;
}

/* @return What is to be done; if that is more than PASS, with which region. */
static ucs_regcache_announced_act_t
ucs_regcache_announced_choose(ucs_regcache_h cache,
                              ucs_regcache_announcement_t *of,
                              ucs_regcache_region_t **region_p,
                              uint64_t *generation_p, uint64_t now)
{
    ucs_regcache_announced_act_t act = UCS_REGCACHE_ANNOUNCED_PASS;

    if (!ucs_regcache_serve_is_backing_off(cache) &&
        ucs_regcache_needs_helper(cache) &&
        (ucs_regcache_lock_reserved(cache) == UCS_OK)) {
        act = ucs_regcache_announced_look(cache, of, region_p, now);
        if (act >= UCS_REGCACHE_ANNOUNCED_KEEP) {
            *generation_p = ucs_regcache_region_gen(*region_p);
        }
        ucs_regcache_unlock(cache);
    }
    cache->plan.idling.is_used |= (act == UCS_REGCACHE_ANNOUNCED_REGISTER);
    of->is_over |= (act == UCS_REGCACHE_ANNOUNCED_VOID);
    return act;
}

/* In an idle step as well, however dear: what the thread does not do now it
 * does when the receive comes */
static void ucs_regcache_announced_due(ucs_regcache_h cache,
                                       ucs_regcache_announcement_t *of,
                                       uint64_t now)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;
    ucs_status_t status                 = UCS_OK;
    ucs_regcache_region_t *region       = NULL;
    uint64_t generation                 = 0;
    ucs_regcache_announced_act_t act;

    if (!of->is_settled) {
        ucs_regcache_announced_settle(cache, of);
    }
    if (!of->is_settled || ((of->due > now) && !cache->plan.ops->keeps) ||
        !ucs_regcache_announced_fits(cache, of, now)) {
        return;
    }
    act = ucs_regcache_announced_choose(cache, of, &region, &generation, now);
    if (act == UCS_REGCACHE_ANNOUNCED_LATER) {
        return;
    }
    if (act == UCS_REGCACHE_ANNOUNCED_REGISTER) {
        status = ucs_regcache_serve_unasked(
                cache, region, UCS_REGCACHE_HELD_OTHER,
                ucs_regcache_announced_question(cache, of));
    }
    if ((act < UCS_REGCACHE_ANNOUNCED_KEEP) || (status != UCS_OK)) {
        if (status != UCS_ERR_REJECTED) {
            of->whole_due = UCS_REGCACHE_TIME_NEVER; /* nor later */
        }
        ucs_regcache_announced_set(announced, of,
                                   UCS_REGCACHE_ANNOUNCED_PASSED);
        return;
    }
    of->region     = region;
    of->generation = generation;
    of->ready      = ucs_regcache_now(cache);
    of->has_acted  = (act == UCS_REGCACHE_ANNOUNCED_REGISTER);
    of->in_wait    = of->has_acted && ucs_regcache_is_idling(cache);
    if (of->end == of->posted_end) {
        of->whole_due = UCS_REGCACHE_TIME_NEVER; /* it is */
    }
    ucs_regcache_announced_set(announced, of, UCS_REGCACHE_ANNOUNCED_READY);
}

/* Programs post more than they are sent. What has shown nothing yet counts as if it were
 * in vain; past the credit one in ten is tried. */
static int ucs_regcache_announced_may_whole(ucs_regcache_h cache)
{
    ucs_regcache_announced_t *announced = &cache->plan.hearing->announced;

    if ((unsigned)ucs_load_relaxed(&cache->plan.asked) == 0) {
        return 0; /* for what access is not known */
    }
    if (announced->doubt + 1 > cache->tuning.predict.plan_credit) {
        announced->doubt -= 0.1;
        return 0;
    }
    announced->doubt += 1;
    return 1;
}

/* It has waited for as long as registering all of it takes, and nothing has come */
static void ucs_regcache_announced_enlarge(ucs_regcache_h cache,
                                           ucs_regcache_announcement_t *of,
                                           uint64_t now)
{
    ucs_regcache_region_t *part = of->region;
    uint64_t generation         = of->generation;
    int was_ready = (of->state == UCS_REGCACHE_ANNOUNCED_READY);

    of->whole_due = UCS_REGCACHE_TIME_NEVER;
    if (of->is_over ||
        (was_ready && !ucs_regcache_word_is_idle(
                               ucs_load_relaxed(&part->word))) ||
        !ucs_regcache_announced_may_whole(cache)) {
        return;
    }
    ucs_regcache_announced_set(&cache->plan.hearing->announced, of,
                               UCS_REGCACHE_ANNOUNCED_WAITING);
    of->is_whole   = 1;
    of->is_settled = 1;
    of->end        = of->posted_end;
    ucs_regcache_announced_set_due(cache, of, now);
    ucs_regcache_announced_due(cache, of, now);
    if (was_ready && (ucs_regcache_region_gen(part) == generation)) {
        ucs_regcache_plan_deregister(cache, part); /* it could not be */
    }
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
    for (i = announced->first; i != announced->next; ++i) {
        of = ucs_regcache_announced_at(announced, i);
        if ((of->state == UCS_REGCACHE_ANNOUNCED_WAITING) &&
            (of->until != 0) && (of->until > now) &&
            ((of->due <= now) || cache->plan.ops->keeps)) {
            ucs_regcache_announced_due(cache, of, now);
        }
        if ((of->state != UCS_REGCACHE_ANNOUNCED_NONE) && (of->until != 0) &&
            (of->whole_due <= now)) {
            ucs_regcache_announced_enlarge(cache, of, now);
        }
    }
    for (i = announced->first; i != announced->next; ++i) {
        of = ucs_regcache_announced_at(announced, i);
        if (of->state == UCS_REGCACHE_ANNOUNCED_NONE) {
            continue;
        }
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
    ucs_regcache_announced_t *announced;
    const ucs_regcache_announcement_t *of;
    unsigned i;

    if (cache->plan.hearing == NULL) {
        return next;
    }
    announced = &cache->plan.hearing->announced;
    for (i = announced->first; i != announced->next; ++i) {
        of = ucs_regcache_announced_at(announced, i);
        if (of->state != UCS_REGCACHE_ANNOUNCED_NONE) {
            next = ucs_min(next, of->whole_due);
        }
        if ((of->state == UCS_REGCACHE_ANNOUNCED_WAITING) &&
            ucs_regcache_announced_is_clear(cache, of)) {
            next = ucs_min(next, of->due);
        } else if (of->state == UCS_REGCACHE_ANNOUNCED_READY) {
            next = ucs_min(next, of->until);
        }
    }
    return next;
}

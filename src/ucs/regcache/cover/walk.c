/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "walk.h"
#include "cover_int.h"

#include <ucs/regcache/region/index.h>
#include <ucs/regcache/regcache_int.h>
#include <ucs/predict/price.h>
#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

/* Windows that are looked at to find the end of what is registered ahead: so many
 * of single steps are */
#define UCS_REGCACHE_WALK_HOPS 8

static ucs_regcache_pace_t *
ucs_regcache_walk_pace(ucs_regcache_h cache, const ucs_predict_walk_t *walk)
{
    return &cache->walking.paces[walk - cache->walking.walks.walks];
}

static int ucs_regcache_walk_is_registered(ucs_regcache_region_t *region)
{
    ucs_regcache_state_t state;

    if (region == NULL) {
        return 0;
    }
    state = ucs_regcache_word_state(ucs_load_relaxed(&region->word));
    return (state == UCS_REGCACHE_STATE_LIVE) ||
           (state == UCS_REGCACHE_STATE_REGISTERING);
}

/* Bytes from the begin of a window's first step to the end of its last, in whole
 * pages */
static size_t ucs_regcache_walk_bytes(ucs_regcache_h cache,
                                      const ucs_predict_walk_t *walk,
                                      unsigned steps)
{
    size_t bytes = (steps - 1) * ucs_predict_walk_stride(walk) + walk->length;

    return ucs_regcache_page_up(cache, bytes);
}

/* ns that registering takes */
static double ucs_regcache_walk_cost(ucs_regcache_h cache, size_t bytes)
{
    return ucs_predict_cost_estimate(
            &cache->cost.reg,
            ucs_regcache_page_up(cache, bytes) / (cache->config.page_mask + 1));
}

static void ucs_regcache_walk_price(ucs_regcache_h cache,
                                    const ucs_predict_walk_t *walk,
                                    ucs_regcache_pace_t *pace)
{
    double slowdown    = cache->config.max_slowdown;
    double leave_bytes = ucs_regcache_leave_bytes(cache);
    double takes, rent_ns;
    size_t bytes;

    pace->window = ucs_predict_walk_window(
            walk, &cache->tuning.predict,
            ucs_predict_price_rent_ns(
                    slowdown, leave_bytes,
                    (double)ucs_predict_walk_stride(walk),
                    ucs_regcache_walk_cost(cache, walk->length)),
            ucs_max(leave_bytes * cache->tuning.walk_share,
                    cache->tuning.walk_bytes));
    if (pace->window == 0) {
        return;
    }
    if (pace->is_given) {
        bytes        = ucs_regcache_given_bytes(cache, walk, pace->access,
                                                walk->at + (uintptr_t)walk->stride);
        pace->window = (unsigned)ucs_min(
                pace->window, 1 + bytes / ucs_predict_walk_stride(walk));
    }
    bytes          = ucs_regcache_walk_bytes(cache, walk, pace->window);
    takes          = ucs_regcache_walk_cost(cache, bytes);
    rent_ns        = ucs_predict_price_rent_ns(
            slowdown, leave_bytes, ucs_regcache_held_bytes(cache, bytes), takes);
    pace->still_ns = ucs_predict_sat_ceil(ucs_predict_walk_still(walk, rent_ns));
    pace->lead     = ucs_min(
            ucs_predict_walk_lead(
                    walk, takes + (double)ucs_load_relaxed(
                                           &cache->walking.react_ns)),
            ucs_max(pace->window, UCS_REGCACHE_WALK_HOPS));
    pace->lead     = ucs_min(pace->lead, ucs_predict_walk_left(walk));
}

/* @return Nonzero if something may be registered ahead of the use, be it only what
 *         is like it. */
static int ucs_regcache_walk_may(ucs_regcache_h cache,
                                 const ucs_regcache_request_t *request,
                                 ucs_regcache_pace_t *pace)
{
    if (!ucs_regcache_may_cover(cache, request)) {
        pace->is_given = 1;
    }
    return (cache->config.max_pinned == SIZE_MAX) &&
           (cache->memory.cover_failures < UCS_REGCACHE_COVER_FAILURES);
}

void ucs_regcache_walk_step(ucs_regcache_h cache,
                            ucs_regcache_request_t *request)
{
    ucs_regcache_walking_t *walking = &cache->walking;
    const ucs_predict_walk_t *walk;
    ucs_regcache_pace_t *pace;

    request->walk = NULL;
    if (!walking->is_on || ucs_regcache_cover_is_own(cache, request->flags)) {
        return;
    }
    /* Of what is no step yet, too: a walk may begin with it the next time */
    if (!ucs_regcache_may_cover(cache, request)) {
        ucs_regcache_given_note(cache, request);
    }
    walk = ucs_predict_walks_use(&walking->walks, request->start,
                                 request->end - request->start, request->now);
    if (walk == NULL) {
        return;
    }
    pace = ucs_regcache_walk_pace(cache, walk);
    if (ucs_predict_walk_is_new(walk)) {
        *pace = (ucs_regcache_pace_t){.window = 0}; /* of the walk before */
    }
    if (!ucs_regcache_walk_may(cache, request, pace)) {
        return;
    }
    pace->access |= request->access;
    ucs_regcache_walk_price(cache, walk, pace);
    if ((pace->window > 0) && (walk->steps >= pace->again)) {
        request->walk = walk;
    }
}

static int ucs_regcache_walk_goes_on(const ucs_predict_walk_t *walk,
                                     const ucs_regcache_pace_t *pace,
                                     uint64_t now)
{
    return (pace->window > 0) && !walk->is_over &&
           (ucs_predict_sat_sub(now, walk->time_ns) <= pace->still_ns);
}

/* The first step behind those that end within a region */
static unsigned ucs_regcache_walk_behind(const ucs_predict_walk_t *walk,
                                         const ucs_regcache_region_t *region)
{
    size_t stride = ucs_predict_walk_stride(walk);
    size_t bytes  = (walk->stride > 0) ?
                            region->node.end - walk->length - walk->at :
                            walk->at - region->node.start;

    return (unsigned)ucs_min(bytes / stride + 1, UINT32_MAX / 2);
}

/* The first of the next steps that is not registered. @return 0 if it is further
 * than @a most. */
static unsigned ucs_regcache_walk_first(ucs_regcache_h cache,
                                        const ucs_predict_walk_t *walk,
                                        unsigned most)
{
    const ucs_regcache_pace_t *pace = ucs_regcache_walk_pace(cache, walk);
    unsigned hops                   = UCS_REGCACHE_WALK_HOPS;
    unsigned step                   = 1;
    ucs_regcache_region_t *region;
    uintptr_t at;

    while ((step <= most) && (hops-- > 0)) {
        at     = walk->at + step * (uintptr_t)walk->stride;
        region = ucs_regcache_index_find(&cache->index, at, at + walk->length,
                                         pace->access);
        if (!ucs_regcache_walk_is_registered(region)) {
            return step;
        }
        step = ucs_regcache_walk_behind(walk, region);
    }
    return 0;
}

int ucs_regcache_walk_looks(ucs_regcache_h cache,
                            const ucs_regcache_request_t *request,
                            ucs_regcache_region_t *region)
{
    const ucs_predict_walk_t *walk = request->walk;
    ucs_regcache_pace_t *pace;
    unsigned bit, before;
    int has_moved;

    if (walk == NULL) {
        return 0;
    }
    pace      = ucs_regcache_walk_pace(cache, walk);
    bit       = 1u << (walk - cache->walking.walks.walks);
    before    = ucs_load_relaxed(&cache->walking.wanted);
    has_moved = (pace->in != region);
    pace->in  = region;
    if ((before & bit) ||
        (ucs_regcache_walk_first(cache, walk, pace->lead) == 0)) {
        return has_moved;
    }
    ucs_store_relaxed(&cache->walking.wanted, before | bit);
    return 1;
}

/* One that is not much shorter than a new one */
static int ucs_regcache_walk_may_enter(ucs_regcache_h cache,
                                       const ucs_predict_walk_t *walk,
                                       const ucs_regcache_region_t *window)
{
    return ucs_regcache_pinned_length(window) >=
           ucs_regcache_walk_bytes(
                   cache, walk,
                   ucs_regcache_walk_pace(cache, walk)->window) / 2;
}

ucs_regcache_region_t *
ucs_regcache_walk_dormant(ucs_regcache_h cache,
                          const ucs_regcache_request_t *request)
{
    ucs_regcache_region_t *region;

    for (region = ucs_regcache_index_first(&cache->index, request->start,
                                           request->end);
         region != NULL;
         region = ucs_regcache_index_next(&cache->index, region, request->start,
                                          request->end)) {
        if (ucs_load_relaxed(&region->is_window) &&
            (ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
             UCS_REGCACHE_STATE_DORMANT) &&
            (region->node.start <= request->start) &&
            (region->node.end >= request->end) &&
            !(request->access & ~ucs_load_relaxed(&region->access)) &&
            ucs_regcache_walk_may_enter(cache, request->walk, region)) {
            return region;
        }
    }
    return NULL;
}

/* Whole steps from a walk's latest to that which has an address ahead */
static size_t
ucs_regcache_walk_steps_to(const ucs_predict_walk_t *walk, uintptr_t at)
{
    return ((walk->stride > 0) ? at - walk->at : walk->at - at) /
           ucs_predict_walk_stride(walk);
}

/* A window is to be registered before the walk comes to it. What the walk waits for, for it
 * is there already or is as fast as the helper, takes at most twice as long as one step
 * alone: steps to come cost it no more than its own.
 * @return Steps, from the one on that lies @a ahead of the latest; at least one. */
static size_t ucs_regcache_walk_in_time(ucs_regcache_h cache,
                                        const ucs_predict_walk_t *walk,
                                        size_t ahead)
{
    size_t stride  = ucs_predict_walk_stride(walk);
    double one_ns  = ucs_regcache_walk_cost(cache, walk->length);
    double more_ns = ucs_regcache_walk_cost(cache, walk->length + stride) - one_ns;
    /* Half of the time: as ucs_predict_walk_lead() allows for its pace to vary */
    double until_ns = (double)ahead * walk->step_ns / 2 -
                      (double)ucs_load_relaxed(&cache->walking.react_ns);
    double spare_ns = ucs_max(until_ns, 2 * one_ns) - one_ns;

    return (spare_ns < more_ns * UINT32_MAX) ? 1 + (size_t)(spare_ns / more_ns) :
                                               UINT32_MAX;
}

/* Bytes of a window that begins with the step at an address, of as many steps as are
 * left. It ends where the next one begins, for other buffers may lie between steps. */
static size_t ucs_regcache_walk_span(ucs_regcache_h cache,
                                     const ucs_predict_walk_t *walk,
                                     const ucs_regcache_pace_t *pace,
                                     uintptr_t at)
{
    size_t stride = ucs_predict_walk_stride(walk);
    size_t ahead  = ucs_regcache_walk_steps_to(walk, at);
    uint32_t left = ucs_predict_walk_left(walk);
    size_t steps  = (ahead > left) ? 1 : ucs_min(pace->window, left - ahead + 1);

    steps = ucs_min(steps, ucs_regcache_walk_in_time(cache, walk, ahead));
    return (steps - 1) * stride +
           ucs_max(walk->length, (steps > 1) ? stride : 0);
}

void ucs_regcache_walk_enlarge(ucs_regcache_h cache,
                               ucs_regcache_request_t *whole, uintptr_t at)
{
    const ucs_predict_walk_t *walk  = whole->walk;
    const ucs_regcache_pace_t *pace = ucs_regcache_walk_pace(cache, walk);
    size_t bytes = ucs_regcache_walk_span(cache, walk, pace, at);

    if (pace->is_given) {
        bytes = ucs_min(bytes - walk->length,
                        ucs_regcache_given_bytes(cache, walk, pace->access, at));
        /* What is not just that step, as of one that is repeated, stays as it is */
        if ((bytes >= ucs_predict_walk_stride(walk)) &&
            (whole->first == ucs_regcache_page_down(cache, at)) &&
            (whole->last == ucs_regcache_page_up(cache, at + walk->length))) {
            ucs_regcache_given_enlarge(cache, whole, at, bytes);
        }
        return;
    }
    bytes  = ucs_min(ucs_regcache_page_up(cache, bytes), cache->tuning.cover_max);
    bytes -= ucs_min(bytes, whole->last - whole->first);
    if (walk->stride > 0) {
        ucs_regcache_cover_behind_by(cache, whole, bytes);
    } else {
        ucs_regcache_cover_before_by(cache, whole, bytes);
    }
}

/* @return How many bytes behind the begin of a step the address lies */
static size_t
ucs_regcache_walk_offset(const ucs_predict_walk_t *walk, uintptr_t at)
{
    intptr_t stride = (intptr_t)ucs_predict_walk_stride(walk);
    intptr_t offset = (intptr_t)(at - walk->at) % stride;

    return (size_t)((offset < 0) ? offset + stride : offset);
}

/* Does a walk of longer steps, which goes the same way, have what lies at an address
 * within one of them? @return Bytes that the step begins before; SIZE_MAX: it
 * does not. */
static size_t
ucs_regcache_walk_leads(ucs_regcache_h cache, const ucs_predict_walk_t *leader,
                        const ucs_predict_walk_t *walk, uint64_t now, uintptr_t at)
{
    const ucs_regcache_pace_t *pace = ucs_regcache_walk_pace(cache, leader);
    size_t offset;

    if ((leader->length <= walk->length) ||
        ((leader->stride > 0) != (walk->stride > 0)) ||
        (pace->access != ucs_regcache_walk_pace(cache, walk)->access) ||
        !ucs_regcache_walk_goes_on(leader, pace, now)) {
        return SIZE_MAX;
    }
    offset = ucs_regcache_walk_offset(leader, at);
    return ((offset + walk->length <= leader->length) &&
            (!pace->is_given || (ucs_regcache_given_bytes(
                                         cache, leader, pace->access,
                                         at - offset) > 0))) ?
                   offset :
                   SIZE_MAX;
}

/* What lies within the step of a longer walk is registered with that: windows begin and
 * end where the longest steps do, so that none lies across.
 * @return The longest walk, with @a at_p at the first of its steps that is not registered,
 *         up to that which has what lies there. */
static const ucs_predict_walk_t *
ucs_regcache_walk_leader(ucs_regcache_h cache, const ucs_predict_walk_t *walk,
                         uint64_t now, uintptr_t *at_p)
{
    const ucs_predict_walk_t *leader = walk;
    const ucs_predict_walk_t *other;
    size_t offset, ahead;
    unsigned i, step;

    for (i = 0; i < UCS_PREDICT_WALKS; ++i) {
        other  = &cache->walking.walks.walks[i];
        offset = ucs_regcache_walk_leads(cache, other, leader, now, *at_p);
        if (offset != SIZE_MAX) {
            leader = other;
            *at_p -= offset;
        }
    }
    ahead = ucs_regcache_walk_steps_to(leader, *at_p);
    if ((leader != walk) && (ahead <= UCS_REGCACHE_WALK_HOPS)) {
        step = ucs_regcache_walk_first(cache, leader, (unsigned)ahead);
        if (step > 0) {
            *at_p = leader->at + step * (uintptr_t)leader->stride;
        }
    }
    return leader;
}

int ucs_regcache_walk_ahead(ucs_regcache_h cache, unsigned number,
                            uint64_t now, ucs_regcache_request_t *request,
                            ucs_regcache_region_t **region_p)
{
    const ucs_predict_walk_t *walk  = &cache->walking.walks.walks[number];
    const ucs_regcache_pace_t *pace = &cache->walking.paces[number];
    unsigned step                   = 0;
    uintptr_t start;

    *request = (ucs_regcache_request_t){.now = now};
    if (ucs_regcache_walk_goes_on(walk, pace, now) &&
        (walk->steps >= pace->again)) {
        step = ucs_regcache_walk_first(cache, walk, pace->lead);
    }
    if (step == 0) {
        return 0;
    }
    start = walk->at + step * (uintptr_t)walk->stride;
    if (((walk->stride > 0) != (start > walk->at)) ||
        (start + walk->length < start)) {
        return 0; /* there is nothing ahead */
    }
    walk     = ucs_regcache_walk_leader(cache, walk, now, &start);
    pace     = ucs_regcache_walk_pace(cache, walk);
    *request = (ucs_regcache_request_t){
            .start      = start,
            .end        = start + walk->length,
            .first      = ucs_regcache_page_down(cache, start),
            .last       = ucs_regcache_page_up(cache, start + walk->length),
            .flags      = pace->access,
            .access     = pace->access,
            .size_class = UCS_REGCACHE_CLASS_MANAGED,
            .now        = now,
            .walk       = walk,
            .is_cover   = !pace->is_given,
            .is_window  = 1};
    *region_p = ucs_regcache_walk_dormant(cache, request);
    if (*region_p != NULL) {
        return 1;
    }
    if (!ucs_extents_covers(&cache->memory.untouched, request->first,
                            request->last)) {
        return 0;
    }
    ucs_regcache_walk_enlarge(cache, request, start);
    if (pace->is_given) {
        request->is_cover = (request->end - request->start > walk->length);
    } else {
        request->start = request->first;
        request->end   = request->last;
    }
    return 1;
}

void ucs_regcache_walk_refused(ucs_regcache_h cache, uintptr_t first,
                               uintptr_t last)
{
    ucs_regcache_walking_t *walking = &cache->walking;
    const ucs_predict_walk_t *walk;
    uintptr_t next;
    unsigned i;

    for (i = 0; i < UCS_PREDICT_WALKS; ++i) {
        walk = &walking->walks.walks[i];
        next = walk->at + (uintptr_t)walk->stride;
        if (((walk->at >= first) && (walk->at < last)) ||
            ((next >= first) && (next < last))) {
            walking->paces[i].again = 2 * walk->steps;
        }
    }
}

ucs_regcache_region_t *ucs_regcache_walk_window(ucs_regcache_h cache,
                                                unsigned number)
{
    const ucs_predict_walk_t *walk = &cache->walking.walks.walks[number];
    ucs_regcache_region_t *region  = cache->walking.paces[number].in;

    return ((region != NULL) && ucs_load_relaxed(&region->is_window) &&
            ucs_regcache_word_is_hit(ucs_load_relaxed(&region->word)) &&
            (region->first <= walk->at) && (region->last > walk->at)) ?
                   region :
                   NULL;
}

/* Is one of its steps in the region, from the last that was left out, which may
 * come yet, to those that may have been registered ahead? */
static int ucs_regcache_walk_reaches(const ucs_predict_walk_t *walk,
                                     const ucs_regcache_pace_t *pace,
                                     const ucs_regcache_region_t *region)
{
    intptr_t stride = (intptr_t)ucs_predict_walk_stride(walk);
    intptr_t ahead  = 2 * (intptr_t)ucs_max(pace->window, pace->lead) + 1;
    /* Bytes ahead of the latest step at which the region ends, and begins */
    intptr_t far    = (intptr_t)((walk->stride > 0) ?
                                         region->last - walk->at :
                                         walk->at + walk->length -
                                                 region->first);
    intptr_t near   = far - (intptr_t)ucs_regcache_pinned_length(region);
    /* The last step that begins within */
    intptr_t step   = ((far - 1) / stride) - ((far < 1) ? 1 : 0);

    return (step > -(intptr_t)walk->jump) &&
           (ucs_min(step, ahead) * stride + (intptr_t)walk->length > near);
}

int ucs_regcache_walk_is_in(ucs_regcache_h cache,
                            const ucs_regcache_region_t *region, uint64_t now)
{
    const ucs_regcache_walking_t *walking = &cache->walking;
    const ucs_regcache_pace_t *pace;
    const ucs_predict_walk_t *walk;
    unsigned i;

    for (i = 0; i < UCS_PREDICT_WALKS; ++i) {
        walk = &walking->walks.walks[i];
        pace = &walking->paces[i];
        if (ucs_regcache_walk_goes_on(walk, pace, now) &&
            ucs_regcache_walk_reaches(walk, pace, region)) {
            return 1;
        }
    }
    return 0;
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "rank.h"

#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

/* What a walk came to from the window before, and found registered for it, it will be
 * found the same way the next time: nobody else needs to know. The policy learns of
 * those that a walk begins with, and of those that were late. */
static void ucs_regcache_windows_leave(ucs_regcache_h cache,
                                       const ucs_regcache_window_t *window)
{
    const ucs_use_t *use = &window->use;

    if ((window->uses > 0) && (use->start_ns < window->ready_ns)) {
        cache->plan.ops->use(cache, use);
    } else if (ucs_regcache_region_gen(use->region) == use->generation) {
        ucs_regcache_plan_forget(cache, use->region);
        ucs_regcache_plan_deregister(cache, use->region);
    }
}

/* In use it is left by the last user */
static int ucs_regcache_windows_stays(ucs_regcache_h cache,
                                      const ucs_use_t *use)
{
    uint64_t word = ucs_load_relaxed(&use->region->word);

    return (ucs_regcache_word_gen(word) == use->generation) &&
           ((ucs_regcache_word_refs(word) > 0) ||
            ucs_regcache_windows_is_in(cache, use->region));
}

/* Those that nobody has given back yet as well */
static void ucs_regcache_windows_sum(ucs_regcache_h cache)
{
    ucs_regcache_windows_t *windows = &cache->plan.windows;
    size_t held                     = 0;
    ucs_regcache_region_t *region;
    const ucs_use_t *use;
    unsigned i;

    ucs_regcache_lock(cache);
    for (i = 0; i < UCS_PREDICT_WALKS; ++i) {
        region = ucs_regcache_walk_window(cache, i);
        if (region != NULL) {
            (void)ucs_regcache_windows_get(windows, region,
                                           ucs_regcache_region_gen(region));
        }
    }
    for (i = 0; i < windows->count; ++i) {
        use = &windows->list[i].use;
        if (ucs_regcache_region_gen(use->region) == use->generation) {
            held += ucs_regcache_pinned_length(use->region);
        }
    }
    cache->walking.held = held;
    ucs_regcache_unlock(cache);
}

void ucs_regcache_windows_pass(ucs_regcache_h cache)
{
    ucs_regcache_windows_t *windows = &cache->plan.windows;
    ucs_regcache_window_t window;
    unsigned i = 0;

    while (i < windows->count) {
        window = windows->list[i];
        if (ucs_regcache_windows_stays(cache, &window.use)) {
            ++i;
            continue;
        }
        windows->list[i] = windows->list[--windows->count];
        ucs_regcache_windows_leave(cache, &window);
    }
    if (cache->walking.is_on) {
        ucs_regcache_windows_sum(cache);
    }
}

/* Under the lock, with a region in reserve: REGISTERING, of nobody. @return NULL if
 * there is nothing to be registered, or it is left to the helper. */
static ucs_regcache_region_t *
ucs_regcache_windows_begin(ucs_regcache_h cache, unsigned number, uint64_t now)
{
    unsigned wanted = ucs_load_relaxed(&cache->walking.wanted);
    ucs_regcache_region_t *region = NULL;
    ucs_regcache_request_t request;
    int is_ahead = ucs_regcache_walk_ahead(cache, number, now, &request,
                                           &region);
    size_t bytes = (region != NULL) ? ucs_regcache_pinned_length(region) :
                                      request.last - request.first;
    size_t pages = bytes / (cache->config.page_mask + 1);

    if (is_ahead && !ucs_regcache_idle_may(
                            cache, (uint64_t)ucs_predict_cost_estimate(
                                           &cache->cost.reg, pages))) {
        return NULL;
    }
    if (!is_ahead) {
        ucs_store_relaxed(&cache->walking.wanted, wanted & ~(1u << number));
        return NULL;
    }
    region = ucs_regcache_region_begin(cache, region, &request);
    ucs_store_relaxed(&region->speculative, 1);
    ucs_regcache_region_plan_end(cache, region, 0);
    ucs_regcache_rank_first(region);
    /* relaxed: the state changes under the lock alone, which is held */
    ucs_sub_relaxed(&region->word, UCS_REGCACHE_WORD_REF);
    return region;
}

/* @return Zero if it is not registered. */
static int ucs_regcache_windows_register(ucs_regcache_h cache,
                                         ucs_regcache_region_t *region,
                                         uint64_t generation)
{
    uintptr_t first     = region->first;
    uintptr_t last      = region->last;
    ucs_status_t status = ucs_regcache_serve_unasked(cache, region,
                                                     UCS_REGCACHE_HELD_AHEAD);
    ucs_regcache_window_t *window;

    if (status == UCS_OK) {
        window = ucs_regcache_windows_get(&cache->plan.windows, region,
                                          generation);
        if (window != NULL) {
            window->ready_ns = ucs_regcache_now(cache);
        }
        return 1;
    }
    ucs_regcache_lock(cache);
    ucs_regcache_walk_refused(cache, first, last);
    ucs_regcache_unlock(cache);
    return 0;
}

/* As many as there are until the walk has its lead. @return Zero if nothing was
 * registered. */
static int ucs_regcache_windows_next(ucs_regcache_h cache, unsigned number)
{
    uint64_t now = ucs_regcache_now(cache);
    ucs_regcache_region_t *region;
    uint64_t generation;

    if ((cache->plan.windows.count == UCS_REGCACHE_WINDOWS) ||
        !ucs_regcache_needs_helper(cache) ||
        ucs_regcache_serve_is_backing_off(cache) ||
        (ucs_regcache_lock_reserved(cache) != UCS_OK)) {
        return 0;
    }
    region     = ucs_regcache_windows_begin(cache, number, now);
    generation = (region != NULL) ? ucs_regcache_region_gen(region) : 0;
    ucs_regcache_unlock(cache);
    return (region != NULL) &&
           ucs_regcache_windows_register(cache, region, generation);
}

void ucs_regcache_windows_serve(ucs_regcache_h cache)
{
    unsigned wanted = ucs_load_relaxed(&cache->walking.wanted);
    unsigned i;

    /* relaxed: a measure, for those that use it under the lock */
    ucs_store_relaxed(&cache->walking.react_ns, cache->plan.lateness);
    for (i = 0; (i < UCS_PREDICT_WALKS) && (wanted != 0); ++i) {
        while ((wanted & (1u << i)) && ucs_regcache_windows_next(cache, i)) {
        }
    }
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

/*
 * Windows, which walks are in (cover/walk.h). While a walk is in one it stays
 * registered, and its uses are one. If it was not registered ahead of the walk, the
 * policy learns of it as of a buffer when the walk has left it, and what becomes of it
 * until it comes back is judged as of any buffer.
 */

static ucs_regcache_window_t *
ucs_regcache_windows_find(ucs_regcache_windows_t *windows,
                          const ucs_regcache_region_t *region,
                          uint64_t generation)
{
    unsigned i;

    for (i = 0; i < windows->count; ++i) {
        if ((windows->list[i].use.region == region) &&
            (windows->list[i].use.generation == generation)) {
            return &windows->list[i];
        }
    }
    return NULL;
}

ucs_regcache_window_t *
ucs_regcache_windows_get(ucs_regcache_windows_t *windows,
                         ucs_regcache_region_t *region, uint64_t generation)
{
    ucs_regcache_window_t *window = ucs_regcache_windows_find(windows, region,
                                                              generation);

    if ((window == NULL) && (windows->count < UCS_REGCACHE_WINDOWS)) {
        window  = &windows->list[windows->count++];
        *window = (ucs_regcache_window_t){
                .use      = {.region = region, .generation = generation},
                .ready_ns = UINT64_MAX};
    }
    return window;
}

int ucs_regcache_windows_use(ucs_regcache_h cache, const ucs_use_t *use)
{
    ucs_regcache_window_t *window;

    if (!ucs_load_relaxed(&use->region->is_window) ||
        (ucs_regcache_region_gen(use->region) != use->generation)) {
        return 0;
    }
    window = ucs_regcache_windows_get(&cache->plan.windows, use->region,
                                      use->generation);
    if (window == NULL) {
        return 0;
    }
    if (window->uses++ == 0) {
        window->use = *use;
    } else {
        window->use.start_ns = ucs_min(window->use.start_ns, use->start_ns);
        window->use.end_ns   = ucs_max(window->use.end_ns, use->end_ns);
    }
    return 1;
}

int ucs_regcache_windows_is_in(ucs_regcache_h cache,
                               const ucs_regcache_region_t *region)
{
    uint64_t now = ucs_regcache_now(cache);
    int is_in;

    ucs_regcache_lock(cache);
    is_in = ucs_regcache_walk_is_in(cache, region, now);
    ucs_regcache_unlock(cache);
    return is_in;
}

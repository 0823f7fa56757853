/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

void ucs_regcache_inspect_begin(ucs_regcache_h cache,
                                const ucs_regcache_region_t *region,
                                ucs_regcache_inspection_t *inspection)
{
    inspection->start     = region->first;
    inspection->end       = region->last;
    inspection->events    = cache->memory.events;
    inspection->is_kept   = ucs_extents_covers(&cache->memory.kept,
                                               region->first, region->last);
    inspection->is_barred = ucs_extents_covers(&cache->memory.barred,
                                               region->first, region->last);
    inspection->learned   = NULL;
}

int ucs_regcache_inspect(ucs_regcache_h cache, unsigned flags,
                         ucs_regcache_inspection_t *inspection)
{
    uintptr_t start = inspection->start;
    uintptr_t end   = inspection->end;

    if (cache->env.inspect == NULL) {
        return 1;
    }
    if (inspection->is_barred) {
        return 0;
    }

    flags |= inspection->is_kept ? UCS_REGCACHE_INSPECT_KNOWN : 0;
    if (!cache->env.inspect(cache->env.arg, flags, &start, &end)) {
        if (!(flags & UCS_REGCACHE_INSPECT_SPECULATE)) {
            inspection->learned = &cache->memory.barred;
        }
        return 0;
    }

    if (!inspection->is_kept) {
        inspection->start   = start;
        inspection->end     = end;
        inspection->learned = &cache->memory.kept;
    }
    return 1;
}

/* Nothing is learned after an event, which may have been about this range, nor while
 * memory is distrusted */
void ucs_regcache_inspect_end(ucs_regcache_h cache,
                              const ucs_regcache_inspection_t *inspection)
{
    if ((inspection->learned != NULL) &&
        (cache->memory.events == inspection->events) &&
        (ucs_load_relaxed(&cache->distrust) == 0)) {
        ucs_extents_add(inspection->learned, inspection->start,
                        inspection->end);
    }
}

/* relaxed: an event that is not counted yet takes the lock after this, and removes what
 * is learned */
void ucs_regcache_learn(ucs_regcache_h cache, uintptr_t start, uintptr_t end,
                        const _Atomic(uint64_t) *events, uint64_t number)
{
    if (ucs_lock_is_mine(&cache->lock)) {
        return;
    }

    ucs_regcache_lock(cache);
    if ((ucs_load_relaxed(events) == number) &&
        (ucs_load_relaxed(&cache->distrust) == 0)) {
        ucs_extents_add(&cache->memory.kept, start, end);
    }
    ucs_regcache_unlock(cache);
}

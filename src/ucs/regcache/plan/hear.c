/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>

void ucs_regcache_hear(ucs_regcache_h cache, const ucs_operation_t *operations,
                       unsigned count)
{
    (void)operations;
    cache->plan.heard += count;
}

uint64_t ucs_regcache_idle_step(ucs_regcache_h cache, uint64_t now)
{
    ++cache->plan.idle_steps;
    return ucs_regcache_step(cache, now);
}

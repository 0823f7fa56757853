/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>

/* Ends come in another order than starts; the predictor wants the latter */
void ucs_regcache_uses_sort(ucs_use_t *uses, unsigned count,
                            const ucs_use_t *use)
{
    unsigned i;

    for (i = count; (i > 0) && (uses[i - 1].start_ns > use->start_ns); --i) {
        uses[i] = uses[i - 1];
    }
    uses[i] = *use;
}

unsigned ucs_regcache_uses_drain(ucs_regcache_h cache, ucs_use_t *uses)
{
    unsigned count = 0;
    ucs_use_t use;

    while ((count < UCS_REGCACHE_BATCH) && ucs_dq_pop(cache->use.queue, &use)) {
        ucs_regcache_uses_sort(uses, count++, &use);
    }
    return count;
}

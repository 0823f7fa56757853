/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_REGCACHE_REGIONS_H_
#define TEST_REGCACHE_REGIONS_H_

#include <ucs/regcache/region/region.h>

#include <cstdlib>
#include <cstring>

/* Zeroed memory, as the cache's pool gives */
static inline ucs_regcache_region_t *regions_new(unsigned count)
{
    const size_t length = count * sizeof(ucs_regcache_region_t);
    void *regions       = aligned_alloc(UCS_REGCACHE_LINE, length);

    memset(regions, 0, length);
    return static_cast<ucs_regcache_region_t *>(regions);
}

static inline void set_word(ucs_regcache_region_t *region, uint64_t gen, uint64_t refs)
{
    ucs_store_relaxed(&region->word,
                      (gen << UCS_REGCACHE_WORD_GEN_SHIFT) |
                              (refs << UCS_REGCACHE_WORD_REF_SHIFT) |
                              UCS_REGCACHE_STATE_LIVE);
}

#endif

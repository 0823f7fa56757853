/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_RANK_H_
#define UCS_REGCACHE_RANK_H_

#include <ucs/regcache/region/region.h>

/*
 * How far the next use of a region is, as the predictor counts uses. The helper
 * writes, the thread that evicts reads.
 */

BEGIN_C_DECLS

/** Nothing is known. */
static inline void ucs_regcache_rank_forget(ucs_regcache_region_t *region)
{
    ucs_store_relaxed(&region->next_use, 0);
    ucs_store_relaxed(&region->again, 0);
}

/** The program has said that it is used next, for the first time: it is nearer
 *  than all that lies idle. */
static inline void ucs_regcache_rank_first(ucs_regcache_region_t *region)
{
    ucs_store_relaxed(&region->learned_start, UINT64_MAX); /* of no use */
    ucs_store_relaxed(&region->again, UINT64_MAX);        /* == -1 */
}

/**
 * The predictor has learned of a use.
 *
 * @param [in] uses      That it knows of.
 * @param [in] next      Which one is to be the region's next; 0: not known.
 * @param [in] start_ns  When the use began.
 */
static inline void
ucs_regcache_rank_set(ucs_regcache_region_t *region, uint64_t uses,
                      uint64_t next, uint64_t start_ns)
{
    ucs_store_relaxed(&region->learned, uses);
    ucs_store_relaxed(&region->learned_start, start_ns);
    ucs_store_relaxed(&region->next_use, next);
    ucs_store_relaxed(&region->again, (next > uses) ? next - uses : 0);
}

/**
 * @param [in] now  Uses that the predictor knows of.
 *
 * @return How many uses until the region's next: as predicted, and if it is
 *         overdue by so many, as many more; after a use that the predictor does
 *         not know of yet, as many as there were before that; if nothing is
 *         known, as many as there have been since its latest, which makes the
 *         order that of the latest uses.
 */
static inline int64_t
ucs_regcache_rank_distance(ucs_regcache_region_t *region, uint64_t now)
{
    uint64_t next = ucs_load_relaxed(&region->next_use);

    if (ucs_load_relaxed(&region->use_start) !=
        ucs_load_relaxed(&region->learned_start)) {
        return ucs_load_relaxed(&region->again);
    }
    if (next == 0) {
        next = ucs_load_relaxed(&region->learned);
    }
    return (next > now) ? next - now : now - next;
}

END_C_DECLS

#endif

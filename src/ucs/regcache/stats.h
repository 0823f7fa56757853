/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_STATS_H_
#define UCS_REGCACHE_STATS_H_

#include <ucs/regcache/region/why.h>

#include <stdint.h>

/*
 * Figures of one cache. Bytes are whole pages, for it is pages that are
 * pinned. uses == on_time + late + missed + cold.
 */

/** A cost model: nanoseconds = a * pages + b. */
typedef struct ucs_regcache_model {
    double   a_ns_per_page;
    double   b_ns;
    uint64_t samples; /**< registrations it was learned from */
} ucs_regcache_model_t;

typedef struct ucs_regcache_stats {
#define UCS_FIGURE(_type, _name, ...) _type _name;
#include <ucs/regcache/stats_table.h>
#undef UCS_FIGURE
    uint64_t             pinned_bytes;    /**< registered now */
    uint64_t             regions;         /**< likewise */
    uint64_t             region_bytes;    /**< that each holds beside its pages, by the
                                               parameters */
    uint64_t             over_ceiling;    /**< uses that passed a ceiling, for all else
                                               was in use */
    uint64_t             failed;          /**< registrations refused by the lower
                                               domain */
    uint64_t             announced_first; /**< first uses of receives that were on time
                                               or late */
    ucs_regcache_why_t   why;             /**< adds up to lost_ns, and to
                                               pinned_byte_ns */
    ucs_regcache_model_t register_model;
    ucs_regcache_model_t deregister_model;
} ucs_regcache_stats_t;

/**
 * What the helper minimises.
 *
 * @param [in] lost    Time lost in @a elapsed, in one unit.
 * @param [in] held    Bytes over time.
 * @param [in] most    All that leave pinned holds at most, for as long; leaving
 *                     that pinned costs @a max_slowdown.
 *
 * @return Time and memory together, as a share of the run time.
 */
static inline double
ucs_regcache_j(double lost, double elapsed, double held, double most,
               double max_slowdown)
{
    return ((elapsed > 0) ? lost / elapsed : 0) +
           ((most > 0) ? max_slowdown * held / most : 0);
}

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_STATS_H_
#define UCS_REGCACHE_STATS_H_

#include <ucs/regcache/region/why.h>

#include <stdint.h>

/**
 * @file stats.h
 *
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
    uint64_t             pinned_bytes;       /**< registered now */
    uint64_t             pinned_peak_bytes;
    double               pinned_byte_ns;     /**< integral over time */

    uint64_t             leave_pinned_bytes; /**< union of the ranges seen that
                                                  are still mapped */
    uint64_t             leave_pinned_peak_bytes;
    double               leave_pinned_byte_ns;

    uint64_t             in_use_peak_bytes;

    uint64_t             regions;            /**< registered now */
    uint64_t             regions_peak;
    double               region_ns;          /**< integral over time */
    uint64_t             leave_pinned_regions_peak; /**< likewise, registrations
                                                  that leaving all pinned would
                                                  hold */
    uint64_t             region_bytes;       /**< that each holds beside its
                                                  pages, by the parameters */
    uint64_t             uses;
    uint64_t             on_time;            /**< live when the use came */
    uint64_t             late;            /**< being registered, use waited */
    uint64_t             missed;             /**< seen before, registered by the
                                                  use itself */
    uint64_t             cold;               /**< first use of the range */
    uint64_t             wasted;             /**< registered by the helper and
                                                  dropped without a use */
    uint64_t             evicted;            /**< dropped to keep a ceiling */
    uint64_t             invalidated;        /**< struck by a memory event */
    uint64_t             over_ceiling;       /**< uses that passed a ceiling,
                                                  for all else was in use */
    uint64_t             failed;             /**< registrations refused by the
                                                  lower domain */
    uint64_t             lost_ns;            /**< of the application's threads:
                                                  in uses that registered or
                                                  waited, and in what they
                                                  deregistered */
    ucs_regcache_why_t   why;                /**< adds up to lost_ns, and to
                                                  pinned_byte_ns */
    uint64_t             soft_ceiling_bytes; /**< what idle registrations may
                                                  fill at most, in the end; 0:
                                                  the policy has none */
    uint64_t             soft_ceiling_raises;
    uint64_t             registrations;      /**< made, in all */
    uint64_t             repinned;           /**< of regions that had been given
                                                  up and not forgotten */
    uint64_t             covers;             /**< registrations of more than was
                                                  asked for */
    uint64_t             spared;             /**< first uses that found theirs
                                                  made by that */
    uint64_t             spared_ns;          /**< that these would have taken,
                                                  modelled */
    uint64_t             heard;              /**< operations at UCP's entry
                                                  points */
    uint64_t             announced;          /**< receives of at least the
                                                  minimal size among them */
    uint64_t             announced_on_time;  /**< whose uses found them
                                                  registered for that */
    uint64_t             announced_late;     /**< whose uses came while they were
                                                  being registered for that */
    uint64_t             announced_first;    /**< first uses among those */
    uint64_t             idle_steps;         /**< by threads that waited */

    ucs_regcache_model_t register_model;
    ucs_regcache_model_t deregister_model;
} ucs_regcache_stats_t;

#endif

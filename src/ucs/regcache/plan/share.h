/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_SHARE_H_
#define UCS_REGCACHE_SHARE_H_

#include <ucs/regcache/tuning.h>
#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file share.h
 *
 * The share of a core that the helper may take. Owned by the helper.
 */

BEGIN_C_DECLS

typedef struct ucs_regcache_share {
    const ucs_regcache_tuning_t *tuning;
    double   target;     /* of a core for the first megabyte that would be left
                            pinned, and for each more; 0: any */
    double   now;        /* of a core, as much as is pinned now */
    uint64_t spent;      /* ns of processor time, as last read; 0: not yet */
    uint64_t rest_until; /* ns: what was spent is earned */
} ucs_regcache_share_t;

/** @param [in] target  As in the struct.
 *  @param [in] tuning  Outlives @a share. */
void ucs_regcache_share_init(ucs_regcache_share_t *share, double target,
                             const ucs_regcache_tuning_t *tuning);

/**
 * Charge what the helper has spent since the last time.
 *
 * @param [in] spent  Processor time of the helper, ns.
 * @param [in] bytes  What would be left pinned.
 *
 * @return When it will have earned that, ns.
 */
uint64_t ucs_regcache_share_charge(ucs_regcache_share_t *share, uint64_t spent,
                                   size_t bytes, uint64_t now);

/** @return When the helper will have earned @a cost, ns of processor time,
 *          beside what it has spent already. */
uint64_t ucs_regcache_share_earned(const ucs_regcache_share_t *share,
                                   uint64_t cost, uint64_t now);

END_C_DECLS

#endif

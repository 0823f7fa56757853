/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_CHARGE_H_
#define UCS_REGCACHE_CHARGE_H_

#include <ucs/regcache/regcache.h>
#include <ucs/sys/atomic.h>
#include <stdint.h>

/**
 * @file charge.h
 *
 * What the helper costs: its processor time.
 */

BEGIN_C_DECLS

/** What the helper costs. It is the only one that writes this. */
typedef struct ucs_regcache_charge {
    uint64_t          spent;    /* ns of its processor time, as last read */
    double            step_ns;  /* of it that a step takes, smoothed */
    double            busy;     /* share of it that others want, 0 to 1 */
    int               is_known; /* that has been measured */
    _Atomic(uint64_t) lost_ns;  /* == sum of what it spent times that share */
} ucs_regcache_charge_t;

/** Charge the helper for what it took from others since the last time. The
 *  helper only, in each of its steps. */
void ucs_regcache_charge(ucs_regcache_h cache);

END_C_DECLS

#endif

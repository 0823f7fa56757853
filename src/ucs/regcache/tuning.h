/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_TUNING_H_
#define UCS_REGCACHE_TUNING_H_

#include <ucs/predict/tuning.h>

/*
 * The constants that steer the cache, as a value that it is created with.
 * tuning_table.h and ucs/predict/tuning_table.h have the rows: name, default,
 * unit, reason, and what halving and doubling changes, as bench/ablate found.
 * To add a constant, add a row.
 *
 * Not among them: what changes no recording's price by a percent when it is halved
 * or doubled, which stands with its reason where it is used.
 */

BEGIN_C_DECLS

/** Constants of a cache; each member but the last is a uint64_t or a double. */
typedef struct ucs_regcache_tuning {
#define UCS_TUNING(_type, _name, ...) _type _name;
#include <ucs/regcache/tuning_table.h>
#undef UCS_TUNING
    ucs_predict_tuning_t predict;
} ucs_regcache_tuning_t;

/** The defaults. */
extern const ucs_regcache_tuning_t ucs_regcache_tuning_default;

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef REPLAY_TUNING_H_
#define REPLAY_TUNING_H_

#include <ucs/regcache/tuning.h>
#include <ucs/type/status.h>

/**
 * @file replay_tuning.h
 *
 * The engine's constants by name, for --tuning and bench/ablate.
 */

BEGIN_C_DECLS

/** A row of a table of constants. */
typedef struct replay_tuning_row {
    const char *name;
    size_t     offset;  /**< of the member in the whole struct */
    int        is_real; /**< a double, else a uint64_t */
    const char *unit;
    const char *why;    /**< what it is, source or reason */
    const char *effect; /**< what changes when it is halved, doubled */
} replay_tuning_row_t;

/** Rows of both tables, in the order of the struct; the last has no name. */
extern const replay_tuning_row_t replay_tuning_rows[];

/** @return The value of a row. */
double replay_tuning_get(const ucs_regcache_tuning_t *tuning,
                         const replay_tuning_row_t *row);

/**
 * Set one constant.
 *
 * @param [in] value  Rounded down where the constant is whole.
 *
 * @return UCS_OK, UCS_ERR_NO_ELEM if there is none of this name, or
 *         UCS_ERR_INVALID_PARAM if the value is not above 0, or not finite, or
 *         below 1 where the constant is whole.
 */
ucs_status_t replay_tuning_set(ucs_regcache_tuning_t *tuning, const char *name,
                               double value);

END_C_DECLS

#endif

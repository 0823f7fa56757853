/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_tuning.h"

#include <string.h>

#define REPLAY_TUNING_IS_REAL(_type) _Generic((_type)0, double: 1, default: 0)

const replay_tuning_row_t replay_tuning_rows[] = {
#define UCS_TUNING(_type, _name, _value, _unit, _why, _effect) \
    {#_name, offsetof(ucs_regcache_tuning_t, _name), \
     REPLAY_TUNING_IS_REAL(_type), _unit, _why, _effect},
#include <ucs/regcache/tuning_table.h>
#undef UCS_TUNING
#define UCS_TUNING(_type, _name, _value, _unit, _why, _effect) \
    {#_name, offsetof(ucs_regcache_tuning_t, predict._name), \
     REPLAY_TUNING_IS_REAL(_type), _unit, _why, _effect},
#include <ucs/predict/tuning_table.h>
#undef UCS_TUNING
    {NULL, 0, 0, NULL, NULL, NULL}
};

double replay_tuning_get(const ucs_regcache_tuning_t *tuning,
                         const replay_tuning_row_t *row)
{
    const char *member = (const char*)tuning + row->offset;

    return row->is_real ? *(const double*)member :
                          (double)*(const uint64_t*)member;
}

ucs_status_t replay_tuning_set(ucs_regcache_tuning_t *tuning, const char *name,
                               double value)
{
    const replay_tuning_row_t *row = replay_tuning_rows;
    char *member;

    while ((row->name != NULL) && (strcmp(row->name, name) != 0)) {
        ++row;
    }
    if (row->name == NULL) {
        return UCS_ERR_NO_ELEM;
    }
    /* Also refuses a NaN */
    if (!(value > 0) || !(value < 1e18) || (!row->is_real && (value < 1))) {
        return UCS_ERR_INVALID_PARAM;
    }

    member = (char*)tuning + row->offset;
    if (row->is_real) {
        *(double*)member = value;
    } else {
        *(uint64_t*)member = (uint64_t)value;
    }
    return UCS_OK;
}

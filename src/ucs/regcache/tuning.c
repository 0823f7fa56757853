/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tuning.h"

const ucs_regcache_tuning_t ucs_regcache_tuning_default = {
#define UCS_TUNING(_type, _name, _value, ...) ._name = (_value),
#include <ucs/regcache/tuning_table.h>
#undef UCS_TUNING
    .predict = {
#define UCS_TUNING(_type, _name, _value, ...) ._name = (_value),
#include <ucs/predict/tuning_table.h>
#undef UCS_TUNING
    }
};

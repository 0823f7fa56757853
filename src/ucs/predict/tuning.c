/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tuning.h"

const ucs_predict_tuning_t ucs_predict_tuning_default = {
#define UCS_TUNING(_type, _name, _value, ...) ._name = (_value),
#include <ucs/predict/tuning_table.h>
#undef UCS_TUNING
};

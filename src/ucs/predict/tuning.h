/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_TUNING_H_
#define UCS_PREDICT_TUNING_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/*
 * The constants that steer prediction, as a value that its objects are created
 * with. tuning_table.h has the rows. Not among them: what changes no
 * recording's price by a percent when it is halved or doubled, which stands with
 * its reason where it is used.
 */

BEGIN_C_DECLS

/** Constants of prediction; each member is a uint64_t or a double. */
typedef struct ucs_predict_tuning {
#define UCS_TUNING(_type, _name, ...) _type _name;
#include <ucs/predict/tuning_table.h>
#undef UCS_TUNING
} ucs_predict_tuning_t;

/** The defaults. */
extern const ucs_predict_tuning_t ucs_predict_tuning_default;

END_C_DECLS

#endif

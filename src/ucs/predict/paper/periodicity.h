/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_PERIODICITY_H_
#define UCS_PREDICT_PERIODICITY_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stdint.h>

/**
 * @file periodicity.h
 *
 * The periodicity detector of Freitag, Corbalan and Labarta (2001), with which
 * Li et al. (2011, section 5.1) compare their predictor: the last N samples of
 * a stream are compared with the N samples that came m earlier; the stream has
 * period m if they are identical. What came with the latest sample then is due
 * again after the time that the last period took.
 *
 * Reference for measurements; not used in production. Not thread safe.
 */

BEGIN_C_DECLS

/** Largest window. */
#define UCS_PREDICT_PERIODICITY_MAX 4096u

typedef struct ucs_predict_periodicity *ucs_predict_periodicity_h;


/**
 * Create a detector.
 *
 * @param [in]  window      N, from 1 to @ref UCS_PREDICT_PERIODICITY_MAX
 *                          samples; periods up to N are found.
 * @param [out] detector_p  Set only on success; owned by the caller.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_predict_periodicity_create(unsigned window,
                                            ucs_predict_periodicity_h *det_p);

/** Release a detector; NULL is accepted. */
void ucs_predict_periodicity_destroy(ucs_predict_periodicity_h detector);


/** Take in one sample @a value at @a time_ns. Work: N comparisons. */
void ucs_predict_periodicity_add(ucs_predict_periodicity_h detector,
                                 uint64_t value, uint64_t time_ns);


/** @return The smallest period, samples; 0 if there is none. */
unsigned ucs_predict_periodicity_period(ucs_predict_periodicity_h detector);


/**
 * When is the latest sample due again?
 *
 * @param [out] due_ns  Set only if 1 is returned.
 *
 * @return 1, or 0 if the stream has no period.
 */
int ucs_predict_periodicity_due(ucs_predict_periodicity_h detector,
                                uint64_t *due_ns);

END_C_DECLS

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_SIGNATURE_H_
#define UCS_PREDICT_SIGNATURE_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * Names of communication contexts: the buffer, the path of calls, and the window of
 * preceding communications (Li et al., CF'11, sections 3.1 and 4.2). The functions
 * change nothing but the window that they are given. The hashes depend on addresses,
 * so they mean something in one process only.
 */

BEGIN_C_DECLS

/** Most preceding communications that a signature can take in. */
#define UCS_PREDICT_WINDOW_MAX     4

/** Name of a path or hash of a whole context. Never 0, so that 0 can mean
 *  "none". */
typedef uint64_t ucs_predict_sig_t;

/** The latest communications, newest first; after the first zero there are only
 *  zeros. */
typedef struct ucs_predict_window {
    uint64_t comm[UCS_PREDICT_WINDOW_MAX];
} ucs_predict_window_t;

/** @return Hash of a communication of this kind at this address, never 0. */
uint64_t ucs_predict_comm(unsigned type, uintptr_t address);

/** Make @a comm the newest communication of the window; 0 changes nothing. */
void ucs_predict_window_push(ucs_predict_window_t *w, uint64_t comm);

/**
 * @param [in] path           Any name of the path that led to the communication.
 * @param [in] address        Of the buffer.
 * @param [in] window         What was communicated before; may be NULL if
 *                            @a window_length is 0.
 * @param [in] window_length  How many of these count, from the newest; more than
 *                            @ref UCS_PREDICT_WINDOW_MAX means all.
 *
 * @return The context's signature, never 0. If two share one, which happens once in
 *         2^64, a prediction is poor.
 */
ucs_predict_sig_t ucs_predict_signature(ucs_predict_sig_t path,
                                        uintptr_t address,
                                        const ucs_predict_window_t *window,
                                        unsigned window_length);

END_C_DECLS

#endif

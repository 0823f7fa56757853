/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_SIGNATURE_H_
#define UCS_PREDICT_SIGNATURE_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/**
 * @file signature.h
 *
 * Names of communication contexts: what is being communicated (the buffer),
 * from where (the path of calls), and after what (the window of
 * preceding communications). Source: Li et al., CF'11, sections 3.1 and 4.2.
 *
 * All functions are pure, or change only the window that they are given. The
 * hashes depend on addresses, so they mean something in one process only.
 */

BEGIN_C_DECLS

/** Most preceding communications that a signature can take in. */
#define UCS_PREDICT_WINDOW_MAX     4

/** Name of a path or hash of a whole context. Never 0, so that 0 can mean
 *  "none". */
typedef uint64_t ucs_predict_sig_t;

/**
 * The latest communications, newest first; zero = none. All zero at the start.
 *
 * Invariant: after the first zero there are only zeros.
 */
typedef struct ucs_predict_window {
    uint64_t comm[UCS_PREDICT_WINDOW_MAX];
} ucs_predict_window_t;


/**
 * Hash of one communication, as it goes into the window.
 *
 * @param [in] type     Kind of communication, any value that the caller uses
 *                      consistently (for example access flags).
 * @param [in] address  Address of the buffer.
 *
 * @return The hash, never 0.
 */
uint64_t ucs_predict_comm(unsigned type, uintptr_t address);


/**
 * Make @a comm the newest communication of the window; the oldest falls out.
 *
 * @param [in] comm  From @ref ucs_predict_comm. 0, no communication, leaves
 *                   the window as it is.
 */
void ucs_predict_window_push(ucs_predict_window_t *w, uint64_t comm);


/**
 * Signature of a context.
 *
 * @param [in] path           Any name of the path that led to the
 *                            communication, as its stack position.
 * @param [in] address        Address of the buffer.
 * @param [in] window         What was communicated before; may be NULL if
 *                            @a window_length is 0.
 * @param [in] window_length  How many preceding communications count, from the
 *                            newest. 0: only path and buffer ("Win Len=0" in
 *                            the paper). More than
 *                            @ref UCS_PREDICT_WINDOW_MAX means all.
 *
 * @return The signature, never 0. Two contexts share one with a probability of
 *         about 2^-64 a pair; the consequence is a poor prediction, no more.
 */
ucs_predict_sig_t ucs_predict_signature(ucs_predict_sig_t path,
                                        uintptr_t address,
                                        const ucs_predict_window_t *window,
                                        unsigned window_length);

END_C_DECLS

#endif

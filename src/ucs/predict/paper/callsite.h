/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_CALLSITE_H_
#define UCS_PREDICT_CALLSITE_H_

#include <ucs/predict/use.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stdint.h>

/*
 * The call-site hash table of Li et al., CF'11, section 4.2: for each context
 * (signature) the last registration time and the predicted period, the shortest time
 * observed between two registrations in that context. Confidence, slack and margin
 * are additions to the paper.
 *
 * A table belongs to one thread at a time, is bounded, and each operation takes
 * constant expected time. Times are nanoseconds of any one monotonic clock; sums stop
 * at UINT64_MAX.
 *
 * **The rules of a context**, with L its last registration time, P its period (if
 * known), C its confidence and slack(P) = slack_fraction * P, between slack_min_ns
 * and slack_max_ns:
 *
 * 1. A use at time s > L, P known: if s lies within slack(P) of L + P, on either
 *    side, C rises by one, up to confidence_max. Then P becomes min(P, s - L).
 * 2. A use at time s > L, P not known but L is: P becomes s - L. C becomes
 *    confidence_initial, or 1 if the context has been forgotten before.
 * 3. After either, and at the first use, L becomes s. A use that is not later than L
 *    teaches nothing.
 * 4. The deadline is L + P, if P is known and no registration for it has been
 *    reported unused since L.
 * 5. Unused: C falls by one. At zero P and L are forgotten, and the next two uses
 *    learn a new P by rules 3 and 2. So a context that was repeated quickly once and
 *    slowly ever since wastes at most confidence_max registrations.
 * 6. Margin: the shortest period is undercut now and then. With D the smoothed
 *    difference between successive gaps, at first P / 32, the registration should be
 *    made 2 * D before the deadline, but at least P / 48 and at most P / 8.
 */

BEGIN_C_DECLS

/*
 * Names of contexts: the buffer, the path of calls, and the window of preceding
 * communications (sections 3.1 and 4.2). The functions change nothing but the window
 * that they are given. The hashes depend on addresses, so they mean something in one
 * process only.
 */

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

/** Largest accepted @ref ucs_predict_params_t::max_entries. */
#define UCS_PREDICT_MAX_ENTRIES (1u << 20)

typedef struct ucs_predict_table *ucs_predict_table_h;

/** Parameters of @ref ucs_predict_table_create. */
typedef struct ucs_predict_params {
    uint32_t max_entries;        /**< Most contexts remembered, from 1 to
                                      UCS_PREDICT_MAX_ENTRIES; default 4096 */
    unsigned window_length;      /**< Preceding communications in a signature,
                                      0 to UCS_PREDICT_WINDOW_MAX; default 2 */
    double   slack_fraction;     /**< Slack per period, 0 to 1; default 0.25 */
    uint64_t slack_min_ns;       /**< Floor of the slack; default 2 ms */
    uint64_t slack_max_ns;       /**< Cap of the slack, not below the floor;
                                      default 1 s */
    unsigned confidence_initial; /**< Of a period when first learned, 1 to
                                      confidence_max; default 2 */
    unsigned confidence_max;     /**< 1 to 255; default 4 */
} ucs_predict_params_t;

/** Fill in the defaults. */
void ucs_predict_params_init(ucs_predict_params_t *params);

/**
 * Create an empty table.
 *
 * @param [in]  params   Copied.
 * @param [out] table_p  Set only on success; owned by the caller.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_predict_table_create(const ucs_predict_params_t *params,
                                      ucs_predict_table_h *table_p);

/** Release the table; NULL is accepted. */
void ucs_predict_table_destroy(ucs_predict_table_h table);

/**
 * Learn from one use, but not from its length. Its context is the use, its type as
 * given to @ref ucs_predict_comm, and what was recorded before it, so uses are to be
 * recorded in the order in which they started. In a full table a new context takes
 * the place of the one that was used least recently.
 *
 * @param [in] use  Copied.
 *
 * @return The context, never stale until another use is recorded.
 */
ucs_predict_ref_t ucs_predict_table_record(ucs_predict_table_h table,
                                           const ucs_predict_use_t *use);

/**
 * When is the context's buffer to be registered next?
 *
 * @param [out] deadline_ns  Set only if 1 is returned; may lie in the past.
 *
 * @return 1, or 0 if there is no prediction (rule 4) or the reference is stale.
 */
int ucs_predict_table_deadline(ucs_predict_table_h table,
                               ucs_predict_ref_t ref, uint64_t *deadline_ns);

/** A registration that was made, or kept, for this context was not used by its
 *  deadline plus slack. To be called once for each. No effect if the reference is
 *  stale or the period is not known. */
void ucs_predict_table_unused(ucs_predict_table_h table,
                              ucs_predict_ref_t ref);

/** @return Nanoseconds after the deadline for which a registration is kept;
 *          slack_min_ns if the reference is stale or the period is not known. */
uint64_t ucs_predict_table_slack(ucs_predict_table_h table,
                                 ucs_predict_ref_t ref);

/** @return Nanoseconds before the deadline at which a registration should be complete
 *          (rule 6); 0 if the reference is stale or the period is not known. */
uint64_t ucs_predict_table_margin(ucs_predict_table_h table,
                                  ucs_predict_ref_t ref);

END_C_DECLS

#endif

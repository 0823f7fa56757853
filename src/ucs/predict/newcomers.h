/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_NEWCOMERS_H_
#define UCS_PREDICT_NEWCOMERS_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * Whether a buffer that was used once is held. Nothing is known of it, but something
 * of the new buffers before it: a program that sends each message from new memory
 * never comes back, one that iterates does. An account says what renting new buffers
 * has cost beyond dropping them, in missed uses: each that is out costs the share of
 * its rent time that has passed, one at most; one that comes back within it gives
 * back the missed use that renting saves. Within the credit new buffers are rented,
 * beyond it they are dropped.
 *
 * It decides a buffer's first gap only. The pipeline asks it, too
 * (src/ucp/pipeline/pipeline_reg.c). No allocation, no lock; times are nanoseconds.
 */

BEGIN_C_DECLS

/** New buffers that are followed at a time. More are not counted. */
#define UCS_PREDICT_NEWCOMERS 64

/** All zero: there was none. */
typedef struct ucs_predict_newcomers {
    uint64_t since_ns[UCS_PREDICT_NEWCOMERS];
    double   rent_ns[UCS_PREDICT_NEWCOMERS];
    uint64_t out;     /* those that are followed, a bit each */
    double   balance; /* of those that are not any more, in missed uses */
} ucs_predict_newcomers_t;

/**
 * A buffer was used for the first time. Is it to be rented? Takes as many steps as
 * are followed.
 *
 * @param [in]  rent_ns   Its rent time (price.h), above 0.
 * @param [in]  credit    Missed uses that renting may have cost.
 * @param [in]  decay     Of the account, for each that is settled: below 1.
 * @param [out] number_p  Its number, from 1 on; 0: it is not followed.
 *
 * @return Nonzero: yes.
 */
int ucs_predict_newcomers_add(ucs_predict_newcomers_t *newcomers,
                              uint64_t now_ns, double rent_ns, double credit,
                              double decay, unsigned *number_p);

/**
 * A buffer that was added is used for the second time.
 *
 * @param [in] number    Of @ref ucs_predict_newcomers_add, 0 as well.
 * @param [in] since_ns  When it was added: where its rent time is over, its
 *                       number may be another's.
 */
void ucs_predict_newcomers_return(ucs_predict_newcomers_t *newcomers,
                                  unsigned number, uint64_t since_ns,
                                  uint64_t now_ns, double decay);

/**
 * A buffer that was added is no more: it counts as one that never returns, at
 * once. Parameters as of @ref ucs_predict_newcomers_return.
 */
void ucs_predict_newcomers_lost(ucs_predict_newcomers_t *newcomers,
                                unsigned number, uint64_t since_ns,
                                double decay);

END_C_DECLS

#endif

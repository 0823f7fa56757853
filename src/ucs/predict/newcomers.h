/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_NEWCOMERS_H_
#define UCS_PREDICT_NEWCOMERS_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/**
 * @file newcomers.h
 *
 * Whether buffers that were used once are held. Of such a buffer itself nothing
 * is known, but something is of those before it: a program that sends each
 * message from new memory never comes back, one that iterates does. So there is
 * an account, in missed uses, of what renting newcomers has cost beyond
 * dropping them: each that is out costs the share of its rent time that has
 * passed, one at most, whether it is held or not; one that comes back within
 * its rent time gives back the missed use that renting has saved, or would
 * have. While the account is within the credit newcomers are rented, and
 * dropped beyond it.
 *
 * It decides nothing but a buffer's first gap, so it can lose one missed use of
 * each buffer, which the buffer's own plans count as theirs (plans.h). The
 * pipeline asks it, too (src/ucp/pipeline/pipeline_new.c).
 *
 * No allocation, no lock; times are nanoseconds.
 */

BEGIN_C_DECLS

/** Newcomers that are followed at a time. Those that come meanwhile are as
 *  good as these, and are not counted. */
#define UCS_PREDICT_NEWCOMERS 64

/** All zero: there was none. */
typedef struct ucs_predict_newcomers {
    uint64_t since_ns[UCS_PREDICT_NEWCOMERS];
    double   rent_ns[UCS_PREDICT_NEWCOMERS];
    uint64_t out;     /* those that are followed, a bit each */
    double   balance; /* of those that are not any more, in missed uses */
} ucs_predict_newcomers_t;


/**
 * A buffer was used for the first time. Is it to be rented?
 *
 * Takes as many steps as are followed; once a buffer.
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

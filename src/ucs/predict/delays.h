/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_DELAYS_H_
#define UCS_PREDICT_DELAYS_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>
#include <string.h>

/*
 * The latest delays from one thing to another, kept in order of their size, so
 * that a quantile of them is one look. On a shared machine delays have a sharp
 * lower edge and a long upper tail (time slices that went to others), so a mean
 * and its deviation say nothing of the edge; quantiles do.
 */

BEGIN_C_DECLS

/** Delays that are remembered: enough to tell the sixteenth part, few enough
 *  that what has changed is forgotten after as many uses. */
#define UCS_PREDICT_DELAYS 16

/** All zero: none. */
typedef struct ucs_predict_delays {
    float   sorted[UCS_PREDICT_DELAYS]; /* ns, ascending */
    uint8_t turns[UCS_PREDICT_DELAYS];  /* when each came, modulo that */
    uint8_t count;
    uint8_t oldest;                     /* turn that the next one takes */
} ucs_predict_delays_t;

/** Remember one more, not negative, in place of the oldest. */
static inline void ucs_predict_delays_add(ucs_predict_delays_t *delays,
                                          float delay)
{
    unsigned place, i;

    if (delays->count < UCS_PREDICT_DELAYS) {
        place = delays->count++;
    } else {
        for (place = 0; delays->turns[place] != delays->oldest; ++place) {
        }
    }
    for (; (place > 0) && (delays->sorted[place - 1] > delay); --place) {
        delays->sorted[place] = delays->sorted[place - 1];
        delays->turns[place]  = delays->turns[place - 1];
    }
    for (i = place + 1; (i < delays->count) && (delays->sorted[i] < delay);
         ++i, ++place) {
        delays->sorted[place] = delays->sorted[i];
        delays->turns[place]  = delays->turns[i];
    }
    delays->sorted[place] = delay;
    delays->turns[place]  = delays->oldest;
    delays->oldest        = (delays->oldest + 1) % UCS_PREDICT_DELAYS;
}

/** @return Each @a every -th of them, counted back from the one that is to come:
 *          where delays differ in turn, those that it is to be like. */
static inline ucs_predict_delays_t
ucs_predict_delays_every(const ucs_predict_delays_t *delays, unsigned every)
{
    ucs_predict_delays_t like;
    unsigned i, age;

    memset(&like, 0, sizeof(like));
    for (i = 0; i < delays->count; ++i) {
        age = 1 + (UCS_PREDICT_DELAYS - 1 + delays->oldest -
                   delays->turns[i]) % UCS_PREDICT_DELAYS;
        if (age % every == 0) {
            like.sorted[like.count++] = delays->sorted[i];
        }
    }
    return like;
}

/** @return The delay below which this share of them is; 0 if there is none. */
static inline float ucs_predict_delays_at(const ucs_predict_delays_t *delays,
                                          double share)
{
    return (delays->count == 0) ?
                   0 :
                   delays->sorted[(unsigned)(share * delays->count)];
}

END_C_DECLS

#endif

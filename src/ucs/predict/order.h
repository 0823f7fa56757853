/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_ORDER_H_
#define UCS_PREDICT_ORDER_H_

#include <ucs/predict/callsite.h>

/**
 * @file order.h
 *
 * Prediction by the order of communications. Iteration times vary; the order
 * in which an iteration communicates hardly does. So *what* comes next is read
 * from what followed the last time, and *when* from how soon it followed.
 *
 * **History.** The latest uses in a ring, in the order of their starts. A use
 * that repeats an earlier one inherits what was learned at that place of the
 * program.
 *
 * **Alignment** (prediction by partial matching with unbounded context). A
 * cursor stands at the earlier use that the latest one repeats. What follows
 * the cursor is expected; while it comes, the cursor moves along, and the
 * context is as long as the program has repeated itself. Uses may overtake each
 * other by a few places. When anything else comes, the cursor is looked up
 * anew, longest context first: the latest place with the same last four uses,
 * two uses, one use.
 *
 * **Moving buffers.** A use whose call site comes in its turn, but with another
 * buffer, is aligned as well. Its next buffer is the one that followed the
 * present one before, or, where none did, the one a constant stride further.
 *
 * **Bounds.** For each place of the program the delay from the start and from
 * the end of the use before it, as two trackers: a median and a floor. The
 * floor falls (boundedly) to a delay below it and creeps up towards the
 * median. The use is not expected before floor - caution * (median - floor) / 2
 * after either; the later one counts. An expected use that has not come yet
 * holds up all that follow it. Caution is steered by feedback, for each place of
 * the program: up at a use that came before its bound, down at one that did not,
 * in the ratio of the target.
 *
 * **Hold.** A buffer that is new, or whose uses were not foreseen, is to be
 * held through its gaps: a pin-down cache for what does not predict. A buffer
 * that was never used twice is held for as long as the program has run.
 *
 * An object belongs to one thread at a time, allocates when it is created only,
 * and every call takes bounded time. Times are nanoseconds of any one monotonic
 * clock.
 */

BEGIN_C_DECLS

/** Most buffers that one forecast names. */
#define UCS_PREDICT_FORECAST_MAX 64

typedef struct ucs_predict_order *ucs_predict_order_h;

/** Parameters of @ref ucs_predict_order_create. */
typedef struct ucs_predict_order_params {
    uint32_t max_events;  /**< uses remembered, a power of two from 64 to 2^20;
                               a loop of more uses is not recognised; default
                               4096 */
    uint32_t max_places;  /**< buffers remembered, 1 to 2^20; default 4096 */
    double   miss_target; /**< share of uses that may come before their bound,
                               above 0 and below 1; default 0.01 */
} ucs_predict_order_params_t;

/** What is expected of a buffer. */
typedef struct ucs_predict_forecast {
    ucs_predict_ref_t ref;      /**< the buffer */
    uint64_t          start_ns; /**< its next use does not start before this;
                                     may lie in the past */
    uint64_t          end_ns;   /**< nor does it end before this */
    uint64_t          until_ns; /**< when to give it up */
    int               keep;     /**< too many of its uses were not foreseen: to
                                     be held, @ref ucs_predict_order_hold, and
                                     not to be registered ahead of a use */
} ucs_predict_forecast_t;

/** Figures. followed <= uses, early <= followed. */
typedef struct ucs_predict_order_info {
    uint64_t uses;     /**< recorded */
    uint64_t followed; /**< came where the alignment expected them */
    uint64_t early;    /**< among those: before their bound */
    uint32_t places;   /**< buffers remembered */
} ucs_predict_order_info_t;


/** Fill in the defaults. */
void ucs_predict_order_params_init(ucs_predict_order_params_t *params);


/**
 * Create a predictor that knows nothing.
 *
 * @param [in]  params   Copied; NULL for the defaults.
 * @param [out] order_p  Set only on success; owned by the caller.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM or UCS_ERR_NO_MEMORY.
 */
ucs_status_t
ucs_predict_order_create(const ucs_predict_order_params_t *params,
                         ucs_predict_order_h *order_p);


/** Release a predictor; NULL is accepted. */
void ucs_predict_order_destroy(ucs_predict_order_h order);


/**
 * Learn of one use, or of the end of one that was reported before without.
 * Uses are to be reported in the order of their starts; one that comes out of
 * order is learned from where it comes. The address stands for the buffer, the
 * path for the call site.
 *
 * @param [in] use     Copied.
 * @param [in] end_ns  When it ended; 0: it is still under way.
 *
 * @return The buffer. Stale once the buffer has been forgotten, which happens
 *         to the least recently used one when another is new.
 */
ucs_predict_ref_t ucs_predict_order_record(ucs_predict_order_h order,
                                           const ucs_predict_use_t *use,
                                           uint64_t end_ns);


/**
 * What is expected next?
 *
 * @param [in]  now       All starts and ends before have been recorded.
 * @param [in]  horizon   The first buffer after this time is the last that is
 *                        named: the later ones need no answer yet.
 * @param [out] forecast  The buffers that follow, each once, by their order.
 * @param [in]  max       Room in @a forecast.
 *
 * @return Number of buffers, at most @a max and UCS_PREDICT_FORECAST_MAX.
 */
unsigned ucs_predict_order_forecast(ucs_predict_order_h order, uint64_t now,
                                    uint64_t horizon,
                                    ucs_predict_forecast_t *forecast,
                                    unsigned max);


/** @return Until when to keep a buffer that no forecast names; 0: drop it. */
uint64_t ucs_predict_order_hold(ucs_predict_order_h order,
                                ucs_predict_ref_t ref);


/**
 * @return Which use is expected to be the buffer's next, however far that is,
 *         uses being counted as they are recorded: its latest, and as many more
 *         as there were the last time at that place of the program. 0: not
 *         known, or that place was passed less than three times. Iterations take more or less time, but the same uses; so this
 *         tells which of two buffers comes first, where times would not.
 */
uint64_t ucs_predict_order_next(ucs_predict_order_h order,
                                ucs_predict_ref_t ref);


void ucs_predict_order_info(ucs_predict_order_h order,
                            ucs_predict_order_info_t *info);


/**
 * @return Bytes from creation to end: at most 1 KB, 256 for each of max_events
 *         and 96 for each of max_places.
 */
size_t ucs_predict_order_memory(ucs_predict_order_h order);


/** @return Nonzero if the invariants hold; linear time. */
int ucs_predict_order_is_valid(ucs_predict_order_h order);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_ORDER_H_
#define UCS_PREDICT_ORDER_H_

#include <ucs/predict/callsite.h>
#include <ucs/predict/tuning.h>

/**
 * @file order.h
 *
 * Prediction by the order of communications. Iteration times vary; what comes
 * after what hardly does, and how soon it can come has a sharp lower edge. So
 * each use announces others: *this buffer is not used again before so long
 * after that use*.
 *
 * **Announcements.** A *label* is a buffer used from a call site. Each label
 * keeps its followers: buffers whose next use came after it, with the least
 * delay seen, from its start and from its end. When a buffer is used, the
 * labels of the uses before are its heralds: of the latest 64, those at growing
 * distances, back to its own latest use, which is one as well. When a label
 * comes again it announces its followers, each not before its bound. Of all
 * that was announced for a buffer since its latest use the *latest* time holds:
 * each is a lower bound. (Max-plus: what is awaited is the last of several
 * conditions.) So nothing has to be followed step by step, an iteration that is
 * late puts off what depends on it by itself, and times change only when
 * something happens, never while nothing does.
 *
 * **Bounds** grow with what is known, bound.h. They are lowered by *caution*,
 * steered for each buffer: up by a step at a use that came before its bound and
 * was not ready, and down by the target's share of that at each. So in balance
 * the target's share comes too soon; a buffer whose uses follow no order ends
 * up being held, and one that may often be missed has its bounds raised.
 *
 * **Giving up.** What has not come after four times the buffer's longest recent
 * gap is given up, until it is announced once more; after two times in vain,
 * until it is used. A new buffer is not held, for it may never come again; when
 * what came before it comes again it is announced.
 *
 * An object belongs to one thread at a time, allocates when it is created only,
 * and every call takes bounded time. Times are nanoseconds of any one monotonic
 * clock.
 */

BEGIN_C_DECLS

/** Most followers of a label. */
#define UCS_PREDICT_FOLLOWERS 16

typedef struct ucs_predict_order *ucs_predict_order_h;

/** Parameters of @ref ucs_predict_order_create. */
typedef struct ucs_predict_order_params {
    uint32_t max_buffers;  /**< buffers remembered, 1 to 2^20; default 4096 */
    uint32_t max_labels;  /**< labels remembered, 1 to 2^20; default 4096 */
    double   miss_target; /**< share of uses that may come before their bound,
                               above 0 and below 1; default 0.01 */

    const ucs_predict_tuning_t *tuning; /**< copied; NULL: the defaults */
} ucs_predict_order_params_t;

/** What is expected of a buffer. */
typedef struct ucs_predict_forecast {
    ucs_predict_ref_t ref;      /**< the buffer */
    uint64_t          start_ns; /**< its next use does not start before this;
                                     may lie in the past; 0: nothing is known */
    uint64_t          end_ns;   /**< nor does it end before this */
    uint64_t          until_ns; /**< when to give it up */
    int               is_sure;  /**< the start was seen often enough */
} ucs_predict_forecast_t;

/** Figures. followed <= uses, early <= followed. */
typedef struct ucs_predict_order_info {
    uint64_t uses;     /**< recorded */
    uint64_t followed; /**< had been announced */
    uint64_t early;    /**< among those: before their bound, and not ready */
    uint32_t buffers;  /**< buffers remembered */
    uint32_t labels;   /**< labels remembered */
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
 * @param [in] is_ready  The buffer was ready all the same if this use came
 *                       before its bound. Of no account for an end.
 *
 * @return The buffer. Stale once the buffer has been forgotten, which happens
 *         to the least recently used one when another is new.
 */
ucs_predict_ref_t ucs_predict_order_record(ucs_predict_order_h order,
                                           const ucs_predict_use_t *use,
                                           uint64_t end_ns, int is_ready);


/**
 * The buffers of which something was recorded, or something else is expected,
 * since they were last told. To be called until it returns 0.
 *
 * @param [in]  now       All starts and ends until now have been recorded.
 * @param [out] forecast  Each buffer once, in no particular order.
 * @param [in]  max       Room in @a forecast, above 0.
 *
 * @return Number of buffers, at most @a max.
 */
unsigned ucs_predict_order_changed(ucs_predict_order_h order, uint64_t now,
                                   ucs_predict_forecast_t *forecast,
                                   unsigned max);


/** @return Nonzero, and the forecast as it stands, if the buffer is known. */
int ucs_predict_order_expected(ucs_predict_order_h order, uintptr_t address,
                               ucs_predict_forecast_t *forecast);


/**
 * @return Which use is expected to be the buffer's next, uses being counted as
 *         they are recorded: its latest, and as many more as there were after
 *         this label, a mean in which the last time counts half. 0: not known,
 *         or that was but once.
 *         Iterations take more or less time, but the same uses; so this tells
 *         which of two buffers comes first, where times would not.
 */
uint64_t ucs_predict_order_next(ucs_predict_order_h order,
                                ucs_predict_ref_t ref);


void ucs_predict_order_info(ucs_predict_order_h order,
                            ucs_predict_order_info_t *info);


/** What a buffer and a label take at most, bytes. */
#define UCS_PREDICT_ORDER_BUFFER_BYTES 128
#define UCS_PREDICT_ORDER_LABEL_BYTES  576

/**
 * @return Bytes from creation to end: at most 16 KB, @ref
 *         UCS_PREDICT_ORDER_BUFFER_BYTES for each of max_buffers and @ref
 *         UCS_PREDICT_ORDER_LABEL_BYTES for each of max_labels. What was never
 *         used is not touched.
 */
size_t ucs_predict_order_memory(ucs_predict_order_h order);


/** @return Nonzero if the invariants hold; linear time. */
int ucs_predict_order_is_valid(ucs_predict_order_h order);

END_C_DECLS

#endif

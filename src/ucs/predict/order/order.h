/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_ORDER_H_
#define UCS_PREDICT_ORDER_H_

#include <ucs/predict/plans.h>
#include <ucs/predict/tuning.h>
#include <ucs/predict/use.h>
#include <ucs/type/status.h>

/**
 * @file order.h
 *
 * Prediction by the order of communications. Iteration times vary; what comes
 * after what hardly does. So the next use of a buffer is told by what came
 * before its uses.
 *
 * **Buffers** go by address and length: the same place that is used with
 * another length is another buffer.
 *
 * **Keys.** A *label* is a buffer used from a call site. A key is the m-th
 * occurrence of a label since the buffer's own latest use: where a label comes
 * ten times between two uses, its nearest occurrence would announce the use
 * nine times too soon. Each buffer keeps some keys, with the latest delays from
 * them to its use; besides, the start and the end of its own latest use are
 * keys that are always there. New ones are found among the latest 64 uses, at
 * growing distances, and take the place of those that came no more.
 *
 * **Sounds** are all else that the program is heard to do: messages that need
 * no registration, receives that are posted. They are labels of another kind,
 * with tables and keys of their own, so that what comes often does not displace
 * what says most.
 *
 * **Plans** are made of them (plans.h), and judged. What is told of a buffer is
 * the plan that is followed: for how long it is to stay registered after its
 * use, and by when, if that is known yet, it is to be registered again.
 *
 * **Uses in a row.** What is used again sooner than it could be deregistered
 * and registered in between is one use, for as long as that goes on.
 *
 * **Drops.** The helper hears of a use when it is over, and where cores are
 * taken its coming costs more than a deregistration. A buffer that was not to
 * be held after its latest two uses is deregistered by the thread that ends the
 * next one, and the helper learns of it later.
 *
 * An object belongs to one thread at a time, allocates when it is created only,
 * and every call takes bounded time. Times are nanoseconds of any one monotonic
 * clock.
 */

BEGIN_C_DECLS

/** Keys of a buffer beside its own use. */
#define UCS_PREDICT_KEYS 14

/** Keys of a buffer among sounds. */
#define UCS_PREDICT_SOUND_KEYS 8

/** Latest occurrences of a label that are remembered: a later one is no key. */
#define UCS_PREDICT_OCCURRENCES 16

typedef struct ucs_predict_order *ucs_predict_order_h;

/** Parameters of @ref ucs_predict_order_create. */
typedef struct ucs_predict_order_params {
    uint32_t max_buffers; /**< buffers remembered, 1 to 2^20; default 4096 */
    uint32_t max_labels;  /**< labels remembered, and as many sounds, 1 to
                               2^20; default 4096 */
    int      only_rent;   /**< follow no other plan; default 0 */

    const ucs_predict_tuning_t *tuning; /**< copied; NULL: the defaults */
} ucs_predict_order_params_t;

/** What is to be done about a buffer. */
typedef struct ucs_predict_forecast {
    ucs_predict_ref_t ref;         /**< the buffer */
    uint64_t          hold_ns;     /**< how long it stays registered after its
                                        latest use */
    int               is_known;    /**< that goes by how its uses came; else it
                                        is rented, so long that its end need not
                                        be looked for */
    uint64_t          due_ns;      /**< it is to be registered by then; 0: not
                                        known, or not at all */
    uint64_t          until_ns;    /**< and to be given up then */
    uint64_t          duration_ns; /**< a use of it takes that long */
    uint64_t          watch_ns;    /**< from then on a key may come that says
                                        when it is due; 0: none will */
    uint64_t          every_ns;    /**< and it must be heard of so soon */
    int               drops;       /**< the thread that ends its next use is to
                                        deregister it */
} ucs_predict_forecast_t;

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
 * order is learned from where it comes. Address and length stand for the
 * buffer, the path for the call site.
 *
 * @param [in] use     Copied.
 * @param [in] end_ns  When it ended; 0: it is still under way.
 * @param [in] price   Of this buffer, now.
 * @param [in] is_ready  The buffer was registered when this use came. Of no
 *                       account for an end.
 *
 * @return The buffer. Stale once the buffer has been forgotten, which happens
 *         to the least recently used one when another is new.
 */
ucs_predict_ref_t ucs_predict_order_record(ucs_predict_order_h order,
                                           const ucs_predict_use_t *use,
                                           uint64_t end_ns,
                                           const ucs_predict_price_t *price,
                                           int is_ready);


/** A use has begun that is to be recorded: what is heard from now on may be
 *  keys of the gap that follows it. */
void ucs_predict_order_begin(ucs_predict_order_h order);


/**
 * @return Nonzero if sounds may foretell anything now. Among the latest 1024
 *         before a use keys are found; so there are none of a buffer that was
 *         never used, nor beyond so many sounds since any buffer was used last.
 *         Those are not waited for either, for they were found within as many.
 */
int ucs_predict_order_listens(ucs_predict_order_h order);


/**
 * The program has been heard to do something. In the order of the times, and
 * with the uses in theirs. Of no account unless the predictor listens.
 *
 * @param [in] what     Stands for what it was: the same value, the same sound.
 * @param [in] time_ns  When.
 */
void ucs_predict_order_hear(ucs_predict_order_h order, uint64_t what,
                            uint64_t time_ns);


/**
 * The buffers of which something was recorded, or something else is expected,
 * since they were last told. To be called until it returns 0.
 *
 * @param [out] forecast  Each buffer once, in no particular order.
 * @param [in]  max       Room in @a forecast, above 0.
 *
 * @return Number of buffers, at most @a max.
 */
unsigned ucs_predict_order_changed(ucs_predict_order_h order,
                                   ucs_predict_forecast_t *forecast,
                                   unsigned max);


/** @return Nonzero, and the forecast as it stands, unless the buffer has been
 *          forgotten. */
int ucs_predict_order_forecast(ucs_predict_order_h order,
                               ucs_predict_ref_t ref,
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


/** @return Uses recorded since creation; those in a row are one. */
uint64_t ucs_predict_order_uses(ucs_predict_order_h order);


/** What a buffer and a label take at most, bytes. Beside them a predictor takes
 *  48 KB at most. What was never used is not touched. */
#define UCS_PREDICT_ORDER_BUFFER_BYTES 512
#define UCS_PREDICT_ORDER_LABEL_BYTES  3904

END_C_DECLS

#endif

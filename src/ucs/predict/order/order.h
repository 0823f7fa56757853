/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_ORDER_H_
#define UCS_PREDICT_ORDER_H_

#include <ucs/predict/plans.h>
#include <ucs/predict/tuning.h>
#include <ucs/predict/use.h>
#include <ucs/type/status.h>

/*
 * Prediction by the order of communications (docs/prediction.md). Iteration times
 * vary; what comes after what hardly does. So the next use of a buffer is foretold by
 * what came before its uses.
 *
 * **Buffers** go by address and length. A **label** is a buffer used from a call site.
 * A **key** is the m-th occurrence of a label since the buffer's own latest use: where
 * a label comes ten times between two uses, its first occurrence would announce the
 * use nine times too soon. Each label keeps some keys, with the latest delays from
 * them to the next use of its buffer; the start and the end of the latest use are keys
 * as well. New ones are found among the latest 64 uses, and take the place of those
 * that come no more. **Sounds** are all other operations of the program. They are
 * labels of another kind, with tables and keys of their own.
 *
 * **Plans** (plans.h) are made of the keys, and judged. Told of a buffer is the plan
 * that is followed: for how long it stays registered after its use, and by when, if
 * that is known yet, it is registered again.
 *
 * **Uses in a row.** Uses that follow each other sooner than the buffer could be
 * deregistered and registered in between count as one use.
 *
 * **Drops.** A buffer that was not to be held after its latest two uses may be
 * deregistered by the thread that ends the next one, where cores are taken and the
 * helper comes late.
 *
 * An object belongs to one thread at a time, and every call takes bounded time. Times
 * are nanoseconds of any one monotonic clock.
 */

BEGIN_C_DECLS

/** Keys of a buffer beside its own use. */
#define UCS_PREDICT_KEYS 14

/** Keys of a buffer among sounds. */
#define UCS_PREDICT_SOUND_KEYS 8

/** Latest occurrences of a label that are remembered. */
#define UCS_PREDICT_OCCURRENCES 16

typedef struct ucs_predict_order *ucs_predict_order_h;

/** Parameters of @ref ucs_predict_order_create. */
typedef struct ucs_predict_order_params {
    uint32_t max_buffers; /**< buffers remembered, 1 to 2^20 */
    uint32_t max_labels;  /**< labels remembered, and as many sounds, 1 to 2^20 */
    int      only_rent;   /**< follow no other plan */

    const ucs_predict_tuning_t *tuning; /**< copied; NULL: the defaults */
} ucs_predict_order_params_t;

/** What is to be done about a buffer; times are ns. */
typedef struct ucs_predict_forecast {
    ucs_predict_ref_t ref;         /**< the buffer */
    uint64_t          hold_ns;     /**< it stays registered so long after its latest
                                        use */
    int               is_known;    /**< that goes by how its uses came; else it is
                                        rented, and its end need not be looked for */
    uint64_t          due_ns;      /**< it is to be registered by then; 0: not known,
                                        or not at all */
    uint64_t          until_ns;    /**< and to be given up then */
    uint64_t          duration_ns; /**< a use of it takes that long */
    uint64_t          watch_ns;    /**< from then on a key may come that tells due_ns;
                                        0: none will */
    uint64_t          every_ns;    /**< and it is to be looked for so often */
    int               drops;       /**< the thread that ends its next use deregisters
                                        it */
} ucs_predict_forecast_t;

/**
 * Create a predictor that knows nothing.
 *
 * @param [in]  params   Copied.
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
 * Learn of one use, or of the end of one that was reported before without. Uses are to
 * be reported in the order of their starts; one that comes out of order is learned from
 * where it comes.
 *
 * @param [in] use       Copied.
 * @param [in] end_ns    When it ended; 0: it is still under way.
 * @param [in] price     Of this buffer, now.
 * @param [in] is_ready  1: the buffer was registered when this use came; 0: it was not;
 *                       -1: it was not, for want of room. Ignored for an end.
 *
 * @return The buffer; stale once it has been forgotten, as the least recently used one
 *         is when another is new.
 */
ucs_predict_ref_t ucs_predict_order_record(ucs_predict_order_h order,
                                           const ucs_predict_use_t *use,
                                           uint64_t end_ns,
                                           const ucs_predict_price_t *price,
                                           int is_ready);

/** A use has begun that is to be recorded: what is heard from now on may be keys of the
 *  gap that follows it. */
void ucs_predict_order_begin(ucs_predict_order_h order);

/** @return Nonzero if sounds may foretell anything now: not before the first use, and
 *          not beyond 1024 sounds since any buffer was used last, among which keys are
 *          found. */
int ucs_predict_order_listens(ucs_predict_order_h order);

/**
 * A sound. In the order of the times, also with the uses. Ignored unless the predictor
 * listens.
 *
 * @param [in] what  Stands for what it was: the same value, the same sound.
 */
void ucs_predict_order_hear(ucs_predict_order_h order, uint64_t what,
                            uint64_t time_ns);

/**
 * The buffers whose forecast may have changed since they were last told. To be called
 * until it returns 0.
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
 * @return The number of the use that is expected to be the buffer's next, as uses are
 *         recorded: its latest, and as many more as there were after this label, a mean
 *         in which the last time counts half. 0: not known, or that was but once.
 *         Iterations take more or less time, but the same uses; so this tells which of
 *         two buffers comes first, where times would not.
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

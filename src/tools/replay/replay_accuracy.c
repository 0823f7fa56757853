/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_accuracy.h"
#include "replay_random.h"
#include <tools/tool.h>

#include <ucs/predict/callsite.h>
#include <ucs/predict/order.h>
#include <ucs/predict/periodicity.h>

#include <stdlib.h>
#include <string.h>

#define REPLAY_WITHIN_HALF 0.005
#define REPLAY_WITHIN_FIVE 0.05

/** What a predictor says of the use that it was just told of. */
typedef struct replay_prediction {
    uint64_t context;    /* of the use, never 0 */
    uint64_t due_ns;     /* when the context is used next; 0: no prediction */
    uint64_t revised_ns; /* when it had expected this very use, right before;
                            0: as it said when the context was used last */
} replay_prediction_t;

typedef struct replay_predictor {
    const char *name;
    void       *(*create)(unsigned window);
    void       (*destroy)(void *predictor);
    void       (*use)(void *predictor, const replay_use_t *use,
                      replay_prediction_t *prediction);
} replay_predictor_t;

/* What is known of a context; open addressing */
typedef struct replay_context {
    uint64_t context;
    uint64_t start_ns;
    uint64_t due_ns;
} replay_context_t;


/*
 * The paper's: shortest period of call path, buffer and the two communications
 * before
 */

static void *replay_paper_create(unsigned window UCS_V_UNUSED)
{
    ucs_predict_table_h table;
    ucs_predict_params_t params;

    ucs_predict_params_init(&params);
    return (ucs_predict_table_create(&params, &table) == UCS_OK) ? table :
                                                                   NULL;
}

static void replay_paper_destroy(void *predictor)
{
    ucs_predict_table_destroy(predictor);
}

static void replay_paper_use(void *predictor, const replay_use_t *use,
                             replay_prediction_t *prediction)
{
    const ucs_predict_use_t learned = {
        .start_ns = use->start_ns,
        .path     = use->signature,
        .address  = use->address,
        .length   = use->length,
        .type     = use->access
    };
    ucs_predict_ref_t ref = ucs_predict_table_record(predictor, &learned);

    prediction->context = replay_hash(ref.index, ref.generation);
    prediction->due_ns  = 0;
    (void)ucs_predict_table_deadline(predictor, ref, &prediction->due_ns);
}

/*
 * Freitag's periodicity detector
 */

static void *replay_periodicity_create(unsigned window)
{
    ucs_predict_periodicity_h detector;

    return (ucs_predict_periodicity_create(window, &detector) == UCS_OK) ?
                   detector :
                   NULL;
}

static void replay_periodicity_destroy(void *predictor)
{
    ucs_predict_periodicity_destroy(predictor);
}

static void replay_periodicity_use(void *predictor, const replay_use_t *use,
                                   replay_prediction_t *prediction)
{
    prediction->context = replay_hash(use->signature, use->address);
    prediction->due_ns  = 0;
    ucs_predict_periodicity_add(predictor, prediction->context,
                                use->start_ns);
    (void)ucs_predict_periodicity_due(predictor, &prediction->due_ns);
}

/*
 * The order of communications: by what it said when the buffer was used last,
 * and by what it said right before the use. It knows the end of a use once
 * that is over.
 */

typedef struct replay_ordered {
    ucs_predict_order_h    order;
    int                    is_revised;
    const replay_use_t     **open;    /* under way */
    size_t                 open_count;
    size_t                 open_max;
} replay_ordered_t;

static void *replay_order_create(unsigned window UCS_V_UNUSED)
{
    replay_ordered_t *ordered = tool_realloc(NULL, sizeof(*ordered));

    memset(ordered, 0, sizeof(*ordered));
    if (ucs_predict_order_create(NULL, &ordered->order) != UCS_OK) {
        free(ordered);
        return NULL;
    }
    return ordered;
}

static void *replay_revised_create(unsigned window)
{
    replay_ordered_t *ordered = replay_order_create(window);

    if (ordered != NULL) {
        ordered->is_revised = 1;
    }
    return ordered;
}

static void replay_order_destroy(void *predictor)
{
    replay_ordered_t *ordered = predictor;

    ucs_predict_order_destroy(ordered->order);
    free(ordered->open);
    free(ordered);
}

static ucs_predict_ref_t replay_order_record(replay_ordered_t *ordered,
                                             const replay_use_t *use,
                                             uint64_t end_ns)
{
    const ucs_predict_use_t learned = {
        .start_ns = use->start_ns,
        .path     = use->signature,
        .address  = use->address,
        .length   = use->length,
        .type     = use->access
    };

    return ucs_predict_order_record(ordered->order, &learned, end_ns, 0);
}

static void replay_order_ends(replay_ordered_t *ordered, uint64_t now)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < ordered->open_count; ++i) {
        if (ordered->open[i]->end_ns <= now) {
            (void)replay_order_record(ordered, ordered->open[i],
                                      ordered->open[i]->end_ns);
        } else {
            ordered->open[kept++] = ordered->open[i];
        }
    }
    ordered->open_count = kept;
}

static void replay_order_open(replay_ordered_t *ordered,
                              const replay_use_t *use)
{
    if (ordered->open_count == ordered->open_max) {
        ordered->open_max = 2 * ordered->open_max + 64;
        ordered->open     = tool_realloc(ordered->open,
                                         ordered->open_max *
                                                 sizeof(*ordered->open));
    }
    ordered->open[ordered->open_count++] = use;
}

static void replay_order_use(void *predictor, const replay_use_t *use,
                             replay_prediction_t *prediction)
{
    replay_ordered_t *ordered = predictor;
    ucs_predict_forecast_t forecast;
    ucs_predict_ref_t ref;

    replay_order_ends(ordered, use->start_ns);
    if (ordered->is_revised &&
        ucs_predict_order_expected(ordered->order, use->address, &forecast)) {
        prediction->revised_ns = forecast.start_ns;
    }
    ref = replay_order_record(ordered, use, 0);
    replay_order_open(ordered, use);

    prediction->context = replay_hash(ref.index, ref.generation);
    prediction->due_ns  = ucs_predict_order_expected(ordered->order,
                                                     use->address, &forecast) ?
                                  forecast.start_ns :
                                  0;
}

/*
 * As long as it took the last time
 */

typedef struct replay_last {
    replay_context_t *slots;
    size_t           mask;
    size_t           count;
} replay_last_t;

static void replay_last_grow(replay_last_t *last);

static replay_context_t *replay_last_find(replay_last_t *last,
                                          uint64_t context)
{
    size_t slot;

    if (2 * last->count >= last->mask) {
        replay_last_grow(last);
    }
    slot = (context >> 8) & last->mask;
    while ((last->slots[slot].context != 0) &&
           (last->slots[slot].context != context)) {
        slot = (slot + 1) & last->mask;
    }
    if (last->slots[slot].context == 0) {
        last->slots[slot].context = context;
        ++last->count;
    }
    return &last->slots[slot];
}

static void replay_last_grow(replay_last_t *last)
{
    replay_last_t grown = {.mask = 2 * last->mask + 255};
    size_t i;

    grown.mask  = (last->mask == 0) ? 255 : 2 * last->mask + 1;
    grown.slots = tool_realloc(NULL, (grown.mask + 1) * sizeof(*grown.slots));
    memset(grown.slots, 0, (grown.mask + 1) * sizeof(*grown.slots));
    for (i = 0; (last->mask > 0) && (i <= last->mask); ++i) {
        if (last->slots[i].context != 0) {
            *replay_last_find(&grown, last->slots[i].context) = last->slots[i];
        }
    }
    free(last->slots);
    *last = grown;
}

static void *replay_last_create(unsigned window UCS_V_UNUSED)
{
    replay_last_t *last = tool_realloc(NULL, sizeof(*last));

    memset(last, 0, sizeof(*last));
    return last;
}

static void replay_last_destroy(void *predictor)
{
    replay_last_t *last = predictor;

    free(last->slots);
    free(last);
}

static void replay_last_use(void *predictor, const replay_use_t *use,
                            replay_prediction_t *prediction)
{
    replay_context_t *known;

    prediction->context = replay_hash(use->signature, use->address);
    prediction->due_ns  = 0;
    known               = replay_last_find(predictor, prediction->context);
    if (known->start_ns != 0) {
        prediction->due_ns = 2 * use->start_ns - known->start_ns;
    }
    known->start_ns = use->start_ns;
}

static const replay_predictor_t replay_predictors[REPLAY_PREDICTORS] = {
    {"paper", replay_paper_create, replay_paper_destroy, replay_paper_use},
    {"periodicity", replay_periodicity_create, replay_periodicity_destroy,
     replay_periodicity_use},
    {"order", replay_order_create, replay_order_destroy, replay_order_use},
    {"order revised", replay_revised_create, replay_order_destroy,
     replay_order_use},
    {"last gap", replay_last_create, replay_last_destroy, replay_last_use}
};

/*
 * Rating
 */

static void replay_rate(replay_accuracy_t *rated, replay_context_t *known,
                        const replay_use_t *use)
{
    double period = (double)(use->start_ns - known->start_ns);
    double error;

    ++rated->repeated;
    if (known->due_ns == 0) {
        return;
    }
    error = (known->due_ns > use->start_ns) ?
                    (double)(known->due_ns - use->start_ns) :
                    (double)(use->start_ns - known->due_ns);
    ++rated->predicted;
    rated->half += (error <= REPLAY_WITHIN_HALF * period);
    rated->five += (error <= REPLAY_WITHIN_FIVE * period);
}

static void replay_accuracy_one(const replay_trace_t *trace,
                                const replay_predictor_t *predictor,
                                unsigned window, replay_accuracy_t *rated)
{
    void *state         = predictor->create(window);
    replay_last_t known = {};
    replay_prediction_t prediction;
    replay_context_t *context;
    size_t i;

    memset(rated, 0, sizeof(*rated));
    rated->name = predictor->name;
    rated->uses = trace->use_count;
    if (state == NULL) {
        return;
    }

    for (i = 0; i < trace->use_count; ++i) {
        prediction.revised_ns = 0;
        predictor->use(state, &trace->uses[i], &prediction);
        context = replay_last_find(&known, prediction.context);
        if (prediction.revised_ns != 0) {
            context->due_ns = prediction.revised_ns;
        }
        if (context->start_ns != 0) {
            replay_rate(rated, context, &trace->uses[i]);
        }
        context->start_ns = trace->uses[i].start_ns;
        context->due_ns   = prediction.due_ns;
    }
    free(known.slots);
    predictor->destroy(state);
}

void replay_accuracy_rate(const replay_trace_t *trace, unsigned window,
                          replay_accuracy_t rated[REPLAY_PREDICTORS])
{
    size_t i;

    for (i = 0; i < REPLAY_PREDICTORS; ++i) {
        replay_accuracy_one(trace, &replay_predictors[i], window, &rated[i]);
    }
}

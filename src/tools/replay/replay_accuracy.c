/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_accuracy.h"
#include "replay_random.h"

#include <tools/hash.h>
#include <tools/tool.h>

#include <ucs/predict/paper/callsite.h>
#include <ucs/predict/order/order.h>
#include <ucs/predict/paper/periodicity.h>

#include <stdlib.h>
#include <string.h>

#define REPLAY_WITHIN_HALF 0.005
#define REPLAY_WITHIN_FIVE 0.05

enum {
    REPLAY_PREDICTOR_PAPER,
    REPLAY_PREDICTOR_PERIODICITY,
    REPLAY_PREDICTOR_ORDER,
    REPLAY_PREDICTOR_REVISED,
    REPLAY_PREDICTOR_LAST
};

static const char *const replay_predictor_names[REPLAY_PREDICTORS] = {
    "paper", "periodicity", "order", "order revised", "last gap"
};

/* What a predictor says of the use that it was just told of */
typedef struct replay_prediction {
    uint64_t context;    /* of the use, never 0 */
    uint64_t due_ns;     /* when the context is used next; 0: no prediction */
    uint64_t revised_ns; /* when it had expected this very use, right before;
                            0: as it said when the context was used last */
} replay_prediction_t;

/* What is known of a context */
typedef struct replay_context {
    uint64_t start_ns;
    uint64_t due_ns;
} replay_context_t;

KHASH_MAP_INIT_INT64(replay_known, replay_context_t)

typedef struct replay_predictors {
    ucs_predict_table_h       table;
    ucs_predict_periodicity_h detector;
    ucs_predict_order_h       order;
    const replay_use_t        **open; /* under way */
    size_t                    open_count;
    size_t                    open_max;
    khash_t(replay_known)     known[REPLAY_PREDICTORS];
} replay_predictors_t;


static ucs_predict_use_t replay_predict_use(const replay_use_t *use)
{
    return (ucs_predict_use_t){
        .start_ns = use->start_ns,
        .path     = use->signature,
        .address  = use->address,
        .length   = use->length,
        .type     = use->access
    };
}

/* The paper's: shortest period of call path, buffer and the two communications
 * before */
static void replay_predict_paper(replay_predictors_t *predictors,
                                 const replay_use_t *use,
                                 replay_prediction_t *prediction)
{
    ucs_predict_use_t learned = replay_predict_use(use);
    ucs_predict_ref_t ref     = ucs_predict_table_record(predictors->table,
                                                         &learned);

    prediction->context = replay_hash(ref.index, ref.generation);
    (void)ucs_predict_table_deadline(predictors->table, ref,
                                     &prediction->due_ns);
}

/* Freitag's periodicity detector */
static void replay_predict_period(replay_predictors_t *predictors,
                                  const replay_use_t *use,
                                  replay_prediction_t *prediction)
{
    prediction->context = replay_hash(use->signature, use->address);
    ucs_predict_periodicity_add(predictors->detector, prediction->context,
                                use->start_ns);
    (void)ucs_predict_periodicity_due(predictors->detector,
                                      &prediction->due_ns);
}

/* Times are asked for, whatever they are worth: holding is so dear that no gap
 * is bridged by it, in which nothing would be foretold */
static const ucs_predict_price_t replay_price = {
    .rent_ns     = 1000,
    .register_ns = 1,
    .react_ns    = 1
};

static ucs_predict_ref_t replay_order_record(replay_predictors_t *predictors,
                                             const replay_use_t *use,
                                             uint64_t end_ns)
{
    ucs_predict_use_t learned = replay_predict_use(use);

    return ucs_predict_order_record(predictors->order, &learned, end_ns,
                                    &replay_price, 1);
}

/* The order knows the end of a use once that is over */
static void replay_order_ends(replay_predictors_t *predictors, uint64_t now)
{
    size_t kept = 0;
    const replay_use_t *use;
    size_t i;

    for (i = 0; i < predictors->open_count; ++i) {
        use = predictors->open[i];
        if (use->end_ns <= now) {
            (void)replay_order_record(predictors, use, use->end_ns);
        } else {
            predictors->open[kept++] = use;
        }
    }
    predictors->open_count = kept;
}

static uint64_t replay_order_due(const replay_predictors_t *predictors,
                                 const replay_use_t *use)
{
    ucs_predict_forecast_t forecast;

    return ucs_predict_order_expected(predictors->order, use->address,
                                      use->length, &forecast) ?
                   forecast.expected_ns :
                   0;
}

/* The order of communications: by what it said when the buffer was used last,
 * and by what it said right before the use */
static void replay_predict_order(replay_predictors_t *predictors,
                                 const replay_use_t *use,
                                 replay_prediction_t *ordered,
                                 replay_prediction_t *revised)
{
    ucs_predict_ref_t ref;

    replay_order_ends(predictors, use->start_ns);
    revised->revised_ns = replay_order_due(predictors, use);
    ref                 = replay_order_record(predictors, use, 0);
    predictors->open    = tool_grow(predictors->open, predictors->open_count,
                                    &predictors->open_max,
                                    sizeof(*predictors->open));
    predictors->open[predictors->open_count++] = use;

    ordered->context = replay_hash(ref.index, ref.generation);
    ordered->due_ns  = replay_order_due(predictors, use);
    revised->context = ordered->context;
    revised->due_ns  = ordered->due_ns;
}

static void replay_rate(replay_accuracy_t *rated, uint64_t due_ns,
                        uint64_t last_ns, uint64_t start_ns)
{
    double period = (double)(start_ns - last_ns);
    double error;

    ++rated->repeated;
    if (due_ns == 0) {
        return;
    }
    error = (due_ns > start_ns) ? (double)(due_ns - start_ns) :
                                  (double)(start_ns - due_ns);
    ++rated->predicted;
    rated->half += (error <= REPLAY_WITHIN_HALF * period);
    rated->five += (error <= REPLAY_WITHIN_FIVE * period);
}

static void replay_rate_use(replay_predictors_t *predictors, unsigned index,
                            const replay_use_t *use,
                            const replay_prediction_t *prediction,
                            replay_accuracy_t *rated)
{
    khash_t(replay_known) *known = &predictors->known[index];
    replay_context_t *context;
    uint64_t due_ns;
    khiter_t iter;
    int is_new;

    iter    = kh_put(replay_known, known, prediction->context, &is_new);
    context = &kh_value(known, iter);
    due_ns  = prediction->due_ns;
    if (!is_new && (context->start_ns != 0)) {
        replay_rate(rated, (prediction->revised_ns != 0) ?
                                   prediction->revised_ns : context->due_ns,
                    context->start_ns, use->start_ns);
        if (index == REPLAY_PREDICTOR_LAST) { /* as long as the last time */
            due_ns = 2 * use->start_ns - context->start_ns;
        }
    }
    context->start_ns = use->start_ns;
    context->due_ns   = due_ns;
}

static void replay_predictors_init(replay_predictors_t *predictors,
                                   unsigned window)
{
    ucs_predict_params_t params;

    memset(predictors, 0, sizeof(*predictors));
    ucs_predict_params_init(&params);
    if ((ucs_predict_table_create(&params, &predictors->table) != UCS_OK) ||
        (ucs_predict_periodicity_create(window, &predictors->detector) !=
         UCS_OK) ||
        (ucs_predict_order_create(NULL, &predictors->order) != UCS_OK)) {
        tool_out_of_memory();
    }
}

static void replay_predictors_cleanup(replay_predictors_t *predictors)
{
    unsigned i;

    ucs_predict_table_destroy(predictors->table);
    ucs_predict_periodicity_destroy(predictors->detector);
    ucs_predict_order_destroy(predictors->order);
    free(predictors->open);
    for (i = 0; i < REPLAY_PREDICTORS; ++i) {
        kh_destroy_inplace(replay_known, &predictors->known[i]);
    }
}

void replay_accuracy_rate(const replay_trace_t *trace, unsigned window,
                          replay_accuracy_t rated[REPLAY_PREDICTORS])
{
    replay_prediction_t said[REPLAY_PREDICTORS];
    replay_predictors_t predictors;
    const replay_use_t *use;
    unsigned i;

    replay_predictors_init(&predictors, window);
    memset(rated, 0, REPLAY_PREDICTORS * sizeof(*rated));
    for (i = 0; i < REPLAY_PREDICTORS; ++i) {
        rated[i].name = replay_predictor_names[i];
        rated[i].uses = trace->use_count;
    }
    for (use = trace->uses; use < trace->uses + trace->use_count; ++use) {
        memset(said, 0, sizeof(said));
        replay_predict_paper(&predictors, use, &said[REPLAY_PREDICTOR_PAPER]);
        replay_predict_period(&predictors, use,
                              &said[REPLAY_PREDICTOR_PERIODICITY]);
        replay_predict_order(&predictors, use, &said[REPLAY_PREDICTOR_ORDER],
                             &said[REPLAY_PREDICTOR_REVISED]);
        said[REPLAY_PREDICTOR_LAST].context = replay_hash(use->signature,
                                                          use->address);
        for (i = 0; i < REPLAY_PREDICTORS; ++i) {
            replay_rate_use(&predictors, i, use, &said[i], &rated[i]);
        }
    }
    replay_predictors_cleanup(&predictors);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay.h"

#include <tools/tool.h>
#include <tools/units.h>

#include <inttypes.h>
#include <jansson.h>
#include <string.h>


static void replay_accuracy_sum(const replay_outcome_t *outcomes, size_t count,
                                size_t index, replay_accuracy_t *sum)
{
    const replay_accuracy_t *rated;
    size_t i;

    memset(sum, 0, sizeof(*sum));
    for (i = 0; i < count; ++i) {
        rated           = &outcomes[i].accuracy[index];
        sum->name       = rated->name;
        sum->uses      += rated->uses;
        sum->repeated  += rated->repeated;
        sum->predicted += rated->predicted;
        sum->half      += rated->half;
        sum->five      += rated->five;
    }
}

static void replay_print_rated(const char *trace,
                               const replay_accuracy_t *rated, FILE *stream)
{
    char buf[3][TOOL_UNITS_MAX];

    fprintf(stream, "%-24s %-13s %8" PRIu64 " %8" PRIu64 " %10s %10s %10s\n",
            trace, rated->name, rated->uses, rated->repeated,
            tool_units_print_share(rated->predicted, rated->repeated, buf[0]),
            tool_units_print_share(rated->half, rated->predicted, buf[1]),
            tool_units_print_share(rated->five, rated->predicted, buf[2]));
}

void replay_print_accuracy(const replay_outcome_t *outcomes, size_t count,
                           unsigned window, FILE *stream)
{
    replay_accuracy_t sum;
    const char *name;
    size_t i, j;

    fprintf(stream, "repeated: uses whose context was used before; predicted: "
            "share of those; then the\nshare of predictions within so much of "
            "the period. Periodicity detector: window %u.\n\n"
            "%-24s %-13s %8s %8s %10s %10s %10s\n", window, "trace",
            "predictor", "uses", "repeated", "predicted", "0.5 %", "5 %");
    for (i = 0; i < count; ++i) {
        name = strrchr(outcomes[i].name, '/');
        for (j = 0; j < REPLAY_PREDICTORS; ++j) {
            replay_print_rated((name != NULL) ? name + 1 : outcomes[i].name,
                               &outcomes[i].accuracy[j], stream);
        }
    }
    for (j = 0; (count > 1) && (j < REPLAY_PREDICTORS); ++j) {
        replay_accuracy_sum(outcomes, count, j, &sum);
        replay_print_rated("all", &sum, stream);
    }
}

static json_t *replay_json_rated(const replay_accuracy_t *rated)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:I}", "uses", rated->uses, "repeated",
                     rated->repeated, "predicted", rated->predicted,
                     "within_half_percent", rated->half, "within_5_percent",
                     rated->five);
}

int replay_print_accuracy_json(const replay_outcome_t *outcomes, size_t count,
                               unsigned window, FILE *stream)
{
    int ret = 0;
    json_t *object, *traces, *trace;
    replay_accuracy_t sum;
    size_t i, j;

    for (j = 0; (j < REPLAY_PREDICTORS) && (ret == 0); ++j) {
        replay_accuracy_sum(outcomes, count, j, &sum);
        object = replay_json_rated(&sum);
        traces = json_array();
        json_object_set_new(object, "predictor", json_string(sum.name));
        json_object_set_new(object, "window", json_integer(window));
        for (i = 0; i < count; ++i) {
            trace = replay_json_rated(&outcomes[i].accuracy[j]);
            json_object_set_new(trace, "trace", json_string(outcomes[i].name));
            json_array_append_new(traces, trace);
        }
        json_object_set_new(object, "traces", traces);
        ret = json_dumpf(object, stream, 0);
        fputc('\n', stream);
        json_decref(object);
    }
    return ret;
}

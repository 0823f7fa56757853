/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

typedef struct replay_command {
    replay_options_t options;
    int              is_json;
    int              is_list; /* of the constants */
} replay_command_t;

static const tool_usage_t replay_usage = {
    "TRACE...",
    "Run the helper's engine over recorded traces under a virtual clock and print "
    "what each policy would have pinned and foreseen. All costs are modelled."
};

static int replay_policy(const replay_trace_t *trace,
                         const replay_options_t *options,
                         ucs_regcache_policy_t policy, uint64_t ceiling,
                         replay_curve_t *curve, replay_row_t *row)
{
    replay_params_t params = options->params;
    ucs_status_t status;

    row->name         = ucs_regcache_policy_names[policy];
    params.policy     = policy;
    params.max_pinned = ceiling;
    status            = replay_world_run(trace, &params, curve, &row->once,
                                         &row->all);
    if (status != UCS_OK) {
        tool_message("%s: the engine cannot be created for policy %s (%d)",
                     trace->name, row->name, status);
        return -1;
    }
    return 0;
}

/* @return 0, or -1 after a message */
static int replay_ceiling(const replay_trace_t *trace,
                          const replay_options_t *options,
                          replay_curve_t *curve, uint64_t *bytes_p)
{
    replay_row_t leave;

    *bytes_p = options->ceiling.bytes;
    if ((options->ceiling.share == 0) && (curve == NULL)) {
        return 0;
    }
    if (replay_policy(trace, options, UCS_REGCACHE_POLICY_LEAVE_PINNED,
                      UINT64_MAX, curve, &leave) != 0) {
        return -1;
    }
    if (options->ceiling.share > 0) {
        *bytes_p = options->ceiling.share * leave.all.leave_pinned_peak_bytes;
    }
    return 0;
}

static replay_curve_t *replay_curve(replay_curve_t *curves, size_t index)
{
    return (curves != NULL) ? &curves[index] : NULL;
}

int replay_run(const replay_trace_t *trace, const replay_options_t *options,
               replay_curve_t *curves, replay_outcome_t *outcome)
{
    size_t i;

    memset(outcome, 0, sizeof(*outcome));
    outcome->elapsed_ns = trace->end_ns - trace->start_ns;
    outcome->total_ns   = outcome->elapsed_ns;
    if (trace->repeated.times > 1) {
        outcome->then_ns = trace->end_ns - trace->repeated.again_ns;
    }
    outcome->total_then_ns = outcome->then_ns;
    outcome->repeated      = trace->repeated;
    outcome->small         = trace->small;
    outcome->unmatched     = trace->unmatched;
    outcome->open          = trace->open;
    outcome->lost          = trace->lost;
    if (replay_ceiling(trace, options, replay_curve(curves, REPLAY_CURVE_LEAVE),
                       &outcome->ceiling) != 0) {
        return -1;
    }
    for (i = 0; i < options->policy_count; ++i) {
        if (replay_policy(trace, options, options->policies[i],
                          outcome->ceiling,
                          replay_curve(curves, REPLAY_CURVE_POLICIES + i),
                          &outcome->rows[i]) != 0) {
            return -1;
        }
    }
    outcome->row_count = options->policy_count;
    return 0;
}

int replay_load(const char *file, const replay_options_t *options,
                replay_trace_t *trace)
{
    tool_trace_t raw;
    int ret;

    if (replay_trace_read(file, &raw) != 0) {
        return -1;
    }
    ret = replay_trace_prepare(&raw, file, options->min_size, &options->repeat,
                               trace);
    tool_trace_cleanup(&raw);
    return ret;
}

int replay_file(const char *file, const replay_options_t *options,
                replay_outcome_t *outcome)
{
    replay_trace_t trace;
    int ret;

    if (replay_load(file, options, &trace) != 0) {
        return -1;
    }
    ret           = replay_run(&trace, options, NULL, outcome);
    outcome->name = file;
    replay_trace_cleanup(&trace);
    return ret;
}

static int replay_print_json(const replay_outcome_t *outcomes, size_t count,
                             const replay_options_t *options)
{
    json_t *rows = replay_json(outcomes, count, options);
    int ret      = 0;
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row) {
        ret |= json_dumpf(row, stdout, JSON_REAL_PRECISION(15));
        putchar('\n');
    }
    json_decref(rows);
    return ret;
}

static int replay_print(const replay_outcome_t *outcomes, size_t count,
                        const replay_command_t *command)
{
    int ret = 0;

    if (command->is_json) {
        ret = replay_print_json(outcomes, count, &command->options);
    } else {
        replay_print_tables(outcomes, count, &command->options, stdout);
    }
    return ((tool_finish_output() == TOOL_EXIT_OK) && (ret == 0)) ? 0 : -1;
}

static int replay_files(char *const *files, int count,
                        const replay_command_t *command)
{
    replay_outcome_t *outcomes = tool_realloc(NULL, count * sizeof(*outcomes));
    int status                 = TOOL_EXIT_OK;
    size_t done                = 0;
    int file;

    for (file = 0; file < count; ++file) {
        if (replay_file(files[file], &command->options, &outcomes[done]) == 0) {
            ++done;
        } else {
            status = TOOL_EXIT_FAILED;
        }
    }
    if ((done > 0) && (replay_print(outcomes, done, command) != 0)) {
        status = TOOL_EXIT_FAILED;
    }
    free(outcomes);
    return status;
}

/* NAME=VALUE */
static int replay_parse_tuning(void *field, const char *value)
{
    replay_options_t *options = field;
    const char *mark          = strchr(value, '=');
    ucs_status_t status;
    char *name, *end;
    double number;

    if (mark == NULL) {
        return -1;
    }
    number = strtod(mark + 1, &end);
    if ((end == mark + 1) || (*end != '\0')) {
        return -1;
    }
    name   = tool_format("%.*s", (int)(mark - value), value);
    status = replay_tuning_set(&options->tuning, name, number);
    free(name);
    options->params.tuning = &options->tuning;
    return (status == UCS_OK) ? 0 : -1;
}

static int replay_list_tuning(void)
{
    const replay_tuning_row_t *row;

    for (row = replay_tuning_rows; row->name != NULL; ++row) {
        printf("%s\t%.17g\t%s\t%s\t%s\n", row->name,
               replay_tuning_get(&ucs_regcache_tuning_default, row),
               row->unit, row->why, row->effect);
    }
    return tool_finish_output();
}

#define REPLAY_OFFSET(_field) offsetof(replay_command_t, _field)

static const tool_option_t replay_command_options[] = {
    {"json", NULL, REPLAY_OFFSET(is_json), NULL,
     " print one object a policy, each on a line", NULL},
    {"tuning", replay_parse_tuning, REPLAY_OFFSET(options),
     "NAME=VALUE with a name of --list-tuning and a value above 0",
     "NAME=VALUE one of the engine's constants", NULL},
    {"list-tuning", NULL, REPLAY_OFFSET(is_list), NULL,
     " print them: name, default, unit, reason", NULL},
    {}
};

int tool_replay_main(int argc, char **argv)
{
    replay_command_t command = {};
    int first;

    replay_options_init(&command.options);
    first = tool_options_parse(argc, argv, 0, (const tool_options_t[]){
            {replay_command_options, &command},
            {replay_options, &command.options}, {}}, &replay_usage);
    if (command.is_list) {
        return replay_list_tuning();
    }
    if (first == argc) {
        tool_message("replay needs a TRACE (see %s replay --help)", TOOL_NAME);
        return TOOL_EXIT_USAGE;
    }
    return replay_files(argv + first, argc - first, &command);
}

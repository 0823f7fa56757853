/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay.h"

#include <tools/options.h>
#include <tools/tool.h>
#include <tools/units.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct replay_command {
    replay_options_t options;
    int              is_json;
    int              is_list; /* of the constants */
} replay_command_t;


static void replay_usage(FILE *stream)
{
    fprintf(stream,
            "Usage: %s replay [option]... TRACE...\n\n"
            "Run the helper's engine over recorded traces under a virtual "
            "clock and print\nwhat each policy would have pinned and "
            "foreseen, beside the limit (registered\nonly while in use), "
            "leave pinned, LRU and Belady's OPT. All costs are modelled.\n\n"
            "Options:\n"
            "  --json     print one object a policy, each on a line\n"
            "  --equal    also predict's best at the byte-seconds of others\n"
            "  --speed    also say how fast that was\n"
            "  --tuning NAME=VALUE  one of the engine's constants\n"
            "  --list-tuning  print them: name, default, unit, reason\n",
            TOOL_NAME);
    tool_options_help(replay_options, stream);
    fprintf(stream, "  --help    show this text\n");
}

/* Where somebody looks on. @param name  NULL: no more. */
static void replay_progress(const replay_trace_t *trace, const char *name)
{
    if ((trace->repeated.times > 1) && isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K%s%s%s", (name != NULL) ? trace->name : "",
                (name != NULL) ? ": " : "", (name != NULL) ? name : "");
    }
}

static replay_row_t *replay_add_row(replay_outcome_t *outcome,
                                    const char *name, replay_row_kind_t kind)
{
    replay_row_t *row = &outcome->rows[outcome->row_count++];

    memset(row, 0, sizeof(*row));
    row->name = name;
    row->kind = kind;
    return row;
}

static void replay_add_yardsticks(const replay_trace_t *trace,
                                  const replay_options_t *options,
                                  replay_outcome_t *outcome)
{
    replay_lost_t lost;
    replay_row_t *row;

    row = replay_add_row(outcome, "(limit)", REPLAY_ROW_LIMIT);
    replay_model_limit(trace, &row->stats, NULL);
    row = replay_add_row(outcome, "(keep or drop)", REPLAY_ROW_KEEP_OR_DROP);
    replay_model_keep_or_drop(trace, &options->params, &row->stats, &lost);
    row->first_ns = lost.first_ns;
    row = replay_add_row(outcome, "(leave pinned)", REPLAY_ROW_LEAVE);
    replay_model_leave(trace, &row->stats, NULL);
    if (outcome->ceiling != UINT64_MAX) {
        row = replay_add_row(outcome, "(lru)", REPLAY_ROW_LRU);
        replay_model_cache(trace, REPLAY_VICTIM_LRU, outcome->ceiling,
                           &row->stats);
        row = replay_add_row(outcome, "(opt)", REPLAY_ROW_OPT);
        replay_model_cache(trace, REPLAY_VICTIM_OPT, outcome->ceiling,
                           &row->stats);
    }
}

static int replay_add_policy(const replay_trace_t *trace,
                             const replay_options_t *options,
                             ucs_regcache_policy_t policy,
                             replay_outcome_t *outcome)
{
    replay_params_t params = options->params;
    replay_row_t *row      = replay_add_row(outcome,
                                            ucs_regcache_policy_names[policy],
                                            REPLAY_ROW_POLICY);
    ucs_status_t status;
    replay_spent_t spent;

    replay_progress(trace, row->name);
    params.policy     = policy;
    params.max_pinned = outcome->ceiling;
    status            = replay_world_run(trace, &params, &row->stats, NULL,
                                         &spent);
    if (status != UCS_OK) {
        tool_message("%s: the engine cannot be created for policy %s (%d)",
                     trace->name, row->name, status);
        return -1;
    }
    if (options->is_speed) {
        row->speed.seconds = spent.cpu_s;
        row->speed.events  = trace->event_count;
    }
    row->lost_ns  = spent.lost_ns;
    row->first_ns = spent.first_ns;
    row->once     = spent.once;
    return 0;
}

/* What caches of the same byte-seconds would have done. A registration of
 * theirs takes no time, so it counts for a little longer than the engine's. */
static void replay_compare(const replay_trace_t *trace, replay_row_t *row)
{
    double byte_ns = REPLAY_SAME * row->stats.pinned_byte_ns;

    (void)replay_model_cache_at(trace, REPLAY_VICTIM_LRU, byte_ns, &row->lru);
    (void)replay_model_cache_at(trace, REPLAY_VICTIM_OPT, byte_ns, &row->opt);
}

static int replay_trace_outcome(const replay_trace_t *trace,
                                const replay_options_t *options,
                                replay_outcome_t *outcome)
{
    size_t i;

    memset(outcome, 0, sizeof(*outcome));
    outcome->name       = tool_strdup(trace->name);
    outcome->elapsed_ns = trace->end_ns - trace->start_ns;
    outcome->total_ns   = outcome->elapsed_ns;
    if (trace->repeated.times > 1) {
        outcome->then_ns = trace->end_ns - trace->repeated.again_ns;
    }
    outcome->total_then_ns = outcome->then_ns;
    outcome->repeated      = trace->repeated;
    outcome->ranges        = trace->item_count;
    outcome->ceiling    = replay_ceiling_bytes(options, trace);
    outcome->small      = trace->small;
    for (i = 0; i < trace->use_count; ++i) {
        outcome->first_receives += trace->uses[i].is_cold &&
                                   trace->uses[i].is_posted;
    }
    outcome->unmatched  = trace->unmatched;
    outcome->open       = trace->open;
    outcome->lost       = trace->lost;
    outcome->lead_byte_ns = replay_model_lead(trace, &options->params);
    replay_progress(trace, "yardsticks");
    replay_add_yardsticks(trace, options, outcome);
    for (i = 0; i < outcome->row_count; ++i) {
        outcome->rows[i].lost_ns = outcome->rows[i].stats.lost_ns;
    }
    for (i = 0; i < options->policy_count; ++i) {
        if (replay_add_policy(trace, options, options->policies[i],
                              outcome) != 0) {
            return -1;
        }
    }
    for (i = 0; i < outcome->row_count; ++i) {
        if (trace->repeated.times == 0) { /* so long a bisection of each row */
            replay_compare(trace, &outcome->rows[i]);
        }
        if (options->is_equal) {
            replay_equal(trace, options, outcome, &outcome->rows[i]);
        }
    }
    replay_progress(trace, NULL);
    return 0;
}

static int replay_file(const char *file, const replay_command_t *command,
                       replay_outcome_t *outcome)
{
    replay_trace_t trace;
    int ret;

    if (replay_options_load(&command->options, file, &trace) != 0) {
        return -1;
    }
    ret = replay_trace_outcome(&trace, &command->options, outcome);
    replay_trace_cleanup(&trace);
    return ret;
}

static int replay_print(const replay_outcome_t *outcomes, size_t count,
                        const replay_command_t *command)
{
    int ret = 0;

    if (command->is_json) {
        ret = replay_print_json(outcomes, count, &command->options, stdout);
    } else {
        replay_print_tables(outcomes, count, &command->options, stdout);
    }
    return ((tool_finish_output() == TOOL_EXIT_OK) && (ret == 0)) ? 0 : -1;
}

/* On stderr, for the same command prints the same twice */
static void replay_say_speed(const replay_outcome_t *outcomes, size_t count)
{
    replay_outcome_t sum;
    size_t i;

    replay_outcome_sum(outcomes, count, &sum);
    for (i = 0; i < sum.row_count; ++i) {
        if (sum.rows[i].speed.seconds > 0) {
            tool_message("%s: %.2f million events per second of processor "
                         "time", sum.rows[i].name, sum.rows[i].speed.events /
                         sum.rows[i].speed.seconds * 1e-6);
        }
    }
}

static int replay_files(char *const *files, int count,
                        const replay_command_t *command)
{
    replay_outcome_t *outcomes = tool_realloc(NULL, count * sizeof(*outcomes));
    int status                 = TOOL_EXIT_OK;
    size_t done                = 0;
    size_t i;
    int file;

    for (file = 0; file < count; ++file) {
        if (replay_file(files[file], command, &outcomes[done]) == 0) {
            ++done;
        } else {
            status = TOOL_EXIT_FAILED;
        }
    }
    if ((done > 0) && (replay_print(outcomes, done, command) != 0)) {
        status = TOOL_EXIT_FAILED;
    }
    if ((done > 0) && command->options.is_speed) {
        replay_say_speed(outcomes, done);
    }
    for (i = 0; i < done; ++i) {
        free((char*)outcomes[i].name);
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
    status = ucs_regcache_tuning_set(&options->tuning, name, number);
    free(name);
    options->params.tuning = &options->tuning;
    return (status == UCS_OK) ? 0 : -1;
}

static int replay_list_tuning(void)
{
    const ucs_tuning_row_t *row;

    for (row = ucs_regcache_tuning_rows; row->name != NULL; ++row) {
        printf("%s\t%.17g\t%s\t%s\t%s\n", row->name,
               ucs_regcache_tuning_get(&ucs_regcache_tuning_default, row),
               row->unit, row->why, row->effect);
    }
    return tool_finish_output();
}

#define REPLAY_OPTION(_field) offsetof(replay_command_t, _field), NULL, NULL

static const tool_option_t replay_command_options[] = {
    {"json", NULL, REPLAY_OPTION(is_json)},
    {"equal", NULL, REPLAY_OPTION(options.is_equal)},
    {"speed", NULL, REPLAY_OPTION(options.is_speed)},
    {"tuning", replay_parse_tuning, offsetof(replay_command_t, options),
     "NAME=VALUE with a name of --list-tuning and a value above 0", NULL},
    {"list-tuning", NULL, REPLAY_OPTION(is_list)},
    {}
};

int tool_replay_main(int argc, char **argv)
{
    replay_command_t command = {};
    int status;

    replay_options_init(&command.options);
    status = tool_options_parse(argc, argv, (const tool_options_t[]){
            {replay_command_options, &command},
            {replay_options, &command.options}, {}}, replay_usage);
    if (status >= 0) {
        return status;
    }
    if (command.is_list) {
        return replay_list_tuning();
    }
    if (optind == argc) {
        tool_message("replay needs a TRACE (see %s replay --help)", TOOL_NAME);
        return TOOL_EXIT_USAGE;
    }
    return replay_files(argv + optind, argc - optind, &command);
}

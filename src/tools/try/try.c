/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "try.h"

#include <tools/units.h>

#include <ucs/sys/clock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How late a thread that slept is woken, by so many sleeps of a millisecond */
#define TOOL_TRY_SLEEPS   64
#define TOOL_TRY_SLEEP_NS 1000000

#define tool_try_say(_try, _fmt, ...) \
    tool_message("[%4.0f s] " _fmt, \
                 (ucs_clock_now() - (_try)->start_ns) * 1e-9, ##__VA_ARGS__)


/*
 * Runs
 */

/* In a process of its own. The job's output goes to stderr: the table is alone on
 * stdout. */
static int tool_try_exec(void *arg)
{
    tool_try_t *try     = arg;
    tool_list_t command = TOOL_LIST_INITIALIZER;

    tool_run_prepare(&try->run, &command);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return tool_job_exec(command.items);
}

/* @return Its exit status, or TOOL_EXIT_FAILED if it wrote no report */
static int tool_try_run(tool_try_t *try, ucs_regcache_policy_t policy)
{
    tool_try_run_t *run = &try->runs[try->run_count];
    int status;

    tool_try_say(try, "run %zu: %s%s", try->run_count + 1,
                 ucs_regcache_policy_names[policy],
                 (try->run_count == 0) ? ", recorded" : "");
    run->policy         = policy;
    try->run.report_dir = tool_format("%s/%zu", try->dir, try->run_count);
    try->run.trace      = (try->run_count == 0) ? try->traces : NULL;
    try->run.values[TOOL_SETTING_POLICY] = ucs_regcache_policy_names[policy];
    if (try->input >= 0) {
        lseek(STDIN_FILENO, try->input, SEEK_SET);
    }
    if (mkdir(try->run.report_dir, 0700) != 0) {
        tool_message("'%s' cannot be made: %m", try->run.report_dir);
        return TOOL_EXIT_FAILED;
    }
    status = tool_job_call(tool_try_exec, NULL, try);
    if (status != 0) {
        tool_message("the job ended with status %d: there is nothing to compare",
                     status);
        return status;
    }
    tool_report_collect(try->run.report_dir, &run->merge);
    if (run->merge.total == NULL) {
        tool_message("with ranks on other hosts, set TMPDIR to a folder that all "
                     "share");
        tool_doctor_short(&try->run);
        return TOOL_EXIT_FAILED;
    }
    ++try->run_count;
    free(try->run.report_dir);
    return 0;
}

/*
 * Forecast
 */

static double tool_try_lateness(void)
{
    const struct timespec nap = {.tv_nsec = TOOL_TRY_SLEEP_NS};
    uint64_t since            = ucs_clock_now();
    int i;

    for (i = 0; i < TOOL_TRY_SLEEPS; ++i) {
        nanosleep(&nap, NULL);
    }
    return (double)(ucs_clock_now() - since) / TOOL_TRY_SLEEPS -
           TOOL_TRY_SLEEP_NS;
}

/* The ranks' options, and what things take here */
static void tool_try_set_costs(tool_try_t *try)
{
    const json_t *total     = try->runs[0].merge.total;
    replay_params_t *params = &try->options.params;
    const char *ceiling     = try->run.values[TOOL_SETTING_MAX_PINNED];
    const char *least       = getenv("UCX_MD_HELPER_MIN_SIZE");
    tool_doctor_t doctor    = {.run = &try->run};
    tool_doctor_cost_t cost;

    if (ceiling == NULL) {
        ceiling = getenv(tool_settings[TOOL_SETTING_MAX_PINNED].variable);
    }
    if (ceiling != NULL) {
        tool_units_parse_size(ceiling, &try->options.ceiling.bytes);
    }
    if (least != NULL) {
        tool_units_parse_size(least, &try->options.min_size);
    }
    params->max_slowdown = tool_report_number(total, "max_slowdown");
    params->region_bytes = tool_report_number(total, "region_bytes");
    params->lateness_ns  = tool_try_lateness();
    try->is_measured     = tool_doctor_measure(
            &doctor, tool_report_text(total, "lower_domain"), &cost) == 0;
    tool_doctor_cleanup(&doctor);
    if (try->is_measured) {
        params->register_cost   = (replay_cost_t){cost.reg_ns,
                                                  cost.reg_page_ns};
        params->deregister_cost = (replay_cost_t){cost.dereg_ns,
                                                  cost.dereg_page_ns};
    }
}

const replay_figures_t *tool_try_forecast(const tool_try_t *try,
                                          ucs_regcache_policy_t policy)
{
    return &try->forecast.rows[REPLAY_ROW_POLICIES + policy].figures;
}

double tool_try_price(const tool_try_t *try, ucs_regcache_policy_t policy)
{
    const replay_figures_t *figures = tool_try_forecast(try, policy);

    return replay_price(&try->forecast, figures, &try->options) -
           figures->first_ns / try->forecast.total_ns;
}

/* The cheapest policies, if they are cheaper than leaving all pinned */
static void tool_try_choose(tool_try_t *try)
{
    const tool_merge_t *merge = &try->runs[0].merge;
    double leave = tool_try_price(try, UCS_REGCACHE_POLICY_LEAVE_PINNED);
    ucs_regcache_policy_t policy;
    size_t i;

    if (tool_report_number(merge->total, "pinned_byte_seconds") <
        TOOL_TRY_OWN_BYTES * merge->rank_seconds) {
        return;
    }
    for (policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        if (!(tool_try_price(try, policy) < TOOL_TRY_GAIN * leave)) {
            continue;
        }
        for (i = try->best_count; (i > 0) &&
             (tool_try_price(try, policy) <
              tool_try_price(try, try->best[i - 1])); --i) {
            if (i < TOOL_TRY_CANDIDATES) {
                try->best[i] = try->best[i - 1];
            }
        }
        if (i < TOOL_TRY_CANDIDATES) {
            try->best[i]     = policy;
            try->best_count += try->best_count < TOOL_TRY_CANDIDATES;
        }
    }
    /* The default comes first: another has to be clearly better */
    if ((try->best_count > 1) &&
        (try->best[1] == UCS_REGCACHE_POLICY_PREDICT)) {
        try->best[1] = try->best[0];
        try->best[0] = UCS_REGCACHE_POLICY_PREDICT;
    }
}

/* Recordings are replayed for as long as the job took: there may be many */
static int tool_try_replay(tool_try_t *try, const tool_list_t *traces)
{
    replay_outcome_t *outcomes = tool_calloc(traces->count, sizeof(*outcomes));
    double seconds             = tool_report_number(try->runs[0].merge.total,
                                                    "elapsed_seconds");
    uint64_t since             = ucs_clock_now();
    size_t i;

    for (i = 0; (i < traces->count) &&
                ((i == 0) || ((ucs_clock_now() - since) * 1e-9 < seconds));
         ++i) {
        if (replay_file(traces->items[i], &try->options,
                        &outcomes[try->replayed]) == 0) {
            ++try->replayed;
        }
    }
    if (try->replayed > 0) {
        replay_outcome_sum(outcomes, try->replayed, &try->forecast);
        tool_try_choose(try);
    }
    free(outcomes);
    return (try->replayed > 0) ? 0 : -1;
}

static int tool_try_foretell(tool_try_t *try)
{
    tool_list_t traces = TOOL_LIST_INITIALIZER;
    char buf[3][TOOL_UNITS_MAX];
    int ret            = -1;

    tool_try_say(try, "measuring what a registration takes");
    tool_try_set_costs(try);
    tool_report_list_dir(try->traces, ".trace", &traces);
    try->recordings = traces.count;
    tool_try_say(try, "replaying %zu recordings at %s + %s a page%s, wake-ups "
                 "late by %s", traces.count,
                 tool_units_print_seconds(
                         try->options.params.register_cost.base_ns * 1e-9,
                         buf[0]),
                 tool_units_print_seconds(
                         try->options.params.register_cost.page_ns * 1e-9,
                         buf[1]),
                 try->is_measured ? "" : " (not measured)",
                 tool_units_print_seconds(
                         try->options.params.lateness_ns * 1e-9, buf[2]));
    if (traces.count > 0) {
        ret = tool_try_replay(try, &traces);
    }
    if ((ret == 0) && (try->plot != NULL)) {
        ret = replay_plot(&try->options, traces.items[0], try->plot);
    }
    tool_list_cleanup(&traces);
    return ret;
}

/*
 * The command
 */

/* In a process of its own, so that whatever ends it leaves nothing behind */
static int tool_try_go(void *arg)
{
    tool_try_t *try = arg;
    int status;
    size_t i;

    status = tool_try_run(try, UCS_REGCACHE_POLICY_LEAVE_PINNED);
    if (status != 0) {
        return status;
    }
    if (tool_try_foretell(try) != 0) {
        return TOOL_EXIT_FAILED;
    }
    try->best[try->best_count] = UCS_REGCACHE_POLICY_LEAVE_PINNED;
    for (i = 0; !try->is_once && (try->best_count > 0) &&
                (i <= try->best_count); ++i) {
        status = tool_try_run(try, try->best[i]);
        if (status != 0) {
            return status;
        }
    }
    return tool_try_print(try);
}

static void tool_try_done(void *arg)
{
    tool_report_remove_dir(((tool_try_t*)arg)->dir);
}

static void tool_try_usage(FILE *stream)
{
    fprintf(stream,
            "Usage: %s try [option]... [--] COMMAND [argument]...\n\n"
            "Run a job with everything left pinned and replay what each policy "
            "would have\nheld; then run the two best and leave pinned in turn, "
            "four runs at most. Prints\none table and one advice. The job's "
            "output goes to stderr.\n\n"
            "  --once                   the forecast of one run\n"
            "  --json                   print one JSON object\n"
            "  --plot FILE              draw what each policy holds, .svg or "
            ".png\n"
            "and, for all runs:\n",
            TOOL_NAME);
    tool_run_help(stream);
    fprintf(stream, "  --help                   show this text\n");
}

#define TOOL_TRY_OPTION(_field) offsetof(tool_try_t, _field)

static const tool_option_t tool_try_options[] = {
    {"once", NULL, TOOL_TRY_OPTION(is_once), NULL, NULL},
    {"json", NULL, TOOL_TRY_OPTION(is_json), NULL, NULL},
    {"plot", tool_option_text, TOOL_TRY_OPTION(plot), NULL, NULL},
    {}
};

static int tool_try_check(const tool_try_t *try)
{
    if ((try->run.values[TOOL_SETTING_POLICY] != NULL) ||
        (try->run.values[TOOL_SETTING_REPORT] != NULL) ||
        (try->run.trace != NULL)) {
        tool_message("--policy, --report and --trace are set by try itself");
        return -1;
    }
    return (try->plot != NULL) ? replay_plot_check("plot", try->plot) : 0;
}

int tool_try_main(int argc, char **argv)
{
    static tool_try_t try; /* large */
    int status;

    replay_options_init(&try.options);
    status = tool_run_parse(&try.run, argc, argv, (tool_options_t){
            tool_try_options, &try}, tool_try_usage);
    if (status >= 0) {
        return status;
    }
    if (tool_try_check(&try) != 0) {
        return TOOL_EXIT_USAGE;
    }
    try.dir = tool_run_make_dir();
    status  = TOOL_EXIT_FAILED;
    if (try.dir != NULL) {
        unsetenv("UCX_MD_HELPER_TRACE");
        try.traces   = tool_format("%s/traces", try.dir);
        try.start_ns = ucs_clock_now();
        try.input    = lseek(STDIN_FILENO, 0, SEEK_CUR);
        status       = tool_job_call(tool_try_go, tool_try_done, &try);
    }
    free(try.traces);
    free(try.dir);
    free(try.run.library);
    return status;
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "run.h"

#include <tools/doctor/doctor.h>
#include <tools/report/report.h>

#include <ucs/regcache/regcache.h>
#include <uct/ib/helper_md/config/values.h>

#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int tool_run_parse_policy(void *field, const char *value)
{
    return (tool_policy_find(value) < UCS_REGCACHE_POLICY_LAST) ? 0 : -1;
}

static int tool_run_parse_report(void *field, const char *value)
{
    uct_helper_report_dest_t dest;

    return ((*value != '\0') && (!strcasecmp(value, TOOL_REPORT_NONE) ||
                                 uct_helper_value_report(value, &dest))) ?
                   0 : -1;
}

static int tool_run_parse_trace(void *field, const char *value)
{
    return (*value != '\0') ? tool_option_text(field, value) : -1;
}

int tool_run_parse_pin_cost(void *field, const char *value)
{
    double cost[2];

    return (tool_option_cost(cost, value) == 0) ?
                   tool_option_text(field, value) : -1;
}

#define TOOL_RUN_OFFSET(_field) offsetof(tool_run_t, _field)

/* What is decided for each job; try decides it itself */
static const tool_option_t tool_run_own_options[] = {
    {"policy", tool_run_parse_policy, 0,
     "predict, paper, rent, leave_pinned, on_demand, lru or overlap",
     "POLICY after a use: predict (default), rent, on_demand, leave_pinned, "
     "overlap, lru or paper",
     TOOL_ENV_POLICY},
    {"report", tool_run_parse_report, 0,
     "stderr, FILE, json:FILE or none, where a FILE that begins with a word "
     "and ':' is written ./FILE",
     "REPORT stderr, FILE, json:FILE or none (%h host, %p pid, "
     "%r rank)", TOOL_ENV_REPORT},
    {"trace", tool_run_parse_trace, TOOL_RUN_OFFSET(trace), "a folder",
     "DIR record a trace of each rank in this folder", NULL},
    {}
};

static const tool_option_t tool_run_options[] = {
    {"max-slowdown", tool_option_share, TOOL_RUN_OFFSET(number),
     "a share from 0.001% to 100%, such as 0.5% or 0.005",
     "PERCENT of the run time that all memory left pinned would be worth",
     TOOL_ENV_MAX_SLOWDOWN},
    {"max-pinned", tool_option_size, TOOL_RUN_OFFSET(number),
     "a whole number with an optional K, M, G or T, or inf",
     "SIZE ceiling of registered memory of each rank on each device",
     TOOL_ENV_MAX_PINNED},
    {"node-max-pinned", tool_option_size, TOOL_RUN_OFFSET(number),
     "a whole number with an optional K, M, G or T, or inf",
     "SIZE budget of registered memory for all ranks of a node",
     "UCX_MD_HELPER_NODE_MAX_PINNED"},
    {"pin-cost", tool_run_parse_pin_cost, TOOL_RUN_OFFSET(pin_cost),
     TOOL_PIN_COST_ALLOWED,
     "BASE,PERPAGE modelled cost of a registration, added to the real one",
     TOOL_ENV_PIN_COST},
    {"pipeline", NULL, TOOL_RUN_OFFSET(pipeline), NULL,
     " MPI programs' long messages go by the RDMA pipeline", NULL},
    {"firehose", NULL, TOOL_RUN_OFFSET(firehose), NULL,
     " MPI programs' puts to dynamic windows go by firehose", NULL},
    {"software-nic", NULL, TOOL_RUN_OFFSET(software_nic), NULL,
     " pin for real on a machine without RDMA", NULL},
    {"verbose", NULL, TOOL_RUN_OFFSET(verbose), NULL,
     " say what is set and run", NULL},
    {}
};

static const tool_usage_t tool_run_usage = {
    "[--] COMMAND [argument]...",
    "Run a program, or an MPI job by its launcher, with the helper.\v"
    "Without --report the ranks' reports are merged into one table, which goes to "
    "stderr when the command ends. See ucx-helper(1)."
};

static int tool_run_check(const tool_run_t *run, const char *name)
{
    if (*run->command == NULL) {
        tool_message("no command given (see %s %s --help)", TOOL_NAME, name);
        return -1;
    }
    if ((run->pin_cost != NULL) && !run->software_nic &&
        (getenv(TOOL_ENV_PIN) == NULL)) {
        tool_message("option --pin-cost needs --software-nic");
        return -1;
    }
    return 0;
}

int tool_run_parse(tool_run_t *run, int argc, char **argv,
                   tool_options_t more, const tool_usage_t *usage)
{
    run->command = argv + tool_options_parse(
            argc, argv, ARGP_IN_ORDER, (const tool_options_t[]){
                    more, {tool_run_options, run}, {}}, usage);
    if (tool_run_check(run, argv[0]) != 0) {
        return TOOL_EXIT_USAGE;
    }
    run->launcher = tool_launcher_detect(run->command[0], NULL);
    run->library  = tool_library_find(run->pipeline, run->firehose,
                                      run->launcher);
    return (run->library != NULL) ? 0 : TOOL_EXIT_FAILED;
}

/* The file of `FILE` or `json:FILE`, NULL where there is none */
static const char *tool_run_report_file(const char *report)
{
    uct_helper_report_dest_t dest;

    if (!strcasecmp(report, TOOL_REPORT_NONE) ||
        !uct_helper_value_report(report, &dest) || (dest.stream > 0) ||
        (dest.kind == UCT_HELPER_REPORT_NONE)) {
        return NULL;
    }
    return report + strlen(report) - strlen(dest.path);
}

/* What would lose reports is said at once, unless the ranks say it themselves */
static void tool_run_warn_report(const tool_run_t *run, const char *report)
{
    const char *file = tool_run_report_file(report);

    if ((file != NULL) && (run->launcher != TOOL_LAUNCHER_NONE) &&
        (strstr(file, "%p") == NULL) && (strstr(file, "%r") == NULL)) {
        tool_message("all ranks of a host will write the same report '%s'; "
                     "add %%r (rank) or %%p (pid)",
                     file);
    }
}

char *tool_run_make_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    char *dir;

    if ((tmp == NULL) || (*tmp != '/')) {
        tmp = "/tmp";
    }

    dir = tool_format("%s/%s.XXXXXX", tmp, TOOL_NAME);
    if (mkdtemp(dir) == NULL) {
        tool_message("no table at the end, as '%s' cannot be made: %m", dir);
        free(dir);
        return NULL;
    }
    return dir;
}

static void tool_run_print(const tool_list_t *names, tool_launcher_t launcher,
                           const tool_list_t *command)
{
    char *line = tool_list_join(command, " ");
    size_t i;

    for (i = 0; i < names->count; ++i) {
        tool_message("%s=%s", names->items[i], getenv(names->items[i]));
    }
    tool_message("launcher: %s", tool_launcher_name(launcher));
    tool_message("command: %s", line);
    free(line);
}

void tool_run_prepare(const tool_run_t *run, tool_list_t *command)
{
    tool_list_t names = TOOL_LIST_INITIALIZER;

    tool_run_set_environment(run, &names);
    tool_launcher_adapt(run->launcher, run->command, &names, run->library,
                        command);
    if (run->verbose) {
        tool_run_print(&names, run->launcher, command);
    }
    tool_list_cleanup(&names);
}

static int tool_run_exec(void *arg)
{
    tool_list_t command = TOOL_LIST_INITIALIZER;

    tool_run_prepare(arg, &command);
    return tool_job_exec(command.items);
}

/* Nothing is said where nothing was started */
static void tool_run_done(void *arg, int status)
{
    const tool_run_t *run = arg;
    int other_hosts       = tool_launcher_names_hosts(run->launcher,
                                                      run->command);

    if (((status == TOOL_EXIT_CANNOT_EXEC) || (status == TOOL_EXIT_NOT_FOUND)) &&
        (rmdir(run->report_dir) == 0)) {
        return;
    }
    if ((tool_report_finish_run(run->report_dir, other_hosts) == 0) &&
        !other_hosts) {
        tool_doctor_short(run);
    }
    tool_report_remove_dir(run->report_dir);
}

int tool_run_main(int argc, char **argv)
{
    tool_run_t run = {};
    const char *report;
    int status;

    status = tool_run_parse(&run, argc, argv, (tool_options_t){
            tool_run_own_options, &run}, &tool_run_usage);
    if (status == 0) {
        report = getenv(TOOL_ENV_REPORT);
        if ((report != NULL) && (*report != '\0')) {
            tool_run_warn_report(&run, report);
        } else {
            run.report_dir = tool_run_make_dir();
        }
        status = (run.report_dir != NULL) ?
                         tool_job_call(tool_run_exec, tool_run_done, &run) :
                         tool_run_exec(&run);
    }
    free(run.report_dir);
    free(run.library);
    return status;
}

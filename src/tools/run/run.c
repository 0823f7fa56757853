/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "job.h"
#include "launcher.h"
#include "library.h"
#include "run.h"

#include <tools/report/report.h>
#include <tools/tool.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Values of getopt_long beyond the settings' indices */
enum {
    TOOL_RUN_OPT_SOFTWARE_NIC = TOOL_SETTING_COUNT,
    TOOL_RUN_OPT_PIPELINE,
    TOOL_RUN_OPT_FIREHOSE,
    TOOL_RUN_OPT_TRACE,
    TOOL_RUN_OPT_VERBOSE,
    TOOL_RUN_OPT_HELP,
    TOOL_RUN_OPT_COUNT
};


static void tool_run_usage(void)
{
    const tool_setting_t *setting;
    char *option;

    printf("Usage: %s run [option]... [--] COMMAND [argument]...\n\n"
           "Run a program, or an MPI job by its launcher, with the helper.\n\n",
           TOOL_NAME);
    for (setting = tool_settings; setting->name != NULL; ++setting) {
        option = tool_format("--%s %s", setting->name, setting->argument);
        printf("  %-24s %s\n", option, setting->help);
        free(option);
    }
    printf("  %-24s %s\n  %-24s %s\n  %-24s %s\n  %-24s %s\n  %-24s %s\n"
           "  %-24s %s\n\n"
           "Without --report the ranks' reports are merged into one table, "
           "which goes to\nstderr when the command ends. See "
           "ucx-helper(1).\n",
           "--trace DIR", "record a trace of each rank in this folder",
           "--pipeline", "MPI programs' long messages go by the RDMA pipeline",
           "--firehose", "MPI programs' puts to dynamic windows go by firehose",
           "--software-nic", "pin for real on a machine without RDMA",
           "--verbose", "say what is set and run",
           "--help", "show this text");
}

static int tool_run_set_option(tool_run_t *run, int opt)
{
    switch (opt) {
    case TOOL_RUN_OPT_SOFTWARE_NIC:
        run->software_nic = 1;
        return 0;
    case TOOL_RUN_OPT_PIPELINE:
        run->pipeline = 1;
        return 0;
    case TOOL_RUN_OPT_FIREHOSE:
        run->firehose = 1;
        return 0;
    case TOOL_RUN_OPT_TRACE:
        run->trace = optarg;
        if (*optarg == '\0') {
            tool_message("option --trace: '' is not allowed; allowed: a "
                         "folder");
            return -1;
        }
        return 0;
    case TOOL_RUN_OPT_VERBOSE:
        run->verbose = 1;
        return 0;
    default:
        run->values[opt] = optarg;
        return tool_setting_check(&tool_settings[opt], optarg);
    }
}

static int tool_run_check(const tool_run_t *run)
{
    const tool_setting_t *pin_cost = tool_setting_of(TOOL_ENV_PIN_COST);
    const char *pin                = getenv(TOOL_ENV_PIN);

    if (*run->command == NULL) {
        tool_message("no command given (see %s run --help)", TOOL_NAME);
        return -1;
    }

    if ((run->values[pin_cost - tool_settings] != NULL) &&
        !run->software_nic && (pin == NULL)) {
        tool_message("option --%s needs --software-nic", pin_cost->name);
        return -1;
    }
    return 0;
}

/* @return 0, an exit status, or -1 to go on */
static int tool_run_parse(tool_run_t *run, int argc, char **argv)
{
    struct option options[TOOL_RUN_OPT_COUNT + 1] = {};
    int i, opt;

    for (i = 0; i < TOOL_SETTING_COUNT; ++i) {
        options[i].name    = tool_settings[i].name;
        options[i].has_arg = required_argument;
        options[i].val     = i;
    }
    options[i++] = (struct option){"software-nic", no_argument, NULL,
                                   TOOL_RUN_OPT_SOFTWARE_NIC};
    options[i++] = (struct option){"pipeline", no_argument, NULL,
                                   TOOL_RUN_OPT_PIPELINE};
    options[i++] = (struct option){"firehose", no_argument, NULL,
                                   TOOL_RUN_OPT_FIREHOSE};
    options[i++] = (struct option){"trace", required_argument, NULL,
                                   TOOL_RUN_OPT_TRACE};
    options[i++] = (struct option){"verbose", no_argument, NULL,
                                   TOOL_RUN_OPT_VERBOSE};
    options[i++] = (struct option){"help", no_argument, NULL,
                                   TOOL_RUN_OPT_HELP};

    /* +: stop at the command, whose options are not ours */
    while ((opt = tool_getopt(argc, argv, "+:", options, NULL)) != -1) {
        if (opt == TOOL_RUN_OPT_HELP) {
            tool_run_usage();
            return tool_finish_output();
        } else if ((opt == ':') || (opt == '?')) {
            tool_bad_option("run", opt, argv, options);
            return TOOL_EXIT_USAGE;
        } else if (tool_run_set_option(run, opt) != 0) {
            return TOOL_EXIT_USAGE;
        }
    }

    run->command = argv + optind;
    return (tool_run_check(run) == 0) ? -1 : TOOL_EXIT_USAGE;
}

/* What would lose a report that the user asked for is said at once; the job
 * runs all the same, as it would with a report that fails later */
static void tool_run_warn_report(const tool_run_t *run,
                                 tool_launcher_t launcher)
{
    const char *report = tool_run_report(run);
    const char *file   = (report != NULL) ? tool_report_option_file(report) :
                                            NULL;
    const char *slash;
    char *dir;

    if (file == NULL) {
        return;
    }

    if ((launcher != TOOL_LAUNCHER_NONE) && (strstr(file, "%p") == NULL) &&
        (strstr(file, "%r") == NULL)) {
        tool_message("all ranks of a host will write the same report '%s'; "
                     "add %%r (rank) or %%p (pid)",
                     file);
    }

    slash = strrchr(file, '/');
    dir   = (slash == NULL) ? tool_strdup(".") :
                              tool_format("%.*s", (int)(slash - file) + 1,
                                          file);
    if ((strchr(dir, '%') == NULL) && (access(dir, W_OK | X_OK) != 0)) {
        tool_message("the report's folder '%s' cannot be written here: %m",
                     dir);
    }
    free(dir);
}

static void tool_run_make_report_dir(tool_run_t *run)
{
    const char *tmp = getenv("TMPDIR");
    char *dir;

    if (tool_run_report(run) != NULL) {
        return;
    }

    if ((tmp == NULL) || (*tmp != '/')) {
        tmp = "/tmp";
    }

    dir = tool_format("%s/%s.XXXXXX", tmp, TOOL_NAME);
    if (mkdtemp(dir) == NULL) {
        tool_message("no table at the end, as '%s' cannot be made: %m", dir);
        free(dir);
        return;
    }
    run->report_dir = dir;
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

static int tool_run_start(tool_run_t *run, tool_launcher_t launcher,
                          char *const *command)
{
    int status, started;

    if (run->report_dir == NULL) {
        return tool_job_exec(command);
    }

    status = tool_job_wait(command, &started);
    if (started) {
        tool_report_finish_run(run->report_dir,
                               tool_launcher_names_hosts(launcher,
                                                         run->command));
    }
    tool_report_remove_dir(run->report_dir);
    return status;
}

int tool_run_main(int argc, char **argv)
{
    tool_run_t run            = {};
    tool_list_t names         = TOOL_LIST_INITIALIZER;
    tool_list_t command       = TOOL_LIST_INITIALIZER;
    tool_launcher_t launcher  = TOOL_LAUNCHER_NONE;
    char *path;
    int status;

    status = tool_run_parse(&run, argc, argv);
    if (status >= 0) {
        return status;
    }

    path = tool_launcher_resolve(run.command[0]);
    if (path != NULL) {
        launcher = tool_launcher_detect(path);
    }
    free(path);

    run.library = tool_library_find(run.pipeline, run.firehose, launcher);
    if (run.library == NULL) {
        return TOOL_EXIT_FAILED;
    }

    tool_run_warn_report(&run, launcher);
    tool_run_make_report_dir(&run);
    tool_run_set_environment(&run, &names);
    tool_launcher_adapt(launcher, run.command, &names, run.library, &command);
    if (run.verbose) {
        tool_run_print(&names, launcher, &command);
    }

    status = tool_run_start(&run, launcher, command.items);
    tool_list_cleanup(&command);
    tool_list_cleanup(&names);
    free(run.report_dir);
    free(run.library);
    return status;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "job.h"
#include "launcher.h"
#include "library.h"
#include <tools/report/report.h>
#include "settings.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Transports with which large messages go through the software NIC */
#define TOOL_SOFTWARE_NIC_TLS "posix,sysv,cma,self"

#define TOOL_PRELOAD "LD_PRELOAD"

#define TOOL_ENV_TRACE "UCX_MD_HELPER_TRACE"

/* One file a process: the rank first, so that they list in its order; the rest
 * keeps a second run, or a rank that nobody numbered, from writing over it */
#define TOOL_TRACE_NAME "rank%r.%h.%p.trace"

/* Values of getopt_long beyond the settings' indices */
enum {
    TOOL_RUN_OPT_SOFTWARE_NIC = TOOL_SETTING_COUNT,
    TOOL_RUN_OPT_TRACE,
    TOOL_RUN_OPT_VERBOSE,
    TOOL_RUN_OPT_HELP,
    TOOL_RUN_OPT_COUNT
};

extern char **environ;

typedef struct tool_run {
    const char  *values[TOOL_SETTING_COUNT]; /* NULL where not given */
    const char  *trace;                      /* folder, NULL: no trace */
    int         software_nic;
    int         verbose;
    char *const *command;
    char        *library;
    char        *report_dir; /* our own, NULL when ranks report elsewhere */
} tool_run_t;


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
    printf("  %-24s %s\n  %-24s %s\n  %-24s %s\n  %-24s %s\n\n"
           "Without --report the ranks' reports are merged into one table, "
           "which goes to\nstderr when the command ends. See "
           "ucx-helper(1).\n",
           "--trace DIR", "record a trace of each rank in this folder",
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

/* The report as the ranks will see it, NULL when there is none */
static const char *tool_run_report(const tool_run_t *run)
{
    const tool_setting_t *setting = tool_setting_of(TOOL_ENV_REPORT);
    const char *value             = run->values[setting - tool_settings];

    if (value == NULL) {
        value = getenv(TOOL_ENV_REPORT);
    }
    return ((value == NULL) || (*value == '\0')) ? NULL : value;
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

static void tool_run_set_preload(const tool_run_t *run)
{
    const char *old = getenv(TOOL_PRELOAD);
    char *preload;

    preload = ((old != NULL) && (*old != '\0')) ?
                      tool_format("%s:%s", run->library, old) :
                      tool_strdup(run->library);
    setenv(TOOL_PRELOAD, preload, 1);
    free(preload);
}

/* A % of a folder's name must not be expanded by the ranks */
static char *tool_run_quote_percent(const char *path)
{
    char *quoted = tool_realloc(NULL, (2 * strlen(path)) + 1);
    char *p      = quoted;

    for (; *path != '\0'; ++path) {
        *p++ = *path;
        if (*path == '%') {
            *p++ = '%';
        }
    }
    *p = '\0';
    return quoted;
}

static void tool_run_set_report(const tool_run_t *run)
{
    const char *report = tool_run_report(run);
    char *dir, *value;

    if ((report != NULL) && !strcasecmp(report, TOOL_REPORT_NONE)) {
        unsetenv(TOOL_ENV_REPORT);
    } else if (run->report_dir != NULL) {
        dir   = tool_run_quote_percent(run->report_dir);
        value = tool_format("json:%s/%%h.%%p.json", dir);
        setenv(TOOL_ENV_REPORT, value, 1);
        free(value);
        free(dir);
    }
}

/* Ranks may start in another folder, so the path is made absolute. A folder
 * that cannot be had is said, and the job runs, as with a report. */
static void tool_run_set_trace(const tool_run_t *run)
{
    char *path, *quoted, *value;

    if (run->trace == NULL) {
        return;
    }
    if ((mkdir(run->trace, 0777) != 0) && (errno != EEXIST)) {
        tool_message("the trace's folder '%s' cannot be made: %m", run->trace);
    }

    path   = realpath(run->trace, NULL);
    quoted = tool_run_quote_percent((path != NULL) ? path : run->trace);
    value  = tool_format("%s/%s", quoted, TOOL_TRACE_NAME);
    if ((path == NULL) || (access(path, W_OK | X_OK) != 0)) {
        tool_message("the trace's folder '%s' cannot be written here: %m",
                     run->trace);
    }
    setenv(TOOL_ENV_TRACE, value, 1);
    free(value);
    free(quoted);
    free(path);
}

/* Open MPI's defaults would not use UCX without an RDMA device */
static void tool_run_set_software_nic(tool_list_t *names)
{
    static const char *const variables[][2] = {
        {"OMPI_MCA_pml", "ucx"},
        {"OMPI_MCA_pml_ucx_tls", "any"},
        {"OMPI_MCA_pml_ucx_devices", "any"},
        {"OMPI_MCA_btl", "^openib,ofi"}
    };
    size_t i;

    setenv(TOOL_ENV_PIN, "y", 1);
    setenv("UCX_TLS", TOOL_SOFTWARE_NIC_TLS, 0);
    tool_list_add(names, "UCX_TLS");
    for (i = 0; i < (sizeof(variables) / sizeof(variables[0])); ++i) {
        setenv(variables[i][0], variables[i][1], 0);
    }
}

/* Set the environment; names receives the variables that ranks need */
static void tool_run_set_environment(const tool_run_t *run, tool_list_t *names)
{
    static const char *const prefixes[] = {TOOL_ENV_HELPER, TOOL_ENV_PIN,
                                           "HELPER_MD_MODULE_PATH"};
    char **variable;
    char *name;
    size_t i;

    for (i = 0; i < TOOL_SETTING_COUNT; ++i) {
        if (run->values[i] != NULL) {
            setenv(tool_settings[i].variable, run->values[i], 1);
        }
    }

    setenv(TOOL_ENV_HELPER, "y", 1);
    tool_run_set_report(run);
    tool_run_set_trace(run);
    tool_run_set_preload(run);
    tool_list_add(names, TOOL_PRELOAD);
    if (run->software_nic) {
        tool_run_set_software_nic(names);
    }

    for (variable = environ; *variable != NULL; ++variable) {
        for (i = 0; i < (sizeof(prefixes) / sizeof(prefixes[0])); ++i) {
            if (!strncmp(*variable, prefixes[i], strlen(prefixes[i]))) {
                name = tool_format("%.*s", (int)strcspn(*variable, "="),
                                   *variable);
                tool_list_add_unique(names, name);
                free(name);
            }
        }
    }
    tool_list_sort(names);
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

    run.library = tool_library_find();
    if (run.library == NULL) {
        return TOOL_EXIT_FAILED;
    }

    path = tool_launcher_resolve(run.command[0]);
    if (path != NULL) {
        launcher = tool_launcher_detect(path);
    }
    free(path);

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

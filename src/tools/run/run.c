/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "run.h"

#include <tools/doctor/doctor.h>
#include <tools/report/report.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOOL_RUN_OFFSET(_field) offsetof(tool_run_t, _field)

static const tool_option_t tool_run_options[] = {
    {"trace", tool_option_text, TOOL_RUN_OFFSET(trace), NULL,
     "DIR               record a trace of each rank in this folder"},
    {"pipeline", NULL, TOOL_RUN_OFFSET(pipeline), NULL,
     "               MPI programs' long messages go by the RDMA pipeline"},
    {"firehose", NULL, TOOL_RUN_OFFSET(firehose), NULL,
     "               MPI programs' puts to dynamic windows go by firehose"},
    {"software-nic", NULL, TOOL_RUN_OFFSET(software_nic), NULL,
     "           pin for real on a machine without RDMA"},
    {"verbose", NULL, TOOL_RUN_OFFSET(verbose), NULL,
     "                say what is set and run"},
    {}
};

/* Of each setting the value, which is checked later */
static void tool_run_settings(tool_option_t *options)
{
    int i;

    for (i = 0; i < TOOL_SETTING_COUNT; ++i) {
        options[i] = (tool_option_t){
            tool_settings[i].name, tool_option_text,
            TOOL_RUN_OFFSET(values) + i * sizeof(const char*), NULL,
            tool_settings[i].help
        };
    }
}

void tool_run_help(FILE *stream)
{
    tool_option_t settings[TOOL_SETTING_COUNT + 1] = {};

    tool_run_settings(settings);
    tool_options_help(settings, stream);
    tool_options_help(tool_run_options, stream);
}

static void tool_run_usage(FILE *stream)
{
    fprintf(stream,
            "Usage: %s run [option]... [--] COMMAND [argument]...\n\n"
            "Run a program, or an MPI job by its launcher, with the "
            "helper.\n\n",
            TOOL_NAME);
    tool_run_help(stream);
    fprintf(stream,
            "  --help                   show this text\n\n"
            "Without --report the ranks' reports are merged into one table, "
            "which goes to\nstderr when the command ends. See "
            "ucx-helper(1).\n");
}

static int tool_run_check(const tool_run_t *run, const char *name)
{
    int i;

    for (i = 0; i < TOOL_SETTING_COUNT; ++i) {
        if ((run->values[i] != NULL) &&
            (tool_setting_check(&tool_settings[i], run->values[i]) != 0)) {
            return -1;
        }
    }
    if ((run->trace != NULL) && (*run->trace == '\0')) {
        return tool_options_refuse("trace", "", "a folder");
    }
    if (*run->command == NULL) {
        tool_message("no command given (see %s %s --help)", TOOL_NAME, name);
        return -1;
    }
    if ((run->values[TOOL_SETTING_PIN_COST] != NULL) && !run->software_nic &&
        (getenv(TOOL_ENV_PIN) == NULL)) {
        tool_message("option --pin-cost needs --software-nic");
        return -1;
    }
    return 0;
}

int tool_run_parse(tool_run_t *run, int argc, char **argv,
                   tool_options_t more, void (*usage)(FILE *stream))
{
    tool_option_t settings[TOOL_SETTING_COUNT + 1] = {};
    int status;

    tool_run_settings(settings);
    status = tool_options_parse(argc, argv, "+", (const tool_options_t[]){
            {settings, run}, {tool_run_options, run}, more, {}}, usage);
    if (status >= 0) {
        return status;
    }
    run->command = argv + optind;
    if (tool_run_check(run, argv[0]) != 0) {
        return TOOL_EXIT_USAGE;
    }
    run->launcher = tool_launcher_detect(run->command[0], NULL);
    run->library  = tool_library_find(run->pipeline, run->firehose,
                                      run->launcher);
    return (run->library != NULL) ? -1 : TOOL_EXIT_FAILED;
}

/* What would lose a report that the user asked for is said at once; the job
 * runs all the same, as it would with a report that fails later */
static void tool_run_warn_report(const tool_run_t *run)
{
    const char *report = tool_run_report(run);
    const char *file   = (report != NULL) ? tool_report_option_file(report) :
                                            NULL;
    const char *slash;
    char *dir;

    if (file == NULL) {
        return;
    }

    if ((run->launcher != TOOL_LAUNCHER_NONE) && (strstr(file, "%p") == NULL) &&
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

static int tool_run_start(const tool_run_t *run, char *const *command)
{
    int other_hosts = tool_launcher_names_hosts(run->launcher, run->command);
    int status, started;

    if (run->report_dir == NULL) {
        return tool_job_exec(command);
    }

    status = tool_job_wait(command, &started);
    if (started && (tool_report_finish_run(run->report_dir, other_hosts) == 0) &&
        !other_hosts) {
        tool_doctor_short(run);
    }
    tool_report_remove_dir(run->report_dir);
    return status;
}

int tool_run_main(int argc, char **argv)
{
    tool_run_t run      = {};
    tool_list_t command = TOOL_LIST_INITIALIZER;
    int status;

    status = tool_run_parse(&run, argc, argv, (tool_options_t){},
                            tool_run_usage);
    if (status < 0) {
        tool_run_warn_report(&run);
        if (tool_run_report(&run) == NULL) {
            run.report_dir = tool_run_make_dir();
        }
        tool_run_prepare(&run, &command);
        status = tool_run_start(&run, command.items);
    }
    tool_list_cleanup(&command);
    free(run.report_dir);
    free(run.library);
    return status;
}

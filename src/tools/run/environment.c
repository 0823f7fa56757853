/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Transports with which large messages go through the software NIC */
#define TOOL_SOFTWARE_NIC_TLS "posix,sysv,cma,self"

#define TOOL_PRELOAD "LD_PRELOAD"

/* A program that is compiled with AddressSanitizer does not start behind another preloaded
 * library, unless this option says that the order is meant */
#define TOOL_ENV_ASAN   "ASAN_OPTIONS"
#define TOOL_ASAN_ORDER "verify_asan_link_order"

/* One file a process: the rank first, so that they list in its order; the rest
 * keeps a second run, or a rank that nobody numbered, from writing over it */
#define TOOL_TRACE_NAME "rank%r.%h.%p.trace"

extern char **environ;

/* Before what is there */
static void tool_run_put_first(const char *variable, const char *text)
{
    const char *old = getenv(variable);
    char *both;

    both = ((old != NULL) && (*old != '\0')) ? tool_format("%s:%s", text, old) :
                                               tool_strdup(text);
    setenv(variable, both, 1);
    free(both);
}

/* For what runs on this host: to export it to others would clutter each command line for
 * the sake of few */
static void tool_run_set_asan(void)
{
    const char *old = getenv(TOOL_ENV_ASAN);

    if ((old == NULL) || (strstr(old, TOOL_ASAN_ORDER) == NULL)) {
        tool_run_put_first(TOOL_ENV_ASAN, TOOL_ASAN_ORDER "=0");
    }
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
    const char *report = getenv(TOOL_ENV_REPORT);
    char *dir, *value;

    if (run->report_dir != NULL) {
        dir   = tool_run_quote_percent(run->report_dir);
        value = tool_format("json:%s/%%h.%%p.json", dir);
        setenv(TOOL_ENV_REPORT, value, 1);
        free(value);
        free(dir);
    } else if ((report != NULL) && !strcasecmp(report, TOOL_REPORT_NONE)) {
        unsetenv(TOOL_ENV_REPORT);
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
        {"UCX_TLS", TOOL_SOFTWARE_NIC_TLS},
        {"OMPI_MCA_pml", "ucx"},
        {"OMPI_MCA_pml_ucx_tls", "any"},
        {"OMPI_MCA_pml_ucx_devices", "any"},
        {"OMPI_MCA_btl", "^openib,ofi"}
    };
    size_t i;

    setenv(TOOL_ENV_PIN, "y", 1);
    tool_list_add(names, "UCX_TLS");
    for (i = 0; i < (sizeof(variables) / sizeof(variables[0])); ++i) {
        setenv(variables[i][0], variables[i][1], 0);
    }
}

void tool_run_set_environment(const tool_run_t *run, tool_list_t *names)
{
    static const char *const prefixes[] = {TOOL_ENV_HELPER, TOOL_ENV_PIN,
                                           "HELPER_MD_MODULE_PATH",
                                           "HELPER_MD_SITE_FILE",
                                           "HELPER_MD_PIPELINE",
                                           "FIREHOSE_MPI"};
    char **variable;
    char *name;
    size_t i;

    setenv(TOOL_ENV_HELPER, "y", 1);
    tool_run_set_report(run);
    tool_run_set_trace(run);
    tool_run_put_first(TOOL_PRELOAD, run->library);
    tool_run_set_asan();
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

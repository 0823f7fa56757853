/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "doctor.h"

#include <tools/tool.h>

#include <stdlib.h>
#include <string.h>

/* A probe that hangs is ended after so many seconds */
#define TOOL_DOCTOR_SECONDS 20

#define TOOL_DOCTOR_ANSWER "probe: "

/* What the helper, UCX and the software NIC log, by words of theirs; the first that
 * fits counts */
static const struct {
    const char          *words;
    tool_doctor_level_t level;
    const char          *name;
    const char          *cure;
} tool_doctor_said[] = {
    {"helper with policy", TOOL_DOCTOR_OK, "helper", NULL},
    {"cannot be loaded", TOOL_DOCTOR_STOPS, "library",
     "reinstall; ldd on libuct_helper_md.so names what it lacks"},
    {"the helper knows", TOOL_DOCTOR_STOPS, "UCX",
     "use a UCX that docs/matrix.md lists, or a later helper"},
    {"is not valid, allowed", TOOL_DOCTOR_STOPS, "option",
     "correct the variable, or unset it"},
    {"is no site file", TOOL_DOCTOR_STOPS, "site file",
     "correct HELPER_MD_SITE_FILE, or make the file readable"},
    {"is no NAME=VALUE", TOOL_DOCTOR_STOPS, "site file",
     "correct that line: docs/cluster.md"},
    {"names no option of the helper's", TOOL_DOCTOR_STOPS, "site file",
     "correct that line; other variables of UCX's go into ucx.conf"},
    {"unused env", TOOL_DOCTOR_ATTENTION, "environment",
     "a mistyped variable has no effect: docs/options.md has them all"},
    {"keeps all memory registered above", TOOL_DOCTOR_STOPS, "cache",
     "unset UCX_RCACHE_ENABLE, or set it to n"},
    {"it keeps all memory registered", TOOL_DOCTOR_STOPS, "cache",
     "unset UCX_IB_REG_METHODS, or set it to direct"},
    {"unmapped memory would be missed", TOOL_DOCTOR_STOPS, "hooks",
     "unset UCX_MEM_*; look for another library that patches munmap()"},
    {"has taken its place", TOOL_DOCTOR_ATTENTION, "hooks",
     "load that library before MPI starts, or leave it out"},
    {"UCX's hooks alone", TOOL_DOCTOR_ATTENTION, "userfaultfd",
     "sysctl vm.unprivileged_userfaultfd=1, or allow it in the container; until "
     "then raw system calls are missed"},
    {"refuses a helper thread", TOOL_DOCTOR_STOPS, "threads",
     "raise ulimit -u, or the cgroup's pids.max"},
    {"MADV_DONTFORK", TOOL_DOCTOR_ATTENTION, "fork",
     "use Linux 5.12 or later, preload, unset RDMAV_FORK_SAFE"},
    {"max_map_count", TOOL_DOCTOR_ATTENTION, "mappings",
     "raise vm.max_map_count"},
    {"processors can be had", TOOL_DOCTOR_ATTENTION, "processors",
     "name some of the job's own in UCX_MD_HELPER_CPU, or unset it"},
    {"cannot be written", TOOL_DOCTOR_ATTENTION, "file",
     "name a regular file in a folder that can be written"},
    {"io_uring", TOOL_DOCTOR_STOPS, "software NIC",
     "sysctl kernel.io_uring_disabled=0, or allow io_uring in the container"},
    {"memlock limit is", TOOL_DOCTOR_ATTENTION, "memlock",
     "raise ulimit -l, or set UCX_MD_HELPER_MAX_PINNED below it"},
    {"stays off", TOOL_DOCTOR_STOPS, "helper", "see docs/troubles.md"},
    {"stay off", TOOL_DOCTOR_STOPS, "helper", "see docs/troubles.md"},
    {NULL, TOOL_DOCTOR_OK, NULL, NULL}
};

typedef struct tool_doctor_question {
    const tool_run_t *run;
    const char       *what;
} tool_doctor_question_t;

/* The probe's environment is a rank's; what registering takes is seen below the
 * helper */
static void tool_doctor_prepare(void *arg)
{
    const tool_doctor_question_t *question = arg;
    tool_run_t run    = {.software_nic = question->run->software_nic,
                         .library = tool_library_find(0, 0, TOOL_LAUNCHER_NONE)};
    tool_list_t names = TOOL_LIST_INITIALIZER;

    tool_run_set_environment(&run, &names);
    unsetenv(TOOL_ENV_TRACE);
    setenv("UCX_LOG_LEVEL", "warn", 1);
    if (!strcmp(question->what, "cost")) {
        setenv(TOOL_ENV_HELPER, "n", 1);
        setenv("UCX_IB_REG_METHODS", "direct", 1);
    } else {
        setenv("UCX_MD_HELPER_LOG", "debug", 0);
    }
}

static char *tool_doctor_ask(const tool_run_t *run, const char *what)
{
    tool_doctor_question_t question = {run, what};
    char *const argv[] = {"/proc/self/exe", "doctor", "--probe", (char*)what,
                          NULL};

    return tool_job_ask(argv, TOOL_DOCTOR_SECONDS, tool_doctor_prepare,
                        &question);
}

/* UCX puts time, host and place in front: [time] [host:pid] file:line COMPONENT
 * LEVEL */
static const char *tool_doctor_message(const char *line)
{
    int i;

    if (*line != '[') {
        return line;
    }
    for (i = 0; (i < 2) && (strstr(line, "] ") != NULL); ++i) {
        line = strstr(line, "] ") + 2;
    }
    for (i = 0; i < 3; ++i) {
        line += strspn(line, " ");
        line += strcspn(line, " ");
    }
    return line + strspn(line, " ");
}

static void tool_doctor_hear(tool_doctor_t *doctor, const char *message)
{
    int i;

    for (i = 0; (tool_doctor_said[i].words != NULL) &&
                (strstr(message, tool_doctor_said[i].words) == NULL); ++i) {
    }
    if (tool_doctor_said[i].words != NULL) {
        tool_doctor_say(doctor, tool_doctor_said[i].level,
                        tool_doctor_said[i].name, tool_doctor_said[i].cure,
                        tool_strdup(message));
    }
}

/* @return Nonzero if an answer of the probe begins so, with what follows */
static int tool_doctor_answers(const char *line, const char *word,
                               const char **rest_p)
{
    size_t length = strlen(word);

    if (strncmp(line, TOOL_DOCTOR_ANSWER, strlen(TOOL_DOCTOR_ANSWER)) ||
        strncmp(line + strlen(TOOL_DOCTOR_ANSWER), word, length)) {
        return 0;
    }
    *rest_p = line + strlen(TOOL_DOCTOR_ANSWER) + length;
    return 1;
}

static void tool_doctor_answer(tool_doctor_t *doctor, const char *line)
{
    const char *rest;

    if (tool_doctor_answers(line, "ucx ", &rest)) {
        tool_doctor_say(doctor, TOOL_DOCTOR_OK, "UCX", NULL, tool_strdup(rest));
    } else if (tool_doctor_answers(line, "none ", &rest)) {
        tool_doctor_say(doctor, TOOL_DOCTOR_STOPS, "UCX",
                        "install UCX (Debian: libucx0), or name its folder in "
                        "LD_LIBRARY_PATH", tool_strdup(rest));
    } else if (tool_doctor_answers(line, "failed ", &rest)) {
        tool_doctor_say(doctor, TOOL_DOCTOR_ATTENTION, "UCX",
                        "unset UCX_TLS and UCX_NET_DEVICES, or name what is "
                        "there (ucx_info -d)",
                        tool_format("does not start: %s", rest));
    } else {
        tool_doctor_hear(doctor, tool_doctor_message(line));
    }
}

static void tool_doctor_cost_line(tool_doctor_t *doctor, const char *name,
                                  const tool_doctor_cost_t *cost)
{
    char buf[4][TOOL_UNITS_MAX];

    tool_doctor_say(doctor, TOOL_DOCTOR_OK, "registering", NULL, tool_format(
            "%s: %s + %s a page, deregistering %s + %s a page%s", name,
            tool_units_print_seconds(cost->reg_ns * 1e-9, buf[0]),
            tool_units_print_seconds(cost->reg_page_ns * 1e-9, buf[1]),
            tool_units_print_seconds(cost->dereg_ns * 1e-9, buf[2]),
            tool_units_print_seconds(cost->dereg_page_ns * 1e-9, buf[3]),
            (getenv(TOOL_ENV_PIN_COST) != NULL) ?
                    " (MODELLED cost included)" : ""));
}

int tool_doctor_measure(tool_doctor_t *doctor, const char *domains,
                        tool_doctor_cost_t *cost)
{
    char *text       = tool_doctor_ask(doctor->run, "cost");
    char *rest       = text;
    tool_list_t seen = TOOL_LIST_INITIALIZER;
    int ret          = -1;
    tool_doctor_cost_t one;
    const char *words;
    char name[64], *line;

    while ((line = strsep(&rest, "\n")) != NULL) {
        if (tool_doctor_answers(line, "cost ", &words) &&
            (sscanf(words, "%63s %lf %lf %lf %lf", name, &one.reg_ns,
                    &one.reg_page_ns, &one.dereg_ns,
                    &one.dereg_page_ns) == 5)) {
            tool_doctor_cost_line(doctor, name, &one);
            if ((ret != 0) && (cost != NULL) &&
                ((domains == NULL) || (strstr(domains, name) != NULL))) {
                *cost = one;
                ret   = 0;
            }
        } else if (tool_doctor_answers(line, "refused ", &words)) {
            tool_doctor_say(doctor, TOOL_DOCTOR_ATTENTION, "registering",
                            "raise ulimit -l; look into the kernel's log",
                            tool_format("refused by %s", words));
        } else if (tool_doctor_answers(line, "domain ", &words)) {
            tool_list_add_unique(&seen, words);
        }
    }
    if (seen.count > 0) {
        tool_doctor_say(doctor, TOOL_DOCTOR_OK, "domains", NULL,
                        tool_list_join(&seen, ", "));
    }
    tool_list_cleanup(&seen);
    free(text);
    return ret;
}

/* UCX closes domains that no transport needs */
static int tool_doctor_is_kept(const tool_list_t *kept, const char *said)
{
    char *name = tool_format("%.*s", (int)strcspn(said, ":"), said);
    int is_kept;

    is_kept = tool_list_has(kept, strcmp(name, "pin") ? name : "cma");
    free(name);
    return is_kept;
}

void tool_doctor_ucx(tool_doctor_t *doctor)
{
    char *text       = tool_doctor_ask(doctor->run, "helper");
    char *rest       = text;
    tool_list_t kept = TOOL_LIST_INITIALIZER;
    int is_settled   = 0;
    int has_ended    = 0;
    const char *words;
    char name[64], *line;
    size_t i;

    while ((line = strsep(&rest, "\n")) != NULL) {
        tool_doctor_answer(doctor, line);
        has_ended |= tool_doctor_answers(line, "end", &words);
        if (sscanf(line, "# md %*d : component %*d %63s", name) == 1) {
            tool_list_add(&kept, name);
        }
    }
    free(text);
    if (!has_ended) {
        tool_doctor_say(doctor, TOOL_DOCTOR_STOPS, "UCX",
                        "see whether ucx_info -d ends, and without the device that "
                        "it hangs at (UCX_NET_DEVICES)",
                        tool_format("a process that opens it crashed, or did not end "
                                    "within %d s", TOOL_DOCTOR_SECONDS));
    }
    for (i = 0; i < doctor->count; ++i) {
        is_settled |= (doctor->lines[i].level == TOOL_DOCTOR_STOPS) ||
                      (!strcmp(doctor->lines[i].name, "helper") &&
                       tool_doctor_is_kept(&kept, doctor->lines[i].text));
    }
    if (!is_settled) {
        tool_doctor_say(doctor, TOOL_DOCTOR_STOPS, "helper",
                        "with an RDMA device: unset UCX_TLS and "
                        "UCX_NET_DEVICES; without one, on one host: "
                        "--software-nic",
                        tool_strdup("UCX keeps no memory domain open that "
                                    "registers"));
    }
    tool_list_cleanup(&kept);
    (void)tool_doctor_measure(doctor, NULL, NULL);
}

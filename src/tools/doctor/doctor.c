/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "doctor.h"

#include <tools/report/report.h>
#include <tools/tool.h>
#include <ucs/sys/math.h>

#include <glob.h>
#include <jansson.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *const tool_doctor_levels[] = {
    [TOOL_DOCTOR_OK]        = "ok",
    [TOOL_DOCTOR_ATTENTION] = "attention",
    [TOOL_DOCTOR_STOPS]     = "stops the helper"
};

typedef struct tool_doctor_command {
    tool_run_t run;
    int        is_json;
    int        is_probe; /* the process that opens UCX */
    const char *file;    /* for an issue, or NULL */
} tool_doctor_command_t;

void tool_doctor_say(tool_doctor_t *doctor, tool_doctor_level_t level,
                     const char *name, const char *cure, char *text)
{
    size_t i;

    tool_string_sanitize(text);
    for (i = 0; i < doctor->count; ++i) {
        if (!strcmp(doctor->lines[i].text, text)) { /* of several domains */
            free(text);
            return;
        }
    }
    doctor->lines = tool_grow(doctor->lines, doctor->count, &doctor->capacity,
                              sizeof(*doctor->lines));
    doctor->lines[doctor->count++] = (tool_doctor_line_t){
        level, name, text, (level == TOOL_DOCTOR_OK) ? NULL : cure
    };
}

void tool_doctor_cleanup(tool_doctor_t *doctor)
{
    size_t i;

    for (i = 0; i < doctor->count; ++i) {
        free(doctor->lines[i].text);
    }
    free(doctor->lines);
}

static size_t tool_doctor_count(const tool_doctor_t *doctor,
                                tool_doctor_level_t level)
{
    size_t count = 0;
    size_t i;

    for (i = 0; i < doctor->count; ++i) {
        count += doctor->lines[i].level == level;
    }
    return count;
}

/* Lines of this level and above */
static void tool_doctor_print(const tool_doctor_t *doctor,
                              tool_doctor_level_t level, FILE *stream)
{
    const tool_doctor_line_t *line;

    for (line = doctor->lines; line < doctor->lines + doctor->count; ++line) {
        if (line->level < level) {
            continue;
        }
        fprintf(stream, "%-16s  %s: %s\n", tool_doctor_levels[line->level],
                line->name, line->text);
        if (line->cure != NULL) {
            fprintf(stream, "%-16s  -> %s\n", "", line->cure);
        }
    }
}

static void tool_doctor_print_all(const tool_doctor_t *doctor, FILE *stream)
{
    fprintf(stream, "%s %s\n", TOOL_NAME, PACKAGE_VERSION);
    tool_doctor_print(doctor, TOOL_DOCTOR_OK, stream);
}

static void tool_doctor_print_json(const tool_doctor_t *doctor)
{
    json_t *lines  = json_array();
    json_t *object = json_pack(
            "{s:i,s:I,s:I,s:o}", "version", 1, "attention",
            (json_int_t)tool_doctor_count(doctor, TOOL_DOCTOR_ATTENTION),
            "stops", (json_int_t)tool_doctor_count(doctor, TOOL_DOCTOR_STOPS),
            "lines", lines);
    size_t i;

    for (i = 0; i < doctor->count; ++i) {
        json_array_append_new(lines, json_pack(
                "{s:s,s:s,s:o,s:s?}",
                "level", tool_doctor_levels[doctor->lines[i].level],
                "name", doctor->lines[i].name,
                "text", tool_report_string(doctor->lines[i].text),
                "cure", doctor->lines[i].cure));
    }
    json_dumpf(object, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(object);
}

/* --- The file for an issue ------------------------------------------------ */

/* A path of the system's tells nothing of who uses it */
static int tool_doctor_is_public(const char *path)
{
    static const char *const roots[] = {"/usr/", "/lib", "/dev/", "/proc/",
                                        "/sys/", "/etc/", "/opt/", NULL};
    int i;

    for (i = 0; (roots[i] != NULL) &&
                strncmp(path, roots[i], strlen(roots[i])); ++i) {
    }
    return roots[i] != NULL;
}

/* Names of host and user stand in paths alone: what UCX puts in front of a line is
 * left out */
static void tool_doctor_write_scrubbed(const char *text, FILE *stream)
{
    int begins = 1; /* a word, or what stands behind a mark */

    for (; *text != '\0'; ++text) {
        if (begins && (*text == '/') && !tool_doctor_is_public(text)) {
            text += strcspn(text, " '\",;)\n") - 1;
            fputs("<path>", stream);
        } else {
            fputc(*text, stream);
        }
        begins = strchr(" '\"=:(,;\n", *text) != NULL;
    }
}

/* @return 0, or -1 after a message */
static int tool_doctor_write(const tool_doctor_t *doctor, const char *file)
{
    char *text = NULL;
    size_t size;
    FILE *stream;
    int ret;

    stream = open_memstream(&text, &size);
    if (stream == NULL) {
        tool_out_of_memory();
    }
    tool_doctor_print_all(doctor, stream);
    fclose(stream);

    stream = fopen(file, "w");
    if (stream != NULL) {
        tool_doctor_write_scrubbed(text, stream);
    }
    ret = ((stream == NULL) || (fclose(stream) != 0)) ? -1 : 0;
    if (ret != 0) {
        tool_message("--report: '%s' cannot be written: %m", file);
    }
    free(text);
    return ret;
}

/* --- What needs no UCX: limits, kernel, devices, processors --------------- */

#define TOOL_DOCTOR_VERBS_SECONDS 5

/* What is in a small file of the kernel's, until the next call; empty if it cannot
 * be read */
static const char *tool_doctor_read(const char *path)
{
    static char text[4096];
    FILE *stream = fopen(path, "r");
    size_t got   = 0;

    if (stream != NULL) {
        got = fread(text, 1, sizeof(text) - 1, stream);
        fclose(stream);
    }
    text[got] = '\0';
    return text;
}

/* What follows a name in /proc/self/status */
static unsigned long long tool_doctor_status(const char *name, int base)
{
    const char *at = strstr(tool_doctor_read("/proc/self/status"), name);

    return (at != NULL) ? strtoull(at + strlen(name), NULL, base) : 0;
}

static void tool_doctor_kernel(tool_doctor_t *doctor)
{
    int is_container = (access("/.dockerenv", F_OK) == 0) ||
                       (access("/run/.containerenv", F_OK) == 0) ||
                       (getenv("container") != NULL);
    int is_filtered  = tool_doctor_status("Seccomp:", 10) > 0;
    const char *pages;
    struct utsname name;

    uname(&name);
    pages = tool_doctor_read("/sys/kernel/mm/transparent_hugepage/enabled");
    tool_doctor_say(doctor, TOOL_DOCTOR_OK, "kernel", NULL, tool_format(
            "%s %s %s%s%s; huge pages %.*s", name.sysname, name.release,
            name.machine, is_container ? ", in a container" : "",
            is_filtered ? ", under a seccomp filter" : "",
            (int)strcspn(pages, "\n"), pages));
}

static void tool_doctor_memlock(tool_doctor_t *doctor)
{
    int is_free = (tool_doctor_status("CapEff:", 16) >>
                   CAP_IPC_LOCK) & 1; /* what it locks is not counted */
    struct rlimit limit;
    char buf[TOOL_UNITS_MAX];

    getrlimit(RLIMIT_MEMLOCK, &limit);
    is_free |= limit.rlim_cur == RLIM_INFINITY;
    tool_doctor_say(doctor, !is_free, "memlock",
                    "raise ulimit -l (limits.conf, LimitMEMLOCK), or set "
                    "UCX_MD_HELPER_MAX_PINNED below it",
                    tool_format("%s may be locked", is_free ? "all memory" :
                                tool_units_print_bytes(limit.rlim_cur, buf)));
}

/* By this process's mask and its cgroup */
static void tool_doctor_cpus(tool_doctor_t *doctor)
{
    double cpus = sysconf(_SC_NPROCESSORS_ONLN);
    double quota, period;
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        cpus = CPU_COUNT(&set);
    }
    if (sscanf(tool_doctor_read("/sys/fs/cgroup/cpu.max"), "%lf %lf", &quota,
               &period) == 2) {
        cpus = ucs_min(cpus, quota / period);
    }
    tool_doctor_say(doctor, cpus < 2, "processors",
                    "give the job more than its ranks use, do not bind ranks to "
                    "one core, or set UCX_MD_HELPER_POLICY=rent",
                    tool_format("%.3g may be used; the helper takes what ranks "
                                "leave", cpus));
}

/* What ibv_devinfo says of each device, a line "key: value" each */
static void tool_doctor_devices(tool_doctor_t *doctor)
{
    char *const argv[] = {"ibv_devinfo", "-v", NULL};
    char *text         = tool_job_ask(argv, TOOL_DOCTOR_VERBS_SECONDS,
                                      NULL, NULL);
    char *rest         = text;
    char device[64]    = "", max[64] = "", value[64];
    const char *odp    = "";
    char *line;

    while ((line = strsep(&rest, "\n")) != NULL) {
        if (sscanf(line, " hca_id: %63s", device) == 1) {
            odp = "no ODP";
        }
        if (strstr(line, "ODP_SUPPORT") != NULL) {
            odp = "ODP (not used: the helper pins)";
        }
        (void)sscanf(line, " max_mr: %63s", max);
        if (sscanf(line, " state: %63s", value) == 1) { /* of a port */
            tool_doctor_say(doctor, strcmp(value, "PORT_ACTIVE") != 0, "device",
                            "bring the link up: UCX leaves such a port out",
                            tool_format("%s: %s, max_mr %s, %s", device, value,
                                        max, odp));
        }
    }
    free(text);
}

static void tool_doctor_machine(tool_doctor_t *doctor)
{
    tool_doctor_kernel(doctor);
    tool_doctor_devices(doctor);
    tool_doctor_memlock(doctor);
    tool_doctor_cpus(doctor);
}

/* --- The MPI, and variables of others ------------------------------------- */

#define TOOL_DOCTOR_MPI_SECONDS 10

/* Before the version, in Hydra's second line; Open MPI's is its first */
#define TOOL_DOCTOR_HYDRA "Version:"

/* Variables of others that keep UCX, or what it registers, from the helper: set to
 * anything else than the word, if there is one */
static const struct {
    const char *variable;
    const char *fine;
    const char *text;
    const char *cure;
} tool_doctor_variables[] = {
    {"OMPI_MCA_pml", "ucx", "Open MPI sends without UCX",
     "set OMPI_MCA_pml=ucx, or unset it where there is an RDMA device"},
    {"MPIR_CVAR_CH4_NETMOD", "ucx", "MPICH sends without UCX",
     "unset MPIR_CVAR_CH4_NETMOD, or set it to ucx"},
    {"RDMAV_FORK_SAFE", NULL, "registered memory is kept from children",
     "unset RDMAV_FORK_SAFE: Linux 5.12 and later copy registered pages"},
    {"IBV_FORK_SAFE", NULL, "registered memory is kept from children",
     "unset IBV_FORK_SAFE: Linux 5.12 and later copy registered pages"},
    {NULL, NULL, NULL, NULL}
};

static void tool_doctor_environment(tool_doctor_t *doctor)
{
    const char *value;
    int i;

    for (i = 0; tool_doctor_variables[i].variable != NULL; ++i) {
        value = getenv(tool_doctor_variables[i].variable);
        if ((value != NULL) && ((tool_doctor_variables[i].fine == NULL) ||
                                strcmp(value, tool_doctor_variables[i].fine))) {
            tool_doctor_say(doctor, TOOL_DOCTOR_ATTENTION, "environment",
                            tool_doctor_variables[i].cure,
                            tool_format("%s=%s: %s",
                                        tool_doctor_variables[i].variable, value,
                                        tool_doctor_variables[i].text));
        }
    }
}

static void tool_doctor_openmpi(tool_doctor_t *doctor)
{
    char *const argv[] = {"ompi_info", NULL};
    char *text         = tool_job_ask(argv, TOOL_DOCTOR_MPI_SECONDS, NULL,
                                      NULL);
    glob_t devices;

    if ((*text != '\0') && (strstr(text, "MCA pml: ucx") == NULL)) {
        tool_doctor_say(doctor, TOOL_DOCTOR_STOPS, "MPI",
                        "use an Open MPI that is built with UCX",
                        tool_strdup("this Open MPI is built without UCX"));
    } else if ((glob("/sys/class/infiniband/*", 0, NULL, &devices) != 0) &&
               !doctor->run->software_nic && (getenv("OMPI_MCA_pml") == NULL)) {
        tool_doctor_say(doctor, TOOL_DOCTOR_ATTENTION, "MPI",
                        "on one host run --software-nic; else set "
                        "OMPI_MCA_pml=ucx, OMPI_MCA_pml_ucx_tls=any, "
                        "OMPI_MCA_pml_ucx_devices=any",
                        tool_strdup("without an RDMA device Open MPI does not "
                                    "take UCX"));
    }
    free(text);
}

static void tool_doctor_mpi(tool_doctor_t *doctor, const char *launcher)
{
    char *text, *version;
    tool_launcher_t kind = tool_launcher_detect(launcher, &text);

    if (kind == TOOL_LAUNCHER_NONE) {
        free(text);
        tool_doctor_say(doctor, TOOL_DOCTOR_ATTENTION, "MPI",
                        "load its module; ucx-helper doctor LAUNCHER looks at "
                        "another", tool_format("'%s' is no MPI's launcher",
                                               launcher));
        tool_doctor_environment(doctor);
        return;
    }

    version = strstr(text, TOOL_DOCTOR_HYDRA);
    version = (version == NULL) ? text :
              version + strlen(TOOL_DOCTOR_HYDRA) +
                      strspn(version + strlen(TOOL_DOCTOR_HYDRA), " ");
    if (strstr(text, "ch4:ofi") != NULL) {
        tool_doctor_say(doctor, TOOL_DOCTOR_STOPS, "MPI",
                        "use an MPICH that is built with ch4:ucx",
                        tool_strdup("this MPICH is built for libfabric "
                                    "(ch4:ofi)"));
    } else {
        tool_doctor_say(doctor, TOOL_DOCTOR_OK, "MPI", NULL,
                        tool_format("%s, %s: %.*s", launcher,
                                    tool_launcher_name(kind),
                                    (int)strcspn(version, "\n"), version));
    }
    free(text);
    if (kind == TOOL_LAUNCHER_OPENMPI) {
        tool_doctor_openmpi(doctor);
    }
    tool_doctor_environment(doctor);
}

/* --- The command ---------------------------------------------------------- */

static const tool_usage_t tool_doctor_usage = {
    "[LAUNCHER]",
    "Look at this machine and say what keeps the helper from working, and what to do. "
    "LAUNCHER is the MPI's, mpirun. The exit status is 1 when something stops the "
    "helper."
};

#define TOOL_DOCTOR_OFFSET(_field) offsetof(tool_doctor_command_t, _field)

static const tool_option_t tool_doctor_options[] = {
    {"json", NULL, TOOL_DOCTOR_OFFSET(is_json), NULL,
     " print one JSON object", NULL},
    {"report", tool_option_text, TOOL_DOCTOR_OFFSET(file), NULL,
     "FILE write a file for an issue, without names and paths of yours", NULL},
    {"software-nic", NULL, TOOL_DOCTOR_OFFSET(run.software_nic), NULL,
     " as of run, for such a job", NULL},
    {"pin-cost", tool_run_parse_pin_cost, TOOL_DOCTOR_OFFSET(run.pin_cost),
     TOOL_PIN_COST_ALLOWED, "BASE,PERPAGE as of run, for such a job", TOOL_ENV_PIN_COST},
    {"probe", NULL, TOOL_DOCTOR_OFFSET(is_probe), NULL, NULL, NULL},
    {}
};

static void tool_doctor_look(tool_doctor_t *doctor, const char *launcher)
{
    tool_doctor_machine(doctor);
    if (launcher != NULL) {
        tool_doctor_mpi(doctor, launcher);
    }
    if (doctor->run->library == NULL) {
        tool_doctor_say(doctor, TOOL_DOCTOR_STOPS, "door",
                        "reinstall, or set HELPER_MD_LIBDIR to a folder with "
                        "the library",
                        tool_strdup("libucx_helper.so cannot be preloaded, for "
                                    "the reason that stands above"));
    } else {
        tool_doctor_say(doctor, TOOL_DOCTOR_OK, "door", NULL,
                        tool_format("preloads %s", doctor->run->library));
        tool_doctor_ucx(doctor);
    }
}

int tool_doctor_main(int argc, char **argv)
{
    tool_doctor_command_t command = {};
    tool_doctor_t doctor          = {.run = &command.run};
    int first, status;

    first = tool_options_parse(argc, argv, 0, (const tool_options_t[]){
            {tool_doctor_options, &command}, {}}, &tool_doctor_usage);
    if (command.is_probe) {
        return tool_doctor_probe(argv[argc - 1]);
    }

    command.run.library = tool_library_find(0, 0, TOOL_LAUNCHER_NONE);
    tool_doctor_look(&doctor, (first < argc) ? argv[first] : "mpirun");
    if (command.is_json) {
        tool_doctor_print_json(&doctor);
    } else {
        tool_doctor_print_all(&doctor, stdout);
    }
    status = tool_finish_output();
    if (((command.file != NULL) &&
         (tool_doctor_write(&doctor, command.file) != 0)) ||
        (tool_doctor_count(&doctor, TOOL_DOCTOR_STOPS) > 0)) {
        status = TOOL_EXIT_FAILED;
    }
    tool_doctor_cleanup(&doctor);
    free(command.run.library);
    return status;
}

void tool_doctor_short(const tool_run_t *run)
{
    tool_doctor_t doctor = {.run = run};

    tool_doctor_look(&doctor, (run->launcher != TOOL_LAUNCHER_NONE) ?
                                      run->command[0] : NULL);
    if (tool_doctor_count(&doctor, TOOL_DOCTOR_OK) < doctor.count) {
        tool_message("ucx-helper doctor finds here:");
        tool_doctor_print(&doctor, TOOL_DOCTOR_ATTENTION, stderr);
    }
    tool_doctor_cleanup(&doctor);
}

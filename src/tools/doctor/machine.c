/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "doctor.h"

#include <tools/units.h>

#include <ucs/sys/math.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define TOOL_DOCTOR_VERBS_SECONDS 5

/* UCX and the MPIs keep queues of some MB a rank there. Halved: four ranks may
 * fail where nothing was said; doubled: a container's default is told of. */
#define TOOL_DOCTOR_SHM_MIN (UINT64_C(64) << 20)

/* CAP_IPC_LOCK: what is locked is not counted */
#define TOOL_DOCTOR_CAP_IPC_LOCK 14


/* First line of a file, without its end; empty if it cannot be read */
static const char *tool_doctor_read(const char *path, char *text, size_t max)
{
    FILE *stream = fopen(path, "r");

    text[0] = '\0';
    if (stream != NULL) {
        if (fgets(text, max, stream) != NULL) {
            text[strcspn(text, "\n")] = '\0';
        }
        fclose(stream);
    }
    return text;
}

/* What follows a name in /proc/self/status */
static unsigned long long tool_doctor_status(const char *name, int base)
{
    char text[4096];
    const char *at;
    FILE *stream = fopen("/proc/self/status", "r");
    size_t got   = 0;

    if (stream != NULL) {
        got = fread(text, 1, sizeof(text) - 1, stream);
        fclose(stream);
    }
    text[got] = '\0';
    at        = strstr(text, name);
    return (at != NULL) ? strtoull(at + strlen(name), NULL, base) : 0;
}

static void tool_doctor_kernel(tool_doctor_t *doctor)
{
    int is_container = (access("/.dockerenv", F_OK) == 0) ||
                       (access("/run/.containerenv", F_OK) == 0) ||
                       (getenv("container") != NULL);
    struct utsname name;
    char pages[128];

    uname(&name);
    tool_doctor_read("/sys/kernel/mm/transparent_hugepage/enabled", pages,
                     sizeof(pages));
    tool_doctor_say(doctor, TOOL_DOCTOR_OK, "kernel", NULL, tool_format(
            "%s %s %s%s%s; huge pages %s", name.sysname, name.release,
            name.machine, is_container ? ", in a container" : "",
            (tool_doctor_status("Seccomp:", 10) > 0) ?
                    ", under a seccomp filter" : "", pages));
}

static void tool_doctor_memlock(tool_doctor_t *doctor)
{
    unsigned long long caps = tool_doctor_status("CapEff:", 16);
    struct rlimit limit;
    char buf[TOOL_UNITS_MAX];

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if ((limit.rlim_cur == RLIM_INFINITY) ||
        (caps & (1ULL << TOOL_DOCTOR_CAP_IPC_LOCK))) {
        tool_doctor_say(doctor, TOOL_DOCTOR_OK, "memlock", NULL,
                        tool_strdup("not limited"));
    } else {
        tool_doctor_say(doctor, TOOL_DOCTOR_ATTENTION, "memlock",
                        "raise ulimit -l (limits.conf, LimitMEMLOCK), or set "
                        "UCX_MD_HELPER_MAX_PINNED below it",
                        tool_format("%s may be locked; what is in use at once "
                                    "beyond that is refused",
                                    tool_units_print_bytes(limit.rlim_cur,
                                                           buf)));
    }
}

static void tool_doctor_shm(tool_doctor_t *doctor)
{
    struct statvfs fs = {};
    int is_small;
    uint64_t bytes;
    char buf[TOOL_UNITS_MAX];

    (void)statvfs("/dev/shm", &fs); /* not there: none is free */
    bytes    = (uint64_t)fs.f_bavail * fs.f_frsize;
    is_small = bytes < TOOL_DOCTOR_SHM_MIN;
    tool_doctor_say(doctor,
                    is_small ? TOOL_DOCTOR_ATTENTION : TOOL_DOCTOR_OK,
                    "/dev/shm", is_small ?
                    "enlarge it (a container: --shm-size), remove what ended "
                    "jobs left there" : NULL,
                    tool_format("%s free", tool_units_print_bytes(bytes, buf)));
}

/* By this process's mask and its cgroup */
static void tool_doctor_cpus(tool_doctor_t *doctor)
{
    double cpus = sysconf(_SC_NPROCESSORS_ONLN);
    char text[128];
    double quota, period;
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        cpus = CPU_COUNT(&set);
    }
    tool_doctor_read("/sys/fs/cgroup/cpu.max", text, sizeof(text));
    if (sscanf(text, "%lf %lf", &quota, &period) == 2) {
        cpus = ucs_min(cpus, quota / period);
    }
    tool_doctor_say(doctor,
                    (cpus < 2) ? TOOL_DOCTOR_ATTENTION : TOOL_DOCTOR_OK,
                    "processors", (cpus < 2) ?
                    "give the job more than its ranks use, do not bind ranks to "
                    "one core, or set UCX_MD_HELPER_POLICY=rent" : NULL,
                    tool_format("%.3g may be used; the helper takes what ranks "
                                "leave", cpus));
}

/* What ibv_devinfo says of each device, a line "key: value" each */
static void tool_doctor_devices(tool_doctor_t *doctor)
{
    char *const argv[] = {"ibv_devinfo", "-v", NULL};
    char *text         = tool_job_ask(argv, TOOL_DOCTOR_VERBS_SECONDS);
    char *rest         = text;
    char device[64]    = "", max[64] = "", value[64];
    char *line;
    int is_up;

    while ((line = strsep(&rest, "\n")) != NULL) {
        (void)sscanf(line, " hca_id: %63s", device);
        (void)sscanf(line, " max_mr: %63s", max);
        if (sscanf(line, " state: %63s", value) == 1) { /* of a port */
            is_up = !strcmp(value, "PORT_ACTIVE");
            tool_doctor_say(doctor,
                            is_up ? TOOL_DOCTOR_OK : TOOL_DOCTOR_ATTENTION,
                            "device", is_up ? NULL :
                            "bring the link up: UCX leaves such a port out",
                            tool_format("%s: %s, max_mr %s", device, value,
                                        max));
        }
    }
    free(text);
}

void tool_doctor_machine(tool_doctor_t *doctor)
{
    tool_doctor_kernel(doctor);
    tool_doctor_devices(doctor);
    tool_doctor_memlock(doctor);
    tool_doctor_shm(doctor);
    tool_doctor_cpus(doctor);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "doctor.h"

#include <tools/tool.h>

#include <ucs/sys/math.h>

#include <linux/capability.h>
#include <sched.h>
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

static void tool_doctor_shm(tool_doctor_t *doctor)
{
    struct statvfs fs = {};
    uint64_t bytes;
    char buf[TOOL_UNITS_MAX];

    (void)statvfs("/dev/shm", &fs); /* not there: none is free */
    bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    tool_doctor_say(doctor, bytes < TOOL_DOCTOR_SHM_MIN, "/dev/shm",
                    "enlarge it (a container: --shm-size), remove what ended "
                    "jobs left there",
                    tool_format("%s free", tool_units_print_bytes(bytes, buf)));
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
    char *text         = tool_job_ask(argv, TOOL_DOCTOR_VERBS_SECONDS);
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

void tool_doctor_machine(tool_doctor_t *doctor)
{
    tool_doctor_kernel(doctor);
    tool_doctor_devices(doctor);
    tool_doctor_memlock(doctor);
    tool_doctor_shm(doctor);
    tool_doctor_cpus(doctor);
}

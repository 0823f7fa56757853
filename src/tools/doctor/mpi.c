/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "doctor.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

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
    char *text         = tool_job_ask(argv, TOOL_DOCTOR_MPI_SECONDS);
    glob_t devices;

    if ((*text != '\0') && (strstr(text, "MCA pml: ucx") == NULL)) {
        tool_doctor_say(doctor, TOOL_DOCTOR_STOPS, "MPI",
                        "use an Open MPI that is built with UCX",
                        tool_strdup("this Open MPI is built without UCX"));
    } else if ((glob("/sys/class/infiniband/*", 0, NULL, &devices) != 0) &&
               !doctor->run->software_nic &&
               (getenv("OMPI_MCA_pml") == NULL)) {
        tool_doctor_say(doctor, TOOL_DOCTOR_ATTENTION, "MPI",
                        "on one host run --software-nic; else set "
                        "OMPI_MCA_pml=ucx, OMPI_MCA_pml_ucx_tls=any, "
                        "OMPI_MCA_pml_ucx_devices=any",
                        tool_strdup("without an RDMA device Open MPI does not "
                                    "take UCX"));
    }
    free(text);
}

void tool_doctor_mpi(tool_doctor_t *doctor, const char *launcher)
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

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "run.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* A launcher that does not tell its version within this is ended */
#define TOOL_PROBE_SECONDS 5

/* By a pattern of the name, or of what is told as the version */
static tool_launcher_t tool_launcher_look_up(const char *text)
{
    static const struct {
        const char      *pattern;
        tool_launcher_t launcher;
    } known[] = {
        {"orterun", TOOL_LAUNCHER_OPENMPI},
        {"prterun", TOOL_LAUNCHER_OPENMPI},
        {"prun", TOOL_LAUNCHER_OPENMPI},
        {"mpirun.openmpi", TOOL_LAUNCHER_OPENMPI},
        {"mpiexec.openmpi", TOOL_LAUNCHER_OPENMPI},
        {"mpiexec.hydra", TOOL_LAUNCHER_HYDRA},
        {"srun", TOOL_LAUNCHER_SRUN},
        {"*Open MPI*", TOOL_LAUNCHER_OPENMPI},
        {"*OpenRTE*", TOOL_LAUNCHER_OPENMPI},
        {"*PRRTE*", TOOL_LAUNCHER_OPENMPI},
        {"*HYDRA*", TOOL_LAUNCHER_HYDRA},
        {"*Intel(R) MPI*", TOOL_LAUNCHER_HYDRA},
        {"*", TOOL_LAUNCHER_NONE}
    };
    size_t i = 0;

    while (fnmatch(known[i].pattern, text, 0) != 0) {
        ++i;
    }
    return known[i].launcher;
}

static int tool_launcher_is_open_name(const char *name)
{
    return !strncmp(name, "mpirun", 6) || !strncmp(name, "mpiexec", 7) ||
           !strcmp(name, "oshrun");
}

tool_launcher_t tool_launcher_detect(const char *command, char **version_p)
{
    char *const argv[]       = {(char*)command, "--version", NULL};
    const char *name         = basename(command);
    tool_launcher_t launcher = tool_launcher_look_up(name);
    char *text               = NULL;

    /* Only programs that are called like a launcher are run to be asked */
    if ((launcher != TOOL_LAUNCHER_NONE) ? (version_p != NULL) :
                                           tool_launcher_is_open_name(name)) {
        text = tool_job_ask(argv, TOOL_PROBE_SECONDS, NULL, NULL);
    }
    if ((launcher == TOOL_LAUNCHER_NONE) && (text != NULL)) {
        launcher = tool_launcher_look_up(text);
    }
    if (version_p != NULL) {
        *version_p = text;
    } else {
        free(text);
    }
    return launcher;
}

const char *tool_launcher_name(tool_launcher_t launcher)
{
    static const char *const names[] = {
        [TOOL_LAUNCHER_NONE]    = "a plain program",
        [TOOL_LAUNCHER_OPENMPI] = "Open MPI's launcher",
        [TOOL_LAUNCHER_HYDRA]   = "Hydra (MPICH)",
        [TOOL_LAUNCHER_SRUN]    = "Slurm's srun"
    };

    return names[launcher];
}

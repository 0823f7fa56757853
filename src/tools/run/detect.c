/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A launcher that does not tell its version within this is ended */
#define TOOL_PROBE_SECONDS    5
#define TOOL_PROBE_OUTPUT_MAX 8192


static void tool_launcher_exec_version(const char *command, int output)
{
    int null = open("/dev/null", O_RDONLY);

    if (null >= 0) {
        dup2(null, STDIN_FILENO);
    }
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    alarm(TOOL_PROBE_SECONDS);
    execlp(command, command, "--version", (char*)NULL);
    _exit(TOOL_EXIT_CANNOT_EXEC);
}

/* What the launcher answers to --version, empty when it does not answer */
static void tool_launcher_ask_version(const char *command, char *text)
{
    size_t length = 0;
    ssize_t got;
    int fds[2];
    pid_t pid;

    text[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return;
    }

    pid = fork();
    if (pid == 0) {
        tool_launcher_exec_version(command, fds[1]);
    }

    close(fds[1]);
    while ((pid > 0) && (length < (TOOL_PROBE_OUTPUT_MAX - 1)) &&
           ((got = read(fds[0], text + length,
                        TOOL_PROBE_OUTPUT_MAX - 1 - length)) > 0)) {
        length += got;
    }
    text[length] = '\0';
    close(fds[0]);
    while ((pid > 0) && (waitpid(pid, NULL, 0) < 0) && (errno == EINTR)) {
    }
}

/* A launcher by a word */
typedef struct tool_launcher_word {
    const char      *word;
    tool_launcher_t launcher;
} tool_launcher_word_t;

static tool_launcher_t tool_launcher_of_version(const char *command)
{
    static const tool_launcher_word_t known[] = {
        {"Open MPI", TOOL_LAUNCHER_OPENMPI},
        {"OpenRTE", TOOL_LAUNCHER_OPENMPI},
        {"PRRTE", TOOL_LAUNCHER_OPENMPI},
        {"HYDRA", TOOL_LAUNCHER_HYDRA},
        {"Intel(R) MPI", TOOL_LAUNCHER_HYDRA},
        {"", TOOL_LAUNCHER_NONE}
    };
    const tool_launcher_word_t *one = known;
    char text[TOOL_PROBE_OUTPUT_MAX];

    tool_launcher_ask_version(command, text);
    while (strstr(text, one->word) == NULL) { /* "" is in every text */
        ++one;
    }
    return one->launcher;
}

static tool_launcher_t tool_launcher_of_name(const char *name)
{
    static const tool_launcher_word_t known[] = {
        {"orterun", TOOL_LAUNCHER_OPENMPI},
        {"prterun", TOOL_LAUNCHER_OPENMPI},
        {"prun", TOOL_LAUNCHER_OPENMPI},
        {"mpirun.openmpi", TOOL_LAUNCHER_OPENMPI},
        {"mpiexec.openmpi", TOOL_LAUNCHER_OPENMPI},
        {"mpiexec.hydra", TOOL_LAUNCHER_HYDRA},
        {"srun", TOOL_LAUNCHER_SRUN},
        {NULL, TOOL_LAUNCHER_NONE}
    };
    const tool_launcher_word_t *one = known;

    while ((one->word != NULL) && strcmp(name, one->word)) {
        ++one;
    }
    return one->launcher;
}

static int tool_launcher_is_open_name(const char *name)
{
    return !strncmp(name, "mpirun", 6) || !strncmp(name, "mpiexec", 7) ||
           !strcmp(name, "oshrun");
}

tool_launcher_t tool_launcher_detect(const char *command)
{
    const char *name         = basename(command);
    tool_launcher_t launcher = tool_launcher_of_name(name);

    /* Only programs that are called like a launcher are run to be asked */
    return ((launcher == TOOL_LAUNCHER_NONE) &&
            tool_launcher_is_open_name(name)) ?
                   tool_launcher_of_version(command) :
                   launcher;
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

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "launcher.h"

#include <ucs/sys/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A launcher that does not tell its version within this is not asked again */
#define TOOL_PROBE_TIMEOUT_MS 5000
#define TOOL_PROBE_OUTPUT_MAX 8192


static int tool_launcher_is_executable(const char *path)
{
    struct stat st;

    return (stat(path, &st) == 0) && S_ISREG(st.st_mode) &&
           (access(path, X_OK) == 0);
}

char *tool_launcher_resolve(const char *command)
{
    const char *path = getenv("PATH");
    char *copy, *rest, *dir, *file;

    if (strchr(command, '/') != NULL) {
        return tool_launcher_is_executable(command) ? tool_strdup(command) :
                                                      NULL;
    }

    copy = tool_strdup((path != NULL) ? path : "/bin:/usr/bin");
    rest = copy;
    file = NULL;
    while ((*command != '\0') && ((dir = strsep(&rest, ":")) != NULL)) {
        file = tool_format("%s/%s", (*dir != '\0') ? dir : ".", command);
        if (tool_launcher_is_executable(file)) {
            break;
        }
        free(file);
        file = NULL;
    }
    free(copy);
    return file;
}

static void tool_launcher_exec_version(const char *path, int output)
{
    int null = open("/dev/null", O_RDONLY);

    if (null >= 0) {
        dup2(null, STDIN_FILENO);
    }
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execl(path, path, "--version", (char*)NULL);
    _exit(TOOL_EXIT_CANNOT_EXEC);
}

/* Read until the end, the timeout, or a full buffer */
static void tool_launcher_read(int fd, char *text)
{
    uint64_t end_ns   = ucs_clock_monotonic() +
                        TOOL_PROBE_TIMEOUT_MS * UINT64_C(1000000);
    size_t length     = 0;
    struct pollfd pfd = {fd, POLLIN, 0};
    int64_t left_ns;
    ssize_t got;
    int ret;

    while (length < (TOOL_PROBE_OUTPUT_MAX - 1)) {
        left_ns = end_ns - ucs_clock_monotonic();
        if (left_ns <= 0) {
            break;
        }

        ret = poll(&pfd, 1, left_ns / 1000000);
        if ((ret < 0) && (errno == EINTR)) {
            continue;
        } else if (ret <= 0) {
            break;
        }

        got = read(fd, text + length, TOOL_PROBE_OUTPUT_MAX - 1 - length);
        if (got <= 0) {
            break;
        }
        length += got;
    }
    text[length] = '\0';
}

/* What the launcher answers to --version, empty when it does not answer */
static void tool_launcher_ask_version(const char *path, char *text)
{
    int fds[2];
    pid_t pid;

    text[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return;
    }

    pid = fork();
    if (pid == 0) {
        tool_launcher_exec_version(path, fds[1]);
    }

    close(fds[1]);
    if (pid > 0) {
        tool_launcher_read(fds[0], text);
        kill(pid, SIGKILL); /* it may hang; once it has ended this is void */
        while ((waitpid(pid, NULL, 0) < 0) && (errno == EINTR)) {
        }
    }
    close(fds[0]);
}

/* A launcher by a word */
typedef struct tool_launcher_word {
    const char      *word;
    tool_launcher_t launcher;
} tool_launcher_word_t;

static tool_launcher_t tool_launcher_of_version(const char *path)
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

    tool_launcher_ask_version(path, text);
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

tool_launcher_t tool_launcher_detect(const char *path)
{
    const char *name = basename(path);
    char *real       = realpath(path, NULL);
    tool_launcher_t launcher;

    launcher = tool_launcher_of_name((real != NULL) ? basename(real) : name);
    if (launcher == TOOL_LAUNCHER_NONE) {
        launcher = tool_launcher_of_name(name);
    }

    /* Only programs that are called like a launcher are run to be asked */
    if ((launcher == TOOL_LAUNCHER_NONE) && tool_launcher_is_open_name(name)) {
        launcher = tool_launcher_of_version(path);
    }
    free(real);
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

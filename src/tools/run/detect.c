/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
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

static long tool_launcher_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec * 1000L) + (now.tv_nsec / 1000000);
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
    long deadline    = tool_launcher_now_ms() + TOOL_PROBE_TIMEOUT_MS;
    size_t length    = 0;
    struct pollfd pfd = {fd, POLLIN, 0};
    ssize_t got;
    long left;
    int ret;

    while (length < (TOOL_PROBE_OUTPUT_MAX - 1)) {
        left = deadline - tool_launcher_now_ms();
        if (left <= 0) {
            break;
        }

        ret = poll(&pfd, 1, left);
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

static tool_launcher_t tool_launcher_of_version(const char *path)
{
    static const struct {
        const char      *word;
        tool_launcher_t launcher;
    } known[] = {
        {"Open MPI", TOOL_LAUNCHER_OPENMPI},
        {"OpenRTE", TOOL_LAUNCHER_OPENMPI},
        {"PRRTE", TOOL_LAUNCHER_OPENMPI},
        {"HYDRA", TOOL_LAUNCHER_HYDRA},
        {"Intel(R) MPI", TOOL_LAUNCHER_HYDRA}
    };
    char text[TOOL_PROBE_OUTPUT_MAX];
    size_t i;

    tool_launcher_ask_version(path, text);
    for (i = 0; i < (sizeof(known) / sizeof(known[0])); ++i) {
        if (strstr(text, known[i].word) != NULL) {
            return known[i].launcher;
        }
    }
    return TOOL_LAUNCHER_NONE;
}

static tool_launcher_t tool_launcher_of_name(const char *name)
{
    static const struct {
        const char      *name;
        tool_launcher_t launcher;
    } known[] = {
        {"orterun", TOOL_LAUNCHER_OPENMPI},
        {"prterun", TOOL_LAUNCHER_OPENMPI},
        {"prun", TOOL_LAUNCHER_OPENMPI},
        {"mpirun.openmpi", TOOL_LAUNCHER_OPENMPI},
        {"mpiexec.openmpi", TOOL_LAUNCHER_OPENMPI},
        {"mpiexec.hydra", TOOL_LAUNCHER_HYDRA},
        {"srun", TOOL_LAUNCHER_SRUN}
    };
    size_t i;

    for (i = 0; i < (sizeof(known) / sizeof(known[0])); ++i) {
        if (!strcmp(name, known[i].name)) {
            return known[i].launcher;
        }
    }
    return TOOL_LAUNCHER_NONE;
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
    switch (launcher) {
    case TOOL_LAUNCHER_OPENMPI:
        return "Open MPI's launcher";
    case TOOL_LAUNCHER_HYDRA:
        return "Hydra (MPICH)";
    case TOOL_LAUNCHER_SRUN:
        return "Slurm's srun";
    default:
        return "a plain program";
    }
}

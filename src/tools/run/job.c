/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "job.h"

#include <tools/tool.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>


/* What the parent needs to put back in the child */
typedef struct tool_job {
    sigset_t         old_mask;
    struct sigaction old_chld;
    sigset_t         waited; /* blocked and waited for; has SIGCHLD */
} tool_job_t;


static int tool_job_report_exec(const char *command, int error)
{
    tool_message("cannot run '%s': %s", command, strerror(error));
    return (error == ENOENT) ? TOOL_EXIT_NOT_FOUND : TOOL_EXIT_CANNOT_EXEC;
}

int tool_job_exec(char *const *argv)
{
    execvp(argv[0], argv);
    return tool_job_report_exec(argv[0], errno);
}

static void tool_job_block_signals(tool_job_t *job)
{
    static const int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1,
                                    SIGUSR2, SIGALRM, SIGTERM, SIGXCPU};
    struct sigaction action      = {.sa_handler = SIG_DFL};
    size_t i;

    /* If our parent ignores it, waitpid would find nothing */
    sigaction(SIGCHLD, &action, &job->old_chld);

    sigemptyset(&job->waited);
    sigaddset(&job->waited, SIGCHLD);
    for (i = 0; i < (sizeof(forwarded) / sizeof(forwarded[0])); ++i) {
        /* A signal that we ignore (nohup) the child ignores as well */
        sigaction(forwarded[i], NULL, &action);
        if (action.sa_handler != SIG_IGN) {
            sigaddset(&job->waited, forwarded[i]);
        }
    }
    sigprocmask(SIG_BLOCK, &job->waited, &job->old_mask);
}

static void tool_job_restore_signals(const tool_job_t *job)
{
    sigaction(SIGCHLD, &job->old_chld, NULL);
    sigprocmask(SIG_SETMASK, &job->old_mask, NULL);
}

/* In the child; the pipe tells the parent why exec failed */
static void tool_job_child(const tool_job_t *job, char *const *argv, int pipe,
                           pid_t parent)
{
    int error;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(TOOL_EXIT_CANNOT_EXEC); /* it died before the prctl */
    }

    tool_job_restore_signals(job);
    execvp(argv[0], argv);
    error = errno;
    while ((write(pipe, &error, sizeof(error)) < 0) && (errno == EINTR)) {
    }
    _exit(TOOL_EXIT_CANNOT_EXEC);
}

/* Why the child's exec failed, 0 when it did not */
static int tool_job_exec_error(int pipe)
{
    int error = 0;
    ssize_t got;

    do {
        got = read(pipe, &error, sizeof(error));
    } while ((got < 0) && (errno == EINTR));
    return (got == (ssize_t)sizeof(error)) ? error : 0;
}

static int tool_job_status(int status)
{
    return WIFSIGNALED(status) ? (128 + WTERMSIG(status)) :
                                 WEXITSTATUS(status);
}

static int tool_job_forward_until_end(const tool_job_t *job, pid_t pid)
{
    siginfo_t info;
    int status;
    pid_t ret;

    for (;;) {
        ret = waitpid(pid, &status, WNOHANG);
        if (ret == pid) {
            return tool_job_status(status);
        } else if ((ret < 0) && (errno != EINTR)) {
            tool_message("lost the command: %s", strerror(errno));
            return TOOL_EXIT_FAILED;
        }

        /* si_code > 0: by the kernel, that is by a key of the terminal, whose
         * whole foreground group has got it */
        if ((sigwaitinfo(&job->waited, &info) > 0) &&
            (info.si_signo != SIGCHLD) && (info.si_code <= 0)) {
            kill(pid, info.si_signo);
        }
    }
}

int tool_job_wait(char *const *argv, int *started)
{
    pid_t parent = getpid();
    tool_job_t job;
    int fds[2];
    int error, status;
    pid_t pid;

    *started = 0;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        tool_message("cannot make a pipe: %s", strerror(errno));
        return TOOL_EXIT_CANNOT_EXEC;
    }

    tool_job_block_signals(&job);
    pid = fork();
    if (pid == 0) {
        tool_job_child(&job, argv, fds[1], parent);
    }

    error = (pid < 0) ? errno : 0;
    close(fds[1]);
    if (pid > 0) {
        error = tool_job_exec_error(fds[0]);
    }
    close(fds[0]);

    if (error != 0) {
        if (pid > 0) {
            waitpid(pid, NULL, 0);
        }
        status = tool_job_report_exec(argv[0], error);
    } else {
        *started = 1;
        status   = tool_job_forward_until_end(&job, pid);
    }

    /* The signals stay blocked: one that came late shall not keep the caller
     * from writing the report */
    return status;
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "run.h"

#include <ucs/sys/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of a program that is asked something, so much is read */
#define TOOL_JOB_OUTPUT_MAX (64 << 10)

/* What is to be put back in the child */
typedef struct tool_job {
    sigset_t         old_mask;
    struct sigaction old_chld;
    sigset_t         waited; /* blocked and waited for; has SIGCHLD */
} tool_job_t;

int tool_job_exec(char *const *argv)
{
    int error;

    execvp(argv[0], argv);
    error = errno;
    tool_message("cannot run '%s': %s", argv[0], strerror(error));
    return (error == ENOENT) ? TOOL_EXIT_NOT_FOUND : TOOL_EXIT_CANNOT_EXEC;
}

pid_t tool_job_fork(int signo)
{
    pid_t parent = getpid();
    pid_t pid    = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, signo);
        if (getppid() != parent) { /* it died before the prctl */
            _exit(TOOL_EXIT_FAILED);
        }
    }
    return pid;
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

static int tool_job_forward_until_end(const tool_job_t *job, pid_t pid)
{
    siginfo_t info;
    int status;
    pid_t ret;

    for (;;) {
        ret = waitpid(pid, &status, WNOHANG);
        if (ret == pid) {
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
                                         WEXITSTATUS(status);
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

int tool_job_call(int (*func)(void *arg), void (*done)(void *arg, int status),
                  void *arg)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    int status              = TOOL_EXIT_FAILED;
    struct sigaction pipe;
    tool_job_t job;
    pid_t pid;

    fflush(NULL); /* or both processes would write it */
    tool_job_block_signals(&job);
    pid = tool_job_fork(SIGTERM);
    if (pid == 0) {
        tool_job_restore_signals(&job);
        exit(func(arg));
    } else if (pid < 0) {
        tool_message("no process can be started: %m");
    } else {
        status = tool_job_forward_until_end(&job, pid);
    }
    if (done != NULL) {
        /* What it says may have no reader, and it has to clear up all the same */
        sigaction(SIGPIPE, &ignore, &pipe);
        done(arg, status);
        sigaction(SIGPIPE, &pipe, NULL);
    }
    tool_job_restore_signals(&job);
    return status;
}

/* The alarm must get through where a job's signals are blocked */
static void tool_job_exec_asked(char *const *argv, unsigned seconds, int output)
{
    int null = open("/dev/null", O_RDONLY);
    sigset_t none;

    if (null >= 0) {
        dup2(null, STDIN_FILENO);
    }
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(seconds);
    execvp(argv[0], argv);
    _exit(TOOL_EXIT_CANNOT_EXEC);
}

/* @return Nonzero unless the time was over first */
static int tool_job_read(int fd, unsigned seconds, char *text)
{
    uint64_t end         = ucs_clock_now() + seconds * UINT64_C(1000000000);
    struct pollfd stream = {.fd = fd, .events = POLLIN};
    size_t length        = 0;
    ssize_t got          = 1;
    uint64_t now;

    while ((got > 0) && (length < TOOL_JOB_OUTPUT_MAX - 1) &&
           ((now = ucs_clock_now()) < end) &&
           (poll(&stream, 1, 1 + (end - now) / 1000000) > 0)) {
        got     = read(fd, text + length, TOOL_JOB_OUTPUT_MAX - 1 - length);
        length += (got > 0) ? got : 0;
    }
    text[length] = '\0';
    return (got <= 0) || (length == TOOL_JOB_OUTPUT_MAX - 1);
}

char *tool_job_ask(char *const *argv, unsigned seconds,
                   void (*prepare)(void *arg), void *arg)
{
    char *text = tool_realloc(NULL, TOOL_JOB_OUTPUT_MAX);
    int fds[2];
    pid_t pid;

    text[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return text;
    }

    pid = tool_job_fork(SIGKILL);
    if (pid == 0) {
        setpgid(0, 0);
        if (prepare != NULL) {
            prepare(arg);
        }
        tool_job_exec_asked(argv, seconds, fds[1]);
    }

    close(fds[1]);
    /* A script's child outlives the script, and holds the pipe */
    if (!tool_job_read(fds[0], seconds, text)) {
        kill(-pid, SIGKILL);
    }
    close(fds[0]);
    while ((pid > 0) && (waitpid(pid, NULL, 0) < 0) && (errno == EINTR)) {
    }
    return text;
}

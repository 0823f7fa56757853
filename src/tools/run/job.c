/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
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

/* The child shares our memory until it is another program, so it can say why it
 * is none; meanwhile we stand still */
static pid_t tool_job_start(const tool_job_t *job, char *const *argv,
                            volatile int *error_p)
{
    pid_t parent = getpid();
    pid_t pid    = vfork();

    if (pid != 0) {
        *error_p = (pid < 0) ? errno : *error_p;
        return pid;
    }

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent) { /* it did not die before the prctl */
        tool_job_restore_signals(job);
        execvp(argv[0], argv);
        *error_p = errno;
    }
    _exit(TOOL_EXIT_CANNOT_EXEC);
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

int tool_job_wait(char *const *argv, int *started)
{
    volatile int error = 0;
    tool_job_t job;
    pid_t pid;

    tool_job_block_signals(&job);
    pid      = tool_job_start(&job, argv, &error);
    *started = (error == 0);

    /* The signals stay blocked: one that came late shall not keep the caller
     * from writing the report */
    if (error == 0) {
        return tool_job_forward_until_end(&job, pid);
    }
    if (pid > 0) {
        waitpid(pid, NULL, 0);
    }
    return tool_job_report_exec(argv[0], error);
}

int tool_job_call(int (*func)(void *arg), void (*done)(void *arg), void *arg)
{
    pid_t parent = getpid();
    int status   = TOOL_EXIT_FAILED;
    tool_job_t job;
    pid_t pid;

    fflush(NULL); /* or both processes would write it */
    tool_job_block_signals(&job);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        tool_job_restore_signals(&job);
        exit((getppid() == parent) ? func(arg) : TOOL_EXIT_FAILED);
    } else if (pid < 0) {
        tool_message("no process can be started: %m");
    } else {
        status = tool_job_forward_until_end(&job, pid);
    }
    if (done != NULL) {
        done(arg);
    }
    tool_job_restore_signals(&job);
    return status;
}

static void tool_job_exec_asked(char *const *argv, unsigned seconds,
                                int output, pid_t parent)
{
    int null = open("/dev/null", O_RDONLY);

    if (null >= 0) {
        dup2(null, STDIN_FILENO);
    }
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(seconds);
    if (getppid() == parent) { /* it did not die before the prctl */
        execvp(argv[0], argv);
    }
    _exit(TOOL_EXIT_CANNOT_EXEC);
}

char *tool_job_ask(char *const *argv, unsigned seconds)
{
    char *text    = tool_realloc(NULL, TOOL_JOB_OUTPUT_MAX);
    pid_t parent  = getpid();
    size_t length = 0;
    ssize_t got;
    int fds[2];
    pid_t pid;

    text[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return text;
    }

    pid = fork();
    if (pid == 0) {
        tool_job_exec_asked(argv, seconds, fds[1], parent);
    }

    close(fds[1]);
    while ((pid > 0) && (length < (TOOL_JOB_OUTPUT_MAX - 1)) &&
           ((got = read(fds[0], text + length,
                        TOOL_JOB_OUTPUT_MAX - 1 - length)) > 0)) {
        length += got;
    }
    text[length] = '\0';
    close(fds[0]);
    while ((pid > 0) && (waitpid(pid, NULL, 0) < 0) && (errno == EINTR)) {
    }
    return text;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"

#include <ucs/sys/sync/atomic.h>

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the watched process tells: shared with the watching one, in which a
 * string literal has the same address */
static struct life_progress {
    _Atomic unsigned long     steps;
    _Atomic(const char*)      what;
} *life_progress;

void life_fail(const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fputs("life: FAILED: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    _exit(1);
}

void life_step(const char *what)
{
    if (life_progress == NULL) {
        return;
    }
    ucs_store_relaxed(&life_progress->what, what);
    ucs_add_relaxed(&life_progress->steps, 1);
}

void life_wait_child(pid_t pid, const char *what)
{
    int status;

    if (pid < 0) {
        life_fail("%s: no child", what);
    }
    if (waitpid(pid, &status, 0) != pid) {
        life_fail("%s: the child cannot be waited for", what);
    }
    if (WIFSIGNALED(status)) {
        life_fail("%s: signal %d ended the child", what, WTERMSIG(status));
    }
    if (WEXITSTATUS(status) != 0) {
        life_fail("%s: exit code %d", what, WEXITSTATUS(status));
    }
}

/* Where each thread of the process and of its children hangs, as far as there
 * are tools to tell */
static void life_watch_show(pid_t pid)
{
    char command[512];

    snprintf(command, sizeof(command),
             "for p in $(pgrep -g %d); do for t in /proc/$p/task/*; do "
             "printf 'process %%s, thread %%s in %%s\n' \"$p\" "
             "\"$(cat $t/comm)\" \"$(cat $t/wchan)\"; done; "
             "if command -v gdb > /dev/null; then gdb -p $p -batch "
             "-ex 'thread apply all bt 14' 2> /dev/null | grep '^#'; fi; "
             "done >&2", (int)pid);
    if (system(command) != 0) {
        fprintf(stderr, "life: where it hangs cannot be told\n");
    }
}

static int life_watch_loop(pid_t pid, int pidfd)
{
    struct pollfd ended     = {.fd = pidfd, .events = POLLIN};
    unsigned long last      = 0;
    unsigned quiet_seconds  = 0;
    unsigned long steps;
    int status;

    while (poll(&ended, 1, 1000) == 0) {
        steps         = ucs_load_relaxed(&life_progress->steps);
        quiet_seconds = (steps == last) ? quiet_seconds + 1 : 0;
        last          = steps;
        if (quiet_seconds >= LIFE_STEP_SECONDS) {
            fprintf(stderr, "life: FAILED: step %lu (%s) hangs\n", steps,
                    ucs_load_relaxed(&life_progress->what));
            life_watch_show(pid);
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            return 1;
        }
    }

    waitpid(pid, &status, 0);
    kill(-pid, SIGKILL); /* children that a failure left behind */
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "life: FAILED: signal %d in step %lu (%s)\n",
                WTERMSIG(status), ucs_load_relaxed(&life_progress->steps),
                ucs_load_relaxed(&life_progress->what));
        return 1;
    }
    return WEXITSTATUS(status);
}

int life_watch(life_part_func_t part, const life_options_t *options)
{
    pid_t pid;
    int pidfd;

    life_progress = mmap(NULL, sizeof(*life_progress), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (life_progress == MAP_FAILED) {
        life_fail("no shared memory");
    }

    life_step("start");
    pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        part(options);
        fflush(stdout);
        exit(0);
    }

    setpgid(pid, pid);
    pidfd = syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        kill(pid, SIGKILL);
        life_fail("no descriptor of the child");
    }
    return life_watch_loop(pid, pidfd);
}

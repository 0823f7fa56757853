/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"
#include "../refuse_calls.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * What a process may do to itself in the middle of its job: give up rights, its
 * files, system calls that the helper makes. The helper must find out by the
 * errors that it gets, and nothing else may be seen of it. At the end of each
 * use what the registration shows is compared.
 */

#define LIFE_CHANGES_NOBODY      65534
#define LIFE_CHANGES_USES        20
#define LIFE_CHANGES_STAY        5 /* uses of the same memory */
#define LIFE_CHANGES_PAUSE_NS    1000000
#define LIFE_CHANGES_SYS_WAITV   449
#define LIFE_CHANGES_SYS_CLONE3  435

typedef struct life_change {
    const char *name;
    int        (*make)(uct_md_h md); /* 0, or -1 with errno */
} life_change_t;

static int life_changes_undumpable(uct_md_h md)
{
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* All threads are refused what a strict filter refuses, with EPERM */
static int life_changes_filter(uct_md_h md)
{
    static const int calls[] = {
        SYS_ioctl, SYS_userfaultfd, SYS_mincore, SYS_openat, SYS_eventfd2,
        SYS_sched_setaffinity, SYS_prctl, LIFE_CHANGES_SYS_WAITV
    };

    return refuse_calls(calls, sizeof(calls) / sizeof(calls[0]), EPERM);
}

static int life_changes_mounts(uct_md_h md)
{
    return unshare(CLONE_NEWNS);
}

/* A folder that is always there and has no /proc below it */
static int life_changes_root(uct_md_h md)
{
    static const char folder[] = "/proc/self/fdinfo";

    return ((chroot(folder) == 0) && (chdir("/") == 0)) ? 0 : -1;
}

static int life_changes_user(uct_md_h md)
{
    return setresuid(LIFE_CHANGES_NOBODY, LIFE_CHANGES_NOBODY,
                     LIFE_CHANGES_NOBODY);
}

/* A child that no fork handler knows of uses and unmaps on its own account */
static int life_changes_clone3(uct_md_h md)
{
    uint64_t args[8] = {0};
    void *buffer     = life_map(LIFE_LENGTH);
    int status;
    long pid;

    args[4] = SIGCHLD; /* exit_signal of struct clone_args */
    life_use(md, buffer, LIFE_LENGTH);
    pid = syscall(LIFE_CHANGES_SYS_CLONE3, args, sizeof(args));
    if (pid == 0) {
        munmap(buffer, LIFE_LENGTH);
        buffer = life_map(LIFE_LENGTH);
        life_use(md, buffer, LIFE_LENGTH);
        _exit(0);
    }
    if (pid < 0) {
        return -1;
    }
    if ((waitpid(pid, &status, 0) != pid) || (status != 0)) {
        life_fail("the child of clone3() ended with %x", status);
    }
    life_use(md, buffer, LIFE_LENGTH);
    munmap(buffer, LIFE_LENGTH);
    return 0;
}

/* The other threads keep a table that nobody closes */
static int life_changes_files(uct_md_h md)
{
    return unshare(CLONE_FILES);
}

/* And one that nobody knows keeps a copy of the table */
static int life_changes_child(uct_md_h md)
{
    long pid = syscall(SYS_fork);

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        pause();
        _exit(0);
    }
    return (pid > 0) ? 0 : -1;
}

static const life_change_t life_changes_list[] = {
    {"not dumpable", life_changes_undumpable},
    {"system calls refused", life_changes_filter},
    {"mounts of its own", life_changes_mounts},
    {"another root", life_changes_root},
    {"another user", life_changes_user},
    {"clone3", life_changes_clone3},
    {"descriptors of its own", life_changes_files},
    {"a child that nobody knows", life_changes_child}
};

#define LIFE_CHANGES_NUM \
    (sizeof(life_changes_list) / sizeof(life_changes_list[0]))

/* Other memory in its place, behind the back of all hooks */
static void life_changes_replace(char *buffer)
{
    if (syscall(SYS_mmap, buffer, LIFE_LENGTH, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        (long)buffer) {
        life_fail("cannot map over a buffer");
    }
}

/* A buffer that stays but for its memory, and one that goes each time, with new
 * content at each use */
static void life_changes_use(uct_md_h md, char *kept, int salt)
{
    const struct timespec pause = {0, LIFE_CHANGES_PAUSE_NS};
    void *other;
    int i;

    for (i = 0; i < LIFE_CHANGES_USES; ++i) {
        memset(kept, salt + i, LIFE_LENGTH);
        life_use(md, kept, LIFE_LENGTH);
        other = life_map(LIFE_LENGTH);
        life_use(md, other, LIFE_LENGTH);
        munmap(other, LIFE_LENGTH);
        if (i % LIFE_CHANGES_STAY == 0) {
            life_changes_replace(kept);
        }
        nanosleep(&pause, NULL);
    }
}

/* In a process of its own. @return Exit code: 0, or 77 if not permitted. */
static int life_changes_one(const life_change_t *change)
{
    uct_md_h md  = life_domain_open_verified();
    char *kept   = life_make_live(md);
    int exitcode = 0;

    life_changes_use(md, kept, 0);
    if (change->make(md) != 0) {
        if ((errno != EPERM) && (errno != ENOSYS)) {
            life_fail("%s: %s", change->name, strerror(errno));
        }
        exitcode = 77;
    }
    life_changes_use(md, kept, 100);
    munmap(kept, LIFE_LENGTH);
    life_drain(md);
    return exitcode;
}

void life_changes(const life_options_t *options)
{
    unsigned long made = 0, refused = 0;
    unsigned long i;
    int status;
    pid_t pid;

    for (i = 0; i < options->count * LIFE_CHANGES_NUM; ++i) {
        const life_change_t *change = &life_changes_list[i % LIFE_CHANGES_NUM];

        life_step(change->name);
        pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            exit(life_changes_one(change));
        }
        if ((waitpid(pid, &status, 0) != pid) || !WIFEXITED(status) ||
            ((WEXITSTATUS(status) != 0) && (WEXITSTATUS(status) != 77))) {
            life_fail("%s: ended with %x", change->name, status);
        }
        ++*((WEXITSTATUS(status) == 0) ? &made : &refused);
    }
    printf("changes %lu, not permitted %lu\n", made, refused);
    if (made == 0) {
        life_fail("no change could be made");
    }
}

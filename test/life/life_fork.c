/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"

#include <ucs/sys/sync/atomic.h>
#include <uct/ib/helper_md/helper_md.h>

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIFE_FORK_BUFFERS 4

extern char **environ;

typedef struct life_parent {
    uct_md_h     md;
    char         *buffers[LIFE_FORK_BUFFERS]; /* registered again and again */
    _Atomic int  stop;
    pthread_t    thread;
} life_parent_t;

typedef pid_t (*life_fork_func_t)(life_parent_t *parent, unsigned long step);

/* Keeps the helper, the cache's lock and the allocator busy, so that processes
 * are made at any point of their work */
static void *life_fork_busy(void *arg)
{
    life_parent_t *parent = arg;
    unsigned long i;
    void *once;

    for (i = 0; !ucs_load_relaxed(&parent->stop); ++i) {
        life_use(parent->md, parent->buffers[i % LIFE_FORK_BUFFERS],
                 LIFE_LENGTH);
        once = life_map(LIFE_LENGTH);
        life_use(parent->md, once, LIFE_LENGTH);
        munmap(once, LIFE_LENGTH);
    }
    return NULL;
}

/* What a child may do with its parent's domain: register on its own, write to
 * and unmap what the parent has registered */
static pid_t life_fork_fork(life_parent_t *parent, unsigned long step)
{
    pid_t pid = fork();
    void *own;
    int i;

    if (pid != 0) {
        return pid;
    }

    own = life_map(LIFE_LENGTH);
    life_use(parent->md, own, LIFE_LENGTH);
    munmap(own, LIFE_LENGTH);
    for (i = 0; i < LIFE_FORK_BUFFERS; ++i) {
        memset(parent->buffers[i], 0xcc, LIFE_LENGTH);
        life_use(parent->md, parent->buffers[i], LIFE_LENGTH);
        munmap(parent->buffers[i], LIFE_LENGTH);
    }
    if (life_proc_helper() != 0) {
        life_fail("a child has a helper");
    }
    if (step & 4) {
        exit(0);
    }
    _exit(0);
}

static pid_t life_fork_vfork(life_parent_t *parent, unsigned long step)
{
    pid_t pid = vfork();

    if (pid == 0) {
        execl("/bin/true", "true", (char*)NULL);
        _exit(127);
    }
    return pid;
}

static pid_t life_fork_spawn(life_parent_t *parent, unsigned long step)
{
    static char name[] = "true";
    char *argv[]       = {name, NULL};
    pid_t pid          = -1;

    return (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0) ?
           pid : -1;
}

/* Past every atfork handler: the cache's lock may be held for ever in the
 * child. It only unmaps, by the C library and so through UCM's hooks, and
 * writes. */
static pid_t life_fork_clone(life_parent_t *parent, unsigned long step)
{
    pid_t pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
    int i;

    if (pid != 0) {
        return pid;
    }

    for (i = 0; i < LIFE_FORK_BUFFERS; ++i) {
        memset(parent->buffers[i], 0xcc, LIFE_LENGTH);
        munmap(parent->buffers[i], LIFE_LENGTH);
    }
    _exit(0);
}

static const struct {
    const char       *name;
    life_fork_func_t make;
} life_forks[] = {
    {"fork", life_fork_fork},
    {"vfork", life_fork_vfork},
    {"posix_spawn", life_fork_spawn},
    {"clone", life_fork_clone}
};

#define LIFE_NUM_FORKS (sizeof(life_forks) / sizeof(life_forks[0]))

static void life_fork_check(const life_parent_t *parent)
{
    size_t i, j;

    for (i = 0; i < LIFE_FORK_BUFFERS; ++i) {
        for (j = 0; j < LIFE_LENGTH; ++j) {
            if (parent->buffers[i][j] != (char)(i + 1)) {
                life_fail("a child has written into its parent's buffer %zu",
                          i);
            }
        }
    }
}

static void life_fork_start(life_parent_t *parent)
{
    int i;

    parent->md = life_domain_open();
    for (i = 0; i < LIFE_FORK_BUFFERS; ++i) {
        parent->buffers[i] = life_map(LIFE_LENGTH);
        memset(parent->buffers[i], i + 1, LIFE_LENGTH);
    }
    ucs_store_relaxed(&parent->stop, 0);
    if (pthread_create(&parent->thread, NULL, life_fork_busy, parent) != 0) {
        life_fail("no thread");
    }
}

void life_fork(const life_options_t *options)
{
    unsigned long done[LIFE_NUM_FORKS] = {0};
    life_parent_t parent;
    unsigned long i, kind;

    life_fork_start(&parent);
    for (i = 0; i < options->count; ++i) {
        kind = i % LIFE_NUM_FORKS;
        life_step(life_forks[kind].name);
        life_wait_child(life_forks[kind].make(&parent, i),
                        life_forks[kind].name);
        ++done[kind];
    }

    life_step("end");
    ucs_store_relaxed(&parent.stop, 1);
    pthread_join(parent.thread, NULL);
    life_fork_check(&parent);
    life_domain_close(parent.md);
    printf("fork %lu: fork %lu vfork %lu posix_spawn %lu clone %lu\n",
           options->count, done[0], done[1], done[2], done[3]);
}

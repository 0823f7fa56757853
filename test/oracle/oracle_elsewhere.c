/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"
#include "../own_proc.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORACLE_STACK_LENGTH (32ul << 10)

/* Seconds after which a child is taken for hung */
#define ORACLE_CHILD_TIME 20

/* Mappings that are made at once */
#define ORACLE_MANY 32

/* Descriptors among which ours is looked for */
#define ORACLE_MAX_FD 1024

/*
 * Other processes
 */

static int oracle_wait_for(pid_t pid)
{
    int status = -1;

    while ((waitpid(pid, &status, 0) < 0) && (errno == EINTR)) {
    }
    return status;
}

/* The child reads its copy, writes to it, and uses the domain; its parent's
 * registration stays as it is */
static void oracle_fork(oracle_worker_t *worker, oracle_slot_t *slot)
{
    uint64_t sum = 0;
    size_t offset;
    pid_t pid;

    pid = fork();
    if (pid < 0) {
        return;
    }
    if (pid == 0) {
        alarm(ORACLE_CHILD_TIME);
        for (offset = 0; offset < slot->length; offset += sizeof(sum)) {
            sum += *(uint64_t*)(slot->address + offset);
            *(uint64_t*)(slot->address + offset) = sum;
        }
        oracle_put(worker->world,
                   oracle_get(worker->world, slot->address, slot->length));
        _exit(0);
    }
    if (oracle_wait_for(pid) != 0) {
        oracle_die("a forked child failed");
    }
}

static void oracle_spawn(void)
{
    extern char **environ;
    char *arguments[] = {"true", NULL};
    pid_t pid;

    if (posix_spawnp(&pid, "true", NULL, NULL, arguments, environ) == 0) {
        oracle_wait_for(pid);
    }
}

void oracle_around(oracle_worker_t *worker, oracle_slot_t *slot)
{
    if (oracle_below(worker, 4) == 0) {
        oracle_spawn();
    } else {
        oracle_fork(worker, slot);
    }
}

/*
 * Other memory
 */

static void oracle_heap(oracle_worker_t *worker)
{
    size_t length = 1024 + oracle_below(worker, ORACLE_HEAP_MAX - 1024);
    char *buffer  = malloc(length);

    if (buffer == NULL) {
        oracle_die("out of memory");
    }
    oracle_use(worker, NULL, buffer, length);
    free(buffer);
    if (oracle_below(worker, 16) == 0) {
        malloc_trim(0);
    }
}

/* A thread that ends leaves its stack to the next one */
static void *oracle_stack_thread(void *arg)
{
    char buffer[ORACLE_STACK_LENGTH];

    oracle_use(arg, NULL, buffer, sizeof(buffer));
    return NULL;
}

static void oracle_stack(oracle_worker_t *worker)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, oracle_stack_thread, worker) == 0) {
        pthread_join(thread, NULL);
    }
}

/* A buffer in .bss; its first and last page may be the file's. Two threads that
 * load the module have the same one: what one compares the other must not write. */
static void oracle_use_bss(oracle_worker_t *worker, char *buffer, size_t length)
{
    static pthread_mutex_t content = PTHREAD_MUTEX_INITIALIZER;
    size_t skip                    = 0;

    if (!worker->options->takes_files) {
        skip   = -(uintptr_t)buffer & (oracle_page - 1);
        length = (length - skip) & ~(oracle_page - 1);
    }
    pthread_mutex_lock(&content);
    oracle_use(worker, NULL, buffer + skip, length);
    pthread_mutex_unlock(&content);
}

/* The module stands beside the program. Its buffer goes with it, by the
 * loader's own munmap(). */
static void oracle_bss(oracle_worker_t *worker)
{
    char path[PATH_MAX], *slash;
    void *module, *buffer;
    size_t *length;
    ssize_t ret;

    ret = readlink("/proc/self/exe", path, sizeof(path) - 32);
    if (ret < 0) {
        oracle_die("readlink");
    }
    path[ret] = '\0';
    slash     = strrchr(path, '/');
    strcpy(slash, "/oracle_bss.so");
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        oracle_die(dlerror());
    }
    buffer = dlsym(module, "oracle_bss_buffer");
    length = dlsym(module, "oracle_bss_length");
    if ((buffer == NULL) || (length == NULL)) {
        oracle_die(dlerror());
    }
    oracle_use_bss(worker, buffer, *length);
    dlclose(module);
}

/* Neighbours, of which every other one is communicated from; they go in any
 * order */
static void oracle_many(oracle_worker_t *worker)
{
    size_t length = (1 + oracle_below(worker, 4)) * oracle_page;
    char *buffers[ORACLE_MANY];
    unsigned i, pick;

    for (i = 0; i < ORACLE_MANY; ++i) {
        buffers[i] = mmap(NULL, length, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (buffers[i] == MAP_FAILED) {
            oracle_die("mmap");
        }
        buffers[i][0] = 1;
        if (i & 1) {
            oracle_use(worker, NULL, buffers[i], length);
        }
    }
    for (i = ORACLE_MANY; i > 0; --i) {
        pick = oracle_below(worker, i);
        munmap(buffers[pick], length);
        buffers[pick] = buffers[i - 1];
    }
}

int oracle_take_descriptor(void)
{
    int taken = own_proc_userfaultfd(ORACLE_MAX_FD);
    int fds[2];

    if (taken < 0) {
        return -1;
    }
    if ((pipe(fds) != 0) || (dup2(fds[0], taken) != taken)) {
        oracle_die("a pipe");
    }
    close(fds[0]);
    close(fds[1]);
    return taken;
}

void oracle_elsewhere(oracle_worker_t *worker)
{
    uint64_t pick = oracle_below(worker, 64);

    if (pick < 2) {
        oracle_stack(worker);
    } else if ((pick < 3) && !worker->options->hooks_only) {
        oracle_bss(worker);
    } else if (pick < 4) {
        oracle_many(worker);
    } else {
        oracle_heap(worker);
    }
}

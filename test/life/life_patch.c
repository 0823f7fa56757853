/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"

#include <ucs/sys/sync/atomic.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* UCX writes its hooks over the first instructions of functions that other
 * threads may be running just then. It does that once a process, when the first
 * domain is attached; so each step is a process of its own. */

#define LIFE_PATCH_THREADS 2

/* Above glibc's threshold for memory of its own mapping, and below */
#define LIFE_PATCH_LARGE   (1ul << 20)
#define LIFE_PATCH_SMALL   (60ul << 10)

static _Atomic(unsigned) life_patch_running;
static _Atomic(int)      life_patch_stop;

static void life_patch_touch(volatile char *memory, size_t length, char value)
{
    memory[0]          = value;
    memory[length - 1] = value;
    if ((memory[0] != value) || (memory[length - 1] != value)) {
        life_fail("memory is not what was written");
    }
}

static void life_patch_disturb(char value)
{
    char *large = malloc(LIFE_PATCH_LARGE);
    char *small = malloc(LIFE_PATCH_SMALL);
    char *map   = life_map(LIFE_PATCH_SMALL);

    if ((large == NULL) || (small == NULL)) {
        life_fail("out of memory");
    }
    /* UCM's lock prefers those who map to who installs a hook: where all
     * threads do nothing else it would wait for ever */
    memset(large, value, LIFE_PATCH_LARGE);
    life_patch_touch(large, LIFE_PATCH_LARGE, value);
    life_patch_touch(small, LIFE_PATCH_SMALL, value);
    life_patch_touch(map, LIFE_PATCH_SMALL, value);
    if ((madvise(map, LIFE_PATCH_SMALL, MADV_DONTNEED) != 0) || (*map != 0)) {
        life_fail("madvise() does not discard");
    }
    free(large);
    free(small);
    munmap(map, LIFE_PATCH_SMALL);
}

static void *life_patch_thread(void *arg)
{
    char value = (char)(intptr_t)arg;

    life_patch_disturb(value);
    ucs_add_acq_rel(&life_patch_running, 1);
    while (!ucs_load_acquire(&life_patch_stop)) {
        life_patch_disturb(++value);
    }
    return NULL;
}

/* In a process that has attached nothing yet */
static void life_patch_attach(void)
{
    pthread_t threads[LIFE_PATCH_THREADS];
    void *buffer;
    uct_md_h md;
    int i;

    for (i = 0; i < LIFE_PATCH_THREADS; ++i) {
        if (pthread_create(&threads[i], NULL, life_patch_thread,
                           (void*)(intptr_t)i) != 0) {
            life_fail("no thread to disturb");
        }
    }
    while (ucs_load_acquire(&life_patch_running) < LIFE_PATCH_THREADS) {
        sched_yield();
    }

    md     = life_domain_open();
    buffer = life_map(LIFE_LENGTH);
    life_use(md, buffer, LIFE_LENGTH);
    munmap(buffer, LIFE_LENGTH);
    ucs_store_release(&life_patch_stop, 1);
    for (i = 0; i < LIFE_PATCH_THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
    life_domain_close(md);
    exit(0);
}

void life_patch(const life_options_t *options)
{
    unsigned long i;
    pid_t pid;

    for (i = 0; i < options->count; ++i) {
        life_step("attach beside busy threads");
        pid = fork();
        if (pid == 0) {
            life_patch_attach();
        }
        life_wait_child(pid, "a process that attaches beside busy threads");
    }
    printf("patch %lu\n", options->count);
}

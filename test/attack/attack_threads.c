/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Threads that communicate while others change their memory, are interrupted,
 * cancelled, or end before the program does.
 */

#include "attack.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define USERS        3
#define DISTURBERS   3
#define SECONDS      2
#define SHARED_SIZE  (2 * ATTACK_SIZE)
#define LEAST        100 /* bytes of a use */
#define CANCELLED    200
#define CANCEL_SIZE  400000
#define LIFE_US      500 /* of a thread until it is cancelled, at the least */

typedef struct thread {
    uct_md_h     md;
    pthread_t    id;
    unsigned     seed;
} thread_t;

static char *shared;
static _Atomic int is_over;


/* Parts of memory that stays and whose contents do */
static void *user_main(void *arg)
{
    thread_t *thread = arg;
    size_t offset, length;

    while (!is_over) {
        offset = rand_r(&thread->seed) % SHARED_SIZE;
        length = rand_r(&thread->seed) % (SHARED_SIZE - offset);
        if (length >= LEAST) {
            attack_use_as_is(thread->md, shared + offset, length);
        }
    }
    return NULL;
}

static void disturb_fixed(char *address, size_t length, int type)
{
    if (syscall(SYS_mmap, address, length, PROT_READ | PROT_WRITE,
                type | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != (long)address) {
        attack_die("mapping over failed: %m");
    }
}

static void disturb(unsigned what, char *address, size_t length)
{
    char *other;

    switch (what) {
    case 0:
        disturb_fixed(address, length, MAP_PRIVATE);
        break;
    case 1:
        disturb_fixed(address, length, MAP_SHARED);
        break;
    case 2:
        madvise(address, length, MADV_DONTNEED);
        break;
    case 3:
        other = attack_map(length);
        syscall(SYS_mremap, other, length, length,
                MREMAP_MAYMOVE | MREMAP_FIXED, address);
        break;
    default:
        break;
    }
}

/* Memory of its own, some of it beside that of others */
static void *disturber_main(void *arg)
{
    thread_t *thread = arg;
    size_t length;
    char *buffer;

    while (!is_over) {
        length = (1 + rand_r(&thread->seed) % 64) * ATTACK_PAGE;
        buffer = attack_map(length);
        memset(buffer, 1, length);
        attack_use_as_is(thread->md, buffer, length);
        disturb(rand_r(&thread->seed) % 6, buffer, length);
        memset(buffer, 2, length);
        attack_use_as_is(thread->md, buffer, length);
        munmap(buffer, length);
    }
    return NULL;
}

static void on_signal(int signal)
{
    void *page = (void*)syscall(SYS_mmap, NULL, ATTACK_PAGE,
                                PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)signal;
    munmap(page, ATTACK_PAGE);
}

static void interrupt(const thread_t *threads, unsigned count)
{
    pid_t child;
    unsigned i;

    for (i = 0; i < count; ++i) {
        pthread_kill(threads[i].id, SIGUSR1);
    }
    child = fork();
    if (child == 0) {
        munmap(shared, SHARED_SIZE);
        _exit(0);
    }
    if (child > 0) {
        waitpid(child, NULL, 0);
    }
    attack_sleep(1);
}

static void run_threads(uct_md_h md)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    thread_t threads[USERS + DISTURBERS];
    unsigned i, count = USERS + DISTURBERS;
    double end;

    shared = attack_map(SHARED_SIZE);
    memset(shared, 1, SHARED_SIZE);
    sigaction(SIGUSR1, &action, NULL);
    for (i = 0; i < count; ++i) {
        threads[i].md   = md;
        threads[i].seed = i + 1;
        if (pthread_create(&threads[i].id, NULL,
                           (i < USERS) ? user_main : disturber_main,
                           &threads[i]) != 0) {
            attack_die("no thread");
        }
    }
    for (end = attack_now() + SECONDS; attack_now() < end;) {
        interrupt(threads, count);
    }
    is_over = 1;
    for (i = 0; i < count; ++i) {
        pthread_join(threads[i].id, NULL);
    }
}

static void *cancelled_main(void *arg)
{
    uct_md_h md = arg;
    char *buffer;

    for (;;) {
        buffer = attack_map(CANCEL_SIZE);
        attack_use_as_is(md, buffer, CANCEL_SIZE);
        attack_use_as_is(md, shared, CANCEL_SIZE);
        munmap(buffer, CANCEL_SIZE);
        pthread_testcancel();
    }
    return NULL;
}

/* Wherever they are, and what they hold is held no more */
static void run_cancel(uct_md_h md)
{
    pthread_t id;
    int i;

    shared = attack_map(CANCEL_SIZE);
    memset(shared, 1, CANCEL_SIZE);
    for (i = 0; i < CANCELLED; ++i) {
        if (pthread_create(&id, NULL, cancelled_main, md) != 0) {
            attack_die("no thread");
        }
        usleep(LIFE_US + i * 7);
        pthread_cancel(id);
        pthread_join(id, NULL);
    }
    attack_use(md, shared, CANCEL_SIZE);
}

/* The process ends with its last thread */
static void run_pthread_exit(uct_md_h md)
{
    char *buffer = attack_map(ATTACK_SIZE);

    attack_use_often(md, buffer, ATTACK_SIZE);
    puts("the first thread is to end");
    fflush(stdout);
    pthread_exit(NULL);
}

const attack_t attack_threads_list[] = {
    {"threads", run_threads},
    {"cancel", run_cancel},
    {"pthread_exit", run_pthread_exit},
    {NULL, NULL}
};

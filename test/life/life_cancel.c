/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"

#include <ucs/sys/sync/atomic.h>
#include <uct/ib/helper_md/helper_md.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>

/*
 * Threads that are cancelled while they register. Cancellation is deferred, so
 * it takes a thread away only in a function that is a cancellation point; the
 * helper must not call one between taking something and giving it back. A
 * region left half registered, or a lock left held, hangs the thread that comes
 * next, and that is what the main thread does.
 */

#define LIFE_CANCEL_THREADS 2
#define LIFE_CANCEL_BUFFERS 4

static struct {
    uct_md_h              md;
    void                  *buffers[LIFE_CANCEL_BUFFERS];
    _Atomic unsigned long uses;
} life_victims;

static void life_cancel_unmap(void *address)
{
    munmap(address, LIFE_LENGTH);
}

/* What is cancelled gives back what it holds, as any tidy program does: there
 * is no cancellation point between a call's return and the push */
static void life_cancel_fresh(void)
{
    void *fresh = life_map(LIFE_LENGTH);

    pthread_cleanup_push(life_cancel_unmap, fresh);
    life_use(life_victims.md, fresh, LIFE_LENGTH);
    pthread_cleanup_pop(1);
}

static void *life_cancel_user(void *arg)
{
    unsigned i;

    for (i = 0;; ++i) {
        life_use(life_victims.md,
                 life_victims.buffers[i % LIFE_CANCEL_BUFFERS], LIFE_LENGTH);
        life_cancel_fresh();
        ucs_add_relaxed(&life_victims.uses, 1);
        pthread_testcancel();
    }
    return NULL;
}

static void life_cancel_round(void)
{
    pthread_t threads[LIFE_CANCEL_THREADS];
    unsigned long uses = ucs_load_relaxed(&life_victims.uses);
    void *result;
    int i;

    for (i = 0; i < LIFE_CANCEL_THREADS; ++i) {
        if (pthread_create(&threads[i], NULL, life_cancel_user, NULL) != 0) {
            life_fail("no thread");
        }
    }
    while (ucs_load_relaxed(&life_victims.uses) == uses) {
        sched_yield();
    }
    for (i = 0; i < LIFE_CANCEL_THREADS; ++i) {
        pthread_cancel(threads[i]);
    }
    for (i = 0; i < LIFE_CANCEL_BUFFERS; ++i) {
        life_use(life_victims.md, life_victims.buffers[i], LIFE_LENGTH);
    }
    for (i = 0; i < LIFE_CANCEL_THREADS; ++i) {
        pthread_join(threads[i], &result);
        if (result != PTHREAD_CANCELED) {
            life_fail("a cancelled thread ended otherwise");
        }
    }
}

void life_cancel(const life_options_t *options)
{
    unsigned long i;
    int j;

    life_victims.md = life_domain_open();
    for (j = 0; j < LIFE_CANCEL_BUFFERS; ++j) {
        life_victims.buffers[j] = life_map(LIFE_LENGTH);
    }

    for (i = 0; i < options->count; ++i) {
        life_step("cancel");
        life_cancel_round();
    }

    /* A reference that nobody gives back would keep its region for ever */
    for (j = 0; j < LIFE_CANCEL_BUFFERS; ++j) {
        munmap(life_victims.buffers[j], LIFE_LENGTH);
    }
    life_drain(life_victims.md);
    life_domain_close(life_victims.md);
    printf("cancel %lu: threads %lu uses %lu\n", options->count,
           options->count * LIFE_CANCEL_THREADS,
           ucs_load_relaxed(&life_victims.uses));
}

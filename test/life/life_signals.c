/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"

#include <ucs/sys/sync/atomic.h>

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * A timer's signals at some kHz, whose handler unmaps, maps and frees memory
 * that the helper knows, in whatever its thread is doing: in the cache with
 * its lock held, for one. While the program's threads block the signal it is
 * the helper that would get it if it did not block it itself.
 */

#define LIFE_SIGNAL       SIGRTMIN
#define LIFE_SLOTS        8
#define LIFE_NO_SLOT      LIFE_SLOTS
#define LIFE_PERIOD_NS    200000
#define LIFE_MMAP_MIN     (64 << 10)
#define LIFE_BLOCKED_USES 64

static struct {
    void              *slots[LIFE_SLOTS];
    _Atomic unsigned  in_use;   /* slot that the handler must leave alone */
    _Atomic(void*)    heap;     /* block for the handler to free */
    pid_t             main_id;
    _Atomic unsigned long handled, stolen, unmapped, freed;
    _Atomic int       stop;
} life_storm;

/* Both ways to have other memory at an address: at once, and one after the
 * other. Only this handler maps there, and it runs in one thread. */
static void life_signal_replace(unsigned slot)
{
    void *address = life_storm.slots[slot];
    void *again;

    if (slot & 1) {
        munmap(address, LIFE_LENGTH);
        again = mmap(NULL, LIFE_LENGTH, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    } else {
        again = mmap(address, LIFE_LENGTH, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    if (again == MAP_FAILED) {
        _exit(3);
    }
    life_storm.slots[slot] = again;
    ucs_add_relaxed(&life_storm.unmapped, 1);
}

static void life_signal_handler(int number)
{
    unsigned slot = ucs_load_relaxed(&life_storm.handled) % LIFE_SLOTS;
    void *heap;

    if (syscall(SYS_gettid) != life_storm.main_id) {
        ucs_add_relaxed(&life_storm.stolen, 1);
        return;
    }

    ucs_add_relaxed(&life_storm.handled, 1);
    if (slot != ucs_load_relaxed(&life_storm.in_use)) {
        life_signal_replace(slot);
    }

    /* A block that is a mapping of its own: the C library takes no lock for
     * it, which a handler may not need */
    heap = ucs_swap_acq_rel(&life_storm.heap, NULL);
    if (heap != NULL) {
        free(heap);
        ucs_add_relaxed(&life_storm.freed, 1);
    }
}

static void life_signal_mask(int how)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, LIFE_SIGNAL);
    pthread_sigmask(how, &set, NULL);
}

static void life_signal_use(uct_md_h md, unsigned slot)
{
    ucs_store_relaxed(&life_storm.in_use, slot);
    life_use(md, life_storm.slots[slot], LIFE_LENGTH);
    ucs_store_relaxed(&life_storm.in_use, LIFE_NO_SLOT);
}

/* A second user, deaf to the signal, for the lock to be contended */
static void *life_signal_other(void *arg)
{
    uct_md_h md  = arg;
    void *buffer = life_map(LIFE_LENGTH);

    while (!ucs_load_relaxed(&life_storm.stop)) {
        life_use(md, buffer, LIFE_LENGTH);
    }
    munmap(buffer, LIFE_LENGTH);
    return NULL;
}

static void life_signal_refill(uct_md_h md)
{
    void *block;

    if (ucs_load_relaxed(&life_storm.heap) != NULL) {
        return;
    }
    block = malloc(LIFE_LENGTH);
    if (block == NULL) {
        life_fail("no memory");
    }
    life_use(md, block, LIFE_LENGTH);
    ucs_store_release(&life_storm.heap, block);
}

static timer_t life_signal_start(void)
{
    struct sigaction action = {
        .sa_handler = life_signal_handler,
        .sa_flags   = SA_RESTART
    };
    struct sigevent event         = {.sigev_notify = SIGEV_SIGNAL};
    const struct itimerspec every = {{0, LIFE_PERIOD_NS}, {0, LIFE_PERIOD_NS}};
    timer_t timer;

    event.sigev_signo = LIFE_SIGNAL;
    if ((sigaction(LIFE_SIGNAL, &action, NULL) != 0) ||
        (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) ||
        (timer_settime(timer, 0, &every, NULL) != 0)) {
        life_fail("no timer");
    }
    return timer;
}

static void life_signal_run(uct_md_h md, unsigned long count)
{
    unsigned long i;
    unsigned j;

    for (i = 0; ucs_load_relaxed(&life_storm.handled) < count; ++i) {
        life_step("storm");
        for (j = 0; j < LIFE_SLOTS; ++j) {
            life_signal_use(md, j);
        }
        life_signal_refill(md);

        life_signal_mask(SIG_BLOCK);
        for (j = 0; j < LIFE_BLOCKED_USES; ++j) {
            life_use(md, life_storm.slots[j % LIFE_SLOTS], LIFE_LENGTH);
        }
        life_signal_mask(SIG_UNBLOCK);
    }
}

void life_signals(const life_options_t *options)
{
    uct_md_h md;
    pthread_t other;
    timer_t timer;
    unsigned i;

    mallopt(M_MMAP_THRESHOLD, LIFE_MMAP_MIN); /* and keep it there */
    life_storm.main_id = syscall(SYS_gettid);
    ucs_store_relaxed(&life_storm.in_use, LIFE_NO_SLOT);
    for (i = 0; i < LIFE_SLOTS; ++i) {
        life_storm.slots[i] = life_map(LIFE_LENGTH);
    }

    md = life_domain_open();
    life_make_live(md);
    if (!life_proc_blocks_all(life_proc_helper())) {
        life_fail("the helper does not block all signals");
    }
    life_signal_mask(SIG_BLOCK); /* for the thread to inherit */
    if (pthread_create(&other, NULL, life_signal_other, md) != 0) {
        life_fail("no thread");
    }
    life_signal_mask(SIG_UNBLOCK);

    timer = life_signal_start();
    life_signal_run(md, options->count);
    life_signal_mask(SIG_BLOCK);
    timer_delete(timer);
    ucs_store_relaxed(&life_storm.stop, 1);
    pthread_join(other, NULL);
    life_domain_close(md);

    printf("signals %lu: unmapped %lu freed %lu stolen %lu\n",
           ucs_load_relaxed(&life_storm.handled),
           ucs_load_relaxed(&life_storm.unmapped),
           ucs_load_relaxed(&life_storm.freed),
           ucs_load_relaxed(&life_storm.stolen));
    if (ucs_load_relaxed(&life_storm.stolen) > 0) {
        life_fail("another thread than the program's own took signals");
    }
}

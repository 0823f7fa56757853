/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/*
 * What is unmapped is deregistered though nobody calls the pipeline any more. The thread
 * that unmaps cannot do it, for UCX frees memory when it deregisters, and the caller may
 * be the allocator. So it rings for a thread that sleeps otherwise.
 */

static pthread_once_t ucp_pipeline_sweeper_once = PTHREAD_ONCE_INIT;
static _Atomic int ucp_pipeline_sweeper_is_over; /* the program ends */

/* UCX is taken down after this, by exit handlers that were registered earlier */
static void ucp_pipeline_sweeper_exit(void)
{
    /* relaxed: who is inside is waited for, and the lock there orders the rest */
    ucs_store_relaxed(&ucp_pipeline_sweeper_is_over, 1);
    ucp_wire_thread_await();
}

static void ucp_pipeline_sweeper_at_exit(void)
{
    (void)atexit(ucp_pipeline_sweeper_exit);
}

/* The C library makes an arena for a thread that frees memory: 64 MB of address space,
 * 128 for a moment. A program that has little is to have it all. */
static int ucp_pipeline_sweeper_has_room(void)
{
    struct rlimit limit;

    return (getrlimit(RLIMIT_AS, &limit) != 0) ||
           (limit.rlim_cur == RLIM_INFINITY);
}

/* @return Zero: the process forks. */
static int ucp_pipeline_sweeper_turn(ucx_pipeline_h self)
{
    if (!ucp_wire_thread_enter(0)) {
        return 0;
    }
    if (!ucs_load_relaxed(&ucp_pipeline_sweeper_is_over) &&
        ucp_pipeline_sweeper_has_room()) {
        pthread_mutex_lock(&self->lock);
        ucp_pipeline_cache_sweep(self);
        pthread_mutex_unlock(&self->lock);
    }
    ucp_wire_thread_leave(0);
    return 1;
}

static void *ucp_pipeline_sweeper_main(void *arg)
{
    const struct timespec pause     = {0, UCP_PIPELINE_SWEEPER_PAUSE_NS};
    ucp_pipeline_sweeper_t *sweeper = &((ucx_pipeline_h)arg)->sweeper;

    for (;;) {
        while (sem_wait(&sweeper->bell) != 0) {
        }
        while (sem_trywait(&sweeper->bell) == 0) { /* once for all that rang */
        }
        do {
            /* relaxed: the bell orders it, or it is seen at some time */
            if (ucs_load_relaxed(&sweeper->stops)) {
                return NULL;
            }
        } while (!ucp_pipeline_sweeper_turn(arg) && (nanosleep(&pause, NULL) == 0));
    }
}

void ucp_pipeline_sweeper_init(ucx_pipeline_h self)
{
    atomic_init(&self->sweeper.stops, 0);
    sem_init(&self->sweeper.bell, 0, 0);
}

/* May be called by a signal handler, and inside the allocator */
void ucp_pipeline_sweeper_ring(ucx_pipeline_h self)
{
    (void)sem_post(&self->sweeper.bell);
}

/* Without it, what is unmapped goes at the next call */
void ucp_pipeline_sweeper_start(ucx_pipeline_h self)
{
    ucp_pipeline_sweeper_t *sweeper = &self->sweeper;

    pthread_once(&ucp_pipeline_sweeper_once, ucp_pipeline_sweeper_at_exit);
    sweeper->runs = ucp_wire_thread_start(&sweeper->thread,
                                          UCP_PIPELINE_SWEEPER_STACK,
                                          ucp_pipeline_sweeper_main, self) == 0;
}

void ucp_pipeline_sweeper_stop(ucx_pipeline_h self)
{
    ucp_pipeline_sweeper_t *sweeper = &self->sweeper;

    if (sweeper->runs) {
        ucs_store_relaxed(&sweeper->stops, 1);
        ucp_pipeline_sweeper_ring(self);
        ucs_spawn_join(&sweeper->thread);
        sweeper->runs = 0;
    }
}

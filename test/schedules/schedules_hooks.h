/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_HOOKS_H_
#define SCHEDULES_HOOKS_H_

/**
 * @file schedules_hooks.h
 *
 * Included before all else where the cache is compiled for schedules: what it
 * asks of libc goes to the simulation.
 */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "schedules_point.h"

void *sim_alloc(size_t size);
void sim_free(void *pointer);
pthread_t sim_self(void);

#define pthread_self() sim_self()
#define sched_yield()  sim_spin(__func__, __LINE__)

#include <ucs/sys/sync/lock.h>
#include <ucs/sys/mem/own_memory.h>

#define ucs_own_alloc(_size)   sim_alloc(_size)
#define ucs_own_free(_pointer) sim_free(_pointer)

/* How long the index lock is held */
#define ucs_lock(_lock) \
    do { \
        ucs_lock(_lock); \
        sim_locked(); \
    } while (0)
#define ucs_lock_try(_lock) \
    ({ \
        int sim_is_taken = ucs_lock_try(_lock); \
        if (sim_is_taken) { \
            sim_locked(); \
        } \
        sim_is_taken; \
    })
#define ucs_unlock(_lock) \
    do { \
        sim_unlocking(); \
        ucs_unlock(_lock); \
        sim_unlocked(); \
    } while (0)

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_WORLD_H_
#define SCHEDULES_WORLD_H_

#include "../inside/regcache_inside.h"
#include "schedules_sched.h"

#include <ucs/regcache/regcache.h>

/**
 * @file schedules_world.h
 *
 * What surrounds the cache: simulated virtual memory whose mappings have
 * generations, a lower domain that notes which generation it pinned, and a
 * judge that knows who uses what.
 */

#define SIM_PAGE       4096ul
#define SIM_PAGES      16
#define SIM_BASE       0x100000ul
#define SIM_MAX_SLOTS  64 /* registrations at once */
#define SIM_MAX_COMPS  64
#define SIM_MAX_SAID   32 /* operations that no step has heard */

/** A page of the application. */
typedef struct sim_page {
    unsigned mapping;  /* generation; odd: mapped */
    unsigned users;    /* uses that begin, are under way or end */
    int      is_going; /* somebody unmaps it */
} sim_page_t;

/** A registration with the lower domain. */
typedef struct sim_slot {
    int       is_live;
    uintptr_t start, end;
    unsigned  access;
    unsigned  mapping[SIM_PAGES]; /* generations that were pinned */
    unsigned  holders;            /* uses that have the handle */
    unsigned  serial;
} sim_slot_t;

typedef struct sim_comp {
    ucs_regcache_memh_t memh;
    unsigned            serial; /* of the slot, when it was asked for */
    int                 is_done;
} sim_comp_t;

/** A use in progress. */
typedef struct sim_use {
    ucs_regcache_memh_t memh;
    uintptr_t           start, end;
} sim_use_t;

typedef struct sim_world {
    ucs_regcache_params_t params;
    ucs_regcache_tuning_t tuning; /* of params */
    ucs_regcache_h        cache;
    int                   is_refused;   /* no helper thread */
    unsigned              device_limit; /* registrations; 0: none */
    int                   is_instant;   /* the lower domain's calls take no
                                           virtual time */
    sim_rng_t             rng;
    sim_page_t            pages[SIM_PAGES];
    sim_slot_t            slots[SIM_MAX_SLOTS];
    unsigned              live;         /* registrations */
    size_t                live_bytes;
    unsigned              serial;
    sim_comp_t            comps[SIM_MAX_COMPS];
    unsigned              num_comps;
    unsigned              running;      /* main threads */
    int                   has_leak;     /* one of them keeps a use */
    int                   helper;       /* fiber, -1: none */
    int                   is_notified;
    int                   step_owner;   /* fiber, -1: none */
    int                   is_starved;   /* the helper is not let run before the
                                           program ends */
    uint64_t              steps;        /* of the helper */
    uint64_t              due;          /* ns, of its next step */
    ucs_operation_t       said[SIM_MAX_SAID];
    unsigned              num_said;
    uint64_t              gets;
    unsigned              full;         /* registrations refused for
                                           device_limit */
} sim_world_t;

extern sim_world_t sim_world;

/** The option --covers. */
extern int sim_has_covers;

/** Environment of the cache. */
void sim_world_env(ucs_regcache_env_t *env);

/** Begin and end a use of [start, end). @return Zero if the use could not
 *  begin, because somebody unmaps the range or a fault hit it. */
int sim_world_get(uintptr_t start, uintptr_t end, unsigned access,
                  uintptr_t sp, sim_use_t *use);
void sim_world_put(const sim_use_t *use);

/** End a use and ask for invalidation. */
void sim_world_invalidate(const sim_use_t *use);

/** The program says something; the next step hears it. What there is no room
 *  for is lost. @return Zero if somebody unmaps what a receive is to be posted
 *  to: no program may begin that, as it may not begin a use. */
int sim_world_say(const ucs_operation_t *operation);

/** In a step: hear it. */
void sim_world_hear(void);

/** Unmap pages [first, last) and map them again. @return Zero if somebody uses
 *  or unmaps them. */
int sim_world_unmap(unsigned first, unsigned last);

/** The helper's step mutex; @return nonzero if it could be had. */
void sim_world_lock_step(void);
int sim_world_try_lock_step(void);
void sim_world_unlock_step(void);

/* schedules_end.c */

/** The program has ended, and no fiber is inside of the cache: look whether its
 *  figures agree with what is registered, destroy it, and look for what is
 *  left. What does not hold is a violation. */
void sim_end_check(void);

/* schedules_helper.c: the simulated helper thread steps the cache until the program has
 * ended and nothing is left to do */

/** @return Bytes that may stay registered idle for ever: predict and rent make
 *          use of what the user granted, and look after it; overlap keeps what
 *          there is room for. */
size_t sim_granted(void);

/** The helper, from its first step to its last. @a arg is NULL. */
void sim_helper_main(void *arg);

/* schedules_inside.c: the cache's equations, whenever the index lock is free */

/** Cache that is looked at, NULL: none. */
void sim_inside_bind(ucs_regcache_h cache);

/** Check the equations; sim_violation() if one does not hold. */
void sim_inside_check(void);

/** No fiber is inside the cache: the equations are exact, and the helper's
 *  queues are looked at as well. */
void sim_inside_check_quiet(ucs_regcache_census_t *census);

/* schedules_program.c */

/**
 * Run the program of @a seed under the schedule of @a seed.
 *
 * @param [in] policy  UCS_REGCACHE_POLICY_LAST: the seed chooses.
 *
 * @return Nonzero if all invariants held.
 */
int sim_program_run(uint64_t seed, ucs_regcache_policy_t policy,
                    const sim_faults_t *faults);

/* schedules_thread.c: a thread of the simulated application uses memory, unmaps some of
 * it, and waits */

/** Ranges of memory that threads use. */
#define SIM_NUM_RANGES 10

/** Of others' reads and writes, and of the program's own. */
enum {
    SIM_ACCESS_GET   = 1,
    SIM_ACCESS_PUT   = 2,
    SIM_ACCESS_RMA   = SIM_ACCESS_GET | SIM_ACCESS_PUT,
    SIM_ACCESS_READ  = 4,
    SIM_ACCESS_WRITE = 8
};

typedef struct sim_thread {
    sim_rng_t rng;
    unsigned  number;
    unsigned  ops;
    unsigned  ranges;  /* the first so many are used */
    int       is_leaky; /* keeps a use at its end */
} sim_thread_t;

/** A thread from its first operation to its last. @a arg is its
 *  sim_thread_t. */
void sim_thread_main(void *arg);

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_WORLD_H_
#define SCHEDULES_WORLD_H_

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

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_REPLAY_PROCESS_H_
#define UCX_HELPER_TOOL_REPLAY_PROCESS_H_

#include "replay_fiber.h"

#include <ucs/regcache/regcache.h>
#include <ucs/sys/hash.h>

#include <math.h>

/*
 * The production engine in a process under virtual time. Two threads are
 * simulated, each with a time of its own: the main thread, which is the
 * caller's to drive, and the helper, which steps the engine when it asked to or
 * was woken, late by a random time. A registration takes what the cost model
 * says; what the main thread does while the helper registers happens during
 * that registration, so a use of that very buffer is late and waits.
 *
 * The caller keeps the two in order: before the main thread does anything at a
 * time T it calls @ref replay_process_help as long as
 * @ref replay_process_help_time is not after T. Main thread's time is
 * `main_ns`: set before a call of the engine's, later on return if the call
 * took time.
 */

BEGIN_C_DECLS

/* The engine's constants by name, for --tuning and bench/ablate: replay_options.c */

/** A row of a table of constants. */
typedef struct replay_tuning_row {
    const char *name;
    size_t     offset;  /**< of the member in the whole struct */
    int        is_real; /**< a double, else a uint64_t */
    const char *unit;
    const char *why;    /**< what it is, source or reason */
    const char *effect; /**< what changes when it is halved, doubled */
} replay_tuning_row_t;

/** Rows of both tables, in the order of the struct; the last has no name. */
extern const replay_tuning_row_t replay_tuning_rows[];

/** @return The value of a row. */
double replay_tuning_get(const ucs_regcache_tuning_t *tuning,
                         const replay_tuning_row_t *row);

/**
 * Set one constant.
 *
 * @param [in] value  Rounded down where the constant is whole.
 *
 * @return UCS_OK, UCS_ERR_NO_ELEM if there is none of this name, or
 *         UCS_ERR_INVALID_PARAM if the value is not above 0, or not finite, or
 *         below 1 where the constant is whole.
 */
ucs_status_t replay_tuning_set(ucs_regcache_tuning_t *tuning, const char *name,
                               double value);

/* Random numbers that are the same for the same seed, everywhere */

#define REPLAY_2_PI 6.283185307179586

/** @return A number in (0, 1]. */
static inline double replay_random_uniform(uint64_t *state)
{
    return ((ucs_hash_random(state) >> 11) + 1) * 0x1p-53;
}

/** @return A number of the normal distribution, mean 0, deviation 1. */
static inline double replay_random_normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(replay_random_uniform(state)));

    return radius * cos(REPLAY_2_PI * replay_random_uniform(state));
}

/** nanoseconds = page_ns * pages + base_ns */
typedef struct replay_cost {
    double base_ns;
    double page_ns;
} replay_cost_t;

/** A process's parameters; all costs are modelled. */
typedef struct replay_params {
    ucs_regcache_policy_t policy;
    uint64_t              max_pinned;  /**< bytes, UINT64_MAX: no ceiling */
    replay_cost_t         register_cost;
    replay_cost_t         deregister_cost;
    double                lateness_ns; /**< median lateness of the helper's
                                            wake-up, log-normal */
    const double          *late_ns;    /**< lateness that was measured, which is drawn
                                            from instead; NULL: none was */
    size_t                late_count;
    double                max_slowdown; /**< share of the run time; 0:
                                             default */
    uint64_t              region_bytes; /**< held for a registration beside its
                                             pages */
    ucs_regcache_cover_kind_t coalesce; /**< which uses may be registered with
                                             what lies ahead */
    const ucs_regcache_tuning_t *tuning; /**< NULL: the defaults */
    uint64_t              seed;        /**< of the lateness */
    int                   is_deaf;     /**< operations are not told, and a rank
                                            that waits takes no steps */
} replay_params_t;

/** @return What so many pinned bytes in so many registrations hold; of their
 *          integrals likewise. */
static inline double replay_held(double bytes, double regions,
                                 const replay_params_t *params)
{
    return bytes + regions * (double)params->region_bytes;
}

/** Told of each change of what is registered; @a time_ns of two threads that
 *  may be a little out of order. */
typedef void (*replay_pinned_func_t)(void *arg, uint64_t time_ns,
                                     uint64_t bytes);

/** The first fields are the caller's, to be set before it is opened; all others are
 *  zero then. */
typedef struct replay_process {
    const replay_params_t *params;
    size_t                page_size;
    size_t                min_size;  /**< bytes; shorter receives are not
                                          registered */
    unsigned              dq_length; /**< as the engine's, 0: default */
    unsigned              max_contexts;
    replay_pinned_func_t  on_pinned; /**< may be NULL */
    void                  *pinned_arg;
    uint64_t              main_ns;   /**< at first the start for both */

    /* To be read */
    ucs_regcache_h        engine;
    int                   has_helper;
    uint64_t              lost_ns;   /**< of the main thread: with the lower
                                          domain, or waiting for the helper */

    /* Its own */
    uint64_t              helper_ns;
    uint64_t              due_ns;    /* when the helper runs its next step */
    uint64_t              woken_ns;  /* NEVER, or since when it is asked to */
    uint64_t              resume_ns; /* in a step: when it goes on */
    uint64_t              wait_ns;   /* main thread's: since when it waits,
                                        less what it worked meanwhile */
    uint64_t              random;
    uint64_t              pinned;    /* bytes at the lower domain */
    ucs_operation_wants_t wants;     /* what the engine wants to hear */
    ucs_operation_t       *said;     /* since the latest step */
    size_t                said_count;
    size_t                said_capacity;
    replay_fiber_t        fiber;     /* of its steps */
    int                   is_stepping;
    int                   is_helper; /* it runs, not the main thread */
} replay_process_t;

/** Create the engine. @return UCS_OK or what creating it returned. */
ucs_status_t replay_process_open(replay_process_t *process);

/** After @ref replay_process_settle. */
void replay_process_close(replay_process_t *process);

/** @return When the helper does its next thing; UCS_REGCACHE_TIME_NEVER. */
uint64_t replay_process_help_time(const replay_process_t *process);

/** Let the helper do it. */
void replay_process_help(replay_process_t *process);

/** End the step that is under way, if any. */
void replay_process_settle(replay_process_t *process);

/** Registers a use's buffer at `main_ns`; @a signature names the call site,
 *  0: unknown. */
ucs_regcache_memh_t replay_process_get(replay_process_t *process,
                                       uint64_t address, uint64_t length,
                                       unsigned access, uint64_t signature);

/** The program says something at `main_ns`; the next step hears it. */
void replay_process_say(replay_process_t *process,
                        const ucs_operation_t *operation);

/**
 * The main thread begins to wait at `main_ns`.
 *
 * @return When its first step is due; UCS_REGCACHE_TIME_NEVER if it takes none.
 */
uint64_t replay_process_wait(replay_process_t *process);

/**
 * The main thread, which still waits, takes the step that is due at `main_ns`,
 * if the helper is in none. `main_ns` is later on return, and what was spent is
 * not counted as lost.
 *
 * @return When the next one is due, not before `main_ns`.
 */
uint64_t replay_process_wait_step(replay_process_t *process);

/**
 * The main thread waits from `main_ns` until @a until_ns, and takes steps
 * meanwhile, as long as the helper is in none. What such a step takes it does
 * not lose, unless it goes on after that.
 */
void replay_process_wait_until(replay_process_t *process, uint64_t until_ns);

/** The main thread ends a use, whose handle this is. */
void replay_process_put(replay_process_t *process, ucs_regcache_memh_t memh);

END_C_DECLS

#endif

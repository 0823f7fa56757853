/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_PLAN_H_
#define UCS_REGCACHE_PLAN_H_

#include <ucs/regcache/announce/announce.h>
#include <ucs/regcache/policy/policy.h>
#include <ucs/predict/condition.h>
#include <ucs/predict/price.h>

/*
 * The helper's side of the cache: the step, which serves the queue of uses that are over
 * and the registration queue in turn, and its parts (regcache_int.h has their list). All
 * of it is the helper's, unless a function says otherwise.
 */

BEGIN_C_DECLS

/** Uses that are sorted by their start before they are learned from. */
#define UCS_REGCACHE_BATCH 64

/** Between two lots of regions that are looked at under the index lock, ns: ten
 *  times what one takes, so that the lock is free for nine parts of ten; and
 *  fork() comes in, which waits for the end of a step. */
#define UCS_REGCACHE_LOT_REST_NS 100000u

/** A region whose last use may have been lost goes when it was idle for so long,
 *  ns. It is looked for after twice that, also when a helper resumes. */
#define UCS_REGCACHE_STRAY_NS 5000000u

/** The helper is away for so long at most, ns: after registrations in advance that
 *  failed, between two looks where there is no use. */
#define UCS_REGCACHE_AWAY_NS 1000000000u

/** Uses under way that are looked at beside a batch. */
#define UCS_REGCACHE_UNDER_WAY 64

/** Looks for regions that no queue knows of, for a use of theirs was lost. */
typedef struct ucs_regcache_sweep {
    uint64_t            lost;     /* by the queue of uses, as last seen */
    ucs_regcache_walk_t walk;     /* over when there is none */
    int                 is_again; /* more were lost since the walk began */
    uint64_t            at;       /* ns, when it goes on or begins */
} ucs_regcache_sweep_t;

/** Holds registrations in advance back. */
typedef struct ucs_regcache_backoff {
    uint64_t until; /* ns: none before */
    uint64_t ns;    /* the latest; 0: all is well */
} ucs_regcache_backoff_t;

/** Beside the access of a use that registered: there was one. */
#define UCS_REGCACHE_ASKED (UINT64_C(1) << 32)

/** Operations that wait for the step that hears them, a power of two. */
#define UCS_REGCACHE_SAID 1024u

/** Deregistrations that wait. */
#define UCS_REGCACHE_LEFT 64u

/** Does the cache learn from what is said that is too short to be registered?
 *  A use that registers makes it, whatever it was; the step makes all else of
 *  it. */
typedef enum ucs_regcache_listening {
    UCS_REGCACHE_LISTENS_NOT,
    UCS_REGCACHE_LISTENS,
    UCS_REGCACHE_LISTENS_ANEW /**< a use has begun that no step knows of */
} ucs_regcache_listening_t;

/** What was said and is not heard yet, and what came of it. */
typedef struct ucs_regcache_hearing {
    ucs_operation_t          said[UCS_REGCACHE_SAID];
    uint64_t                 count;     /* ever said */
    uint64_t                 heard;     /* of them */
    ucs_regcache_announced_t announced;
} ucs_regcache_hearing_t;

/** What an idle step may do. */
typedef struct ucs_regcache_idling {
    uint64_t              budget;   /* ns; UINT64_MAX: this is the helper's */
    int                   is_short; /* to register, it left something */
    int                   is_used;  /* or done, that takes time, or learned */
    uint64_t              registered; /* uses that registered, until the latest
                                         idle step */
} ucs_regcache_idling_t;

/** Deregistrations that wait (leave.c). */
typedef struct ucs_regcache_leaving {
    uint64_t              quiet_at; /* ns: if nothing is in use, the rank's
                                       communication is over then */
    int                   is_in_use; /* something, as the step began */
    uint64_t              due;      /* ns: when to look at these again */
    unsigned              count;
    struct {
        ucs_regcache_region_t *region;
        uint64_t              generation;
    } left[UCS_REGCACHE_LEFT];
} ucs_regcache_leaving_t;

/** Windows that walks are in, or were in the latest step: of more the policy
 *  learns as of any buffer. */
#define UCS_REGCACHE_WINDOWS 32u

/** A window since a walk has come to it. */
typedef struct ucs_regcache_window {
    ucs_use_t use;      /* from the first to the last of its uses */
    unsigned  uses;     /* if that is 0, only region and generation are set */
    uint64_t  ready_ns; /* when it was registered ahead of the walk; UINT64_MAX: it
                           was not */
} ucs_regcache_window_t;

typedef struct ucs_regcache_windows {
    ucs_regcache_window_t list[UCS_REGCACHE_WINDOWS];
    unsigned              count;
} ucs_regcache_windows_t;

/** What the helper's step owns. */
typedef struct ucs_regcache_plan {
    const ucs_regcache_policy_ops_t *ops;
    void                            *state;    /* the policy's own; NULL until the
                                                  first step. Changes under the
                                                  index lock, once */
    ucs_regcache_rq_t               rq;
    ucs_regcache_sweep_t            sweep;
    ucs_regcache_backoff_t          backoff;
    uint64_t                        used_at;   /* ns, when a step last found a
                                                  use */
    _Atomic(uint64_t)               next_due;  /* ns, when the helper comes by
                                                  itself, as the latest step
                                                  said that sets it */
    _Atomic(uint64_t)               patience;  /* ns, in which it is to hear of
                                                  one that came; 0: none did */
    uint64_t                        lateness;  /* ns, of steps: rises fast */
    double                          late_ns;   /* the mean */
    _Atomic(unsigned)               wanted;    /* ucs_regcache_wanted() */
    _Atomic(unsigned)               wanted_any; /* ucs_regcache_wanted_any() */
    unsigned                        queue_length; /* of the queue of uses */
    unsigned                        max_contexts; /* that the policy knows */
    unsigned                        drained;   /* uses, since the last step */
    int                             is_pressing; /* after one of them something
                                                  may be left to be done */
    uint64_t                        drained_at; /* ns, when that ended */
    int                             did_plans; /* ucs_regcache_step_did_plans() */
    int                             is_resting; /* the helper has stood down */
    _Atomic(uint64_t)               asked;      /* access of the latest use that
                                                   registered, and one bit more;
                                                   for buffers that were never
                                                   used; 0: there was none */
    int                             is_deaf;    /* nothing is to be foreseen */
    ucs_regcache_hearing_t          *hearing;   /* NULL until something was
                                                   said */
    _Atomic(unsigned)               listening;  /* ucs_regcache_listening_t */
    ucs_regcache_idling_t           idling;
    ucs_regcache_leaving_t          leaving;
    ucs_regcache_windows_t          windows;
    _Atomic(uint64_t)               heard;      /* operations */
    _Atomic(uint64_t)               announced;  /* receives among them */
    _Atomic(uint64_t)               announced_on_time; /* whose uses found them
                                                          registered for it */
    _Atomic(uint64_t)               announced_late;  /* came while they were
                                                          being registered */
    _Atomic(uint64_t)               announced_first; /* first ones of them */
    _Atomic(uint64_t)               idle_steps;
} ucs_regcache_plan_t;

/* --- init.c --- */

/**
 * Set up the plan of a cache whose other fields are set.
 *
 * @param [in] params  Of the cache; valid.
 *
 * @return UCS_OK, UCS_ERR_NO_MEMORY or UCS_ERR_INVALID_PARAM.
 */
ucs_status_t ucs_regcache_plan_init(ucs_regcache_h cache,
                                    const ucs_regcache_params_t *params);

/**
 * Allocate the policy's tables and the registration queue, if they are not there yet: of
 * a device that nothing is used with they would be a third of what it takes. By a step, or
 * by who keeps steps out, without the index lock.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_regcache_plan_open(ucs_regcache_h cache);

/** Release what the plan has allocated; nobody steps any more. */
void ucs_regcache_plan_cleanup(ucs_regcache_h cache);

/* --- plan.c --- */

/** Have a region kept DORMANT when it is deregistered, unless the life that
 *  @a generation names has ended: the mark would stay on the next life, of
 *  which nobody may ever hear. */
void ucs_regcache_plan_remember(ucs_regcache_h cache,
                                ucs_regcache_region_t *region,
                                uint64_t generation);

/** Let go of a region that nothing is expected of any more. */
void ucs_regcache_plan_forget(ucs_regcache_h cache,
                              ucs_regcache_region_t *region);

/** After items of a region have come or gone. */
void ucs_regcache_plan_replan(ucs_regcache_h cache,
                              ucs_regcache_region_t *region);

/** @return The earliest time at which the region must be registered, ns; 0 if
 *          its use is waited for; UCS_REGCACHE_TIME_NEVER if there is none. */
uint64_t ucs_regcache_plan_earliest(ucs_regcache_region_t *region);

/** Deregister an idle region if the deregistration condition holds. A region
 *  without an item is always deregistered. */
void ucs_regcache_plan_deregister(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region);

/** A region is held for this reason from now on, see
 *  @ref ucs_regcache_account_planned. */
void ucs_regcache_plan_why(ucs_regcache_h cache, ucs_regcache_region_t *region,
                           ucs_regcache_held_t held, uint64_t kept);

/** A region is registered, and waits for a use until @a kept, ns. */
void ucs_regcache_plan_awaits(ucs_regcache_h cache,
                              ucs_regcache_region_t *region, uint64_t kept);

/** The life @a generation of a region is registered for one more announced use,
 *  or for one less if @a is_ready is 0, and stays so for as long as there is
 *  one. */
void ucs_regcache_plan_announced(ucs_regcache_region_t *region,
                                 uint64_t generation, int is_ready);

/** What a region knows of announced uses is of the life @a generation from now on. */
void ucs_regcache_plan_announced_life(ucs_regcache_region_t *region,
                                      uint64_t generation);

/** @return Nonzero if this life of a region is registered for an announced use. */
int ucs_regcache_plan_is_announced(ucs_regcache_region_t *region);

/** Put a use into a batch that is sorted by start. */
void ucs_regcache_uses_sort(ucs_use_t *uses, unsigned count,
                            const ucs_use_t *use);

/** Nothing is expected of this item any more. A region that is left without
 *  items is known to no queue: nobody else would deregister or forget it. */
void ucs_regcache_plan_cancel(ucs_regcache_h cache,
                              ucs_regcache_rq_item_t *item);

/* --- price.c --- */

/** What holding and registering a region costs, and what the helper's work on
 *  it takes. */
typedef struct ucs_regcache_price {
    ucs_predict_terms_t terms;
    ucs_predict_price_t buffer;
} ucs_regcache_price_t;

/** @return Share of the helper's work that somebody else waits for, 0 to 1, as @ref
 *          ucs_regcache_set_wanted said. */
double ucs_regcache_wanted(ucs_regcache_h cache);

/** @return The same of work at any time. */
double ucs_regcache_wanted_any(ucs_regcache_h cache);

/** Ask for all of it. Takes the index lock. */
void ucs_regcache_price(ucs_regcache_h cache, ucs_regcache_region_t *region,
                        ucs_regcache_price_t *price);

/** What the helper's work on a region takes. */
void ucs_regcache_terms(ucs_regcache_h cache, ucs_regcache_region_t *region,
                        ucs_predict_terms_t *terms);

/** The same under the index lock. */
void ucs_regcache_terms_locked(ucs_regcache_h cache,
                               ucs_regcache_region_t *region,
                               ucs_predict_terms_t *terms);

/* --- serve.c --- */

/** Serve the first item of the registration queue if it is due. @return Nonzero
 *  if it was. */
int ucs_regcache_serve_next(ucs_regcache_h cache);

/** Give up what did not come until now. */
void ucs_regcache_serve_expired(ucs_regcache_h cache,
                                ucs_regcache_rq_list_t list, uint64_t now);

/**
 * Register a REGISTERING region ahead of its use, though the registration queue
 * has no item of it. What is refused is not tried again: the use will. What did not
 * fit is DORMANT then, and forgotten if nobody has a plan for it.
 *
 * @param [in] why  What it is held for from then on.
 *
 * @return As of @ref ucs_regcache_register_ahead.
 */
ucs_status_t ucs_regcache_serve_unasked(ucs_regcache_h cache,
                                        ucs_regcache_region_t *region,
                                        ucs_regcache_held_t why);

/** A registration ahead may have failed for want of memory or regions; then there is
 *  none for a while. @return Nonzero during that while. The uses that are due then register by
 *          themselves. */
int ucs_regcache_serve_is_backing_off(ucs_regcache_h cache);

/* --- ahead.c --- */

/** Learn of windows that walks have left, and let go of them. */
void ucs_regcache_windows_pass(ucs_regcache_h cache);

/** Register windows that walks are about to come to. */
void ucs_regcache_windows_serve(ucs_regcache_h cache);

/* --- windows.c --- */

/** A use is over. @return Nonzero if it is one of a window, whose uses are learned
 *  from together. */
int ucs_regcache_windows_use(ucs_regcache_h cache, const ucs_use_t *use);

/** @return Nonzero if a walk is in the region, or just before it. */
int ucs_regcache_windows_is_in(ucs_regcache_h cache,
                               const ucs_regcache_region_t *region);

/** @return The window of this life of a region, which stays at its place until the
 *          next call; NULL: there is no room. */
ucs_regcache_window_t *
ucs_regcache_windows_get(ucs_regcache_windows_t *windows,
                         ucs_regcache_region_t *region, uint64_t generation);

/* --- operations.c --- */

/** A use registers: what is said from now on may foretell its buffer's next
 *  one, and with what access receives will be used that wait for their first.
 *  Any thread; wait-free. */
void ucs_regcache_listen_begin(ucs_regcache_h cache, unsigned access);

/** A step begins to learn. */
void ucs_regcache_listen_anew(ucs_regcache_h cache);

/** It has learned: is there anything left that sounds may foretell? */
void ucs_regcache_listen_on(ucs_regcache_h cache);

/** Nobody is inside the cache any more, and nothing more is heard. */
void ucs_regcache_listen_end(ucs_regcache_h cache);

/** Hear what was said until @a time. */
void ucs_regcache_listen(ucs_regcache_h cache, uint64_t time);

/** A use is about to be learned from: hear what came before, and see whether it
 *  was announced. */
void ucs_regcache_listen_use(ucs_regcache_h cache, const ucs_use_t *use);

/* --- announce_serve.c --- */

/** The policy's plan registers a region at @a due, ns, and not before: announced uses
 *  of it are left to the plan if that is cheaper. */
void ucs_regcache_announced_plan(ucs_regcache_h cache,
                                 ucs_regcache_region_t *region, uint64_t due);

/** Register what is due, and give up what did not come. */
void ucs_regcache_announced_serve(ucs_regcache_h cache);

/* --- announce.c --- */

/** A receive is posted. */
void ucs_regcache_announce(ucs_regcache_h cache,
                           const ucs_operation_t *operation);

/** One has ended, by whatever. */
void ucs_regcache_announced_end(ucs_regcache_h cache,
                                const ucs_operation_t *operation);

/** A message is sent. */
void ucs_regcache_announced_sent(ucs_regcache_h cache,
                                 const ucs_operation_t *operation);

/** A use has begun that may be the one that was announced. */
void ucs_regcache_announced_use(ucs_regcache_h cache, const ucs_use_t *use);

/** What the announcement of the use that is being learned from saves of a missed use.
 *
 *  @param [inout] price  Of the use, saved and saved_late are 0: they are set.
 *
 *  @return Nonzero if the use found its buffer registered for it was announced. */
int ucs_regcache_announced_saved(ucs_regcache_h cache,
                                 ucs_predict_price_t *price);

/** @return When @ref ucs_regcache_announced_serve is to be called, ns. */
uint64_t ucs_regcache_announced_next(ucs_regcache_h cache);

/* --- idle.c --- */

/** An idle step begins. */
void ucs_regcache_idle_begin(ucs_regcache_h cache, uint64_t spare_ns);

/** An idle step is over. */
void ucs_regcache_idle_end(ucs_regcache_h cache);

/** @return Nonzero in an idle step. */
int ucs_regcache_is_idling(ucs_regcache_h cache);

/** Take @a ns of the idle step's time. @return Zero if there is not so much
 *  left: the helper is to do it. The helper's own step has all time. */
int ucs_regcache_idle_may(ucs_regcache_h cache, uint64_t ns);

/** A region is to be deregistered. @return Nonzero if this idle step has the time. */
int ucs_regcache_idle_drops(ucs_regcache_h cache,
                            ucs_regcache_region_t *region);

/* --- leave.c --- */

/** A use is over: learn when the rank's communication is. */
void ucs_regcache_leave_learn(ucs_regcache_h cache, const ucs_use_t *use);

/** The helper's step begins: look whether something is in use. */
void ucs_regcache_leave_look(ucs_regcache_h cache);

/** A region is to be deregistered. @return Nonzero if that waits, for a later step. */
int ucs_regcache_leaves(ucs_regcache_h cache, ucs_regcache_region_t *region);

/** Deregister what was left, unless it is wanted by now. */
void ucs_regcache_leave_take_up(ucs_regcache_h cache);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <ucs/predict/saturate.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

/*
 * When the helper looks in next
 */

/* A hit does not wake the helper, so while a use is expected the helper looks
 * into the DQ: first when the use would be over that comes at its deadline and
 * lasts as long as the last one, then ever less often, so that a use that comes
 * late by t leaves its region registered for t / POLL_SHARE at most */
#define UCT_HELPER_POLL_MAX_NS UINT64_C(5000000)
#define UCT_HELPER_POLL_SHARE  4

/* What is used rarely is looked for at leisure: held for so small a part of the
 * time between two uses it takes hardly more memory over all */
#define UCT_HELPER_POLL_GAP 128

/* Under predict many items wait together: one look serves them all, and none
 * follows another sooner than this. Uses come in an order: what is not late yet
 * waits a little for what is, and the most late is likely to be the next, so
 * its interval counts for a quarter, up to so many times the shortest. */
#define UCT_HELPER_POLL_SHARE_ALL 2
#define UCT_HELPER_POLL_REST_NS   UINT64_C(100000)
#define UCT_HELPER_POLL_WAIT_NS   UINT64_C(2500000)
#define UCT_HELPER_POLL_SPREAD    8

/* Less than so many bytes are looked for less often */
#define UCT_HELPER_POLL_BYTES  (size_t)(1 << 20)

/* For each so many bytes that would be left pinned, and once more, the helper
 * may take its share of a core */
#define UCT_HELPER_SHARE_BYTES (1 << 20)

/* It may be so much ahead, or behind, in taking that share */
#define UCT_HELPER_CREDIT_NS   UINT64_C(100000000)

/* While anything is registered the helper looks in now and then in any case,
 * for uses may have been lost from a full DQ: after twice as long each time that
 * there was none */
#define UCT_HELPER_PATROL_NS     UINT64_C(100000000)
#define UCT_HELPER_PATROL_MAX_NS UINT64_C(1000000000)


/* A look costs the same whatever is at stake. Under paper all that is expected
 * is about to be used. */
static uint64_t uct_helper_look_poll_max(uct_helper_engine_h engine,
                                         const uct_helper_rq_item_t *item)
{
    size_t length = uct_helper_engine_pinned_length(engine, item->region);
    uint64_t max  = UCT_HELPER_POLL_MAX_NS;

    if ((engine->steer->plan != NULL) && (length < UCT_HELPER_POLL_BYTES)) {
        max *= UCT_HELPER_POLL_BYTES / length;
    }
    max = ucs_max(max, item->gap / UCT_HELPER_POLL_GAP);
    return ucs_min(max, UCT_HELPER_PATROL_NS);
}

/* After which time to look again for a use that may be over since @a late */
static uint64_t uct_helper_look_poll_interval(uct_helper_engine_h engine,
                                              const uct_helper_rq_item_t *item,
                                              uint64_t late)
{
    uint64_t interval = (engine->steer->plan != NULL) ?
                                late / UCT_HELPER_POLL_SHARE_ALL :
                                late / UCT_HELPER_POLL_SHARE;

    interval = ucs_max(interval, UCT_HELPER_POLL_MIN_NS);
    interval = ucs_max(interval, item->gap / UCT_HELPER_POLL_GAP);
    if (interval > UCT_HELPER_POLL_MAX_NS) {
        interval = ucs_min(interval, uct_helper_look_poll_max(engine, item));
    }
    return interval;
}

static uint64_t uct_helper_look_poll_time(uct_helper_engine_h engine,
                                          uint64_t now)
{
    int is_joint      = (engine->steer->plan != NULL);
    uint64_t rest     = is_joint ? UCT_HELPER_POLL_REST_NS : 0;
    uint64_t next     = UCT_HELPER_TIME_NEVER;
    uint64_t shortest = UCT_HELPER_TIME_NEVER;
    uint64_t longest  = 0;
    uct_helper_rq_item_t *item;
    uint64_t interval;

    for (item = uct_helper_rq_first(&engine->rq, UCT_HELPER_RQ_EXPECTED);
         item != NULL; item = item->next) {
        if (!uct_helper_rq_item_is_current(item)) {
            continue; /* nothing is registered for it */
        }
        if (item->use_end > now) {
            next = ucs_min(next, item->use_end);
            continue;
        }
        interval = uct_helper_look_poll_interval(engine, item,
                                                 now - item->use_end);
        shortest = ucs_min(shortest, interval);
        longest  = ucs_max(longest, interval);
    }
    if (longest == 0) {
        return ucs_max(next, now + rest);
    }
    /* Under a ceiling what is known of each use counts when one is chosen to
     * go, and it is not held for being late */
    if (!is_joint || (engine->max_pinned != SIZE_MAX)) {
        next = ucs_min(next, now + shortest);
        return ucs_max(next, now + rest);
    }
    longest  = ucs_min(longest, UCT_HELPER_POLL_SPREAD * shortest);
    interval = (3 * shortest + longest) / 4;
    next     = ucs_max(next, now + UCT_HELPER_POLL_WAIT_NS);
    return ucs_min(next, now + interval);
}

static uint64_t uct_helper_look_patrol(uct_helper_engine_h engine, uint64_t now)
{
    uint64_t idle = (now > engine->used_at) ? now - engine->used_at : 0;

    return ucs_max(UCT_HELPER_PATROL_NS,
                   ucs_min(idle, UCT_HELPER_PATROL_MAX_NS));
}

/*
 * Processor time
 */

static int uct_helper_look_is_bounded(uct_helper_engine_h engine)
{
    return (engine->env.spent != NULL) && (engine->cpu_target > 0) &&
           (engine->steer->plan != NULL);
}

/* Since when what the helper takes is to be its share. What it has not taken
 * yet it may take at once: registrations come by the lump, and what follows one
 * is not to wait for them to be earned. */
static uint64_t uct_helper_look_balance(uct_helper_engine_h engine,
                                        uint64_t now)
{
    return ucs_max(engine->rest_until,
                   ucs_predict_sat_sub(now, UCT_HELPER_CREDIT_NS));
}

static void uct_helper_look_charge(uct_helper_engine_h engine, size_t bytes,
                                   uint64_t now)
{
    uint64_t spent = engine->env.spent(engine->env.arg);
    double share   = engine->cpu_target *
                     (1 + (double)bytes / UCT_HELPER_SHARE_BYTES);

    engine->share = ucs_min(share, 1.0);
    if ((engine->spent != 0) && (spent > engine->spent)) {
        engine->rest_until = uct_helper_look_balance(engine, now) +
                             (spent - engine->spent) / engine->share;
        engine->rest_until = ucs_min(engine->rest_until,
                                     now + UCT_HELPER_CREDIT_NS);
    }
    engine->spent = spent;
}

uint64_t uct_helper_look_earned(uct_helper_engine_h engine, uint64_t cost,
                                uint64_t now)
{
    if (!uct_helper_look_is_bounded(engine)) {
        return now;
    }
    return uct_helper_look_balance(engine, now) +
           (uint64_t)(cost / engine->share);
}

/*
 * The next look
 */

uint64_t uct_helper_look_next(uct_helper_engine_h engine, uint64_t now)
{
    uint64_t next  = uct_helper_look_poll_time(engine, now);
    uint64_t begin = UCT_HELPER_TIME_NEVER;
    uct_helper_rq_item_t *item;
    unsigned registered;
    size_t bytes;

    item = uct_helper_rq_first(&engine->rq, UCT_HELPER_RQ_PENDING);
    uct_helper_engine_lock(engine);
    registered = engine->lru[UCT_HELPER_CLASS_MANAGED].count;
    bytes      = engine->seen.bytes;
    if (item != NULL) {
        begin = uct_helper_step_begin_time(engine, item);
    }
    uct_helper_engine_unlock(engine);
    if (registered > 0) {
        next = ucs_min(next, now + uct_helper_look_patrol(engine, now));
    }
    if (uct_helper_dq_is_pending(engine->dq)) {
        next = ucs_min(next, now + UCT_HELPER_POLL_MIN_NS);
    }
    next = ucs_min(next, engine->sweep_at);
    item = uct_helper_rq_first(&engine->rq, UCT_HELPER_RQ_EXPECTED);
    if (item != NULL) {
        next = ucs_min(next, item->time);
    }
    item = uct_helper_rq_first(&engine->rq, UCT_HELPER_RQ_HELD);
    if (item != NULL) {
        next = ucs_min(next, item->time);
    }
    if (uct_helper_look_is_bounded(engine)) {
        uct_helper_look_charge(engine, bytes, now);
        next = ucs_max(next, engine->rest_until);
    }
    return ucs_min(next, begin); /* what was promised is kept */
}

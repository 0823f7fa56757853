/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "trust.h"
#include "events.h"
#include "monitor.h"
#include "range.h"

#include <ucs/sys/clock.h>
#include <ucs/sys/io/log.h>
#include <ucs/sys/io/own_fd.h>
#include <ucs/sys/math.h>
#include <ucs/sys/proc/thread.h>
#include <ucs/sys/sync/atomic.h>

#include <limits.h>
#include <stdlib.h>

#define UCT_HELPER_TRUST_PERIOD_NS UINT64_C(1000000000)

/* Counting may take one part in this of a core. By processor time, or a thread
 * that is preempted while it counts would not count again for seconds. */
#define UCT_HELPER_TRUST_SHARE 256

/* A watched range can end inside two mappings and split both */
#define UCT_HELPER_TRUST_PER_WATCH 2

/* Parts of the limit that must stay free: below one eighth nothing is kept,
 * above one quarter it is again */
#define UCT_HELPER_TRUST_STOP 8
#define UCT_HELPER_TRUST_GO   4

/* vm.max_map_count; 0: not read yet. Relaxed: a word by itself */
static _Atomic(long) uct_helper_trust_limit;

/* [T-COUNT] Nonzero while a thread counts. That thread alone writes the
 * following, which others read as they are. */
static _Atomic(int) uct_helper_trust_busy;
static _Atomic(int) uct_helper_trust_near;
static _Atomic(uint64_t) uct_helper_trust_next; /* ns, when to count again */
static _Atomic(long) uct_helper_trust_spare;    /* ranges that may be watched
                                                   until then */

static long uct_helper_trust_get_limit(void)
{
    long limit = ucs_load_relaxed(&uct_helper_trust_limit);
    char text[32];

    if (limit > 0) {
        return limit;
    }

    limit = (ucs_own_fd_read_text("/proc/sys/vm/max_map_count", text,
                                  sizeof(text)) > 0) ? atol(text) : 0;
    limit = (limit > 0) ? limit : LONG_MAX;
    ucs_store_relaxed(&uct_helper_trust_limit, limit);
    return limit;
}

void uct_helper_trust_set_limit(long limit)
{
    ucs_store_relaxed(&uct_helper_trust_limit, limit);
}

void uct_helper_trust_begin(void)
{
    (void)uct_helper_trust_get_limit();
}

static void uct_helper_trust_count(uint64_t now)
{
    int was_near   = ucs_load_relaxed(&uct_helper_trust_near);
    uint64_t spent = ucs_thread_spent();
    long count     = uct_helper_range_count();
    long limit     = uct_helper_trust_get_limit();
    long left      = (count < limit) ? limit - ucs_max(count, 0) : 0;
    long reserve   = limit / (was_near ? UCT_HELPER_TRUST_GO :
                                         UCT_HELPER_TRUST_STOP);
    int is_near    = (count < 0) ? was_near : (left <= reserve);

    spent = ucs_thread_spent() - spent;
    ucs_store_relaxed(&uct_helper_trust_next,
                      now + ucs_max(UCT_HELPER_TRUST_PERIOD_NS,
                                    spent * UCT_HELPER_TRUST_SHARE));
    ucs_store_relaxed(&uct_helper_trust_spare,
                      is_near ? LONG_MAX :
                                (left - reserve) / UCT_HELPER_TRUST_PER_WATCH);
    if (is_near && !was_near) {
        /* Regions first: unwatched memory must not stay registered. Nothing is
         * watched anew meanwhile, because of the first line. */
        ucs_store_relaxed(&uct_helper_trust_near, 1);
        uct_helper_events_distrust(UCS_REGCACHE_DISTRUST_VMAS);
        uct_helper_monitor_unwatch_all();
        ucs_helper_warn(
                "the process nears vm.max_map_count=%ld mappings: memory is "
                "registered only while it is in use",
                limit);
    } else if (!is_near && was_near) {
        ucs_store_relaxed(&uct_helper_trust_near, 0);
        uct_helper_events_trust(UCS_REGCACHE_DISTRUST_VMAS);
    }
}

void uct_helper_trust_step(uint64_t now)
{
    int idle = 0;

    /* [T-COUNT] The acquire pairs with the release below. */
    if (!ucs_cas_acq_rel(&uct_helper_trust_busy, &idle, 1)) {
        return;
    }

    if ((now >= ucs_load_relaxed(&uct_helper_trust_next)) ||
        (ucs_load_relaxed(&uct_helper_trust_spare) < 0)) {
        uct_helper_trust_count(now);
    }

    /* [T-COUNT] The release pairs with the acquire above. */
    ucs_store_release(&uct_helper_trust_busy, 0);
}

int uct_helper_trust_watched(void)
{
    /* After there were too many, no other thread counts again under a policy
     * without a helper. */
    if (ucs_load_relaxed(&uct_helper_trust_near) ||
        (ucs_sub_relaxed(&uct_helper_trust_spare, 1) <= 0)) {
        uct_helper_trust_step(ucs_clock_now());
    }
    return !ucs_load_relaxed(&uct_helper_trust_near);
}

int uct_helper_trust_is_near(uint64_t *next_p)
{
    *next_p = ucs_load_relaxed(&uct_helper_trust_next);
    return ucs_load_relaxed(&uct_helper_trust_near);
}

void uct_helper_trust_join(ucs_regcache_h cache)
{
    if (ucs_load_relaxed(&uct_helper_trust_near)) {
        ucs_regcache_distrust(cache, UCS_REGCACHE_DISTRUST_VMAS);
    }
}

void uct_helper_trust_forget(void)
{
    ucs_store_relaxed(&uct_helper_trust_busy, 0);
    ucs_store_relaxed(&uct_helper_trust_near, 0);
    ucs_store_relaxed(&uct_helper_trust_next, 0);
    ucs_store_relaxed(&uct_helper_trust_spare, 0);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "trust.h"
#include "events.h"
#include <ucs/sys/io/log.h>
#include "monitor.h"
#include "vmas.h"

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/clock.h>

#include <string.h>

static uct_helper_vmas_t uct_helper_trust_vmas;

/* [T-COUNT] Nonzero while a thread counts: that thread owns the variables
 * above, except the atomic ones. */
static _Atomic(int) uct_helper_trust_busy;

/* What the other threads read of it. */
static _Atomic(int) uct_helper_trust_near;
static _Atomic(uint64_t) uct_helper_trust_next;


/* Regions first: unwatched memory must not stay registered. Nothing is watched
 * anew meanwhile, because of uct_helper_trust_near. */
static void uct_helper_trust_end(void)
{
    ucs_store_relaxed(&uct_helper_trust_near, 1);
    uct_helper_events_distrust(UCS_REGCACHE_DISTRUST_VMAS);
    uct_helper_monitor_unwatch_all();
    ucs_helper_warn(
            "the process nears vm.max_map_count=%ld mappings: memory is "
            "registered only while it is in use",
            uct_helper_trust_vmas.limit);
}

void uct_helper_trust_begin(void)
{
    (void)uct_helper_vmas_limit();
}

void uct_helper_trust_step(uint64_t now)
{
    int idle = 0;

    /* [T-COUNT] The acquire pairs with the release below. */
    if (!ucs_cas_acq_rel(&uct_helper_trust_busy, &idle, 1)) {
        return;
    }

    if (uct_helper_vmas_watch(&uct_helper_trust_vmas, now)) {
        if (uct_helper_trust_vmas.is_near) {
            uct_helper_trust_end();
        } else {
            ucs_store_relaxed(&uct_helper_trust_near, 0);
            uct_helper_events_trust(UCS_REGCACHE_DISTRUST_VMAS);
        }
    }
    ucs_store_relaxed(&uct_helper_trust_next, uct_helper_trust_vmas.next_ns);
    /* [T-COUNT] The release pairs with the acquire above. */
    ucs_store_release(&uct_helper_trust_busy, 0);
}

int uct_helper_trust_watched(void)
{
    /* After there were too many, no other thread counts again under a policy
     * without a helper. */
    if (ucs_load_relaxed(&uct_helper_trust_near) ||
        uct_helper_vmas_spend(&uct_helper_trust_vmas)) {
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
    memset(&uct_helper_trust_vmas, 0, sizeof(uct_helper_trust_vmas));
    ucs_store_relaxed(&uct_helper_trust_busy, 0);
    ucs_store_relaxed(&uct_helper_trust_near, 0);
}

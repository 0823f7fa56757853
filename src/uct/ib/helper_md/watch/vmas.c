/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "vmas.h"
#include "range.h"

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/math.h>
#include <ucs/sys/io/own_fd.h>
#include <ucs/sys/proc/thread.h>

#include <limits.h>
#include <stdlib.h>

#define UCT_HELPER_VMAS_PERIOD_NS UINT64_C(1000000000)

/* Counting may take one part in this of a core. By processor time, or a thread
 * that is preempted while it counts would not count again for seconds. */
#define UCT_HELPER_VMAS_SHARE 256

/* A watched range can end inside two mappings and split both */
#define UCT_HELPER_VMAS_PER_WATCH 2

/* 0: not read yet. Relaxed: a word by itself */
static _Atomic(long) uct_helper_vmas_known;


long uct_helper_vmas_limit(void)
{
    long limit = ucs_load_relaxed(&uct_helper_vmas_known);
    char text[32];

    if (limit > 0) {
        return limit;
    }

    limit = (ucs_own_fd_read_text("/proc/sys/vm/max_map_count", text,
                                  sizeof(text)) > 0) ? atol(text) : 0;
    limit = (limit > 0) ? limit : LONG_MAX;
    ucs_store_relaxed(&uct_helper_vmas_known, limit);
    return limit;
}

void uct_helper_vmas_set_limit(long limit)
{
    ucs_store_relaxed(&uct_helper_vmas_known, limit);
}

int uct_helper_vmas_watch(uct_helper_vmas_t *vmas, uint64_t now)
{
    long limit, count, left, reserve;
    int was_near = vmas->is_near;
    uint64_t spent, cost;

    if ((now < vmas->next_ns) && (ucs_load_relaxed(&vmas->spare) >= 0)) {
        return 0;
    }

    spent         = ucs_thread_spent();
    count         = uct_helper_range_count();
    limit         = uct_helper_vmas_limit();
    left          = (count < limit) ? limit - ucs_max(count, 0) : 0;
    reserve       = limit / (was_near ? UCT_HELPER_VMAS_GO :
                                        UCT_HELPER_VMAS_STOP);
    vmas->is_near = (count < 0) ? was_near : (left <= reserve);
    vmas->limit   = limit;
    cost          = ucs_thread_spent() - spent;
    vmas->next_ns = now + ucs_max(UCT_HELPER_VMAS_PERIOD_NS,
                                  cost * UCT_HELPER_VMAS_SHARE);
    ucs_store_relaxed(&vmas->spare,
                      vmas->is_near ? LONG_MAX :
                      (left - reserve) / UCT_HELPER_VMAS_PER_WATCH);
    return vmas->is_near != was_near;
}

int uct_helper_vmas_spend(uct_helper_vmas_t *vmas)
{
    return ucs_sub_relaxed(&vmas->spare, 1) <= 0;
}

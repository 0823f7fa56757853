/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "hear.h"
#include "helper_md_int.h"

#include <uct/ib/helper_md/report/trace_record.h>
#include <uct/ib/helper_md/watch/range.h>

#include <ucs/sys/clock.h>
#include <ucs/sys/sync/exit_mutex.h>
#include <ucs/sys/math.h>

#include <pthread.h>

/* Operations moved or passed on at a time */
#define UCT_HELPER_HEAR_BATCH 64u

/* Bytes of stack for an idle step: up to 15 KB are the helper's own, and it calls the
 * domain below. Coroutines may have 16 KB, and threads do that a runtime makes by the
 * thousand; half of this might not do for a driver. */
#define UCT_HELPER_HEAR_STACK (64ul << 10)

/* The log: operations [count - LOG, count). Its lock is held for a copy or a
 * drain; no other lock is taken under it. */
typedef struct uct_helper_hear_log {
    pthread_mutex_t         lock;
    uct_helper_drain_func_t drain;
    _Atomic(uct_helper_lost_func_t) lost; /* also read without the lock */
    uint64_t                count; /* ever put in */
    ucs_operation_t         operations[UCT_HELPER_HEAR_LOG];
} uct_helper_hear_log_t;

/* Domains for idle steps, which try this lock and hold it; under it they try
 * the domains' step locks. */
typedef struct uct_helper_hear_domains {
    ucs_exit_mutex_t lock;
    uint32_t         process; /* number of the process that opened them */
    uct_helper_md_t  *first;
} uct_helper_hear_domains_t;

static uct_helper_hear_log_t uct_helper_hear_log = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};
static uct_helper_hear_domains_t uct_helper_hear_domains = {
    .lock = UCS_EXIT_MUTEX_INITIALIZER
};

/* A cache line of its own. Written under the domains' lock. */
static struct {
    ucs_operation_wants_t wants;
} __attribute__((aligned(64))) uct_helper_hear_line = {
    .wants = {.least = UINT64_MAX}
};

/* Is there any domain? Read without the lock; a stale value costs one call too
 * many or too few. */
static _Atomic(int) uct_helper_hear_is_open;

/* --- The log -------------------------------------------------------------- */

void uct_helper_hear_from(uct_helper_drain_func_t drain,
                          uct_helper_lost_func_t lost)
{
    pthread_mutex_lock(&uct_helper_hear_log.lock);
    uct_helper_hear_log.drain = drain;
    ucs_store_relaxed(&uct_helper_hear_log.lost, lost);
    pthread_mutex_unlock(&uct_helper_hear_log.lock);
}

ucs_operation_wants_t *uct_helper_hear_wants(void)
{
    return &uct_helper_hear_line.wants;
}

uint64_t uct_helper_hear_lost(void)
{
    /* relaxed: a function, with nothing that goes with it */
    uct_helper_lost_func_t lost = ucs_load_relaxed(&uct_helper_hear_log.lost);

    return (lost != NULL) ? lost() : 0;
}

/* Drain no more than the log holds: the rest waits */
static void uct_helper_hear_drain(uct_helper_hear_log_t *log)
{
    ucs_operation_t operations[UCT_HELPER_HEAR_BATCH];
    unsigned total = 0;
    unsigned count, i;

    if (log->drain == NULL) {
        return;
    }
    do {
        count  = log->drain(operations, UCT_HELPER_HEAR_BATCH);
        total += count;
        for (i = 0; i < count; ++i) {
            if (ucs_unlikely(ucs_load_acquire(/* [T-RING] */
                                              &uct_helper_trace_is_on))) {
                uct_helper_trace_operation(&operations[i]);
            }
            log->operations[log->count++ % UCT_HELPER_HEAR_LOG] = operations[i];
        }
    } while ((count == UCT_HELPER_HEAR_BATCH) && (total < UCT_HELPER_HEAR_LOG));
}

/* Copy at most a batch of operations that the domain has not heard. @return How
 * many. */
static unsigned uct_helper_hear_take(uct_helper_md_t *md, int is_first,
                                     ucs_operation_t *operations)
{
    uct_helper_hear_log_t *log = &uct_helper_hear_log;
    unsigned count             = 0;

    pthread_mutex_lock(&log->lock);
    if (is_first) {
        uct_helper_hear_drain(log);
    }
    if (log->count - md->heard > UCT_HELPER_HEAR_LOG) {
        md->heard = log->count - UCT_HELPER_HEAR_LOG;
    }
    while ((count < UCT_HELPER_HEAR_BATCH) && (md->heard < log->count)) {
        operations[count++] =
                log->operations[md->heard++ % UCT_HELPER_HEAR_LOG];
    }
    pthread_mutex_unlock(&log->lock);
    return count;
}

void uct_helper_hear_step(uct_helper_md_t *md)
{
    ucs_operation_t operations[UCT_HELPER_HEAR_BATCH];
    unsigned total = 0;
    unsigned count;

    do {
        count = uct_helper_hear_take(md, total == 0, operations);
        if (count > 0) {
            ucs_regcache_tell(md->cache, operations, count);
        }
        total += count;
    } while ((count == UCT_HELPER_HEAR_BATCH) && (total < UCT_HELPER_HEAR_LOG));
}

/* --- Idle steps ----------------------------------------------------------- */

/* An idle step of a domain */
typedef struct uct_helper_hear_idle {
    uct_helper_md_t *md;
    uint64_t        spare_ns; /* of all domains, likewise */
    int             was_used; /* of any domain */
} uct_helper_hear_idle_t;

static uint64_t uct_helper_hear_idle(void *arg, uint64_t now)
{
    uct_helper_hear_idle_t *idle  = arg;
    uct_helper_md_t *md           = idle->md;
    uint64_t next, took;

    /* relaxed: the step's lock orders it */
    if (ucs_load_relaxed(&md->is_resting)) {
        return UCS_REGCACHE_TIME_NEVER;
    }
    uct_helper_hear_step(md);
    next           = ucs_regcache_idle_step(md->cache, now, idle->spare_ns);
    took           = ucs_clock_now() - now;
    idle->spare_ns = (idle->spare_ns > took) ? idle->spare_ns - took : 0;
    idle->was_used = idle->was_used || ucs_regcache_idle_was_used(md->cache);
    return next;
}

/* Of several domains those that something was used with: the others register nothing, and
 * idle steps of theirs would take time in each wait. Of an only one the first use may be
 * foretold. */
static int uct_helper_hear_is_used(const uct_helper_hear_domains_t *domains,
                                   const uct_helper_md_t *md)
{
    /* relaxed: its first use may as well come later */
    return ucs_load_relaxed(&md->settled) || (domains->first->hear_next == NULL);
}

/* @return Nonzero if the lock was taken; zero if an idle step is under way */
static int uct_helper_hear_try_domains(void)
{
    return ucs_load_relaxed(&uct_helper_hear_is_open) &&
           ucs_process_is_known() &&
           (pthread_mutex_trylock(&uct_helper_hear_domains.lock.mutex) == 0);
}

ucs_idle_outcome_t uct_helper_idle_step(uint64_t spare_ns)
{
    uct_helper_hear_domains_t *domains = &uct_helper_hear_domains;
    uct_helper_hear_idle_t idle        = {.spare_ns = spare_ns};
    int is_taken                       = 0;
    uct_helper_md_t *md;

    if (!uct_helper_range_has_stack(UCT_HELPER_HEAR_STACK) ||
        !uct_helper_hear_try_domains()) {
        return UCS_IDLE_NOT_TAKEN;
    }

    ucs_cancel_hold();
    if (ucs_process_is(domains->process)) {
        for (md = domains->first; md != NULL; md = md->hear_next) {
            idle.md   = md;
            is_taken |= uct_helper_hear_is_used(domains, md) &&
                        ucs_job_try_step(md->job, uct_helper_hear_idle, &idle);
        }
    }
    pthread_mutex_unlock(&domains->lock.mutex);
    if (!is_taken) {
        return UCS_IDLE_NOT_TAKEN;
    }
    return idle.was_used ? UCS_IDLE_USED : UCS_IDLE_HEARD;
}

/* The step that is woken drains what was posted */
void uct_helper_posted(uintptr_t address, size_t length)
{
    uct_helper_hear_domains_t *domains = &uct_helper_hear_domains;
    uct_helper_md_t *md;

    if ((address == 0) || !uct_helper_hear_try_domains()) {
        return;
    }
    if (ucs_process_is(domains->process)) {
        for (md = domains->first; md != NULL; md = md->hear_next) {
            /* relaxed: waking one that has begun to rest is harmless */
            if (!ucs_load_relaxed(&md->is_resting) &&
                uct_helper_hear_is_used(domains, md) &&
                ucs_regcache_post_is_urgent(md->cache, address, length)) {
                ucs_job_wake(md->job);
            }
        }
    }
    pthread_mutex_unlock(&domains->lock.mutex);
}

/* --- Life ----------------------------------------------------------------- */

/* A recording has all operations; it begins before any domain */
static void uct_helper_hear_set_least(const uct_helper_hear_domains_t *domains)
{
    uint64_t least = UINT64_MAX;
    const uct_helper_md_t *md;

    for (md = domains->first; md != NULL; md = md->hear_next) {
        least = ucs_load_relaxed(&uct_helper_trace_is_on) ?
                        0 :
                        ucs_min(least, ucs_regcache_wants_from(md->cache));
    }
    ucs_store_relaxed(&uct_helper_hear_line.wants.least, least);
}

void uct_helper_hear_enter(uct_helper_md_t *md)
{
    uct_helper_hear_domains_t *domains = &uct_helper_hear_domains;

    pthread_mutex_lock(&uct_helper_hear_log.lock);
    md->heard = uct_helper_hear_log.count;
    pthread_mutex_unlock(&uct_helper_hear_log.lock);

    pthread_mutex_lock(&domains->lock.mutex);
    domains->process = md->process;
    md->hear_next    = domains->first;
    domains->first   = md;
    uct_helper_hear_set_least(domains);
    ucs_store_relaxed(&uct_helper_hear_is_open, 1);
    pthread_mutex_unlock(&domains->lock.mutex);
}

void uct_helper_hear_leave(uct_helper_md_t *md)
{
    uct_helper_hear_domains_t *domains = &uct_helper_hear_domains;
    uct_helper_md_t **link;

    pthread_mutex_lock(&domains->lock.mutex);
    for (link = &domains->first; *link != NULL; link = &(*link)->hear_next) {
        if (*link == md) {
            *link = md->hear_next;
            break;
        }
    }
    uct_helper_hear_set_least(domains);
    ucs_store_relaxed(&uct_helper_hear_is_open, domains->first != NULL);
    pthread_mutex_unlock(&domains->lock.mutex);
}

void uct_helper_hear_stop(void)
{
    uct_helper_hear_domains_t *domains = &uct_helper_hear_domains;

    ucs_store_relaxed(&uct_helper_hear_is_open, 0);
    if (ucs_exit_mutex_hold(&domains->lock)) {
        domains->first = NULL;
        uct_helper_hear_set_least(domains);
        ucs_exit_mutex_release(&domains->lock);
    }
}

/* The locks may be held by threads that do not exist here */
void uct_helper_hear_forget(void)
{
    ucs_store_relaxed(&uct_helper_hear_is_open, 0);
    ucs_exit_mutex_init(&uct_helper_hear_domains.lock);
    pthread_mutex_init(&uct_helper_hear_log.lock, NULL);
    uct_helper_hear_domains.first = NULL;
    ucs_store_relaxed(&uct_helper_hear_line.wants.all, 0);
    ucs_store_relaxed(&uct_helper_hear_line.wants.least, UINT64_MAX);
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "events.h"
#include "events_probe.h"
#include <ucs/sys/sync/listeners.h>
#include <ucs/sys/io/log.h>
#include <ucs/sys/proc/process.h>
#include <uct/ib/helper_md/report/trace_record.h>

#include <ucm/api/ucm.h>
#include <ucs/sys/sync/atomic.h>

#include <pthread.h>

/* UCX's own caches use 1000; lower is earlier */
#define UCT_HELPER_EVENTS_PRIORITY 900

static ucs_listeners_t uct_helper_listeners;
static pthread_once_t uct_helper_events_once = PTHREAD_ONCE_INIT;
static const char *uct_helper_events_reason; /* why not; NULL: they are heard */

/* The hooks are in use */
static _Atomic(int) uct_helper_events_installed;

/* The event that does not arrive any more; NULL: all do */
static _Atomic(const char*) uct_helper_events_lost;

/* Caches whose gates the reader of kernel events has shut. Used by the reader
 * only. */
static ucs_regcache_h uct_helper_events_gated[UCS_LISTENERS_MAX];

/* Counted before any cache is told. What was learned of memory is void if an
 * event has come since. */
static _Atomic(uint64_t) uct_helper_events_count;

/* relaxed: the lock of each cache, under which it is told afterwards, orders
 * this with the thread that compares the number under that lock */
static void uct_helper_events_note(void)
{
    ucs_add_relaxed(&uct_helper_events_count, 1);
}

/* Each visit that finds a cache ends in uct_helper_events_open() */
void uct_helper_events_shut(void)
{
    unsigned i;

    for (i = 0; i < UCS_LISTENERS_MAX; ++i) {
        if (uct_helper_events_gated[i] != NULL) {
            continue;
        }

        uct_helper_events_gated[i] =
                ucs_listeners_enter(&uct_helper_listeners, i);
        if (uct_helper_events_gated[i] != NULL) {
            ucs_regcache_gate_shut(uct_helper_events_gated[i]);
        }
    }
}

int uct_helper_events_try_pass(uintptr_t address, size_t length, int is_gone)
{
    int passed = 1;
    unsigned i;

    uct_helper_events_note();
    for (i = 0; i < UCS_LISTENERS_MAX; ++i) {
        if ((uct_helper_events_gated[i] != NULL) &&
            !ucs_regcache_try_unmapped(uct_helper_events_gated[i], address,
                                       length, is_gone)) {
            passed = 0;
        }
    }
    return passed;
}

void uct_helper_events_open(void)
{
    unsigned i;

    for (i = 0; i < UCS_LISTENERS_MAX; ++i) {
        if (uct_helper_events_gated[i] != NULL) {
            ucs_regcache_gate_open(uct_helper_events_gated[i]);
            uct_helper_events_gated[i] = NULL;
            ucs_listeners_exit(&uct_helper_listeners, i);
        }
    }
}

/* @return Zero in a child without fork handlers: what is registered is its parent's,
 * and a lock that stood closed at the fork will never open */
static UCS_F_ALWAYS_INLINE int
uct_helper_events_tell(void (*func)(ucs_regcache_h cache, uintptr_t address,
                                    size_t length),
                       uintptr_t address, size_t length)
{
    ucs_regcache_h cache;
    unsigned i;

    if (ucs_unlikely(!ucs_process_is_known())) {
        return 0;
    }

    uct_helper_events_note();
    ucs_listeners_for_each(cache, i, &uct_helper_listeners) {
        func(cache, address, length);
    }
    return 1;
}

int uct_helper_events_unmapped(uintptr_t address, size_t length)
{
    return uct_helper_events_tell(ucs_regcache_unmapped, address, length);
}

int uct_helper_events_mapped(uintptr_t address, size_t length)
{
    return uct_helper_events_tell(ucs_regcache_mapped, address, length);
}

uint64_t uct_helper_events_number(void)
{
    return ucs_load_relaxed(&uct_helper_events_count);
}

void uct_helper_events_learn(uint64_t number, uintptr_t start, uintptr_t end)
{
    ucs_regcache_h cache;
    unsigned i;

    ucs_listeners_for_each(cache, i, &uct_helper_listeners) {
        ucs_regcache_learn(cache, start, end, &uct_helper_events_count, number);
    }
}

/* UCM's handler must not allocate, free, log or block (ucm_event_callback_t).
 * It receives mappings too: where memory was just mapped no registration can be
 * left, unless its event was missed. */
static void uct_helper_events_callback(ucm_event_type_t type,
                                       ucm_event_t *event, void *arg)
{
    uintptr_t address = (uintptr_t)event->vm_unmapped.address;
    size_t length     = event->vm_unmapped.size;

    if (type == UCM_EVENT_VM_MAPPED) {
        (void)uct_helper_events_mapped(address, length);
        return;
    }

    uct_helper_events_probe_saw(address);
    if (!uct_helper_events_unmapped(address, length)) {
        return;
    }

    /* [T-RING] The acquire pairs with the release in
     * uct_helper_trace_start(). */
    if (ucs_unlikely(ucs_load_acquire(&uct_helper_trace_is_on))) {
        uct_helper_trace_unmap(address, length);
    }
}

static void uct_helper_events_install(void)
{
    const char *reason;

#if !defined(__SANITIZE_THREAD__) /* which brings a malloc() of its own */
    /* In this mode UCX's malloc() calls sbrk() under its lock, its hook of
     * sbrk() calls dlsym(), and that calls malloc(): a deadlock as soon as a
     * program asks for events. Not under Open MPI, which has hooks of its
     * own. */
    if (ucm_global_opts.mmap_hook_mode == UCM_MMAP_HOOK_RELOC) {
        reason = "UCX's memory hooks deadlock with UCX_MEM_MMAP_HOOK_MODE="
                 "reloc";
        goto err;
    }
#endif

    if (ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED, UCT_HELPER_EVENTS_PRIORITY,
                              uct_helper_events_callback, NULL) != UCS_OK) {
        reason = ucm_global_opts.enable_events ?
                 "UCX cannot install its memory hooks" :
                 "memory events are disabled by UCX_MEM_EVENTS";
        goto err;
    }

    reason = uct_helper_events_probe_first();
    if (reason != NULL) {
        goto err_unset;
    }

    if (ucm_test_events(UCM_EVENT_VM_UNMAPPED) != UCS_OK) {
        reason = "UCX's own test of its memory hooks fails";
        goto err_unset;
    }

    /* Open MPI refuses this: it reports unmapped memory to UCM itself, and
     * nothing else. */
    (void)ucm_set_event_handler(UCM_EVENT_VM_MAPPED, UCT_HELPER_EVENTS_PRIORITY,
                                uct_helper_events_callback, NULL);
    ucs_store_relaxed(&uct_helper_events_installed, 1);
    return;

err_unset:
    ucm_unset_event_handler(UCM_EVENT_VM_UNMAPPED, uct_helper_events_callback,
                            NULL);
err:
    uct_helper_events_reason = reason;
}

const char *uct_helper_events_check(void)
{
    const char *lost;

    pthread_once(&uct_helper_events_once, uct_helper_events_install);
    lost = ucs_load_relaxed(&uct_helper_events_lost);
    return (lost != NULL) ? lost : uct_helper_events_reason;
}

void uct_helper_events_distrust(unsigned reason)
{
    ucs_regcache_h cache;
    unsigned i;

    uct_helper_events_note();
    ucs_listeners_for_each(cache, i, &uct_helper_listeners) {
        ucs_regcache_distrust(cache, reason);
    }
}

void uct_helper_events_trust(unsigned reason)
{
    ucs_regcache_h cache;
    unsigned i;

    ucs_listeners_for_each(cache, i, &uct_helper_listeners) {
        ucs_regcache_trust(cache, reason);
    }
}

void uct_helper_events_recheck(uint64_t now)
{
    const char *reason;

    if (!ucs_load_relaxed(&uct_helper_events_installed) ||
        (ucs_load_relaxed(&uct_helper_events_lost) != NULL) ||
        !uct_helper_events_probe_is_due(now) ||
        ((reason = uct_helper_events_probe_again(now)) == NULL)) {
        return;
    }

    /* Regions first: they may be stale already. */
    ucs_store_relaxed(&uct_helper_events_lost, reason);
    uct_helper_events_distrust(UCS_REGCACHE_DISTRUST_EVENTS);
    ucs_helper_warn("%s any more, another library has taken its place: from "
                    "now on memory is registered only while it is in use",
                    reason);
}

const char *uct_helper_events_complaint(void)
{
    return ucs_load_relaxed(&uct_helper_events_lost);
}

ucs_status_t uct_helper_events_join(ucs_regcache_h cache)
{
    return ucs_listeners_join(&uct_helper_listeners, cache);
}

void uct_helper_events_leave(ucs_regcache_h cache)
{
    ucs_listeners_leave(&uct_helper_listeners, cache);
}

void uct_helper_events_forget(void)
{
    unsigned i;

    uct_helper_events_probe_forget();
    ucs_listeners_forget(&uct_helper_listeners);
    for (i = 0; i < UCS_LISTENERS_MAX; ++i) {
        uct_helper_events_gated[i] = NULL;
    }
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "events.h"
#include "log.h"

#include <ucm/api/ucm.h>
#include <ucs/sys/atomic.h>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/* UCX's own caches use 1000; lower is earlier */
#define UCT_HELPER_EVENTS_PRIORITY 900
#define UCT_HELPER_EVENTS_KEPT_MAX 32

/*
 * Invariant: an engine is inside an event only while readers > 0 of its slot,
 * and it is unreachable for an event that begins after engine became NULL.
 */
typedef struct uct_helper_listener {
    _Atomic(uct_helper_engine_h) engine;
    _Atomic unsigned             readers;
} uct_helper_listener_t;

typedef struct uct_helper_kept_event {
    uintptr_t address;
    size_t    length;
} uct_helper_kept_event_t;

static uct_helper_listener_t uct_helper_listeners[UCT_HELPER_EVENTS_MAX];
static pthread_once_t uct_helper_events_once = PTHREAD_ONCE_INIT;
static ucs_status_t uct_helper_events_status;

/* The thread that is about to fork, 0 for none. What it keeps is its own:
 * nobody else touches the array. More than fits becomes "everything". */
static _Atomic uintptr_t uct_helper_events_forker;
static uct_helper_kept_event_t
        uct_helper_events_kept[UCT_HELPER_EVENTS_KEPT_MAX];
static unsigned uct_helper_events_num_kept;

/* The probe's mapping; a thread's own, so the event is told by address */
static _Atomic uintptr_t uct_helper_events_probe;
static _Atomic int uct_helper_events_probe_seen;


static void uct_helper_events_pass(uintptr_t address, size_t length)
{
    uct_helper_engine_h engine;
    uct_helper_listener_t *slot;
    unsigned i;

    for (i = 0; i < UCT_HELPER_EVENTS_MAX; ++i) {
        slot = &uct_helper_listeners[i];
        if (ucs_load_relaxed(&slot->engine) == NULL) {
            continue;
        }

        /* [R-READER] either this comes after the add in
         * uct_helper_events_leave(), and then the NULL is seen below, or
         * before, and then that waits for the sub */
        ucs_add_acq_rel(&slot->readers, 1);
        engine = ucs_load_acquire(&slot->engine);
        if (engine != NULL) {
            uct_helper_engine_unmapped(engine, address, length);
        }
        ucs_sub_acq_rel(&slot->readers, 1);
    }
}

static void uct_helper_events_keep(uintptr_t address, size_t length)
{
    uct_helper_kept_event_t *kept;

    if (uct_helper_events_num_kept == UCT_HELPER_EVENTS_KEPT_MAX) {
        kept          = &uct_helper_events_kept[0];
        kept->address = 0;
        kept->length  = SIZE_MAX;
        return;
    }

    kept          = &uct_helper_events_kept[uct_helper_events_num_kept++];
    kept->address = address;
    kept->length  = length;
}

/* Must not allocate, free, log or block: see the note on
 * ucm_event_callback_t */
static void uct_helper_events_callback(ucm_event_type_t type,
                                       ucm_event_t *event, void *arg)
{
    uintptr_t address = (uintptr_t)event->vm_unmapped.address;
    size_t length     = event->vm_unmapped.size;

    (void)type;
    (void)arg;
    if (ucs_unlikely(address == ucs_load_relaxed(&uct_helper_events_probe))) {
        ucs_store_relaxed(&uct_helper_events_probe_seen, 1);
    }

    if (ucs_unlikely(ucs_load_relaxed(&uct_helper_events_forker) ==
                     (uintptr_t)pthread_self())) {
        uct_helper_events_keep(address, length);
        return;
    }

    uct_helper_events_pass(address, length);
}

/* Both ways out of a mapping that allocators use, for a hook of one does not
 * imply a hook of the other */
static int uct_helper_events_probe_one(int (*undo)(void *address,
                                                   size_t length))
{
    size_t length = sysconf(_SC_PAGESIZE);
    void *address;

    address = mmap(NULL, length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
        return 0;
    }

    ucs_store_relaxed(&uct_helper_events_probe_seen, 0);
    ucs_store_relaxed(&uct_helper_events_probe, (uintptr_t)address);
    undo(address, length);
    ucs_store_relaxed(&uct_helper_events_probe, 0);
    if (undo != munmap) {
        munmap(address, length);
    }
    return ucs_load_relaxed(&uct_helper_events_probe_seen);
}

static int uct_helper_events_dontneed(void *address, size_t length)
{
    return madvise(address, length, MADV_DONTNEED);
}

static void uct_helper_events_install(void)
{
    const char *reason;
    ucs_status_t status;

    status = ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED,
                                   UCT_HELPER_EVENTS_PRIORITY,
                                   uct_helper_events_callback, NULL);
    if (status != UCS_OK) {
        reason = ucm_global_opts.enable_events ?
                 "UCX cannot install its memory hooks" :
                 "memory events are disabled by UCX_MEM_EVENTS";
        goto err;
    }

    status = UCS_ERR_UNSUPPORTED;
    if (!uct_helper_events_probe_one(munmap)) {
        reason = "munmap() is not reported by UCX's memory hooks";
        goto err_unset;
    }

    if (!uct_helper_events_probe_one(uct_helper_events_dontneed)) {
        reason = "madvise() is not reported by UCX's memory hooks";
        goto err_unset;
    }

    status = ucm_test_events(UCM_EVENT_VM_UNMAPPED);
    if (status != UCS_OK) {
        reason = "UCX's own test of its memory hooks fails";
        goto err_unset;
    }

    uct_helper_events_status = UCS_OK;
    return;

err_unset:
    ucm_unset_event_handler(UCM_EVENT_VM_UNMAPPED, uct_helper_events_callback,
                            NULL);
err:
    uct_helper_warn("%s (%s): the helper stays off", reason,
                    ucs_status_string(status));
    uct_helper_events_status = status;
}

ucs_status_t uct_helper_events_check(void)
{
    pthread_once(&uct_helper_events_once, uct_helper_events_install);
    return uct_helper_events_status;
}

ucs_status_t uct_helper_events_join(uct_helper_engine_h engine)
{
    uct_helper_engine_h none;
    unsigned i;

    for (i = 0; i < UCT_HELPER_EVENTS_MAX; ++i) {
        none = NULL;
        /* [R-READER] publishes the engine to uct_helper_events_pass() */
        if (ucs_cas_acq_rel(&uct_helper_listeners[i].engine, &none, engine)) {
            return UCS_OK;
        }
    }

    return UCS_ERR_EXCEEDS_LIMIT;
}

void uct_helper_events_leave(uct_helper_engine_h engine)
{
    uct_helper_listener_t *slot;
    uct_helper_engine_h found;
    unsigned i;

    for (i = 0; i < UCT_HELPER_EVENTS_MAX; ++i) {
        slot  = &uct_helper_listeners[i];
        found = engine;
        if (!ucs_cas_acq_rel(&slot->engine, &found, NULL)) {
            continue;
        }

        /* [R-READER] an add of nothing, to stand in one order with those of
         * uct_helper_events_pass() */
        while (ucs_add_acq_rel(&slot->readers, 0) != 0) {
            sched_yield();
        }
    }
}

void uct_helper_events_hold(void)
{
    uct_helper_events_num_kept = 0;
    ucs_store_relaxed(&uct_helper_events_forker, (uintptr_t)pthread_self());
}

void uct_helper_events_release(void)
{
    unsigned i;

    ucs_store_relaxed(&uct_helper_events_forker, 0);
    for (i = 0; i < uct_helper_events_num_kept; ++i) {
        uct_helper_events_pass(uct_helper_events_kept[i].address,
                               uct_helper_events_kept[i].length);
    }
}

void uct_helper_events_forget(void)
{
    unsigned i;

    for (i = 0; i < UCT_HELPER_EVENTS_MAX; ++i) {
        ucs_store_relaxed(&uct_helper_listeners[i].engine, NULL);
        ucs_store_relaxed(&uct_helper_listeners[i].readers, 0);
    }
    ucs_store_relaxed(&uct_helper_events_forker, 0);
}

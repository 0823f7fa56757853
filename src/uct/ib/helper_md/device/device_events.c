/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "device_int.h"

#include <ucs/sys/log.h>

#include <ucm/api/ucm.h>

#include <sched.h>

/* Domains of a process that may register a device's memory */
#define UCT_HELPER_DEVICE_MAX 64

/* After UCX's own look at types of memory, before its caches (1000) */
#define UCT_HELPER_DEVICE_PRIORITY 900

/* Freed device memory; and unmapped, for what was taken for a device's */
#define UCT_HELPER_DEVICE_EVENTS \
    (UCM_EVENT_MEM_TYPE_FREE | UCM_EVENT_VM_UNMAPPED)

/* How often an event tries for the lock: each is tens of ns, the lock is held
 * for less than a us with 100 regions. Half loses all regions to one event
 * more often where threads are many; double has a signal handler wait twice
 * as long. */
#define UCT_HELPER_DEVICE_TRIES 1000

/* As in watch/events.c: a class is inside an event only while readers > 0 */
static struct {
    _Atomic(uct_helper_device_h) device;
    _Atomic(unsigned)            readers;
} uct_helper_devices[UCT_HELPER_DEVICE_MAX];

static pthread_once_t uct_helper_device_once = PTHREAD_ONCE_INIT;

static ucs_status_t uct_helper_device_hears;


void uct_helper_device_doom(uct_helper_device_h device, uintptr_t start,
                            uintptr_t end)
{
    uct_helper_device_region_t *region;

    ucs_list_for_each(region, &device->regions, list) {
        if ((region->start < end) && (start < region->end)) {
            region->is_doomed = 1;
        }
    }
}

/* The lock is held for a walk through a list at most, and this thread may hold
 * it itself (a signal): so it is tried for a while, and then a mark is left */
static void uct_helper_device_freed(uct_helper_device_h device,
                                    uintptr_t start, uintptr_t end)
{
    unsigned tries;

    if (ucs_load_relaxed(&device->count) == 0) {
        return;
    }

    for (tries = 0; tries < UCT_HELPER_DEVICE_TRIES; ++tries) {
        if (pthread_mutex_trylock(&device->lock) == 0) {
            uct_helper_device_doom(device, start, end);
            pthread_mutex_unlock(&device->lock);
            return;
        }
    }

    ucs_store_relaxed(&device->missed, 1);
}

static void uct_helper_device_event(ucm_event_type_t type, ucm_event_t *event,
                                    void *arg)
{
    int is_free     = (type == UCM_EVENT_MEM_TYPE_FREE);
    uintptr_t start = (uintptr_t)(is_free ? event->mem_type.address :
                                            event->vm_unmapped.address);
    size_t length   = is_free ? event->mem_type.size : event->vm_unmapped.size;
    uct_helper_device_h device;
    unsigned i;

    (void)arg;
    for (i = 0; i < UCT_HELPER_DEVICE_MAX; ++i) {
        if (ucs_load_relaxed(&uct_helper_devices[i].device) == NULL) {
            continue;
        }

        /* [D-READER] Either the add comes after the one in
         * uct_helper_device_leave(), and then the NULL is seen below, or before
         * it, and then that function waits for the sub. */
        ucs_add_acq_rel(&uct_helper_devices[i].readers, 1);
        device = ucs_load_acquire(&uct_helper_devices[i].device);
        if (device != NULL) {
            uct_helper_device_freed(device, start, start + length);
        }
        /* [D-READER] pairs with the add in uct_helper_device_leave() */
        ucs_sub_acq_rel(&uct_helper_devices[i].readers, 1);
    }
}

static void uct_helper_device_listen(void)
{
    uct_helper_device_hears =
            ucm_set_event_handler(UCT_HELPER_DEVICE_EVENTS,
                                  UCT_HELPER_DEVICE_PRIORITY,
                                  uct_helper_device_event, NULL);
    if (uct_helper_device_hears != UCS_OK) {
        ucs_helper_warn("UCX cannot tell when device memory is freed (%s): it "
                        "is registered for each use",
                        ucs_status_string(uct_helper_device_hears));
    }
}

ucs_status_t uct_helper_device_join(uct_helper_device_h device)
{
    uct_helper_device_h none;
    unsigned i;

    pthread_once(&uct_helper_device_once, uct_helper_device_listen);
    for (i = 0; i < UCT_HELPER_DEVICE_MAX; ++i) {
        none = NULL;
        /* [D-READER] publishes the class to uct_helper_device_event() */
        if (ucs_cas_acq_rel(&uct_helper_devices[i].device, &none, device)) {
            return UCS_OK;
        }
    }

    return UCS_ERR_EXCEEDS_LIMIT;
}

void uct_helper_device_leave(uct_helper_device_h device)
{
    uct_helper_device_h found;
    unsigned i;

    for (i = 0; i < UCT_HELPER_DEVICE_MAX; ++i) {
        found = device;
        /* [D-READER] The cas stands before the add below */
        if (!ucs_cas_acq_rel(&uct_helper_devices[i].device, &found, NULL)) {
            continue;
        }

        /* [D-READER] pairs with the add and sub in uct_helper_device_event() */
        while (ucs_add_acq_rel(&uct_helper_devices[i].readers, 0) != 0) {
            sched_yield();
        }
    }
}

void uct_helper_device_forget(void)
{
    unsigned i;

    for (i = 0; i < UCT_HELPER_DEVICE_MAX; ++i) {
        ucs_store_relaxed(&uct_helper_devices[i].device, NULL);
        ucs_store_relaxed(&uct_helper_devices[i].readers, 0);
    }
}

int uct_helper_device_is_heard(void)
{
    return uct_helper_device_hears == UCS_OK;
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "device_int.h"

#include <ucs/sys/sync/listeners.h>
#include <ucs/sys/io/log.h>

#include <ucm/api/ucm.h>

/* After UCX's own look at types of memory, before its caches (1000) */
#define UCT_HELPER_DEVICE_PRIORITY 900

/* Device memory is freed, or memory that was taken for a device's unmapped */
#define UCT_HELPER_DEVICE_EVENTS \
    (UCM_EVENT_MEM_TYPE_FREE | UCM_EVENT_VM_UNMAPPED)

/* How often an event tries for the lock: each is tens of ns, the lock is held
 * for less than a us with 100 regions. Half loses all regions to one event
 * more often where threads are many; double has a signal handler wait twice
 * as long. */
#define UCT_HELPER_DEVICE_TRIES 1000

static ucs_listeners_t uct_helper_devices;

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

/* Try the lock for a while, then leave a mark: it is held for a walk through a
 * list at most, but this thread may hold it itself (a signal) */
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

    ucs_listeners_for_each(device, i, &uct_helper_devices) {
        uct_helper_device_freed(device, start, start + length);
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
    pthread_once(&uct_helper_device_once, uct_helper_device_listen);
    return ucs_listeners_join(&uct_helper_devices, device);
}

void uct_helper_device_leave(uct_helper_device_h device)
{
    ucs_listeners_leave(&uct_helper_devices, device);
}

void uct_helper_device_forget(void)
{
    ucs_listeners_forget(&uct_helper_devices);
}

int uct_helper_device_is_heard(void)
{
    return uct_helper_device_hears == UCS_OK;
}

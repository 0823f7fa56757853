/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "device.h"

#include <ucs/sys/io/log.h>
#include <ucs/sys/proc/cancel.h>
#include <ucs/sys/sync/listeners.h>

#include <ucm/api/ucm.h>
#include <ucs/datastruct/list.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* UCT_MD_FLAG_REG_DMABUF, from 1.14 on */
#define UCT_HELPER_DEVICE_FLAG_DMABUF UCS_BIT(10)

/* ucs_memory_info_t grew in 1.22; the type is its first field */
#define UCT_HELPER_DEVICE_INFO_MAX 128
#define UCT_HELPER_DEVICE_UNKNOWN  "unknown"

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

/* Exported by libucs, declared in headers that not every libucx-dev ships */
ucs_status_t ucs_memtype_cache_lookup(const void *address, size_t size,
                                      void *info);
extern const char *ucs_memory_type_names[];

/* A further completion that waits for the end of a registration */
typedef struct uct_helper_device_comp {
    struct uct_helper_device_comp *next;
    uct_completion_t              *comp;
} uct_helper_device_comp_t;

/* A registration, or one in progress (no handle yet). No request finds a doomed
 * one. Under the class's lock, except what never changes. */
typedef struct uct_helper_device_region {
    ucs_list_link_t          list;
    uintptr_t                start;
    uintptr_t                end;
    unsigned                 flags;
    unsigned                 refs;
    int                      is_doomed;
    int                      is_ready;
    uct_mem_h                memh;
    uct_helper_device_comp_t *comps;
} uct_helper_device_region_t;

struct uct_helper_device {
    uct_md_h               md;
    const uct_abi_md_ops_t *lower;
    int                    looks;   /* types of memory are asked for */
    pthread_mutex_t        lock;    /* a leaf; nothing is called under it */
    ucs_list_link_t        regions; /* the latest used first */
    _Atomic(unsigned)      missed;  /* an event found the lock taken */
    _Atomic(unsigned)      count;   /* regions, for events */
};

static ucs_listeners_t uct_helper_devices;

static pthread_once_t uct_helper_device_once = PTHREAD_ONCE_INIT;

static ucs_status_t uct_helper_device_hears;

/* --- Events of freed memory ----------------------------------------------- */

/* Regions that overlap the range are stale. Under the lock */
static void uct_helper_device_doom(uct_helper_device_h device,
                                   uintptr_t start, uintptr_t end)
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

/* --- Registrations -------------------------------------------------------- */

/* An event found the lock taken, and its range is not known: before any look-up
 * all regions go */
static void uct_helper_device_lock(uct_helper_device_h device)
{
    pthread_mutex_lock(&device->lock);
    if (ucs_swap_relaxed(&device->missed, 0)) {
        uct_helper_device_doom(device, 0, UINTPTR_MAX);
    }
}

ucs_status_t uct_helper_device_create(uct_md_h md,
                                      const uct_abi_md_ops_t *lower,
                                      const uct_abi_md_attr_t *attr,
                                      uct_helper_device_h *device_p)
{
    int looks = (attr->reg_mem_types & ~UCS_BIT(UCS_MEMORY_TYPE_HOST)) != 0;
    uct_helper_device_h device;
    ucs_status_t status;

    *device_p = NULL;
    if (!looks && !(attr->flags & UCT_HELPER_DEVICE_FLAG_DMABUF)) {
        return UCS_OK;
    }

    device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    device->md    = md;
    device->lower = lower;
    device->looks = looks;
    pthread_mutex_init(&device->lock, NULL);
    ucs_list_head_init(&device->regions);
    pthread_once(&uct_helper_device_once, uct_helper_device_listen);
    status = ucs_listeners_join(&uct_helper_devices, device);
    if (status != UCS_OK) {
        pthread_mutex_destroy(&device->lock);
        free(device);
        return status;
    }

    *device_p = device;
    return UCS_OK;
}

/* The region is in no list. The domain below calls one completion; this calls
 * the others after it. */
static ucs_status_t
uct_helper_device_deregister(uct_helper_device_h device,
                             uct_helper_device_region_t *region)
{
    uct_helper_device_comp_t *waiting = region->comps, *next;
    uct_completion_t *comp            = (waiting != NULL) ? waiting->comp : NULL;
    ucs_status_t status;
    ucs_cancel_hold();

    status = uct_abi_mem_dereg(device->lower, device->md, region->memh, comp);
    for (; waiting != NULL; waiting = next) {
        next = waiting->next;
        if (waiting->comp != comp) {
            uct_abi_complete(waiting->comp);
        }
        free(waiting);
    }
    free(region);
    return status;
}

/* Deregister what is doomed and unused. Not from an event: the domain below may
 * allocate */
static void uct_helper_device_sweep(uct_helper_device_h device)
{
    uct_helper_device_region_t *region, *found;

    do {
        found = NULL;
        uct_helper_device_lock(device);
        ucs_list_for_each(region, &device->regions, list) {
            if (region->is_doomed && (region->refs == 0)) {
                found = region;
                ucs_list_del(&region->list);
                ucs_sub_relaxed(&device->count, 1);
                break;
            }
        }
        pthread_mutex_unlock(&device->lock);
        if (found != NULL) {
            uct_helper_device_deregister(device, found);
        }
    } while (found != NULL);
}

void uct_helper_device_destroy(uct_helper_device_h device)
{
    uct_helper_device_region_t *region, *next;

    if (device == NULL) {
        return;
    }

    ucs_listeners_leave(&uct_helper_devices, device);
    ucs_list_for_each_safe(region, next, &device->regions, list) {
        uct_helper_device_deregister(device, region);
    }
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* The value of "unknown" differs between releases; it is the last name before
 * the NULL */
static int uct_helper_device_is_unknown(ucs_memory_type_t type)
{
    return (ucs_memory_type_names[type] == NULL) ||
           !strcmp(ucs_memory_type_names[type], UCT_HELPER_DEVICE_UNKNOWN);
}

int uct_helper_device_is_known(const void *address, size_t length)
{
    union {
        ucs_memory_type_t type;
        char              room[UCT_HELPER_DEVICE_INFO_MAX];
    } info = {.type = UCS_MEMORY_TYPE_HOST};

    return (ucs_memtype_cache_lookup(address, length, &info) == UCS_OK) &&
           (info.type != UCS_MEMORY_TYPE_HOST);
}

int uct_helper_device_is_mine(uct_helper_device_h device, const void *address,
                              size_t length,
                              const uct_abi_md_mem_reg_params_t *params)
{
    if ((params != NULL) &&
        (params->field_mask & UCT_ABI_MD_MEM_REG_FIELD_DMABUF_FD) &&
        (params->dmabuf_fd >= 0)) {
        return 1;
    }

    /* From 1.22 on the caller may give the type, which UCP has from the
     * program */
    if ((params != NULL) &&
        (params->field_mask & UCT_ABI_MD_MEM_REG_FIELD_MEM_TYPE) &&
        !uct_helper_device_is_unknown(params->mem_type)) {
        return params->mem_type != UCS_MEMORY_TYPE_HOST;
    }

    return device->looks && uct_helper_device_is_known(address, length);
}

/* Under the lock */
static uct_helper_device_region_t *
uct_helper_device_find(uct_helper_device_h device, uintptr_t start,
                       uintptr_t end, unsigned access)
{
    uct_helper_device_region_t *region;

    ucs_list_for_each(region, &device->regions, list) {
        if (!region->is_doomed && region->is_ready && (region->start <= start) &&
            (end <= region->end) && !(access & ~region->flags)) {
            ++region->refs;
            ucs_list_del(&region->list);
            ucs_list_add_head(&device->regions, &region->list);
            return region;
        }
    }

    return NULL;
}

/* It is in the list before it is registered, so that events find it */
static ucs_status_t
uct_helper_device_register(uct_helper_device_h device, void *address,
                           size_t length, unsigned flags,
                           const uct_abi_md_mem_reg_params_t *params,
                           uct_mem_h *memh_p)
{
    uct_helper_device_region_t *region = calloc(1, sizeof(*region));
    ucs_status_t status;
    uct_mem_h memh;

    if (region == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    region->start = (uintptr_t)address;
    region->end   = (uintptr_t)address + length;
    region->flags = flags;
    region->refs  = 1;
    /* Without events it could go stale, so it ends with its use */
    region->is_doomed = (uct_helper_device_hears != UCS_OK);
    uct_helper_device_lock(device);
    ucs_list_add_head(&device->regions, &region->list);
    ucs_add_relaxed(&device->count, 1);
    pthread_mutex_unlock(&device->lock);
    status = uct_abi_mem_reg_as_asked(device->lower, device->md, address,
                                      length, flags, params, &memh);

    uct_helper_device_lock(device);
    if (status == UCS_OK) {
        region->memh     = memh;
        region->is_ready = 1;
        *memh_p          = memh;
    } else {
        ucs_list_del(&region->list);
        ucs_sub_relaxed(&device->count, 1);
    }
    pthread_mutex_unlock(&device->lock);

    if (status != UCS_OK) {
        free(region);
    }
    return status;
}

ucs_status_t uct_helper_device_get(uct_helper_device_h device, void *address,
                                   size_t length, unsigned flags,
                                   const uct_abi_md_mem_reg_params_t *params,
                                   uct_mem_h *memh_p)
{
    uct_helper_device_region_t *region;
    ucs_cancel_hold();

    uct_helper_device_sweep(device);
    uct_helper_device_lock(device);
    region = uct_helper_device_find(device, (uintptr_t)address,
                                    (uintptr_t)address + length,
                                    flags & UCT_MD_MEM_ACCESS_ALL);
    if (region != NULL) {
        *memh_p = region->memh;
    }
    pthread_mutex_unlock(&device->lock);

    return (region != NULL) ?
                   UCS_OK :
                   uct_helper_device_register(device, address, length, flags,
                                              params, memh_p);
}

ucs_status_t uct_helper_device_put(uct_helper_device_h device, uct_mem_h memh,
                                   uct_completion_t *comp)
{
    uct_helper_device_comp_t *waiting = NULL;
    uct_helper_device_region_t *region, *last = NULL;
    ucs_status_t status = UCS_ERR_NO_ELEM;

    if (comp != NULL) {
        waiting = malloc(sizeof(*waiting));
        if (waiting == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        waiting->comp = comp;
    }

    uct_helper_device_lock(device);
    ucs_list_for_each(region, &device->regions, list) {
        if ((region->memh != memh) || !region->is_ready || (region->refs == 0)) {
            continue;
        }

        status = UCS_OK;
        if (waiting != NULL) {
            waiting->next     = region->comps;
            region->comps     = waiting;
            region->is_doomed = 1;
        }
        if ((--region->refs == 0) && region->is_doomed) {
            last = region;
            ucs_list_del(&region->list);
            ucs_sub_relaxed(&device->count, 1);
        }
        break;
    }
    pthread_mutex_unlock(&device->lock);

    if (last != NULL) {
        return uct_helper_device_deregister(device, last);
    }
    if (status != UCS_OK) {
        free(waiting);
    }
    return status;
}

void uct_helper_device_forget(void)
{
    ucs_listeners_forget(&uct_helper_devices);
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_DEVICE_INT_H_
#define UCT_HELPER_DEVICE_INT_H_

#include "device.h"

#include <ucs/datastruct/list.h>
#include <ucs/sys/sync/atomic.h>

#include <pthread.h>
#include <stdint.h>

/*
 * Shared by device.c, which registers, and device_events.c, which receives
 * events of freed memory.
 */

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

/** Regions that overlap [start, end) are stale. Under the class's lock. */
void uct_helper_device_doom(uct_helper_device_h device, uintptr_t start,
                            uintptr_t end);

/** Begin to receive events. @return UCS_OK, or UCS_ERR_EXCEEDS_LIMIT: too many
 *  classes. */
ucs_status_t uct_helper_device_join(uct_helper_device_h device);

/** When this returns, no event is inside the class. */
void uct_helper_device_leave(uct_helper_device_h device);

/** @return Nonzero if UCM reports freed memory. After a class has joined; does
 *          not change. */
int uct_helper_device_is_heard(void);

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_PIN_TABLE_H_
#define UCT_PIN_TABLE_H_

#include "pin_ring.h"

#include <ucs/datastruct/list.h>
#include <uct/api/uct.h>
#include <pthread.h>

/**
 * @file pin_table.h
 *
 * Pinned regions of one domain, spread over several io_urings.
 *
 * The kernel holds one mutex per ring through a registration, page faults
 * included. On a shared ring a 64 KB pin waits for the whole of a 1 GB pin;
 * on a ring of its own it does not. So there are size classes with rings of
 * their own, two for each: a registration or deregistration waits at most for
 * one system call of its own class. A region of the last class takes several
 * slots, which also lets others of that class in between, stays below the
 * limit of 1 GiB per slot, and bounds how long the kernel pins in one go.
 */

BEGIN_C_DECLS

/** Regions up to this many bytes are of the small class. */
#define UCT_PIN_SMALL_MAX (256ul << 10)

/** Bytes of one slot at most; larger regions are of the large class. */
#define UCT_PIN_SLOT_MAX  (16ul << 20)

/** Slots that io_uring allows in a table. */
#define UCT_PIN_RING_MAX_SLOTS 16384

/** Size classes. */
enum {
    UCT_PIN_CLASS_SMALL,
    UCT_PIN_CLASS_MEDIUM,
    UCT_PIN_CLASS_LARGE,
    UCT_PIN_CLASS_LAST
};

/** Rings of a size class: of two threads, neither waits for the other. */
#define UCT_PIN_RINGS_PER_CLASS 2

/** Rings of a table. */
#define UCT_PIN_NUM_RINGS (UCT_PIN_CLASS_LAST * UCT_PIN_RINGS_PER_CLASS)

/** One registration. Owned by the table from pin to unpin. */
typedef struct uct_pin_region {
    ucs_list_link_t list;
    uct_mem_h       lower_memh; /* Handle of the domain below */
    uint64_t        serial;     /* Of the registration, from 1; the domain's */
    uint64_t        time;       /* ns, CLOCK_MONOTONIC; 0 if nobody verifies */
    pid_t           tid;        /* Thread that registered it, likewise */
    uct_pin_ring_t  *ring;      /* NULL if not pinned: made in a fork child */
    void            *address;   /* Page aligned */
    size_t          length;     /* Bytes, whole pages */
    unsigned        num_slots;
    uint16_t        slots[];
} uct_pin_region_t;

/**
 * Invariants, under the lock:
 *   num_regions == length of regions <= max_regions
 *   sum(num_slots of regions on a ring) + ring.num_free == ring.num_slots,
 *   and each slot is free or of one region, once
 */
typedef struct uct_pin_table {
    /* Protects the free lists of the rings, the list of regions and their
     * sums. A leaf: nothing is called or allocated while it is held. */
    pthread_mutex_t lock;
    ucs_list_link_t regions;
    unsigned        num_regions;
    unsigned        max_regions;
    uct_pin_ring_t  rings[UCT_PIN_CLASS_LAST][UCT_PIN_RINGS_PER_CLASS];
} uct_pin_table_t;


/**
 * Create the rings; errors as of uct_pin_ring_init().
 *
 * @param [in] flags  UCT_PIN_RING_FLAG_xx.
 */
ucs_status_t uct_pin_table_init(uct_pin_table_t *table, unsigned max_regions,
                                unsigned flags);


/** Unpin and free what is left. No call may be in progress. */
void uct_pin_table_cleanup(uct_pin_table_t *table);


/** Do the invariants hold? From any thread; looks at each slot. */
int uct_pin_table_is_valid(uct_pin_table_t *table);


/** In a forked child: forget the table without touching the rings. */
void uct_pin_table_abandon(uct_pin_table_t *table);


/**
 * Pin @a length bytes, whole pages, not 0.
 *
 * @return 0; -ENOSPC if max_regions or the slots are used up; -ENOMEM if there
 *         is no memory or it exceeds RLIMIT_MEMLOCK; -EFAULT if a page is
 *         missing or not writable; another negative errno of the kernel.
 */
int uct_pin_table_pin(uct_pin_table_t *table, void *address, size_t length,
                      uct_pin_region_t **region_p);


/** Unpin and free a region. */
void uct_pin_table_unpin(uct_pin_table_t *table, uct_pin_region_t *region);


/**
 * Read or write a pinned region through the registration. From any thread; the
 * region stays pinned. The table has views.
 *
 * @param [in] offset  Bytes from the region's start.
 * @param      data    @a length bytes, which a write leaves alone.
 *
 * @return 0 or a negative errno.
 */
int uct_pin_region_copy(uct_pin_region_t *region, uct_pin_view_way_t way,
                        size_t offset, void *data, size_t length);


/** @return A region that is not pinned and not in a table, or NULL. */
uct_pin_region_t *uct_pin_region_alloc(void *address, size_t length,
                                       unsigned num_slots);


/** Free a region that is in no table, or whose table is the parent's. */
void uct_pin_region_free(uct_pin_region_t *region);

END_C_DECLS

#endif

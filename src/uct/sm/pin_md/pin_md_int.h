/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_PIN_MD_INT_H_
#define UCT_PIN_MD_INT_H_

#include "pin_md.h"

#include <ucs/datastruct/linear_func.h>
#include <ucs/datastruct/list.h>
#include <ucs/node/node.h>
#include <ucs/sys/io/own_fd.h>
#include <ucs/sys/sync/atomic.h>
#include <uct/base/uct_abi.h>

#include <pthread.h>
#include <unistd.h>

/*
 * Inside of the domain. Calls go down this list only:
 *
 *   pin_md.c       attaches to a domain, describes and closes it
 *   pin_reg.c      registers and deregisters
 *   pin_verify.c   what a registration shows, beside the virtual address
 *   pin_domains.c  which decorator belongs to a domain
 *   pin_cost.c     what a registration costs
 *   pin_table.c    pinned regions
 *   pin_ring.c     one io_uring
 *   pin_view.c     reads and writes through its buffers
 */

/* --- pin_view.c: what a device would see, by a ring's registered buffers. The
 * kernel moves the data between the pinned pages and a pipe, so the address of a
 * buffer only says where in it, and what is mapped there by now does not matter. A
 * testing aid; a ring has one only when asked for. --- */

struct io_uring_params;

typedef struct uct_pin_view *uct_pin_view_h;

/** From the pinned pages, or into them. */
typedef enum uct_pin_view_way {
    UCT_PIN_VIEW_READ,
    UCT_PIN_VIEW_WRITE
} uct_pin_view_way_t;

/**
 * Map the queues of a ring. They are not passed on to a forked child, which
 * must not use the view.
 *
 * @param [in]  own     Descriptor of the ring, which must outlive the view.
 * @param [in]  params  As filled by io_uring_setup().
 * @param [out] view_p  Set on success; owned by the caller.
 *
 * @return 0 or a negative errno.
 */
int uct_pin_view_create(ucs_own_fd_t *own, struct io_uring_params *params,
                        uct_pin_view_h *view_p);

/** Release a view. In a forked child: @ref uct_pin_view_abandon. */
void uct_pin_view_destroy(uct_pin_view_h view);

/** In a forked child: drop its descriptors and nothing else. */
void uct_pin_view_abandon(uct_pin_view_h view);

/**
 * Read or write pinned pages. From any thread; calls take turns.
 *
 * @param [in] slot     Buffer of the ring.
 * @param [in] address  First byte, an address as it was when registered.
 * @param      data     @a length bytes, which a write leaves alone.
 * @param [in] length   Bytes; the range lies within the buffer.
 *
 * @return 0 or a negative errno.
 */
int uct_pin_view_copy(uct_pin_view_h view, uct_pin_view_way_t way,
                      uint16_t slot, uintptr_t address, void *data,
                      size_t length);

/* --- pin_ring.c --- */

/**
 * One io_uring that serves as a table of pinned buffers. Without a view it is
 * never mapped and never submits anything.
 *
 * Invariant: num_free == number of slots not handed out, and these are
 * free_slots[0 .. num_free - 1].
 */
typedef struct uct_pin_ring {
    ucs_own_fd_t     own;        /* closed or replaced: nothing is pinned */
    uct_pin_view_h   view;       /* NULL unless asked for */
    unsigned         num_slots;
    unsigned         num_free;   /* Guarded by the lock of the owning table */
    uint16_t         *free_slots; /* Same lock; empty in the kernel */
    _Atomic(unsigned) busy;      /* System calls in progress, a hint */
} uct_pin_ring_t;

/**
 * Create a ring with @a num_slots empty slots (1 to 16384).
 *
 * @param [in] has_view  Nonzero: the pinned pages can be read and written.
 *
 * @return UCS_ERR_UNSUPPORTED with a warning logged if the kernel refuses;
 *         UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_pin_ring_init(uct_pin_ring_t *ring, unsigned num_slots,
                               int has_view);

/** Unpin everything at once, even if a forked child holds the ring's fd. */
void uct_pin_ring_cleanup(uct_pin_ring_t *ring);

/** In a forked child: drop the child's fd, leave the ring itself alone. */
void uct_pin_ring_abandon(uct_pin_ring_t *ring);

/**
 * Pin @a length bytes, whole pages, at most 1 GiB. Or empty the slot: unpin its
 * pages, with NULL and 0.
 *
 * @param [in] slot  That the caller took, and that is empty before.
 *
 * @return 0 or a negative errno.
 */
int uct_pin_ring_pin(uct_pin_ring_t *ring, uint16_t slot, void *address,
                     size_t length);

/* --- pin_table.c: pinned regions of one domain, spread over several io_urings.
 *
 * The kernel holds one mutex per ring through a registration, page faults
 * included. On a shared ring a 64 KB pin waits for the whole of a 1 GB pin;
 * on a ring of its own it does not. So there are size classes with rings of
 * their own, two for each: a registration or deregistration waits at most for
 * one system call of its own class. A region of the last class takes several
 * slots, which also lets others of that class in between, stays below the
 * limit of 1 GiB per slot, and bounds how long the kernel pins in one go. --- */

/** Regions up to this many bytes are of the small class. */
#define UCT_PIN_SMALL_MAX (256ul << 10)

/** Bytes of one slot at most; larger regions are of the large class. */
#define UCT_PIN_SLOT_MAX  (16ul << 20)

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

/** Create the rings, as @ref uct_pin_ring_init. */
ucs_status_t uct_pin_table_init(uct_pin_table_t *table, unsigned max_regions,
                                int has_views);

/** Unpin and free what is left. No call may be in progress. */
void uct_pin_table_cleanup(uct_pin_table_t *table);

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

/** @return A region that is not pinned and not in a table, or NULL. Freed by @ref
 *          ucs_own_free, while it is in no table, or in the parent's. */
uct_pin_region_t *uct_pin_region_alloc(void *address, size_t length,
                                       unsigned num_slots);

/* --- pin_cost.c --- */

/**
 * Time what a pin costs on this machine, on pages that are resident, and add
 * the modelled cost of @a config: the least of some tries. Needs a free slot.
 *
 * @return Seconds as a function of bytes; the modelled cost alone if the pages
 *         cannot be had.
 */
ucs_linear_func_t uct_pin_cost_measure(uct_pin_table_t *table,
                                       const uct_pin_config_t *config);

/** A third: what unpinning costs beside pinning, for io_uring and for verbs. */
#define UCT_PIN_COST_DEREG 3

/** Keep the caller busy for one part in so many, 1 or @ref UCT_PIN_COST_DEREG, of the
 *  MODELLED cost of registering @a num_pages. */
void uct_pin_cost_wait(const uct_pin_config_t *config, size_t num_pages,
                       unsigned part);

typedef struct uct_pin_md {
    uct_abi_md_ops_t       ops;        /* What the domain points at */
    const uct_abi_md_ops_t *lower;
    uct_md_h               md;
    uct_pin_config_t       config;
    ucs_linear_func_t      reg_cost;   /* Seconds over bytes */
    pid_t                  owner;      /* Only this process uses the rings */
    size_t                 page_size;
    int                    is_keyed;   /* The domain below registers, too */
    _Atomic(uint64_t)      serial;     /* Of the last registration */
    int                    is_delegated; /* The end of a use is told above */
    ucs_node_h             node;       /* Counts the regions of all processes;
                                          NULL if there is no limit */
    uct_pin_table_t        table;
} uct_pin_md_t;

/** @return Nonzero unless this process has inherited the domain by fork(). */
static inline int uct_pin_md_is_owner(const uct_pin_md_t *pin)
{
    return pin->owner == getpid();
}

/* --- pin_domains.c: by any thread, without a lock --- */

/** @return What decorates @a md, NULL if nothing does. */
uct_pin_md_t *uct_pin_md_find(uct_md_h md);

/** From now on it is found. @return UCS_OK, or UCS_ERR_EXCEEDS_LIMIT, which is
 *  warned of. */
ucs_status_t uct_pin_md_publish(uct_pin_md_t *pin);

/** It is found no more; no other thread is inside. */
void uct_pin_md_unpublish(uct_pin_md_t *pin);

/* --- pin_reg.c --- */

/** Set the functions of a domain that register, deregister and, if the domain
 *  below has none, make keys. */
void uct_pin_md_init_reg_ops(uct_pin_md_t *pin);

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_PIN_RING_H_
#define UCT_PIN_RING_H_

#include "pin_view.h"

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/io/own_fd.h>
#include <ucs/type/status.h>
#include <ucs/sys/compiler_def.h>
#include <stddef.h>
#include <stdint.h>

BEGIN_C_DECLS

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
    uint16_t         *free_slots; /* Same lock */
    _Atomic(unsigned) busy;      /* System calls in progress, a hint */
} uct_pin_ring_t;


/** Flags of a ring. */
enum {
    UCT_PIN_RING_FLAG_VIEW = 1 /**< the pinned pages can be read and written */
};


/**
 * Create a ring with @a num_slots empty slots (1 to 16384).
 *
 * @param [in] flags  UCT_PIN_RING_FLAG_xx.
 *
 * @return UCS_ERR_UNSUPPORTED with a warning logged if the kernel refuses;
 *         UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_pin_ring_init(uct_pin_ring_t *ring, unsigned num_slots,
                               unsigned flags);


/** Unpin everything at once, even if a forked child holds the ring's fd. */
void uct_pin_ring_cleanup(uct_pin_ring_t *ring);


/** In a forked child: drop the child's fd, leave the ring itself alone. */
void uct_pin_ring_abandon(uct_pin_ring_t *ring);


/** Take a slot out of the free list, which must not be empty. */
static inline uint16_t uct_pin_ring_slot_get(uct_pin_ring_t *ring)
{
    return ring->free_slots[--ring->num_free];
}


/** Give back a slot that is empty in the kernel. */
static inline void uct_pin_ring_slot_put(uct_pin_ring_t *ring, uint16_t slot)
{
    ring->free_slots[ring->num_free++] = slot;
}


/**
 * Pin @a length bytes, whole pages, at most 1 GiB.
 *
 * @param [in] slot  That the caller took and that is empty.
 *
 * @return 0 or a negative errno.
 */
int uct_pin_ring_pin(uct_pin_ring_t *ring, uint16_t slot, void *address,
                     size_t length);


/** Empty a slot: unpin its pages. @return 0 or a negative errno. */
int uct_pin_ring_unpin(uct_pin_ring_t *ring, uint16_t slot);

END_C_DECLS

#endif

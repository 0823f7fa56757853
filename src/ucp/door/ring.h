/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_DOOR_RING_H_
#define UCP_DOOR_RING_H_

#include "tuning.h"

#include <ucs/predict/operation.h>
#include <ucs/sys/sync/atomic.h>

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/*
 * Rings of operations on their way to the helper, one for each thread. Only the
 * thread fills its ring, and one reader at a time empties it, without a lock. A
 * full ring counts lost operations. Nothing waits or allocates.
 */

BEGIN_C_DECLS

#define UCP_DOOR_RING_MASK (UCP_DOOR_RING_LENGTH - 1)

/** Distance of words that different threads write. */
#define UCP_DOOR_LINE 64

typedef enum ucp_door_ring_state {
    UCP_DOOR_RING_FREE,
    UCP_DOOR_RING_OWNED, /* its thread fills it */
    UCP_DOOR_RING_LEFT   /* its thread has ended: free once it is empty */
} ucp_door_ring_state_t;

/** Invariant: head <= tail <= head + UCP_DOOR_RING_LENGTH. */
typedef struct ucp_door_ring {
    /* Written by the owner alone */
    _Atomic(uint64_t) tail __attribute__((aligned(UCP_DOOR_LINE)));
    uint64_t          head_seen; /* head, as it was at the last look */
    _Atomic(uint64_t) lost;
    uint32_t          last_id;   /* of a receive; goes on with the next owner */
    uint32_t          number;    /* of the ring, from 0: the thread's */
    /* Written by the reader; of the state, by those who take and leave it */
    _Atomic(uint64_t) head __attribute__((aligned(UCP_DOOR_LINE)));
    _Atomic(unsigned) state;
    ucs_operation_t   operations[UCP_DOOR_RING_LENGTH]
            __attribute__((aligned(UCP_DOOR_LINE)));
} ucp_door_ring_t;

/** All zero is a set of free rings. */
typedef struct ucp_door_rings {
    _Atomic(unsigned) used;    /* rings [0, used) have ever had an owner */
    _Atomic(unsigned) reading; /* nonzero: there is a reader */
    _Atomic(uint64_t) unheard; /* operations of threads without a ring */
    ucp_door_ring_t   rings[UCP_DOOR_RINGS];
} ucp_door_rings_t;

/** @return A ring for the calling thread; NULL if all have an owner. */
ucp_door_ring_t *ucp_door_rings_take(ucp_door_rings_t *rings);

/** The owner releases its ring; its operations are still read. */
void ucp_door_ring_leave(ucp_door_ring_t *ring);

/** Of @ref ucp_door_ring_room: the ring was full when the owner last looked.
 *
 * @return Zero if it still is: the operation has been counted as lost. */
int ucp_door_ring_look(ucp_door_ring_t *ring);

/**
 * By the ring's owner. The operation is built in its final place: copying words that
 * were just stored would stall the processor.
 *
 * @return The place of the next operation, until @ref ucp_door_ring_fill; NULL if the
 *         ring is full: the operation has been counted as lost.
 */
static inline ucs_operation_t *ucp_door_ring_room(ucp_door_ring_t *ring)
{
    uint64_t tail = ucs_load_relaxed(&ring->tail);

    if (ucs_unlikely((tail - ring->head_seen) == UCP_DOOR_RING_LENGTH) &&
        !ucp_door_ring_look(ring)) {
        return NULL;
    }

    return &ring->operations[tail & UCP_DOOR_RING_MASK];
}

/** By the ring's owner: publish the operation in its room. */
static inline void ucp_door_ring_fill(ucp_door_ring_t *ring)
{
    /* [O-FILL] The release pairs with the reader's acquire of the tail. */
    ucs_store_release(&ring->tail, ucs_load_relaxed(&ring->tail) + 1);
}

/** Move at most @a max operations out of all rings, the earliest first. Any thread;
 *  of two at a time one gets none. @return How many. */
unsigned ucp_door_rings_drain(ucp_door_rings_t *rings, ucs_operation_t *into,
                              unsigned max);

/** @return Operations lost since the start. Any thread. */
uint64_t ucp_door_rings_lost(ucp_door_rings_t *rings);

/** In a forked child, by its only thread: forget the operations of the parent's
 *  threads and free their rings.
 *
 * @param [in] mine  The caller's own, which it keeps; may be NULL. */
void ucp_door_rings_adopt(ucp_door_rings_t *rings, ucp_door_ring_t *mine);

END_C_DECLS

#endif

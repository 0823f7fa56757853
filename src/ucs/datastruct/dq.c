/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "dq.h"

#include <ucs/sys/mem/own_memory.h>

#include <string.h>

#define UCS_DQ_LINE 64

typedef struct ucs_dq_slot {
    _Atomic(uint64_t) ticket;
    char              record[UCS_DQ_RECORD_SIZE];
} __attribute__((aligned(UCS_DQ_LINE))) ucs_dq_slot_t;

/* Nothing that a push reads is in a line that a pop writes, but for the slot */
typedef struct ucs_dq_ring {
    _Atomic(uint64_t) head __attribute__((aligned(UCS_DQ_LINE)));
    _Atomic(uint64_t) lost;
    uint64_t          mask;
    ucs_dq_slot_t     *slots;
    _Atomic(uint64_t) tail __attribute__((aligned(UCS_DQ_LINE)));
} ucs_dq_ring_t;

enum {
    UCS_DQ_RING_SHARED,
    UCS_DQ_RING_ALONE,
    UCS_DQ_RING_LAST
};

struct ucs_dq {
    ucs_dq_ring_t rings[UCS_DQ_RING_LAST];
    unsigned      turn; /* the consumer's: the ring to look at first */
};

static_assert(UCS_OWN_ALIGN % UCS_DQ_LINE == 0, "rings are aligned");
static_assert(sizeof(ucs_dq_slot_t) == UCS_DQ_LINE,
              "a push touches one cache line of the ring");

size_t ucs_dq_bytes(unsigned length)
{
    return sizeof(struct ucs_dq) +
           UCS_DQ_RING_LAST * (size_t)length * sizeof(ucs_dq_slot_t);
}

ucs_status_t ucs_dq_create(unsigned length, ucs_dq_h *dq_p)
{
    ucs_dq_slot_t *slots;
    struct ucs_dq *dq;
    unsigned i;

    if ((length < 2) || (length & (length - 1))) {
        return UCS_ERR_INVALID_PARAM;
    }

    /* Zeroed by the kernel if it is long, and so not touched here */
    dq = ucs_own_alloc(ucs_dq_bytes(length));
    if (dq == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    slots = (ucs_dq_slot_t*)(dq + 1);
    for (i = 0; i < UCS_DQ_RING_LAST; ++i) {
        dq->rings[i].mask  = length - 1;
        dq->rings[i].slots = slots + (size_t)i * length;
    }

    *dq_p = dq;
    return UCS_OK;
}

void ucs_dq_destroy(ucs_dq_h dq)
{
    ucs_own_free(dq);
}

static inline ucs_dq_slot_t *ucs_dq_slot(const ucs_dq_ring_t *ring,
                                         uint64_t position)
{
    return &ring->slots[position & ring->mask];
}

static inline uint64_t ucs_dq_lap(const ucs_dq_ring_t *ring, uint64_t position)
{
    return position & ~ring->mask;
}

static inline void ucs_dq_fill(const ucs_dq_ring_t *ring, ucs_dq_slot_t *slot,
                               uint64_t position, const void *record)
{
    memcpy(slot->record, record, sizeof(slot->record));
    /* release [D-FILL]: pairs with the acquire in ucs_dq_ring_pop() */
    ucs_store_release(&slot->ticket, ucs_dq_lap(ring, position) + 1);
}

int ucs_dq_push(ucs_dq_h dq, const void *record)
{
    ucs_dq_ring_t *ring = &dq->rings[UCS_DQ_RING_SHARED];
    uint64_t head       = ucs_load_relaxed(&ring->head);
    ucs_dq_slot_t *slot;
    int64_t ahead;

    for (;;) {
        slot = ucs_dq_slot(ring, head);
        /* acquire [D-FREE]: pairs with the release in ucs_dq_ring_pop(), so
         * that the consumer has read the record before it is overwritten */
        ahead = ucs_load_acquire(&slot->ticket) - ucs_dq_lap(ring, head);
        if (ahead == 0) {
            if (ucs_cas_relaxed(&ring->head, &head, head + 1)) {
                break;
            }
        } else if (ahead < 0) {
            ucs_add_relaxed(&ring->lost, 1);
            return 0;
        } else {
            head = ucs_load_relaxed(&ring->head);
        }
    }

    ucs_dq_fill(ring, slot, head, record);
    return 1;
}

int ucs_dq_push_alone(ucs_dq_h dq, const void *record)
{
    ucs_dq_ring_t *ring = &dq->rings[UCS_DQ_RING_ALONE];
    uint64_t head       = ucs_load_relaxed(&ring->head);
    ucs_dq_slot_t *slot = ucs_dq_slot(ring, head);

    /* acquire [D-FREE]: pairs with the release in ucs_dq_ring_pop() */
    if (ucs_load_acquire(&slot->ticket) != ucs_dq_lap(ring, head)) {
        ucs_store_relaxed(&ring->lost, ucs_load_relaxed(&ring->lost) + 1);
        return 0;
    }

    ucs_store_relaxed(&ring->head, head + 1);
    ucs_dq_fill(ring, slot, head, record);
    return 1;
}

static int ucs_dq_ring_pop(ucs_dq_ring_t *ring, void *record)
{
    uint64_t tail       = ucs_load_relaxed(&ring->tail);
    ucs_dq_slot_t *slot = ucs_dq_slot(ring, tail);

    /* acquire [D-FILL]: pairs with the release in ucs_dq_fill() */
    if (ucs_load_acquire(&slot->ticket) != ucs_dq_lap(ring, tail) + 1) {
        return 0;
    }

    memcpy(record, slot->record, sizeof(slot->record));
    /* release [D-FREE]: pairs with the acquires in the pushes */
    ucs_store_release(&slot->ticket, ucs_dq_lap(ring, tail) + ring->mask + 1);
    ucs_store_relaxed(&ring->tail, tail + 1);
    return 1;
}

int ucs_dq_pop(ucs_dq_h dq, void *record)
{
    unsigned i, ring;

    for (i = 0; i < UCS_DQ_RING_LAST; ++i) {
        ring = (dq->turn + i) % UCS_DQ_RING_LAST;
        if (ucs_dq_ring_pop(&dq->rings[ring], record)) {
            dq->turn = (ring + 1) % UCS_DQ_RING_LAST;
            return 1;
        }
    }
    return 0;
}

uint64_t ucs_dq_lost(ucs_dq_h dq)
{
    return ucs_load_relaxed(&dq->rings[UCS_DQ_RING_SHARED].lost) +
           ucs_load_relaxed(&dq->rings[UCS_DQ_RING_ALONE].lost);
}

static int ucs_dq_ring_is_valid(ucs_dq_ring_t *ring)
{
    uint64_t tail   = ucs_load_relaxed(&ring->tail);
    uint64_t filled = ucs_load_relaxed(&ring->head) - tail;
    uint64_t i, ticket;

    for (i = 0; i <= ring->mask; ++i) {
        ticket = ucs_load_relaxed(&ucs_dq_slot(ring, tail + i)->ticket);
        if (ticket != ucs_dq_lap(ring, tail + i) + (i < filled)) {
            return 0;
        }
    }
    return filled <= ring->mask + 1;
}

int ucs_dq_is_valid(ucs_dq_h dq)
{
    return ucs_dq_ring_is_valid(&dq->rings[UCS_DQ_RING_SHARED]) &&
           ucs_dq_ring_is_valid(&dq->rings[UCS_DQ_RING_ALONE]);
}

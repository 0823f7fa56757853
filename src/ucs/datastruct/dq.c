/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "dq.h"

#include <stdlib.h>
#include <string.h>

#define UCS_DQ_LINE 64

typedef struct ucs_dq_slot {
    _Atomic(uint64_t) ticket;
    char              record[UCS_DQ_RECORD_SIZE];
} __attribute__((aligned(UCS_DQ_LINE))) ucs_dq_slot_t;

struct ucs_dq {
    _Atomic(uint64_t) head __attribute__((aligned(UCS_DQ_LINE)));
    _Atomic(uint64_t) lost;
    _Atomic(uint64_t) tail __attribute__((aligned(UCS_DQ_LINE)));
    uint64_t          mask;
    ucs_dq_slot_t     slots[];
};

static_assert(sizeof(ucs_dq_slot_t) == UCS_DQ_LINE,
              "a push touches one cache line of the ring");

ucs_status_t ucs_dq_create(unsigned length, ucs_dq_h *dq_p)
{
    struct ucs_dq *dq;
    unsigned i;

    if ((length < 2) || (length & (length - 1))) {
        return UCS_ERR_INVALID_PARAM;
    }

    dq = aligned_alloc(UCS_DQ_LINE,
                       sizeof(*dq) + length * sizeof(dq->slots[0]));
    if (dq == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    atomic_init(&dq->head, 0);
    atomic_init(&dq->tail, 0);
    atomic_init(&dq->lost, 0);
    dq->mask = length - 1;
    for (i = 0; i < length; ++i) {
        atomic_init(&dq->slots[i].ticket, i);
    }

    *dq_p = dq;
    return UCS_OK;
}

void ucs_dq_destroy(ucs_dq_h dq)
{
    free(dq);
}

int ucs_dq_push(ucs_dq_h dq, const void *record)
{
    uint64_t head = ucs_load_relaxed(&dq->head);
    ucs_dq_slot_t *slot;
    uint64_t ticket;

    for (;;) {
        slot = &dq->slots[head & dq->mask];
        /* acquire [D-FREE]: pairs with the release in ucs_dq_pop(), so
         * that the consumer has read the record before it is overwritten */
        ticket = ucs_load_acquire(&slot->ticket);
        if (ticket == head) {
            if (ucs_cas_relaxed(&dq->head, &head, head + 1)) {
                break;
            }
        } else if ((int64_t)(ticket - head) < 0) {
            ucs_add_relaxed(&dq->lost, 1);
            return 0;
        } else {
            head = ucs_load_relaxed(&dq->head);
        }
    }

    memcpy(slot->record, record, sizeof(slot->record));
    /* release [D-FILL]: pairs with the acquire in ucs_dq_pop() */
    ucs_store_release(&slot->ticket, head + 1);
    return 1;
}

int ucs_dq_pop(ucs_dq_h dq, void *record)
{
    uint64_t tail       = ucs_load_relaxed(&dq->tail);
    ucs_dq_slot_t *slot = &dq->slots[tail & dq->mask];

    /* acquire [D-FILL]: pairs with the release in ucs_dq_push() */
    if (ucs_load_acquire(&slot->ticket) != tail + 1) {
        return 0;
    }

    memcpy(record, slot->record, sizeof(slot->record));
    /* release [D-FREE]: pairs with the acquire in ucs_dq_push() */
    ucs_store_release(&slot->ticket, tail + dq->mask + 1);
    ucs_store_relaxed(&dq->tail, tail + 1);
    return 1;
}

uint64_t ucs_dq_lost(ucs_dq_h dq)
{
    return ucs_load_relaxed(&dq->lost);
}

int ucs_dq_is_pending(ucs_dq_h dq)
{
    uint64_t tail = ucs_load_relaxed(&dq->tail);

    return ucs_load_relaxed(&dq->slots[tail & dq->mask].ticket) == tail + 1;
}

int ucs_dq_is_valid(ucs_dq_h dq)
{
    uint64_t tail   = ucs_load_relaxed(&dq->tail);
    uint64_t filled = ucs_load_relaxed(&dq->head) - tail;
    uint64_t i, ticket;

    for (i = 0; i <= dq->mask; ++i) {
        ticket = ucs_load_relaxed(&dq->slots[(tail + i) & dq->mask].ticket);
        if (ticket != tail + i + (i < filled)) {
            return 0;
        }
    }
    return filled <= dq->mask + 1;
}

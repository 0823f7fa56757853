/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "dq.h"

#include <stdlib.h>

#define UCT_HELPER_DQ_LINE 64

typedef struct uct_helper_dq_slot {
    _Atomic(uint64_t) ticket;
    uct_helper_use_t use;
} __attribute__((aligned(UCT_HELPER_DQ_LINE))) uct_helper_dq_slot_t;

struct uct_helper_dq {
    _Atomic(uint64_t)     head __attribute__((aligned(UCT_HELPER_DQ_LINE)));
    _Atomic(uint64_t)     lost;
    _Atomic(uint64_t)     tail __attribute__((aligned(UCT_HELPER_DQ_LINE)));
    uint64_t             mask;
    uct_helper_dq_slot_t slots[];
};

ucs_status_t uct_helper_dq_create(unsigned length, uct_helper_dq_h *dq_p)
{
    struct uct_helper_dq *dq;
    unsigned i;

    if ((length < 2) || (length & (length - 1))) {
        return UCS_ERR_INVALID_PARAM;
    }

    dq = aligned_alloc(UCT_HELPER_DQ_LINE,
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

void uct_helper_dq_destroy(uct_helper_dq_h dq)
{
    free(dq);
}

int uct_helper_dq_push(uct_helper_dq_h dq, const uct_helper_use_t *use)
{
    uint64_t head = ucs_load_relaxed(&dq->head);
    uct_helper_dq_slot_t *slot;
    uint64_t ticket;

    for (;;) {
        slot = &dq->slots[head & dq->mask];
        /* acquire [D-FREE]: pairs with the release in uct_helper_dq_pop(), so
         * that the consumer has read the entry before it is overwritten */
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

    slot->use = *use;
    /* release [D-FILL]: pairs with the acquire in uct_helper_dq_pop() */
    ucs_store_release(&slot->ticket, head + 1);
    return 1;
}

int uct_helper_dq_pop(uct_helper_dq_h dq, uct_helper_use_t *use)
{
    uint64_t tail              = ucs_load_relaxed(&dq->tail);
    uct_helper_dq_slot_t *slot = &dq->slots[tail & dq->mask];

    /* acquire [D-FILL]: pairs with the release in uct_helper_dq_push() */
    if (ucs_load_acquire(&slot->ticket) != tail + 1) {
        return 0;
    }

    *use = slot->use;
    /* release [D-FREE]: pairs with the acquire in uct_helper_dq_push() */
    ucs_store_release(&slot->ticket, tail + dq->mask + 1);
    ucs_store_relaxed(&dq->tail, tail + 1);
    return 1;
}

uint64_t uct_helper_dq_lost(uct_helper_dq_h dq)
{
    return ucs_load_relaxed(&dq->lost);
}

int uct_helper_dq_is_pending(uct_helper_dq_h dq)
{
    uint64_t tail = ucs_load_relaxed(&dq->tail);

    return ucs_load_relaxed(&dq->slots[tail & dq->mask].ticket) == tail + 1;
}

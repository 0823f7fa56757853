/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pgas.h"

#include <ucp/firehose/buckets.h>

#include <stdlib.h>
#include <string.h>

/*
 * The two ways that the paper compares with. For each put the target is asked for
 * a key and pins its page; then the data move. With unpin it is told when they are
 * there, and lets the page go; without, it never does ("cheating" where that is more
 * than may be pinned). Local pages stay pinned, as in the paper. Many puts are under
 * way at a time.
 */

enum { RENDEZVOUS_WINDOW = 64, RENDEZVOUS_MANY = 1 << 22 };

typedef enum rendezvous_kind { ASK, ANSWER, RELEASE } rendezvous_kind_t;

typedef struct rendezvous_header {
    uint32_t kind;
    uint32_t slot;
    uint64_t value; /* a page, or the target's bucket */
} rendezvous_header_t;

/* A put that is under way */
typedef struct rendezvous_slot {
    struct rendezvous     *owner;
    unsigned              node;
    int                   is_busy;
    const char            *local;
    uint64_t              remote;
    size_t                length;
    uint64_t              bucket; /* at the target */
    ucp_firehose_bucket_t *pinned;
    ucp_wire_key_t        *key;
} rendezvous_slot_t;

typedef struct rendezvous {
    pgas_t                 *pgas;
    int                    unpins;
    unsigned               busy;
    ucp_firehose_buckets_t lent, own;
    ucp_wire_handlers_t    handlers;
    rendezvous_slot_t      slots[RENDEZVOUS_WINDOW];
} rendezvous_t;

static ucs_status_t
rendezvous_pin(void *arg, uint64_t address, size_t length, void **pin_p)
{
    rendezvous_t *self = arg;

    return ucp_wire_mem_reg(self->pgas->wire, (void*)address, length,
                            (ucp_wire_mem_t**)pin_p);
}

static void rendezvous_unpin(void *arg, void *pin)
{
    rendezvous_t *self = arg;

    ucp_wire_mem_dereg(self->pgas->wire, pin);
}

static void rendezvous_check(rendezvous_t *self, ucs_status_t status)
{
    if (UCS_STATUS_IS_ERR(status)) {
        pgas_die(self->pgas, "rendezvous", status);
    }
}

static void
rendezvous_send(rendezvous_t *self, unsigned node, rendezvous_kind_t kind,
                uint32_t slot, uint64_t value, const void *key, size_t length)
{
    rendezvous_header_t header = {kind, slot, value};

    rendezvous_check(self, ucp_wire_am_send(self->pgas->wire, node, &header,
                                            sizeof(header), key, length, NULL,
                                            NULL));
}

static void rendezvous_over(rendezvous_slot_t *slot)
{
    slot->is_busy = 0;
    --slot->owner->busy;
}

static void rendezvous_landed(void *arg, ucs_status_t status)
{
    rendezvous_slot_t *slot = arg;

    rendezvous_check(slot->owner, status);
    rendezvous_send(slot->owner, slot->node, RELEASE, 0, slot->bucket, NULL, 0);
    rendezvous_over(slot);
}

static void rendezvous_moved(void *arg, ucs_status_t status)
{
    rendezvous_slot_t *slot = arg;
    rendezvous_t *self      = slot->owner;

    rendezvous_check(self, status);
    ucp_firehose_buckets_put(&self->own, slot->pinned, UCP_FIREHOSE_LOCAL);
    ucp_wire_key_release(self->pgas->wire, slot->key);
    if (!self->unpins) {
        rendezvous_over(slot);
        return;
    }
    status = ucp_wire_flush(self->pgas->wire, slot->node, rendezvous_landed,
                            slot);
    if (status != UCS_INPROGRESS) {
        rendezvous_landed(slot, status);
    }
}

static void rendezvous_answered(rendezvous_t *self, rendezvous_slot_t *slot,
                                uint64_t bucket, const void *key, size_t length)
{
    ucs_status_t status;

    slot->bucket = bucket;
    rendezvous_check(self, ucp_firehose_buckets_get(
                                   &self->own,
                                   (uintptr_t)slot->local & -PGAS_PAGE,
                                   UCP_FIREHOSE_LOCAL, &slot->pinned));
    rendezvous_check(self, ucp_wire_key_unpack(self->pgas->wire, slot->node,
                                               key, length, &slot->key));
    status = ucp_wire_move(self->pgas->wire, slot->node, 1, slot->pinned->pin,
                           (void*)slot->local, slot->length, slot->remote, slot->key,
                           rendezvous_moved, slot);
    if (status != UCS_INPROGRESS) {
        rendezvous_moved(slot, status);
    }
}

static void rendezvous_asked(rendezvous_t *self, unsigned node, uint32_t slot,
                             uint64_t page)
{
    ucp_firehose_bucket_t *bucket;
    const void *key;
    size_t length;

    rendezvous_check(self, ucp_firehose_buckets_get(&self->lent, page,
                                                    UCP_FIREHOSE_REMOTE,
                                                    &bucket));
    rendezvous_check(self, ucp_wire_mem_pack(self->pgas->wire, bucket->pin,
                                             &key, &length));
    rendezvous_send(self, node, ANSWER, slot, (uintptr_t)bucket, key, length);
    if (!self->unpins) {
        ucp_firehose_buckets_put(&self->lent, bucket, UCP_FIREHOSE_REMOTE);
    }
}

static void rendezvous_heard(void *arg, unsigned node, const void *bytes,
                             size_t header_length, const void *payload,
                             size_t length)
{
    rendezvous_t *self = arg;
    rendezvous_header_t header;

    memcpy(&header, bytes, sizeof(header));
    switch (header.kind) {
    case ASK:
        rendezvous_asked(self, node, header.slot, header.value);
        break;
    case ANSWER:
        rendezvous_answered(self, &self->slots[header.slot], header.value,
                            payload, length);
        break;
    default:
        ucp_firehose_buckets_put(&self->lent, (void*)(uintptr_t)header.value,
                                 UCP_FIREHOSE_REMOTE);
        break;
    }
}

static void rendezvous_failed(void *arg, unsigned node, ucs_status_t status)
{
    /* Processes come and go in step; what is left shows elsewhere */
}

rendezvous_t *rendezvous_create(pgas_t *pgas)
{
    rendezvous_t *self         = calloc(1, sizeof(*self));
    ucp_firehose_pin_ops_t ops = {rendezvous_pin, rendezvous_unpin, self};
    size_t keeps;
    unsigned i;

    self->pgas     = pgas;
    self->unpins   = pgas->options->way == PGAS_RENDEZVOUS_UNPIN;
    self->handlers = (ucp_wire_handlers_t){rendezvous_heard, rendezvous_failed,
                                           self};
    keeps          = self->unpins ? 0 : RENDEZVOUS_MANY;
    rendezvous_check(self, ucp_firehose_buckets_init(
                                   &self->lent, PGAS_PAGE, RENDEZVOUS_MANY,
                                   keeps, &ops));
    rendezvous_check(self, ucp_firehose_buckets_init(
                                   &self->own, PGAS_PAGE, 0, RENDEZVOUS_MANY,
                                   &ops));
    for (i = 0; i < RENDEZVOUS_WINDOW; ++i) {
        self->slots[i].owner = self;
    }
    return self;
}

const ucp_wire_handlers_t *rendezvous_handlers(rendezvous_t *self)
{
    return &self->handlers;
}

void rendezvous_put(rendezvous_t *self, unsigned node, const void *local,
                    uint64_t remote, size_t length)
{
    unsigned i;

    while (self->busy == RENDEZVOUS_WINDOW) {
        pgas_progress(self->pgas);
    }
    for (i = 0; self->slots[i].is_busy; ++i) {
    }
    ++self->busy;
    self->slots[i].is_busy = 1;
    self->slots[i].node    = node;
    self->slots[i].local   = local;
    self->slots[i].remote  = remote;
    self->slots[i].length  = length;
    rendezvous_send(self, node, ASK, i, remote & -PGAS_PAGE, NULL, 0);
}

void rendezvous_wait(rendezvous_t *self)
{
    while (self->busy > 0) {
        pgas_progress(self->pgas);
    }
}

void rendezvous_destroy(rendezvous_t *self, pgas_result_t *result)
{
    result->pins = self->lent.num_pins + self->own.num_pins;
    ucp_firehose_buckets_cleanup(&self->lent);
    ucp_firehose_buckets_cleanup(&self->own);
    free(self);
}

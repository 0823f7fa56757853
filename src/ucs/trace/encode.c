/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "trace_format.h"

#include <ucs/sys/hash.h>

#include <stdlib.h>
#include <string.h>

struct ucs_trace_encoder {
    uint64_t         time_ns; /* of the event before */
    uint64_t         count;
    ucs_trace_slot_t slots[UCS_TRACE_SLOTS];
};


static uint8_t *ucs_trace_put(uint8_t *p, uint64_t value, unsigned bytes)
{
    for (; bytes > 0; --bytes) {
        *p++    = (uint8_t)value;
        value >>= 8;
    }
    return p;
}

static uint8_t *ucs_trace_put_varint(uint8_t *p, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        *p++ = (uint8_t)(value | 0x80);
    }
    *p++ = (uint8_t)value;
    return p;
}

/* Threads may be a little out of order, so the difference has a sign */
static uint8_t *ucs_trace_put_time(ucs_trace_encoder_h encoder, uint8_t *p,
                                   uint64_t time_ns)
{
    int64_t delta = (int64_t)(time_ns - encoder->time_ns);

    encoder->time_ns = time_ns;
    return ucs_trace_put_varint(p, ((uint64_t)delta << 1) ^
                                           (uint64_t)(delta >> 63));
}

static uint8_t *ucs_trace_put_key(uint8_t *p, unsigned kind, uint64_t slot)
{
    return ucs_trace_put_varint(p, (slot << UCS_TRACE_REC_BITS) | kind);
}

static unsigned ucs_trace_slot_of(const ucs_trace_event_t *event)
{
    uint64_t hash = event->address ^ (event->length * UCS_HASH_FACTOR) ^
                    (event->signature * UCS_HASH_FACTOR_2) ^
                    ((uint64_t)event->access << 40);

    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93ull;
    return (hash >> 40) % UCS_TRACE_SLOTS;
}

static uint8_t *ucs_trace_put_slot(ucs_trace_encoder_h encoder, uint8_t *p,
                                   const ucs_trace_event_t *event,
                                   unsigned index)
{
    ucs_trace_slot_t *slot = &encoder->slots[index];

    if ((slot->address == event->address) && (slot->length == event->length) &&
        (slot->signature == event->signature) &&
        (slot->access == event->access)) {
        return p;
    }

    slot->address   = event->address;
    slot->length    = event->length;
    slot->signature = event->signature;
    slot->access    = event->access;
    p = ucs_trace_put_key(p, UCS_TRACE_REC_DEFINE, index);
    p = ucs_trace_put_varint(p, slot->address);
    p = ucs_trace_put_varint(p, slot->length);
    p = ucs_trace_put_varint(p, slot->access);
    return ucs_trace_put(p, slot->signature, 8);
}

ucs_status_t ucs_trace_encoder_create(ucs_trace_encoder_h *encoder_p)
{
    *encoder_p = calloc(1, sizeof(**encoder_p));
    return (*encoder_p == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void ucs_trace_encoder_destroy(ucs_trace_encoder_h encoder)
{
    free(encoder);
}

size_t ucs_trace_encode_begin(ucs_trace_encoder_h encoder,
                              const ucs_trace_header_t *header, void *buffer)
{
    uint8_t *p = buffer;
    size_t length;

    encoder->time_ns = header->start_ns;
    memset(p, 0, UCS_TRACE_HEADER_SIZE);
    memcpy(p + UCS_TRACE_AT_MAGIC, UCS_TRACE_MAGIC, UCS_TRACE_MAGIC_SIZE);
    ucs_trace_put(p + UCS_TRACE_AT_MARK, UCS_TRACE_MARK, 4);
    ucs_trace_put(p + UCS_TRACE_AT_VERSION, UCS_TRACE_VERSION, 2);
    ucs_trace_put(p + UCS_TRACE_AT_SIZE, UCS_TRACE_HEADER_SIZE, 2);
    ucs_trace_put(p + UCS_TRACE_AT_PAGE_SIZE, header->page_size, 4);
    ucs_trace_put(p + UCS_TRACE_AT_RANK, (uint32_t)header->rank, 4);
    ucs_trace_put(p + UCS_TRACE_AT_PID, header->pid, 4);
    ucs_trace_put(p + UCS_TRACE_AT_START, header->start_ns, 8);
    length = strnlen(header->host, UCS_TRACE_HOST_MAX - 1);
    memcpy(p + UCS_TRACE_AT_HOST, header->host, length);
    return UCS_TRACE_HEADER_SIZE;
}

size_t ucs_trace_encode(ucs_trace_encoder_h encoder,
                        const ucs_trace_event_t *event, void *buffer)
{
    uint8_t *p = buffer;
    unsigned index;

    switch (event->kind) {
    case UCS_TRACE_USE:
    case UCS_TRACE_RELEASE:
        ++encoder->count;
        index = ucs_trace_slot_of(event);
        p     = ucs_trace_put_slot(encoder, p, event, index);
        p     = ucs_trace_put_key(p, (event->kind == UCS_TRACE_USE) ?
                                             UCS_TRACE_REC_USE :
                                             UCS_TRACE_REC_RELEASE, index);
        p     = ucs_trace_put_time(encoder, p, event->time_ns);
        break;
    case UCS_TRACE_UNMAP:
        ++encoder->count;
        p = ucs_trace_put_key(p, UCS_TRACE_REC_UNMAP, 0);
        p = ucs_trace_put_time(encoder, p, event->time_ns);
        p = ucs_trace_put_varint(p, event->address);
        p = ucs_trace_put_varint(p, event->length);
        break;
    case UCS_TRACE_LOST:
        p = ucs_trace_put_key(p, UCS_TRACE_REC_LOST, 0);
        p = ucs_trace_put_time(encoder, p, event->time_ns);
        p = ucs_trace_put_varint(p, event->length);
        break;
    }
    return (size_t)(p - (uint8_t*)buffer);
}

size_t ucs_trace_encode_end(ucs_trace_encoder_h encoder, void *buffer)
{
    uint8_t *p = ucs_trace_put_key(buffer, UCS_TRACE_REC_END, 0);

    return (size_t)(ucs_trace_put_varint(p, encoder->count) -
                    (uint8_t*)buffer);
}

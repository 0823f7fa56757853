/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "trace_format.h"

#include <ucs/sys/hash.h>

#include <stdlib.h>
#include <string.h>

struct ucs_trace_encoder {
    uint64_t          time_ns; /* of the event before */
    uint64_t          count;
    uint32_t          id;      /* the latest of an operation */
    ucs_trace_event_t slots[UCS_TRACE_SLOTS];
    ucs_trace_event_t said[UCS_TRACE_SLOTS]; /* of operations */
};

static uint8_t *ucs_trace_put(uint8_t *p, uint64_t value, unsigned bytes)
{
    for (; bytes > 0; --bytes) {
        *p++    = (uint8_t)value;
        value >>= 8;
    }
    return p;
}

static void ucs_trace_put_at(uint8_t *header, ucs_trace_place_t place,
                             uint64_t value)
{
    ucs_trace_put(header + place.at, value, place.bytes);
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

static uint8_t *ucs_trace_put_id(ucs_trace_encoder_h encoder, uint8_t *p,
                                 uint32_t id)
{
    int64_t delta = (int64_t)id - encoder->id;

    if (id == 0) {
        return ucs_trace_put_varint(p, 0);
    }
    encoder->id = id;
    return ucs_trace_put_varint(p, 1 + (((uint64_t)delta << 1) ^
                                        (uint64_t)(delta >> 63)));
}

static uint8_t *ucs_trace_put_record(ucs_trace_encoder_h encoder, uint8_t *p,
                                     unsigned kind, uint64_t slot,
                                     const ucs_trace_event_t *event)
{
    const uint8_t *operand = ucs_trace_operands[kind];

    p = ucs_trace_put_varint(p, (slot << UCS_TRACE_REC_BITS) | kind);
    for (; *operand != UCS_TRACE_NOTHING; ++operand) {
        switch (*operand) {
        case UCS_TRACE_TIME:
            p = ucs_trace_put_time(encoder, p, event->time_ns);
            break;
        case UCS_TRACE_ADDRESS:
            p = ucs_trace_put_varint(p, event->address);
            break;
        case UCS_TRACE_LENGTH:
        case UCS_TRACE_COUNT:
        case UCS_TRACE_EXTENT:
            p = ucs_trace_put_varint(p, event->length);
            break;
        case UCS_TRACE_ACCESS:
            p = ucs_trace_put_varint(p, event->access);
            break;
        case UCS_TRACE_SIGNATURE:
            p = ucs_trace_put(p, event->signature, sizeof(event->signature));
            break;
        case UCS_TRACE_LABEL:
            p = ucs_trace_put_varint(p, (uint32_t)event->signature);
            break;
        case UCS_TRACE_ID:
            p = ucs_trace_put_id(encoder, p, event->id);
            break;
        }
    }
    return p;
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

/* What is in the slot already need not be said again */
static int ucs_trace_is_known(const ucs_trace_event_t *slot,
                              const ucs_trace_event_t *event)
{
    return (slot->address == event->address) &&
           (slot->length == event->length) &&
           (slot->signature == event->signature) &&
           (slot->access == event->access);
}

/* @return Behind the definition of the event's slot, if it has one and it was
 * not defined so */
static uint8_t *ucs_trace_put_slot(ucs_trace_encoder_h encoder, uint8_t *p,
                                   const ucs_trace_event_t *event,
                                   unsigned *slot_p)
{
    int is_said              = (event->kind == UCS_TRACE_OPERATION);
    ucs_trace_event_t *slots = is_said ? encoder->said : encoder->slots;

    if (!is_said && (event->kind != UCS_TRACE_USE) &&
        (event->kind != UCS_TRACE_RELEASE)) {
        return p;
    }
    *slot_p = ucs_trace_slot_of(event);
    if (!ucs_trace_is_known(&slots[*slot_p], event)) {
        slots[*slot_p] = *event;
        p = ucs_trace_put_record(encoder, p,
                                 is_said ? UCS_TRACE_REC_SAY :
                                           UCS_TRACE_REC_DEFINE,
                                 *slot_p, event);
    }
    return p;
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
    ucs_trace_put_at(p, UCS_TRACE_AT_MARK, UCS_TRACE_MARK);
    ucs_trace_put_at(p, UCS_TRACE_AT_VERSION, UCS_TRACE_VERSION);
    ucs_trace_put_at(p, UCS_TRACE_AT_SIZE, UCS_TRACE_HEADER_SIZE);
    ucs_trace_put_at(p, UCS_TRACE_AT_PAGE_SIZE, header->page_size);
    ucs_trace_put_at(p, UCS_TRACE_AT_RANK, (uint32_t)header->rank);
    ucs_trace_put_at(p, UCS_TRACE_AT_PID, header->pid);
    ucs_trace_put_at(p, UCS_TRACE_AT_START, header->start_ns);
    length = strnlen(header->host, UCS_TRACE_HOST_MAX - 1);
    memcpy(p + UCS_TRACE_AT_HOST, header->host, length);
    return UCS_TRACE_HEADER_SIZE;
}

size_t ucs_trace_encode(ucs_trace_encoder_h encoder,
                        const ucs_trace_event_t *event, void *buffer)
{
    unsigned slot = 0;
    uint8_t *p    = ucs_trace_put_slot(encoder, buffer, event, &slot);

    encoder->count += (event->kind != UCS_TRACE_LOST);
    p = ucs_trace_put_record(encoder, p, ucs_trace_record_of(event->kind), slot,
                             event);
    return (size_t)(p - (uint8_t*)buffer);
}

size_t ucs_trace_encode_end(ucs_trace_encoder_h encoder, void *buffer)
{
    const ucs_trace_event_t end = {.length = encoder->count};
    uint8_t *p = ucs_trace_put_record(encoder, buffer, UCS_TRACE_REC_END, 0,
                                      &end);

    return (size_t)(p - (uint8_t*)buffer);
}

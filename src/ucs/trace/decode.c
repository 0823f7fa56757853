/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "trace_format.h"

#include <stdlib.h>
#include <string.h>

#define UCS_TRACE_VARINT_MAX 10 /* bytes */

/* No event takes less than this, so a buffer bounds what is allocated */
#define UCS_TRACE_EVENT_MIN 2

typedef struct ucs_trace_decoder {
    const uint8_t     *begin;
    const uint8_t     *end;
    const uint8_t     *p;
    const uint8_t     *record; /* where the present one begins */
    uint64_t          time_ns;
    uint64_t          counted; /* events that END counts */
    size_t            capacity;
    ucs_trace_t       trace;
    unsigned          records; /* that this version has */
    uint32_t          id;      /* the latest of an operation */
    ucs_trace_event_t slots[UCS_TRACE_SLOTS];
    ucs_trace_event_t said[UCS_TRACE_SLOTS]; /* of operations */
    ucs_trace_error_t *error;
} ucs_trace_decoder_t;

static ucs_status_t ucs_trace_fail(ucs_trace_decoder_t *decoder,
                                   const uint8_t *at, ucs_status_t status,
                                   const char *text)
{
    decoder->error->offset = (size_t)(at - decoder->begin);
    decoder->error->text   = text;
    return status;
}

static ucs_status_t ucs_trace_invalid(ucs_trace_decoder_t *decoder,
                                      const char *text)
{
    return ucs_trace_fail(decoder, decoder->record, UCS_ERR_INVALID_PARAM,
                          text);
}

static uint64_t ucs_trace_get(const uint8_t *p, unsigned bytes)
{
    uint64_t value = 0;

    while (bytes-- > 0) {
        value = (value << 8) | p[bytes];
    }
    return value;
}

static uint64_t ucs_trace_get_at(const ucs_trace_decoder_t *decoder,
                                 ucs_trace_place_t place)
{
    return ucs_trace_get(decoder->begin + place.at, place.bytes);
}

static ucs_status_t ucs_trace_get_varint(ucs_trace_decoder_t *decoder,
                                         uint64_t *value_p)
{
    uint64_t value = 0;
    unsigned i;
    uint8_t byte;

    for (i = 0; i < UCS_TRACE_VARINT_MAX; ++i) {
        if (decoder->p == decoder->end) {
            return UCS_ERR_MESSAGE_TRUNCATED;
        }
        byte   = *decoder->p++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            if ((i == UCS_TRACE_VARINT_MAX - 1) && (byte > 1)) {
                break;
            }
            *value_p = value;
            return UCS_OK;
        }
    }
    return ucs_trace_invalid(decoder, "a number has more than 64 bits");
}

static ucs_status_t ucs_trace_get_signature(ucs_trace_decoder_t *decoder,
                                            uint64_t *signature_p)
{
    if (decoder->end - decoder->p < (ptrdiff_t)sizeof(*signature_p)) {
        return UCS_ERR_MESSAGE_TRUNCATED;
    }
    *signature_p = ucs_trace_get(decoder->p, sizeof(*signature_p));
    decoder->p  += sizeof(*signature_p);
    return UCS_OK;
}

/* @return Nonzero if @a value is what the encoder makes of a number */
static int ucs_trace_get_id(ucs_trace_decoder_t *decoder, uint64_t value,
                            uint32_t *id_p)
{
    uint64_t id;

    *id_p = 0;
    if (value == 0) {
        return 1;
    }
    --value;
    id = decoder->id + ((value >> 1) ^ -(value & 1));
    if ((id == 0) || (id > UINT32_MAX)) {
        return 0;
    }
    decoder->id = *id_p = (uint32_t)id;
    return 1;
}

/* A range lies within the address space, and has a byte unless it may be
 * empty */
static ucs_status_t ucs_trace_get_range(ucs_trace_decoder_t *decoder,
                                        int may_be_empty, uint64_t length,
                                        ucs_trace_event_t *event)
{
    if ((length > UINT64_MAX - event->address) ||
        (!may_be_empty && (length == 0))) {
        return ucs_trace_invalid(
                decoder,
                may_be_empty ? "a range ends beyond the address space" :
                               "a range is empty or ends beyond the address "
                               "space");
    }
    event->length = length;
    return UCS_OK;
}

static ucs_status_t ucs_trace_get_operand(ucs_trace_decoder_t *decoder,
                                          unsigned operand,
                                          ucs_trace_event_t *event)
{
    uint64_t value = 0;
    ucs_status_t status;

    status = (operand == UCS_TRACE_SIGNATURE) ?
                     ucs_trace_get_signature(decoder, &value) :
                     ucs_trace_get_varint(decoder, &value);
    if (status != UCS_OK) {
        return status;
    }

    switch (operand) {
    case UCS_TRACE_TIME:
        decoder->time_ns += (value >> 1) ^ -(value & 1);
        event->time_ns    = decoder->time_ns;
        break;
    case UCS_TRACE_ADDRESS:
        event->address = value;
        break;
    case UCS_TRACE_LENGTH:
    case UCS_TRACE_EXTENT:
        return ucs_trace_get_range(decoder, operand == UCS_TRACE_EXTENT, value,
                                   event);
    case UCS_TRACE_COUNT:
        event->length = value;
        break;
    case UCS_TRACE_ACCESS:
    case UCS_TRACE_LABEL:
        if (value > UINT32_MAX) {
            return ucs_trace_invalid(decoder, "access flags or a label are out "
                                              "of range");
        }
        if (operand == UCS_TRACE_ACCESS) {
            event->access = value;
        } else {
            event->signature = value;
        }
        break;
    case UCS_TRACE_ID:
        if (!ucs_trace_get_id(decoder, value, &event->id)) {
            return ucs_trace_invalid(decoder, "an operation's number is out of "
                                              "range");
        }
        break;
    case UCS_TRACE_SIGNATURE:
        event->signature = value;
        break;
    }
    return UCS_OK;
}

static ucs_status_t ucs_trace_get_operands(ucs_trace_decoder_t *decoder,
                                           unsigned kind,
                                           ucs_trace_event_t *event)
{
    const uint8_t *operand = ucs_trace_operands[kind];
    ucs_status_t status    = UCS_OK;

    for (; (*operand != UCS_TRACE_NOTHING) && (status == UCS_OK); ++operand) {
        status = ucs_trace_get_operand(decoder, *operand, event);
    }
    return status;
}

static int ucs_trace_begins(const void *buffer, size_t length)
{
    return !memcmp(buffer, UCS_TRACE_MAGIC,
                   (length < UCS_TRACE_MAGIC_SIZE) ? length :
                                                     UCS_TRACE_MAGIC_SIZE);
}

/* What is there is a trace, and all of its header is there */
static ucs_status_t ucs_trace_check_begin(ucs_trace_decoder_t *decoder)
{
    const uint8_t *p = decoder->begin;
    size_t length    = (size_t)(decoder->end - p);

    if ((length == 0) || !ucs_trace_begins(p, length)) {
        return ucs_trace_fail(decoder, p, UCS_ERR_INVALID_PARAM,
                              "this is no trace of the helper");
    }
    if (length < UCS_TRACE_HEADER_SIZE) {
        return ucs_trace_fail(decoder, decoder->end, UCS_ERR_MESSAGE_TRUNCATED,
                              "the header is cut short");
    }
    return UCS_OK;
}

static ucs_status_t ucs_trace_get_version(ucs_trace_decoder_t *decoder)
{
    const uint8_t *p = decoder->begin;
    uint32_t mark, version;

    mark = ucs_trace_get_at(decoder, UCS_TRACE_AT_MARK);
    if (mark != UCS_TRACE_MARK) {
        return ucs_trace_fail(decoder, p + UCS_TRACE_AT_MARK.at,
                              UCS_ERR_UNSUPPORTED,
                              (mark == __builtin_bswap32(UCS_TRACE_MARK)) ?
                              "the trace is in the other byte order" :
                              "the byte order mark is damaged");
    }
    version = ucs_trace_get_at(decoder, UCS_TRACE_AT_VERSION);
    if ((version < UCS_TRACE_VERSION_MIN) || (version > UCS_TRACE_VERSION) ||
        (ucs_trace_get_at(decoder, UCS_TRACE_AT_SIZE) !=
         UCS_TRACE_HEADER_SIZE)) {
        return ucs_trace_fail(decoder, p + UCS_TRACE_AT_VERSION.at,
                              UCS_ERR_UNSUPPORTED,
                              "this version of the format is not known");
    }
    decoder->records = (version == UCS_TRACE_VERSION) ? UCS_TRACE_REC_LAST :
                                                       UCS_TRACE_REC_OPERATION;
    return UCS_OK;
}

static ucs_status_t
ucs_trace_get_page_size(ucs_trace_decoder_t *decoder, uint32_t *page_size_p)
{
    uint32_t page = ucs_trace_get_at(decoder, UCS_TRACE_AT_PAGE_SIZE);

    if ((page < UCS_TRACE_PAGE_MIN) || (page > UCS_TRACE_PAGE_MAX) ||
        (page & (page - 1))) {
        return ucs_trace_fail(decoder,
                              decoder->begin + UCS_TRACE_AT_PAGE_SIZE.at,
                              UCS_ERR_INVALID_PARAM,
                              "the page size is no power of two from 512 to "
                              "2^30");
    }

    *page_size_p = page;
    return UCS_OK;
}

static ucs_status_t ucs_trace_get_header(ucs_trace_decoder_t *decoder)
{
    ucs_trace_header_t *header = &decoder->trace.header;
    const uint8_t *p           = decoder->begin;
    ucs_status_t status;

    status = ucs_trace_check_begin(decoder);
    if (status != UCS_OK) {
        return status;
    }

    status = ucs_trace_get_version(decoder);
    if (status != UCS_OK) {
        return status;
    }

    status = ucs_trace_get_page_size(decoder, &header->page_size);
    if (status != UCS_OK) {
        return status;
    }

    header->rank      = (int32_t)ucs_trace_get_at(decoder, UCS_TRACE_AT_RANK);
    header->pid       = ucs_trace_get_at(decoder, UCS_TRACE_AT_PID);
    header->start_ns  = ucs_trace_get_at(decoder, UCS_TRACE_AT_START);
    memcpy(header->host, p + UCS_TRACE_AT_HOST, UCS_TRACE_HOST_MAX);
    header->host[UCS_TRACE_HOST_MAX - 1] = '\0';
    decoder->time_ns  = header->start_ns;
    decoder->p        = p + UCS_TRACE_HEADER_SIZE;
    return UCS_OK;
}

static ucs_status_t ucs_trace_add(ucs_trace_decoder_t *decoder,
                                  const ucs_trace_event_t *event)
{
    ucs_trace_event_t *events;
    size_t capacity;

    if (decoder->trace.count == decoder->capacity) {
        capacity = (decoder->capacity > 0) ?
                           2 * decoder->capacity :
                           1 + (size_t)(decoder->end - decoder->begin) /
                                           (4 * UCS_TRACE_EVENT_MIN);
        events   = realloc(decoder->trace.events, capacity * sizeof(*events));
        if (events == NULL) {
            return ucs_trace_fail(decoder, decoder->record, UCS_ERR_NO_MEMORY,
                                  "out of memory");
        }
        decoder->trace.events = events;
        decoder->capacity     = capacity;
    }
    decoder->trace.events[decoder->trace.count++] = *event;
    return UCS_OK;
}

/* A record counts once it is whole */
static ucs_status_t ucs_trace_get_define(ucs_trace_decoder_t *decoder,
                                         unsigned kind, uint64_t slot_at)
{
    ucs_trace_event_t *slot   = (kind == UCS_TRACE_REC_DEFINE) ?
                                        &decoder->slots[slot_at] :
                                        &decoder->said[slot_at];
    ucs_trace_event_t defined = {};
    ucs_status_t status;

    status = ucs_trace_get_operands(decoder, kind, &defined);
    if (status == UCS_OK) {
        *slot = defined;
    }
    return status;
}

static ucs_status_t ucs_trace_get_event(ucs_trace_decoder_t *decoder,
                                        ucs_trace_kind_t kind,
                                        const ucs_trace_event_t *slot)
{
    ucs_trace_event_t event = {};
    ucs_status_t status;

    if ((kind == UCS_TRACE_USE) || (kind == UCS_TRACE_RELEASE)) {
        if (slot->length == 0) {
            return ucs_trace_invalid(decoder, "a use refers to a slot that is "
                                              "not defined");
        }
        event = *slot;
    } else if (kind == UCS_TRACE_OPERATION) {
        event = *slot;
    }
    event.kind = kind;
    status     = ucs_trace_get_operands(decoder, ucs_trace_record_of(kind),
                                        &event);
    if (status != UCS_OK) {
        return status;
    }
    decoder->counted += (kind != UCS_TRACE_LOST);
    return ucs_trace_add(decoder, &event);
}

static ucs_status_t ucs_trace_get_end(ucs_trace_decoder_t *decoder)
{
    ucs_trace_event_t end = {};
    ucs_status_t status;

    status = ucs_trace_get_operands(decoder, UCS_TRACE_REC_END, &end);
    if (status != UCS_OK) {
        return status;
    }
    if (end.length != decoder->counted) {
        return ucs_trace_invalid(decoder, "the end mark counts other events "
                                          "than there are");
    }
    if (decoder->p != decoder->end) {
        return ucs_trace_fail(decoder, decoder->p, UCS_ERR_INVALID_PARAM,
                              "there are bytes after the end mark");
    }
    return UCS_OK;
}

/* @return UCS_INPROGRESS until the end mark; UCS_ERR_MESSAGE_TRUNCATED if the
 * bytes end before */
static ucs_status_t ucs_trace_get_record(ucs_trace_decoder_t *decoder)
{
    ucs_status_t status;
    uint64_t key = 0;
    unsigned kind;

    decoder->record = decoder->p;
    status          = ucs_trace_get_varint(decoder, &key);
    if (status != UCS_OK) {
        return status;
    }
    kind = key & UCS_TRACE_REC_MASK;
    key  = key >> UCS_TRACE_REC_BITS;
    if ((kind >= decoder->records) || (key >= UCS_TRACE_SLOTS) ||
        ((kind >= UCS_TRACE_REC_UNMAP) && (kind <= UCS_TRACE_REC_END) &&
         (key > 0))) {
        return ucs_trace_invalid(decoder, "this is no record");
    }

    switch (kind) {
    case UCS_TRACE_REC_END:
        return ucs_trace_get_end(decoder);
    case UCS_TRACE_REC_DEFINE:
    case UCS_TRACE_REC_SAY:
        status = ucs_trace_get_define(decoder, kind, key);
        break;
    case UCS_TRACE_REC_OPERATION:
        status = ucs_trace_get_event(decoder, UCS_TRACE_OPERATION,
                                     &decoder->said[key]);
        break;
    default:
        status = ucs_trace_get_event(decoder, kind - UCS_TRACE_REC_USE,
                                     &decoder->slots[key]);
        break;
    }
    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}

/* A process that is killed while it writes may leave a part of a record. A
 * record is taken when it is whole, so all before the missing end is as it
 * would be with it. */
static ucs_status_t ucs_trace_get_records(ucs_trace_decoder_t *decoder)
{
    ucs_status_t status;

    do {
        status = ucs_trace_get_record(decoder);
    } while (status == UCS_INPROGRESS);

    if (status == UCS_ERR_MESSAGE_TRUNCATED) {
        decoder->trace.is_cut = 1;
        decoder->trace.cut    = (size_t)(decoder->end - decoder->record);
        status                = UCS_OK;
    }
    return status;
}

ucs_status_t ucs_trace_decode(const void *buffer, size_t length,
                              ucs_trace_t *trace, ucs_trace_error_t *error)
{
    ucs_trace_decoder_t *decoder;
    ucs_status_t status;

    decoder = calloc(1, sizeof(*decoder));
    if (decoder == NULL) {
        error->offset = 0;
        error->text   = "out of memory";
        return UCS_ERR_NO_MEMORY;
    }

    decoder->begin  = buffer;
    decoder->end    = decoder->begin + length;
    decoder->record = decoder->begin;
    decoder->error  = error;
    status          = ucs_trace_get_header(decoder);
    if (status == UCS_OK) {
        status = ucs_trace_get_records(decoder);
    }

    if (status == UCS_OK) {
        *trace = decoder->trace;
    } else {
        free(decoder->trace.events);
    }
    free(decoder);
    return status;
}

void ucs_trace_cleanup(ucs_trace_t *trace)
{
    free(trace->events);
    trace->events = NULL;
    trace->count  = 0;
}

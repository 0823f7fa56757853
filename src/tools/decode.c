/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "decode.h"
#include "tool.h"

#include <ucs/sys/math.h>
#include <ucs/trace/trace_format.h>

#include <stdlib.h>
#include <string.h>

/* After a fault, of which the first counts, functions go on and read what is there,
 * or zeros. So they are not asked one by one; nothing that was read is kept. */
typedef struct tool_decoder {
    const uint8_t      *begin;
    const uint8_t      *end;
    const uint8_t      *p;
    const uint8_t      *record; /* where the present one begins */
    uint64_t           time_ns;
    uint64_t           counted; /* events that END counts */
    size_t             capacity;
    tool_trace_t       trace;   /* is_cut: the bytes have ended */
    unsigned           records; /* that this version has */
    uint32_t           id;      /* the latest of an operation */
    ucs_trace_event_t  slots[UCS_TRACE_SLOTS];
    ucs_trace_event_t  said[UCS_TRACE_SLOTS]; /* of operations */
    tool_trace_error_t error;   /* its text is NULL while there is none */
} tool_decoder_t;

static int tool_decoder_is_good(const tool_decoder_t *decoder)
{
    return (decoder->error.text == NULL) && !decoder->trace.is_cut;
}

static void tool_decoder_check_at(tool_decoder_t *decoder, size_t offset,
                                  int is_valid, const char *text)
{
    if (!is_valid && tool_decoder_is_good(decoder)) {
        decoder->error = (tool_trace_error_t){offset, text};
    }
}

static void tool_decoder_check(tool_decoder_t *decoder, int is_valid,
                               const char *text)
{
    tool_decoder_check_at(decoder, decoder->record - decoder->begin, is_valid,
                          text);
}

/* --- Numbers -------------------------------------------------------------- */

static uint64_t tool_decode_number(const uint8_t *p, unsigned bytes)
{
    uint64_t value = 0;

    while (bytes-- > 0) {
        value = (value << 8) | p[bytes];
    }
    return value;
}

static uint64_t tool_decode_at(const tool_decoder_t *decoder,
                               ucs_trace_place_t place)
{
    return tool_decode_number(decoder->begin + place.at, place.bytes);
}

static uint64_t tool_decode_bytes(tool_decoder_t *decoder, unsigned bytes)
{
    if (decoder->end - decoder->p < bytes) {
        decoder->trace.is_cut = 1;
        return 0;
    }
    decoder->p += bytes;
    return tool_decode_number(decoder->p - bytes, bytes);
}

static uint64_t tool_decode_varint(tool_decoder_t *decoder)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint64_t byte;

    do {
        byte = tool_decode_bytes(decoder, 1);
        tool_decoder_check(decoder, (shift < 63) || (byte <= 1),
                           "a number has more than 64 bits");
        value |= (byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) && tool_decoder_is_good(decoder));
    return value;
}

static uint64_t tool_decode_difference(uint64_t zigzag)
{
    return (zigzag >> 1) ^ -(zigzag & 1);
}

/* --- Header --------------------------------------------------------------- */

static void tool_decode_version(tool_decoder_t *decoder)
{
    uint32_t mark    = tool_decode_at(decoder, UCS_TRACE_AT_MARK);
    uint32_t version = tool_decode_at(decoder, UCS_TRACE_AT_VERSION);

    tool_decoder_check_at(decoder, UCS_TRACE_AT_MARK.at, mark == UCS_TRACE_MARK,
                          (mark == __builtin_bswap32(UCS_TRACE_MARK)) ?
                          "the trace is in the other byte order" :
                          "the byte order mark is damaged");
    tool_decoder_check_at(decoder, UCS_TRACE_AT_VERSION.at,
                          (version >= UCS_TRACE_VERSION_MIN) &&
                          (version <= UCS_TRACE_VERSION) &&
                          (tool_decode_at(decoder, UCS_TRACE_AT_SIZE) ==
                           UCS_TRACE_HEADER_SIZE),
                          "this version of the format is not known");
    decoder->records = (version == UCS_TRACE_VERSION) ? UCS_TRACE_REC_LAST :
                                                        UCS_TRACE_REC_OPERATION;
}

static void tool_decode_identity(tool_decoder_t *decoder)
{
    ucs_trace_header_t *header = &decoder->trace.header;

    header->page_size = tool_decode_at(decoder, UCS_TRACE_AT_PAGE_SIZE);
    header->rank      = (int32_t)tool_decode_at(decoder, UCS_TRACE_AT_RANK);
    header->pid       = tool_decode_at(decoder, UCS_TRACE_AT_PID);
    header->start_ns  = tool_decode_at(decoder, UCS_TRACE_AT_START);
    memcpy(header->host, decoder->begin + UCS_TRACE_AT_HOST,
           UCS_TRACE_HOST_MAX - 1);
    tool_decoder_check_at(decoder, UCS_TRACE_AT_PAGE_SIZE.at,
                          (header->page_size >= UCS_TRACE_PAGE_MIN) &&
                          (header->page_size <= UCS_TRACE_PAGE_MAX) &&
                          !(header->page_size & (header->page_size - 1)),
                          "the page size is no power of two from 512 to 2^30");
    decoder->time_ns = header->start_ns;
}

static void tool_decode_header(tool_decoder_t *decoder)
{
    size_t length = decoder->end - decoder->begin;

    tool_decoder_check_at(decoder, 0,
                          (length > 0) &&
                          !memcmp(decoder->begin, UCS_TRACE_MAGIC,
                                  ucs_min(length, UCS_TRACE_MAGIC_SIZE)),
                          "this is no trace of the helper");
    tool_decoder_check_at(decoder, length, length >= UCS_TRACE_HEADER_SIZE,
                          "the header is cut short");
    if (tool_decoder_is_good(decoder)) {
        tool_decode_version(decoder);
        tool_decode_identity(decoder);
        decoder->p = decoder->begin + UCS_TRACE_HEADER_SIZE;
    }
}

/* --- Records -------------------------------------------------------------- */

static uint32_t tool_decode_id(tool_decoder_t *decoder, uint64_t value)
{
    uint64_t id;

    if (value == 0) {
        return 0;
    }
    id = decoder->id + tool_decode_difference(value - 1);
    tool_decoder_check(decoder, (id > 0) && (id <= UINT32_MAX),
                       "an operation's number is out of range");
    decoder->id = (uint32_t)id;
    return decoder->id;
}

static void tool_decode_operand(tool_decoder_t *decoder, unsigned operand,
                                ucs_trace_event_t *event)
{
    uint64_t value = (operand == UCS_TRACE_SIGNATURE) ?
                             tool_decode_bytes(decoder, sizeof(value)) :
                             tool_decode_varint(decoder);

    switch (operand) {
    case UCS_TRACE_TIME:
        decoder->time_ns += tool_decode_difference(value);
        event->time_ns    = decoder->time_ns;
        break;
    case UCS_TRACE_ADDRESS:
        event->address = value;
        break;
    case UCS_TRACE_LENGTH:
    case UCS_TRACE_EXTENT:
        tool_decoder_check(decoder, (value > 0) || (operand == UCS_TRACE_EXTENT),
                           "a range is empty");
        tool_decoder_check(decoder, value <= UINT64_MAX - event->address,
                           "a range ends beyond the address space");
        event->length = value;
        break;
    case UCS_TRACE_COUNT:
        event->length = value;
        break;
    case UCS_TRACE_ACCESS:
        tool_decoder_check(decoder, value <= UINT32_MAX,
                           "access flags are out of range");
        event->access = value;
        break;
    case UCS_TRACE_LABEL:
        tool_decoder_check(decoder, value <= UINT32_MAX,
                           "a label is out of range");
        event->signature = value;
        break;
    case UCS_TRACE_ID:
        event->id = tool_decode_id(decoder, value);
        break;
    case UCS_TRACE_SIGNATURE:
        event->signature = value;
        break;
    }
}

static void tool_decode_operands(tool_decoder_t *decoder, unsigned kind,
                                 ucs_trace_event_t *event)
{
    const uint8_t *operand;

    for (operand = ucs_trace_operands[kind]; *operand != UCS_TRACE_NOTHING;
         ++operand) {
        tool_decode_operand(decoder, *operand, event);
    }
}

/* A record counts once it is whole */
static void tool_decode_define(tool_decoder_t *decoder, unsigned kind,
                               ucs_trace_event_t *slot)
{
    ucs_trace_event_t defined = {};

    tool_decode_operands(decoder, kind, &defined);
    if (tool_decoder_is_good(decoder)) {
        *slot = defined;
    }
}

static void tool_decode_event(tool_decoder_t *decoder, ucs_trace_kind_t kind,
                              ucs_trace_event_t event)
{
    tool_trace_t *trace = &decoder->trace;

    event.kind = kind;
    tool_decode_operands(decoder, ucs_trace_record_of(kind), &event);
    if (tool_decoder_is_good(decoder)) {
        decoder->counted += (kind != UCS_TRACE_LOST);
        trace->events     = tool_grow(trace->events, trace->count,
                                      &decoder->capacity, sizeof(event));
        trace->events[trace->count++] = event;
    }
}

static void tool_decode_end(tool_decoder_t *decoder)
{
    ucs_trace_event_t end = {};

    tool_decode_operands(decoder, UCS_TRACE_REC_END, &end);
    tool_decoder_check(decoder, end.length == decoder->counted,
                       "the end mark counts other events than there are");
    tool_decoder_check_at(decoder, decoder->p - decoder->begin,
                          decoder->p == decoder->end,
                          "there are bytes after the end mark");
}

/* @return Its kind */
static unsigned tool_decode_record(tool_decoder_t *decoder)
{
    static const ucs_trace_event_t nothing = {};
    uint64_t key  = tool_decode_varint(decoder);
    unsigned kind = key & UCS_TRACE_REC_MASK;

    key >>= UCS_TRACE_REC_BITS;
    tool_decoder_check(decoder,
                       (kind < decoder->records) && (key < UCS_TRACE_SLOTS) &&
                       ((key == 0) || (kind < UCS_TRACE_REC_UNMAP) ||
                        (kind > UCS_TRACE_REC_END)),
                       "this is no record");
    if (!tool_decoder_is_good(decoder)) {
        return kind;
    }

    switch (kind) {
    case UCS_TRACE_REC_END:
        tool_decode_end(decoder);
        break;
    case UCS_TRACE_REC_DEFINE:
        tool_decode_define(decoder, kind, &decoder->slots[key]);
        break;
    case UCS_TRACE_REC_SAY:
        tool_decode_define(decoder, kind, &decoder->said[key]);
        break;
    case UCS_TRACE_REC_OPERATION:
        tool_decode_event(decoder, UCS_TRACE_OPERATION, decoder->said[key]);
        break;
    case UCS_TRACE_REC_USE:
    case UCS_TRACE_REC_RELEASE:
        tool_decoder_check(decoder, decoder->slots[key].length > 0,
                           "a use refers to a slot that is not defined");
        tool_decode_event(decoder, kind - UCS_TRACE_REC_USE,
                          decoder->slots[key]);
        break;
    default:
        tool_decode_event(decoder, kind - UCS_TRACE_REC_USE, nothing);
        break;
    }
    return kind;
}

/* A process that is killed while it writes may leave a part of a record. A
 * record is taken when it is whole, so all before the missing end is as it
 * would be with it. */
static void tool_decode_records(tool_decoder_t *decoder)
{
    unsigned kind = UCS_TRACE_REC_LAST;

    while (tool_decoder_is_good(decoder) && (kind != UCS_TRACE_REC_END)) {
        decoder->record = decoder->p;
        kind            = tool_decode_record(decoder);
    }
    if (decoder->trace.is_cut) {
        decoder->trace.cut = decoder->end - decoder->record;
    }
}

int tool_trace_decode(const void *buffer, size_t length, tool_trace_t *trace,
                      tool_trace_error_t *error)
{
    tool_decoder_t *decoder = tool_calloc(1, sizeof(*decoder));
    int ret                 = 0;

    decoder->begin = buffer;
    decoder->end   = decoder->begin + length;
    tool_decode_header(decoder);
    tool_decode_records(decoder);
    if (decoder->error.text == NULL) {
        *trace = decoder->trace;
    } else {
        *error = decoder->error;
        free(decoder->trace.events);
        ret = -1;
    }
    free(decoder);
    return ret;
}

void tool_trace_cleanup(tool_trace_t *trace)
{
    free(trace->events);
    trace->events = NULL;
    trace->count  = 0;
}

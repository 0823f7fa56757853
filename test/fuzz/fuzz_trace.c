/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The trace format: any bytes are decoded or refused with a place and a reason.
 * What was decoded is encoded again, and must decode to the same, also without
 * its last byte: then it is cut, and no event is lost.
 */
#include "fuzz.h"

#include <tools/decode.h>

#include <string.h>

/* @return The bytes, which the caller frees */
static uint8_t *fuzz_trace_encode(const tool_trace_t *trace, size_t *length_p)
{
    uint8_t *buffer = malloc((trace->count + 2) * UCS_TRACE_RECORD_MAX);
    ucs_trace_encoder_h encoder;
    size_t length, written, i;

    FUZZ_CHECK(buffer != NULL);
    FUZZ_CHECK(ucs_trace_encoder_create(&encoder) == UCS_OK);
    length = ucs_trace_encode_begin(encoder, &trace->header, buffer);
    for (i = 0; i < trace->count; ++i) {
        written = ucs_trace_encode(encoder, &trace->events[i], buffer + length);
        FUZZ_CHECK(written <= UCS_TRACE_RECORD_MAX);
        length += written;
    }
    length += ucs_trace_encode_end(encoder, buffer + length);
    ucs_trace_encoder_destroy(encoder);
    *length_p = length;
    return buffer;
}

static void fuzz_trace_compare(const tool_trace_t *a, const tool_trace_t *b)
{
    const ucs_trace_event_t *x, *y;
    size_t i;

    FUZZ_CHECK(a->count == b->count);
    FUZZ_CHECK((a->header.start_ns == b->header.start_ns) &&
               (a->header.page_size == b->header.page_size) &&
               (a->header.pid == b->header.pid) &&
               (a->header.rank == b->header.rank) &&
               !strcmp(a->header.host, b->header.host));
    for (i = 0; i < a->count; ++i) {
        x = &a->events[i];
        y = &b->events[i];
        FUZZ_CHECK((x->kind == y->kind) && (x->time_ns == y->time_ns) &&
                   (x->address == y->address) && (x->length == y->length) &&
                   (x->signature == y->signature) &&
                   (x->access == y->access));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tool_trace_error_t error;
    tool_trace_t trace, again;
    uint8_t *buffer;
    size_t length, cut;

    if (tool_trace_decode(data, size, &trace, &error) != 0) {
        FUZZ_CHECK((error.offset <= size) && (error.text != NULL) &&
                   (error.text[0] != '\0'));
        return 0;
    }

    buffer = fuzz_trace_encode(&trace, &length);
    FUZZ_CHECK(trace.is_cut || (trace.cut == 0));
    FUZZ_CHECK(trace.cut <= size);
    for (cut = 0; cut <= 1; ++cut) {
        FUZZ_CHECK(tool_trace_decode(buffer, length - cut, &again, &error) ==
                   0);
        FUZZ_CHECK(again.is_cut == (int)cut);
        fuzz_trace_compare(&trace, &again);
        tool_trace_cleanup(&again);
    }
    tool_trace_cleanup(&trace);
    free(buffer);
    return 0;
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay_trace.h"

#include <tools/tool.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define REPLAY_TEXT_PAGE_SIZE   4096
#define REPLAY_TEXT_SECONDS_MAX 4e6 /* that a double tells by the nanosecond */
#define REPLAY_TEXT_LINE        "R|D SECONDS 0xADDRESS LENGTH SIGNATURE"

/* @return Zero if this is none */
static int replay_text_parse(const char *line, ucs_trace_event_t *event)
{
    int end = 0;
    double seconds;
    char kind;

    memset(event, 0, sizeof(*event));
    if ((sscanf(line, "%c %lf %" SCNx64 " %" SCNu64 " %" SCNx64 " %n", &kind,
                &seconds, &event->address, &event->length, &event->signature,
                &end) != 5) || (line[end] != '\0') ||
        ((kind != 'R') && (kind != 'D')) || !(seconds >= 0) ||
        !(seconds <= REPLAY_TEXT_SECONDS_MAX) || (event->length == 0) ||
        (event->length > UINT64_MAX - event->address)) {
        return 0;
    }
    event->kind    = (kind == 'R') ? UCS_TRACE_USE : UCS_TRACE_RELEASE;
    event->time_ns = llround(seconds * 1e9);
    return 1;
}

int replay_text_read(const char *file, char *text, tool_trace_t *raw)
{
    size_t capacity = 0;
    uint64_t number = 1;
    const char *line;

    *raw = (tool_trace_t){.header = {.page_size = REPLAY_TEXT_PAGE_SIZE,
                                     .rank      = -1}};
    for (; (line = strsep(&text, "\n")) != NULL; ++number) {
        if ((line[0] == '#') || (line[strspn(line, " \r")] == '\0')) {
            continue;
        }
        raw->events = tool_grow(raw->events, raw->count, &capacity,
                                sizeof(*raw->events));
        if (!replay_text_parse(line, &raw->events[raw->count++])) {
            tool_message("%s: line %" PRIu64 ": is not " REPLAY_TEXT_LINE, file,
                         number);
            tool_trace_cleanup(raw);
            return -1;
        }
    }
    return 0;
}

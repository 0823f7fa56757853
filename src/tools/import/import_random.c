/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "import_random.h"

#include <tools/replay/replay_random.h>
#include <tools/replay/replay_trace.h>
#include <tools/tool.h>

#include <string.h>

#define RANDOM_PAGE       4096u
#define RANDOM_BUFFERS    64u
#define RANDOM_PLACES     16u
#define RANDOM_ADDRESS    UINT64_C(0x200000000000)
#define RANDOM_STRIDE     UINT64_C(0x1000000)
#define RANDOM_LENGTH_MIN 16384.0
#define RANDOM_LENGTH_MAX 1048576.0
#define RANDOM_GAP_MIN    1e4     /* ns; gaps' means are between these */
#define RANDOM_GAP_MAX    1e7
#define RANDOM_HOLD       1e5     /* mean, ns */
#define RANDOM_LIFE       200u    /* uses until some buffer is unmapped */

typedef struct random_buffer {
    uint64_t address;
    uint64_t length;
    uint64_t free_ns; /* its latest release */
} random_buffer_t;

typedef struct random_program {
    uint64_t        random;
    uint64_t        now;
    uint64_t        mapped; /* buffers so far */
    random_buffer_t buffers[RANDOM_BUFFERS];
    ucs_trace_t     *trace;
} random_program_t;


static double random_between(random_program_t *program, double low,
                             double high)
{
    return low * pow(high / low, replay_random_uniform(&program->random));
}

static uint64_t random_time(random_program_t *program, double mean)
{
    return 1 - mean * log(replay_random_uniform(&program->random));
}

static void random_map(random_program_t *program, random_buffer_t *buffer)
{
    buffer->address = RANDOM_ADDRESS + RANDOM_STRIDE * program->mapped++;
    buffer->length  = random_between(program, RANDOM_LENGTH_MIN,
                                     RANDOM_LENGTH_MAX);
    buffer->free_ns = 0;
}

static ucs_trace_event_t *random_event(random_program_t *program,
                                       ucs_trace_kind_t kind, uint64_t time_ns,
                                       const random_buffer_t *buffer)
{
    ucs_trace_event_t *event = &program->trace->events[program->trace->count];

    ++program->trace->count;
    memset(event, 0, sizeof(*event));
    event->kind    = kind;
    event->time_ns = time_ns;
    event->address = buffer->address;
    event->length  = buffer->length;
    return event;
}

/* Squares: the first buffers are drawn more often */
static random_buffer_t *random_draw(random_program_t *program)
{
    double x = replay_random_uniform(&program->random);

    return &program->buffers[(unsigned)(x * x * RANDOM_BUFFERS) %
                             RANDOM_BUFFERS];
}

static void random_use(random_program_t *program)
{
    random_buffer_t *buffer = random_draw(program);
    uint64_t place          = replay_random(&program->random) % RANDOM_PLACES;
    uint64_t signature      = replay_hash(place, RANDOM_PLACES);
    uint64_t end_ns;

    program->now += random_time(program, random_between(program,
                                                        RANDOM_GAP_MIN,
                                                        RANDOM_GAP_MAX));
    end_ns = program->now + random_time(program, RANDOM_HOLD);
    random_event(program, UCS_TRACE_USE, program->now, buffer)->signature =
            signature;
    random_event(program, UCS_TRACE_RELEASE, end_ns, buffer)->signature =
            signature;
    if (buffer->free_ns < end_ns) {
        buffer->free_ns = end_ns;
    }
}

/* A program does not unmap a buffer that is in use */
static void random_unmap(random_program_t *program)
{
    random_buffer_t *buffer = random_draw(program);

    if (program->now <= buffer->free_ns) {
        program->now = buffer->free_ns + 1;
    }
    random_event(program, UCS_TRACE_UNMAP, program->now, buffer);
    random_map(program, buffer);
}

void import_random_make(uint64_t seed, size_t uses, ucs_trace_t *trace)
{
    random_program_t program = {.random = seed, .now = 1, .trace = trace};
    size_t events            = 2 * uses + uses / RANDOM_LIFE + 1;
    size_t i;

    memset(trace, 0, sizeof(*trace));
    trace->header.start_ns  = program.now;
    trace->header.page_size = RANDOM_PAGE;
    trace->header.rank      = -1;
    trace->events           = tool_realloc(NULL,
                                           events * sizeof(*trace->events));
    for (i = 0; i < RANDOM_BUFFERS; ++i) {
        random_map(&program, &program.buffers[i]);
    }
    for (i = 0; i < uses; ++i) {
        random_use(&program);
        if (i % RANDOM_LIFE == RANDOM_LIFE - 1) {
            random_unmap(&program);
        }
    }
    replay_trace_sort(trace);
}

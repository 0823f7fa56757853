/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_REPLAY_TRACE_H_
#define UCX_HELPER_TOOL_REPLAY_TRACE_H_

#include <tools/decode.h>
#include <ucs/predict/operation.h>

#include <stddef.h>
#include <stdint.h>

/*
 * A trace made ready for a replay: events in order of time, each release
 * paired with its use. Single threaded; memory that runs out
 * ends the program (see tool.h).
 */

BEGIN_C_DECLS

/** What a trace's event does in a replay. */
typedef enum replay_kind {
    REPLAY_USE,
    REPLAY_RELEASE,
    REPLAY_UNMAP,
    REPLAY_SAY     /**< an operation */
} replay_kind_t;

typedef struct replay_event {
    uint64_t      time_ns;
    uint32_t      index; /**< in uses, unmaps or operations */
    replay_kind_t kind;
} replay_event_t;

/** One use. */
typedef struct replay_use {
    uint64_t start_ns;
    uint64_t end_ns;    /**< the trace's end if it was never given back */
    uint64_t address;
    uint64_t length;    /**< bytes */
    uint64_t signature;
    uint32_t access;
    uint8_t  is_posted; /**< it is of a receive that was posted before */
} replay_use_t;

/** Page boundaries. */
typedef struct replay_unmap {
    uint64_t start;
    uint64_t end;
} replay_unmap_t;

/** What is asked for. All 0: as recorded. */
typedef struct replay_repeat {
    uint64_t times; /**< that the steady part is played in all; or */
    uint64_t ns;    /**< that the whole lasts at least, if times is 0 */
} replay_repeat_t;

/** What was done. All 0: nothing was. */
typedef struct replay_repeated {
    size_t   from;     /**< the steady part's first use */
    size_t   until;    /**< the first use after it, as recorded */
    size_t   matched;  /**< so many uses before either are the same */
    uint64_t times;    /**< that it is played */
    uint64_t again_ns; /**< when it is played for the second time */
} replay_repeated_t;

/**
 * Invariants: events are ordered by time_ns; every use has one USE event, and
 * one RELEASE event after it.
 */
typedef struct replay_trace {
    char           *name;
    uint32_t       page_size;
    uint64_t       min_size; /**< bytes; shorter uses are left out */
    uint64_t       start_ns;
    uint64_t       end_ns;
    replay_event_t *events;
    size_t         event_count;
    replay_use_t   *uses;
    size_t         use_count;
    replay_unmap_t *unmaps;
    size_t         unmap_count;
    ucs_operation_t *operations; /**< that were heard, in order of time */
    size_t         operation_count;
    replay_repeated_t repeated; /**< what of it was played on */
    /* What was left out */
    uint64_t       small;       /**< uses below the minimal size */
    uint64_t       unmatched;   /**< releases without a use */
    uint64_t       open;        /**< uses that were never given back */
    uint64_t       lost;        /**< events that the recorder lost */
} replay_trace_t;

/** Bring a recording's events into the order of their times; equal ones stay in
 *  theirs. */
void replay_trace_sort(tool_trace_t *raw);

/**
 * Read a file or pipe that @ref tool_trace_decode understands, gzip'ed or not, in
 * order of time. Of one that is cut short all whole events are read, after a message
 * that says how much is missing.
 *
 * @return 0, or -1 after a message that names file and byte (of what is in it).
 */
int replay_trace_read(const char *file, tool_trace_t *raw);

/**
 * Make @a raw, which stays the caller's and is in order of time, ready.
 *
 * @param [in]  min_size  Bytes; shorter uses are left out: the helper
 *                        registers them once and keeps them.
 * @param [in]  repeat    How long its steady part is played on; NULL: it is
 *                        not.
 * @param [out] trace     @ref replay_trace_cleanup frees it.
 *
 * @return 0, or -1 after a message: it cannot be repeated.
 */
int replay_trace_prepare(const tool_trace_t *raw, const char *name,
                         uint64_t min_size, const replay_repeat_t *repeat,
                         replay_trace_t *trace);

/** Of an event that is left out, in place of the one that it ends. */
#define REPLAY_NONE UINT32_MAX

/**
 * Play the steady part on. It begins between the first third and the half of the
 * uses and has a third of them at least; of several that one is taken before whose
 * beginning and end the program's order was the same for the longest. What comes
 * before and after it is played once. Buffers and call sites recur, times shift.
 *
 * @param [in]    repeat  What is asked for.
 * @param [in]    ends    Of each event the one that it ends, itself if it ends none,
 *                        or @ref REPLAY_NONE. An end goes where its beginning goes.
 * @param [inout] trace   Its name is read, and what was done is noted in it.
 * @param [out]   longer  A recording in order of time, whose events are the
 *                        caller's to free.
 *
 * @return 0, or -1 after a message: there is no such part, or there would be more
 *         events than can be counted.
 */
int replay_repeat_apply(const replay_repeat_t *repeat, const tool_trace_t *raw,
                        const uint32_t *ends, replay_trace_t *trace,
                        tool_trace_t *longer);

/** Release what a prepared trace owns. */
void replay_trace_cleanup(replay_trace_t *trace);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPLAY_REPEAT_H_
#define UCX_HELPER_TOOL_REPLAY_REPEAT_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file replay_repeat.h
 *
 * A recording that goes on for longer than it was recorded: its steady part is
 * played several times. A recording of a few seconds is mostly start and end; a
 * job is not.
 */

BEGIN_C_DECLS

struct replay_trace;

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
 * Play the steady part on. It begins between the first third and the half of the
 * uses and has a third of them at least; of several that one is taken before whose
 * beginning and end the program's order was the same for the longest. What comes
 * before and after it is played once. Buffers and call sites recur, times shift.
 *
 * @param [in]    repeat  What is asked for.
 * @param [inout] trace   Uses are paired with their ends, in order of time.
 *
 * @return 0, or -1 after a message: there is no such part, or there would be more
 *         uses than can be counted.
 */
int replay_repeat_apply(const replay_repeat_t *repeat,
                        struct replay_trace *trace);

END_C_DECLS

#endif

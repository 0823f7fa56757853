/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_REPLAY_FIBER_H_
#define UCX_HELPER_TOOL_REPLAY_FIBER_H_

#include <tools/tool.h>

#include <ucs/sys/compiler_def.h>

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#  include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#  include <sanitizer/tsan_interface.h>
#endif

/*
 * A second stack in the same thread, between which and the first one control
 * goes back and forth. The sanitizers are told of each switch.
 */

/* A step needs a quarter of it; the sanitizers make frames larger. A simulator
 * has thousands, of which only what was touched takes memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#  define REPLAY_FIBER_STACK (256u << 10)
#else
#  define REPLAY_FIBER_STACK (64u << 10)
#endif

typedef struct replay_fiber {
    ucontext_t outside;
    ucontext_t inside;
    char       *stack;
    void       (*func)(void *arg); /* never returns */
    void       *arg;
    /* What the sanitizers want to know */
    void       *fake_outside;
    void       *fake_inside;
    const void *outer_stack;
    size_t     outer_size;
    void       *tsan_outside;
    void       *tsan_inside;
} replay_fiber_t;

static inline void replay_fiber_entered(replay_fiber_t *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fiber->fake_inside, &fiber->outer_stack,
                                    &fiber->outer_size);
#endif
}

/** From outside: go on inside. */
static inline void replay_fiber_enter(replay_fiber_t *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fiber->fake_outside, fiber->stack,
                                   REPLAY_FIBER_STACK);
#elif defined(__SANITIZE_THREAD__)
    fiber->tsan_outside = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber->tsan_inside, 0);
#endif
    swapcontext(&fiber->outside, &fiber->inside);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fiber->fake_outside, NULL, NULL);
#endif
}

/** From inside: go on outside. */
static inline void replay_fiber_leave(replay_fiber_t *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fiber->fake_inside, fiber->outer_stack,
                                   fiber->outer_size);
#elif defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(fiber->tsan_outside, 0);
#endif
    swapcontext(&fiber->inside, &fiber->outside);
    replay_fiber_entered(fiber);
}

/* makecontext passes ints */
static inline void replay_fiber_begin(unsigned high, unsigned low)
{
    replay_fiber_t *fiber = (replay_fiber_t*)(((uintptr_t)high << 32) | low);

    replay_fiber_entered(fiber);
    fiber->func(fiber->arg);
}

/** Prepare: the first enter calls @a func. */
static inline void replay_fiber_init(replay_fiber_t *fiber,
                                     void (*func)(void *arg), void *arg)
{
    uint64_t address = (uintptr_t)fiber;

    memset(fiber, 0, sizeof(*fiber)); /* it has no fake stack yet */
    fiber->func  = func;
    fiber->arg   = arg;
    fiber->stack = (char*)tool_realloc(NULL, REPLAY_FIBER_STACK);
    getcontext(&fiber->inside);
    fiber->inside.uc_stack.ss_sp   = fiber->stack;
    fiber->inside.uc_stack.ss_size = REPLAY_FIBER_STACK;
    makecontext(&fiber->inside, (void (*)(void))replay_fiber_begin, 2,
                (unsigned)(address >> 32), (unsigned)address);
#if defined(__SANITIZE_THREAD__)
    fiber->tsan_inside = __tsan_create_fiber(0);
#endif
}

/** From outside; what is left inside is forgotten. Nothing if it has no stack. */
static inline void replay_fiber_cleanup(replay_fiber_t *fiber)
{
#if defined(__SANITIZE_THREAD__)
    if (fiber->stack != NULL) {
        __tsan_destroy_fiber(fiber->tsan_inside);
    }
#endif
    free(fiber->stack);
}

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPLAY_FIBER_H_
#define UCX_HELPER_TOOL_REPLAY_FIBER_H_

#include <tools/tool.h>

#include <ucs/sys/compiler_def.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The sanitizers know of swapcontext(), and so do shadow stacks */
#if defined(__x86_64__) && !defined(__SHSTK__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#  define REPLAY_FIBER_SWITCH 1
#else
#  include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#  include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#  include <sanitizer/tsan_interface.h>
#endif

/**
 * @file replay_fiber.h
 *
 * A second stack in the same thread, between which and the first one control
 * goes back and forth, for a replay several times a step of the helper. So
 * where it can it does so without swapcontext(), which makes a system call each
 * time, for a mask of signals that never changes. The sanitizers are told of
 * each switch.
 */

/* A step needs a quarter of it; the sanitizers make frames larger. A simulator
 * has thousands, of which only what was touched takes memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#  define REPLAY_FIBER_STACK (256u << 10)
#else
#  define REPLAY_FIBER_STACK (64u << 10)
#endif

typedef struct replay_fiber {
#ifdef REPLAY_FIBER_SWITCH
    void       *outside; /* stack pointers */
    void       *inside;
#else
    ucontext_t outside;
    ucontext_t inside;
#endif
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
#else
    (void)fiber;
#endif
}

#ifdef REPLAY_FIBER_SWITCH
/* What the calling convention has a function keep goes onto the stack that is
 * left and comes from the one that is entered, where nothing changes the
 * rounding mode. A function that is entered for the first time finds @a arg as
 * its argument. */
static __attribute__((naked, noinline)) void
replay_fiber_switch(void **from UCS_V_UNUSED, void *to UCS_V_UNUSED,
                    void *arg UCS_V_UNUSED)
{
    __asm__("pushq %rbp\n\t"
            "pushq %rbx\n\t"
            "pushq %r12\n\t"
            "pushq %r13\n\t"
            "pushq %r14\n\t"
            "pushq %r15\n\t"
            "movq %rsp, (%rdi)\n\t"
            "movq %rsi, %rsp\n\t"
            "movq %rdx, %rdi\n\t"
            "popq %r15\n\t"
            "popq %r14\n\t"
            "popq %r13\n\t"
            "popq %r12\n\t"
            "popq %rbx\n\t"
            "popq %rbp\n\t"
            "ret");
}

#define REPLAY_FIBER_KEPT 6
#else
#  define replay_fiber_switch(_from, _to, _arg) swapcontext(_from, &(_to))
#endif

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
    replay_fiber_switch(&fiber->outside, fiber->inside, fiber);
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
    replay_fiber_switch(&fiber->inside, fiber->outside, fiber);
    replay_fiber_entered(fiber);
}

static inline void replay_fiber_main(replay_fiber_t *fiber)
{
    replay_fiber_entered(fiber);
    fiber->func(fiber->arg);
}

#ifdef REPLAY_FIBER_SWITCH
/* As if it had left from the first instruction of the function, with no caller:
 * its return address lies 8 below a multiple of 16 */
static inline void replay_fiber_prepare(replay_fiber_t *fiber)
{
    uintptr_t top = (uintptr_t)(fiber->stack + REPLAY_FIBER_STACK) &
                    ~(uintptr_t)15;
    void **words  = (void**)top;

    words[-1]     = NULL;
    words[-2]     = (void*)replay_fiber_main;
    fiber->inside = &words[-2 - REPLAY_FIBER_KEPT];
}
#else
/* makecontext passes ints */
static inline void replay_fiber_begin(unsigned high, unsigned low)
{
    replay_fiber_main((void*)(((uintptr_t)high << 32) | low));
}

static inline void replay_fiber_prepare(replay_fiber_t *fiber)
{
    uint64_t address = (uintptr_t)fiber;

    getcontext(&fiber->inside);
    fiber->inside.uc_stack.ss_sp   = fiber->stack;
    fiber->inside.uc_stack.ss_size = REPLAY_FIBER_STACK;
    fiber->inside.uc_link          = NULL;
    makecontext(&fiber->inside, (void (*)(void))replay_fiber_begin, 2,
                (unsigned)(address >> 32), (unsigned)address);
}
#endif

/** Prepare: the first enter calls @a func. */
static inline void replay_fiber_init(replay_fiber_t *fiber,
                                     void (*func)(void *arg), void *arg)
{
    memset(fiber, 0, sizeof(*fiber)); /* it has no fake stack yet */
    fiber->func  = func;
    fiber->arg   = arg;
    fiber->stack = tool_realloc(NULL, REPLAY_FIBER_STACK);
    replay_fiber_prepare(fiber);
#if defined(__SANITIZE_THREAD__)
    fiber->tsan_inside = __tsan_create_fiber(0);
#endif
}

/** From outside; what is left inside is forgotten. */
static inline void replay_fiber_cleanup(replay_fiber_t *fiber)
{
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(fiber->tsan_inside);
#endif
    free(fiber->stack);
}

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef LIFE_H_
#define LIFE_H_

#include <uct/api/uct.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * @file life.h
 *
 * Ends and interruptions of a process that has a helper: what `life --what`
 * runs. Each part runs in a process of its own that another one watches: a
 * step that takes more than LIFE_STEP_SECONDS is a hang.
 */

/** Longest step, seconds. */
#define LIFE_STEP_SECONDS 10

/** Bytes of most buffers: enough for the helper to manage them. */
#define LIFE_LENGTH (256ul << 10)

typedef struct life_options {
    unsigned long count; /**< steps to do */
    const char    *stub; /**< path of the preload library, for parts that
                              start programs with it; NULL: that of the build
                              tree that this program lies in */
} life_options_t;

/** A part prints its line of counts and returns; what is wrong ends it by
 *  @ref life_fail. */
typedef void (*life_part_func_t)(const life_options_t *options);

void life_changes(const life_options_t *options);
void life_fork(const life_options_t *options);
void life_init(const life_options_t *options);
void life_patch(const life_options_t *options);
void life_signals(const life_options_t *options);
void life_unmaps(const life_options_t *options);
void life_uses(const life_options_t *options);

/** Code that life starts as a program of its own: `life --inside WHAT`. */
int life_inside(const char *what);

/** Print what went wrong and end the process with exit code 1. */
void life_fail(const char *format, ...)
        __attribute__((noreturn, format(printf, 1, 2)));

/** Run a part under the watch. @return Exit code of the program. */
int life_watch(life_part_func_t part, const life_options_t *options);

/** Tell the watch that a step begins. Async-signal-safe. @a what is a string
 *  literal. */
void life_step(const char *what);

/** Wait for a child and fail unless it ended with exit code 0. */
void life_wait_child(pid_t pid, const char *what);

/** Open UCX's cma domain, with what is preloaded on it. */
uct_md_h life_domain_open_bare(void);

/** Open UCX's cma domain, make it pin, and put the helper on it. */
uct_md_h life_domain_open(void);

/** Likewise, and compare at the end of each use what the registration shows
 *  with the memory; a difference aborts. */
uct_md_h life_domain_open_verified(void);

/** Close the last domain; fails if anything stays registered. */
void life_domain_close(uct_md_h md);

/** Register, fail if it is refused. */
uct_mem_h life_reg(uct_md_h md, void *address, size_t length);

/** As @ref life_reg for code that may be refused: NULL then. */
uct_mem_h life_try_reg(uct_md_h md, void *address, size_t length);
void life_dereg(uct_md_h md, uct_mem_h memh);

/** Register and give back at once. */
void life_use(uct_md_h md, void *address, size_t length);

/**
 * Use a buffer until the helper runs and expects its next use.
 *
 * @return The buffer, of LIFE_LENGTH bytes, for the caller to unmap. As long as
 *         it is mapped the helper has something to do.
 */
void *life_make_live(uct_md_h md);

/** Wait until the domain pins nothing of what is unmapped by now. */
void life_drain(uct_md_h md);

/** Map private anonymous memory and touch it. */
void *life_map(size_t length);

/** @return Thread id of the helper, or 0; fails if there are two. */
pid_t life_proc_helper(void);

/** Wait for the helper, which takes its name only once it runs; for ever, if
 *  the watch allows, when there is none. @return Its thread id. */
pid_t life_proc_await_helper(void);

/** @return Nonzero if the process's first thread has left, and others go on. */
int life_proc_is_left(void);

/** @return Nonzero if the thread has every signal blocked that can be. */
int life_proc_blocks_all(pid_t thread);

/** Steps @a first to @a last - 1 of a part. */
typedef void (*life_run_func_t)(void *arg, unsigned long first,
                                unsigned long last);

/**
 * Run @a count steps, print what the process holds, and fail if the second half
 * of them has added to it. The helper's tables fill up to their bounds first:
 * they are pages that are there once they have been written to. How soon depends
 * on how often the helper looks, so that is waited for.
 *
 * @param [in] warm_up      Steps before each look; twelve times at most, or a
 *                          leak would pass for it.
 * @param [in] with_locked  Nonzero: locked memory, too.
 */
void life_soak(const char *what, life_run_func_t run, void *arg,
               unsigned long warm_up, unsigned long count, int with_locked);

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_RANGE_H_
#define UCT_HELPER_RANGE_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/*
 * The kind of some memory. Only private anonymous memory changes its pages by
 * calls of this process alone, which a monitor can see. Another process can
 * truncate a file or punch a hole into it, and the stack of a thread that has
 * ended becomes another one's without being unmapped.
 *
 * Nothing here allocates (but the last two functions may), logs or takes a lock.
 * Thread-safe.
 */

BEGIN_C_DECLS

/** Kinds of memory; a range of several kinds has the last of these. */
typedef enum uct_helper_range_kind {
    UCT_HELPER_RANGE_PRIVATE,   /**< private anonymous, the heap, or the stack
                                     of the main thread */
    UCT_HELPER_RANGE_STACK,     /**< looks like the stack of a thread */
    UCT_HELPER_RANGE_SHARED,    /**< MAP_SHARED, System V */
    UCT_HELPER_RANGE_FILE,      /**< a file or a device, private or not */
    UCT_HELPER_RANGE_NO_ACCESS, /**< not readable */
    UCT_HELPER_RANGE_HOLE,      /**< not mapped in part */
    UCT_HELPER_RANGE_UNKNOWN    /**< /proc/self/maps cannot be read */
} uct_helper_range_kind_t;

/** How the kernel is asked; AUTO takes the first that works. */
typedef enum uct_helper_range_way {
    UCT_HELPER_RANGE_WAY_AUTO,
    UCT_HELPER_RANGE_WAY_QUERY, /**< PROCMAP_QUERY, Linux 6.11 */
    UCT_HELPER_RANGE_WAY_PARSE  /**< reading /proc/self/maps */
} uct_helper_range_way_t;

/** Where some memory lies. All addresses are page boundaries. */
typedef struct uct_helper_range {
    uct_helper_range_kind_t kind;
    uintptr_t               start; /**< of the mapping of its first byte */
    uintptr_t               end;   /**< of the mapping of its last byte */
    uintptr_t               kept;  /**< with UCT_HELPER_RANGE_PRIVATE: all from
                                        here to kept_end is of that kind, also
                                        beyond the range */
    uintptr_t               kept_end;
    int                     is_anonymous; /**< all of it private anonymous,
                                               readable or not; only then: */
    uintptr_t               run_start; /**< of its row of adjoining private
                                            anonymous mappings; at most
                                            @ref UCT_HELPER_RANGE_RUN_MAX
                                            mappings to either side */
    uintptr_t               run_end;
} uct_helper_range_t;

/** Mappings to either side for @ref uct_helper_range_t::run_start: a system
 *  call each. Rows are short (a reserved range and its used part, an arena,
 *  stacks with guards). Half: the stacks of 32 threads are cut in two. Double:
 *  a first use takes another 20 us where there are so many. */
#define UCT_HELPER_RANGE_RUN_MAX 64

/**
 * Find the kind of a range, and what is around it.
 *
 * @param [in]  way      How to ask the kernel.
 * @param [in]  start    First byte of the range.
 * @param [in]  end      First byte behind the range.
 * @param [out] range_p  Filled; only the kind if that is HOLE or UNKNOWN.
 *
 * @return The kind.
 */
uct_helper_range_kind_t uct_helper_range_find(uct_helper_range_way_t way,
                                              uintptr_t start, uintptr_t end,
                                              uct_helper_range_t *range_p);

/**
 * Keep /proc/self/maps open from now on: opening it takes longer than a
 * question. If that fails, it is opened each time. Once the program has closed
 * or replaced it, each answer is UCT_HELPER_RANGE_UNKNOWN. One thread at a
 * time.
 */
void uct_helper_range_keep(void);

/** The counterpart. */
void uct_helper_range_let_go(void);

/** @return Mappings of the process, -1 if unknown, as when the program has closed the
 *          descriptor that is kept. Time grows with their number. */
long uct_helper_range_count(void);

/** In a child: forget the descriptor, which shows the parent's memory and may
 *  be the parent's too. */
void uct_helper_range_forget(void);

/** Visit private anonymous mappings that overlap [@a start, @a end), one question
 *  each; none before Linux 6.11. The visitor may change them. */
void uct_helper_range_each_within(uintptr_t start, uintptr_t end,
                                  void (*visit)(uintptr_t start, uintptr_t end,
                                                void *arg),
                                  void *arg);

/** @return Nonzero if all pages of the range are in memory, so that pinning
 *          them faults none of them in. Both ends are page boundaries. */
int uct_helper_range_is_resident(uintptr_t start, uintptr_t end);

/**
 * @return Nonzero if the range touches the stack of the calling thread, unless
 *         that is the main thread: its stack stays for as long as the process.
 *         glibc allocates for a moment at a thread's first call.
 */
int uct_helper_range_is_own_stack(uintptr_t start, uintptr_t end);

/**
 * @return Nonzero if the caller runs on its thread's own stack, and that has room for
 *         @a bytes more. Zero on a stack that the program has made, as for a
 *         coroutine or a signal handler: its size is not known. As above.
 */
int uct_helper_range_has_stack(size_t bytes);

END_C_DECLS

#endif

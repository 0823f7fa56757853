/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_TEXT_RANGES_H_
#define UCT_HELPER_TEXT_RANGES_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/**
 * @file text_ranges.h
 *
 * Code of UCX's libraries (libucp, libuct and its modules, libucs, libucm) and
 * of the shared library that this code is linked into, so that frames in them
 * can be told from the program's. Not thread-safe: the owner locks.
 */

BEGIN_C_DECLS

/** More libraries than this are not told apart; UCX has about a dozen. */
#define UCT_HELPER_TEXT_RANGES_MAX 64

/** [start, end) of executable segments, ascending, not overlapping. */
typedef struct uct_helper_text_ranges {
    unsigned long long loads; /**< the loader's count of libraries loaded when
                                   the ranges were gathered */
    unsigned           count;
    struct {
        uintptr_t start;
        uintptr_t end;
    } range[UCT_HELPER_TEXT_RANGES_MAX];
} uct_helper_text_ranges_t;


/**
 * Gather the ranges, if a library has been loaded since they were gathered.
 * Takes the dynamic loader's lock. All zero is a valid start.
 */
void uct_helper_text_ranges_update(uct_helper_text_ranges_t *ranges);


/** @return Nonzero if the code at @a address is UCX's or the helper's. */
int uct_helper_text_ranges_have(const uct_helper_text_ranges_t *ranges,
                                uintptr_t address);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_ALLOC_COUNT_H_
#define TEST_ALLOC_COUNT_H_

#include <cstdint>

/*
 * Counts the allocations of the calling thread: malloc, calloc, realloc and
 * the aligned ones, operator new included, because it calls them.
 *
 * The allocator is interposed by weak symbols of the test program, or counted
 * by the hooks of the sanitizer's own allocator. If something else defines a
 * stronger malloc, nothing is counted: alloc_count_works() tells.
 */

/* Allocations of this thread so far */
uint64_t alloc_count();

/* Blocks that this thread has allocated and not freed; 0 under a sanitizer,
 * which looks for leaks itself */
int64_t alloc_count_live();

/* Whether allocations are really counted */
bool alloc_count_works();

/* Make this thread's next allocation fail, or the one `after` so many. Not
 * under a sanitizer: returns false and does nothing. */
bool alloc_count_fail_next(unsigned after = 0);

#endif

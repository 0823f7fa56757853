/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_HANDS_H_
#define UCT_HELPER_HANDS_H_

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/compiler_def.h>

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/**
 * @file hands.h
 *
 * Several threads bring the pages of a large range that the program maps itself
 * into memory, before the domain below registers it (ucs/sys/mem/populate.h). Not
 * for a message, whose untouched pages may never be needed.
 */

BEGIN_C_DECLS

/** Shortest registration, bytes. Half: threads are started for what one does in
 *  some ten milliseconds. Double: ranges of half a second are left to one. */
#define UCT_HELPER_HANDS_MIN (256ul << 20)

/** Of the option: as many threads as processors are idle. */
#define UCT_HELPER_HANDS_AUTO UINT_MAX

/** Threads that the option may name at most. */
#define UCT_HELPER_HANDS_MAX 16u

struct uct_helper_md;

/** Figures for the report. */
typedef struct uct_helper_populated {
    _Atomic(uint64_t) bytes;
    _Atomic(unsigned) hands; /* the most at one range */
} uct_helper_populated_t;


/** @return Nonzero if a registration with these flags is the program's own
 *          mapping, all of whose pages are wanted in memory. */
int uct_helper_hands_is_mapped(unsigned flags);


/** Populate such a range before its registration, if the option says so. Any
 *  thread that is not cancelled meanwhile. */
void uct_helper_hands_populate(struct uct_helper_md *md, void *address,
                               size_t length, unsigned flags);


/** @return Zero if there is nothing to tell, else @a note is filled. */
int uct_helper_hands_note(const struct uct_helper_md *md, char *note,
                          size_t max);

END_C_DECLS

#endif

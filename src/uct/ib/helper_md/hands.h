/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_HANDS_H_
#define UCT_HELPER_HANDS_H_

#include <ucs/sys/atomic.h>
#include <ucs/sys/compiler_def.h>

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/**
 * @file hands.h
 *
 * Many hands for a large registration: the pages of what the program maps
 * itself are brought into memory by several threads before the domain below is
 * asked (ucs/sys/populate.h). Never for a message: what is not in memory then
 * and would not be touched is left alone.
 */

BEGIN_C_DECLS

/** Registrations at least this long, bytes. At half, threads are started for
 *  what one does in some ten milliseconds; at double, ranges of half a second
 *  are left to one. */
#define UCT_HELPER_HANDS_MIN (256ul << 20)

/** Of the option: as many threads as processors are idle. */
#define UCT_HELPER_HANDS_AUTO UINT_MAX

/** Threads that the option may name at most. */
#define UCT_HELPER_HANDS_MAX 16u

struct uct_helper_md;

/** What was populated so far, for the report. */
typedef struct uct_helper_populated {
    _Atomic(uint64_t) bytes;
    _Atomic(unsigned) hands; /* the most at one range */
} uct_helper_populated_t;


/** @return Nonzero if a registration with these flags is the program's own
 *          mapping, and its pages are all wanted in memory by now. */
int uct_helper_hands_is_mapped(unsigned flags);


/** Populate a range that is about to be registered, if it is such and the
 *  option says so. From any thread that is not cancelled meanwhile. */
void uct_helper_hands_populate(struct uct_helper_md *md, void *address,
                               size_t length, unsigned flags);


/** @return Zero if there is nothing to tell, else @a note is filled. */
int uct_helper_hands_note(const struct uct_helper_md *md, char *note,
                          size_t max);

END_C_DECLS

#endif

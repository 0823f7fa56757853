/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_TRUST_H_
#define UCT_HELPER_TRUST_H_

#include <ucs/regcache/regcache.h>

/*
 * Counts the process's mappings. The kernel allows vm.max_map_count of them;
 * marking pages in the middle of one (MADV_DONTFORK, userfaultfd) makes three of
 * it, and at the limit malloc() fails. So near the limit no domain keeps a
 * registration between uses, and nothing is watched, so that the kernel can join
 * neighbours again.
 *
 * The mappings are counted once a second, less often where that takes long, and
 * earlier after many ranges have been watched.
 */

BEGIN_C_DECLS

/** A domain opens: read the limit now, for what is opened later has for a moment a
 *  number that the program may want. Any thread. */
void uct_helper_trust_begin(void);

/** Count if it is time to. Any thread, but not from a memory event. */
void uct_helper_trust_step(uint64_t now);

/** One more range is watched. As above. @return Zero if there are too many
 *  mappings: it must not be kept. */
int uct_helper_trust_watched(void);

/** @return Nonzero while there are too many; @a next_p is the time of the next
 *          count. */
int uct_helper_trust_is_near(uint64_t *next_p);

/** Give a cache that begins to listen to events the state of the others. */
void uct_helper_trust_join(ucs_regcache_h cache);

/** In a child: forget all but the limit. */
void uct_helper_trust_forget(void);

/** Use @a limit for vm.max_map_count from now on, 0: the system's. For tests,
 *  which cannot lower it for the whole machine. */
void uct_helper_trust_set_limit(long limit);

END_C_DECLS

#endif

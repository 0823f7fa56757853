/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_TRUST_H_
#define UCT_HELPER_TRUST_H_

#include <ucs/regcache/regcache.h>

/**
 * @file trust.h
 *
 * Counts the process's mappings. Near the kernel's limit no domain keeps a
 * registration between uses, and nothing is watched, so that the kernel can
 * join neighbours again.
 */

BEGIN_C_DECLS

/** A domain opens: what is not to be opened while it is used is read now. Any thread. */
void uct_helper_trust_begin(void);


/** Count if it is time to. Any thread, but not from a memory event. */
void uct_helper_trust_step(uint64_t now);


/** One more range is watched. As above. @return Zero if there are too many
 *  mappings: it must not be kept. */
int uct_helper_trust_watched(void);


/** @return Nonzero while there are too many; @a next_p is the time of the next
 *          count then. */
int uct_helper_trust_is_near(uint64_t *next_p);


/** Give a cache that begins to listen to events the state of the others. */
void uct_helper_trust_join(ucs_regcache_h cache);


/** In a child: forget all. */
void uct_helper_trust_forget(void);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_TRUST_H_
#define UCT_HELPER_TRUST_H_

#include <ucs/regcache/regcache.h>

/**
 * @file trust.h
 *
 * The process's number of mappings, and what follows when it nears what the
 * kernel allows: no domain keeps a registration between uses, and nothing is
 * watched, so that neighbours can be joined again.
 */

BEGIN_C_DECLS

/** Count if it is time to. Any thread, but not from a memory event. */
void uct_helper_trust_step(uint64_t now);


/** One more range is watched for us. As above. @return Zero if there are too
 *  many mappings to go on: it is not to be kept. */
int uct_helper_trust_watched(void);


/** @return Nonzero while there are too many, and then in @a next_p when it is
 *          counted again. */
int uct_helper_trust_is_near(uint64_t *next_p);


/** A cache that listens to events from now on has the state of the others. */
void uct_helper_trust_join(ucs_regcache_h cache);


/** In a child: nothing is known. */
void uct_helper_trust_forget(void);

END_C_DECLS

#endif

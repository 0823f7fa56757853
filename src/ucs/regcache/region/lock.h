/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_LOCK_H_
#define UCS_REGCACHE_LOCK_H_

#include <ucs/regcache/regcache.h>

/* The index lock. */

BEGIN_C_DECLS

/**
 * Take the index lock, and let it go. While a thread has it no other function of
 * the cache may be called in that thread but @ref ucs_regcache_unmapped. Both also
 * carry out what memory events left behind that interrupted the lock's owner.
 */
void ucs_regcache_lock(ucs_regcache_h cache);
void ucs_regcache_unlock(ucs_regcache_h cache);

/** @return Zero if the lock is not free; then it is not taken. */
int ucs_regcache_try_lock(ucs_regcache_h cache);

/**
 * Take the lock, with as much in reserve as one registration may need under it;
 * what is short is allocated outside.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY: the lock is not taken.
 */
ucs_status_t ucs_regcache_lock_reserved(ucs_regcache_h cache);

END_C_DECLS

#endif

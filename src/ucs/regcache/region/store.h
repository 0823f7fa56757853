/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_STORE_H_
#define UCS_REGCACHE_STORE_H_

#include "region.h"

/**
 * @file store.h
 *
 * Where regions come from.
 */

BEGIN_C_DECLS

/** Where regions come from. Protected by the index lock. */
typedef struct ucs_regcache_store {
    ucs_regcache_region_t *free;
    unsigned              num_free;
    unsigned              num_regions; /* ever allocated */
    ucs_regcache_chunk_t  *chunks;
} ucs_regcache_store_t;

/* --- reserve.c --- */

/**
 * Take the lock, with as much in reserve as one registration may need under it;
 * what is short is allocated outside.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY: the lock is not taken.
 */
ucs_status_t ucs_regcache_lock_reserved(ucs_regcache_h cache);

END_C_DECLS

#endif

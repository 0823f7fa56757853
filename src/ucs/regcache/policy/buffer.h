/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_BUFFER_H_
#define UCS_REGCACHE_BUFFER_H_

#include <ucs/regcache/plan/rq.h>
#include <ucs/regcache/regcache.h>

/**
 * @file buffer.h
 *
 * A buffer that a predictor knows, and the region in which it was last
 * registered. That region stays DORMANT for as long as the buffer is known.
 * Owned by the helper.
 */

BEGIN_C_DECLS

typedef struct ucs_regcache_buffer {
    ucs_regcache_region_t *region;        /* NULL: none */
    uint64_t              generation;     /* of the region */
    uint64_t              begun;          /* ns, start of the latest use learned */
    uint32_t              ref_generation; /* of the predictor's reference */
    int                   refused;        /* the helper is not to register it now */
    int                   is_whole;       /* the region is as long as the buffer */
} ucs_regcache_buffer_t;

/** All buffers, by the index of the predictor's references. The state of a policy
 *  that has them begins with this. */
typedef struct ucs_regcache_buffers {
    ucs_regcache_buffer_t *list;
    unsigned              count;
} ucs_regcache_buffers_t;

/** @return Nonzero if the region has not been given to another use since. */
int ucs_regcache_buffer_is_current(const ucs_regcache_buffer_t *buffer);

/** Forget the buffer's region: nothing else knows it. */
void ucs_regcache_buffer_leave(ucs_regcache_h cache,
                               ucs_regcache_buffer_t *buffer);

/** The buffer @a ref is registered in the life @a generation of @a region now. */
void ucs_regcache_buffer_set(ucs_regcache_h cache, ucs_regcache_buffer_t *buffer,
                             ucs_predict_ref_t ref,
                             ucs_regcache_region_t *region,
                             uint64_t generation);

/** Drop the buffer's item if its region's life ended before the item was queued:
 *  it would hold the region's next life, which is another buffer's. */
void ucs_regcache_buffer_confirm(ucs_regcache_h cache,
                                 const ucs_regcache_buffer_t *buffer,
                                 ucs_regcache_rq_item_t *item);

END_C_DECLS

#endif

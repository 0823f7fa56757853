/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_HOME_H_
#define UCS_REGCACHE_HOME_H_

#include <ucs/regcache/plan/rq.h>
#include <ucs/regcache/regcache.h>

/**
 * @file home.h
 *
 * The home of a buffer that a predictor knows: the region in which it was last
 * registered. As long as a region is a home it stays DORMANT, so that it is
 * found. Owned by the helper.
 */

BEGIN_C_DECLS

typedef struct ucs_regcache_home {
    ucs_regcache_region_t *region;    /* NULL: none */
    uint64_t              generation; /* of the region */
    uint64_t              begun;      /* ns, start of the latest use learned */
    uint32_t              buffer;     /* generation of the buffer */
    int                   refused;    /* the helper is not to register it now */
    int                   is_whole;   /* the region is as long as the buffer */
} ucs_regcache_home_t;

/** The homes of all buffers; where a policy has them its state begins with
 *  this. */
typedef struct ucs_regcache_homes {
    ucs_regcache_home_t *list; /* by buffer */
    unsigned            count;
} ucs_regcache_homes_t;

/** @return Nonzero if the region still lives the life that it is the home
 *          in. */
int ucs_regcache_home_is_current(const ucs_regcache_home_t *home);

/** The region is not where this buffer, or the one before it, is registered any
 *  more, and is known by no other name. */
void ucs_regcache_home_leave(ucs_regcache_h cache, ucs_regcache_home_t *home);

/** The buffer is registered in the life @a generation of @a region now. */
void ucs_regcache_home_settle(ucs_regcache_h cache, ucs_regcache_home_t *home,
                              ucs_predict_ref_t buffer,
                              ucs_regcache_region_t *region,
                              uint64_t generation);

/** The life that was looked at may have ended before the item was queued, and
 *  the item would stand for the region's next one, which is another buffer's:
 *  it would be held for as long as that is not used, for nothing. */
void ucs_regcache_home_confirm(ucs_regcache_h cache,
                               const ucs_regcache_home_t *home,
                               ucs_regcache_rq_item_t *item);

/** @return Where the buffer waits for its use: a region that is registered and
 *          covers its own may do instead, and the buffer gives that up when it
 *          stops waiting there. */
ucs_regcache_region_t *
ucs_regcache_home_waits_in(const ucs_regcache_home_t *home,
                           const ucs_regcache_rq_item_t *item);

END_C_DECLS

#endif

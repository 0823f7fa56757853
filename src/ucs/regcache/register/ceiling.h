/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_CEILING_H_
#define UCS_REGCACHE_CEILING_H_

#include <ucs/regcache/region/region.h>

#include <stddef.h>
#include <stdint.h>

/*
 * How much may be pinned, and what is evicted for it.
 */

BEGIN_C_DECLS

/** The soft ceiling (soft.c). Protected by the index lock. */
typedef struct ucs_regcache_soft {
    int      is_kept;        /* the policy minds the price of memory, and there is
                                no ceiling of bytes */
    uint64_t in_use;         /* bytes: the most that uses had registered at once */
    uint64_t room;           /* bytes beside that */
    uint64_t raises;         /* of that room */
    uint64_t lost_ns;        /* by uses, for want of room */
    uint64_t lost_anyway_ns; /* of that, what no learning would have saved */
    uint64_t missed_at;      /* ns: a use registered by itself, the latest */
} ucs_regcache_soft_t;

/* --- admit.c: under the lock, which is let go now and then --- */

/** Let go of the lock for a moment, for threads that are about to release
 *  something. */
void ucs_regcache_let_others(ucs_regcache_h cache);

/**
 * Keep the ceilings: evict until a region fits, and count it as pinned before
 * it is.
 *
 * @param [in] now  ns.
 *
 * @return Nonzero if it is counted, which it always is for a use; 0 if it does
 *         not fit: a helper's registration is not to be made.
 */
int ucs_regcache_admit(ucs_regcache_h cache, ucs_regcache_region_t *region,
                       int is_use, uint64_t now);

/* --- evict.c --- */

/** Evict one idle region of a class, or of any if it is
 *  UCS_REGCACHE_CLASS_LAST. Under the lock, which is let go for the lower
 *  domain's call. @return Bytes unpinned, 0 if nothing is idle. */
size_t ucs_regcache_evict(ucs_regcache_h cache, int size_class);

/**
 * Evict one managed region for the soft ceiling.
 *
 * @param [in] before  Only one whose next use is later than this one's; NULL:
 *                     any.
 *
 * @return Bytes unpinned, 0 if there is none.
 */
size_t ucs_regcache_evict_soft(ucs_regcache_h cache,
                               ucs_regcache_region_t *before);

/** Evict at least @a length bytes, or registrations if @a is_count, or all that is
 *  idle. Outside of the lock. @return How many of these. */
size_t ucs_regcache_evict_for(ucs_regcache_h cache, size_t length, int is_count);

/** Go back below a ceiling that uses had to pass, as far as regions are
 *  idle. */
void ucs_regcache_trim(ucs_regcache_h cache);

/* --- soft.c: under the lock --- */

/** @return The soft ceiling, bytes; 0: there is none. */
uint64_t ucs_regcache_soft_bytes(ucs_regcache_h cache);

/** @return Nonzero if so many more bytes stay below the soft ceiling. */
int ucs_regcache_soft_fits(ucs_regcache_h cache, size_t length);

/** So many bytes are registered, or about to be, for first uses of posted receives
 *  or ahead of walks. They count as in use from then on. */
void ucs_regcache_soft_posted(ucs_regcache_h cache, size_t posted);

/** A use is about to pin @a length bytes: evict what is idle until they stay
 *  below the soft ceiling, or nothing is. The lock is let go meanwhile. */
void ucs_regcache_soft_make_room(ucs_regcache_h cache, size_t length);

/** A region is not registered ahead for want of room. Under the lock. */
void ucs_regcache_soft_give_up(ucs_regcache_region_t *region);

/** A region that is registered goes for want of room. Under the lock. */
void ucs_regcache_soft_evicted(ucs_regcache_h cache,
                               ucs_regcache_region_t *region);

/** By what the helper learns now of its latest use, a region would have been held until
 *  then: if it went for want of room, its next use may lose for that. Outside of the
 *  lock. @param [in] until  ns. */
void ucs_regcache_soft_was_held(ucs_regcache_h cache,
                                ucs_regcache_region_t *region, uint64_t until);

/** A use finds its region not registered. */
void ucs_regcache_soft_missed(ucs_regcache_h cache,
                              ucs_regcache_region_t *region, uint64_t now);

END_C_DECLS

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_REGISTER_H_
#define UCS_REGCACHE_REGISTER_H_

#include <ucs/regcache/region/known_memory.h>

/*
 * How a registration is made: which range, and by which calls; how much may be pinned,
 * and what is evicted for it.
 */

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

/* --- coalesce.c --- */

/** May a use be registered with what is around it? */
int ucs_regcache_may_coalesce(ucs_regcache_h cache,
                              const ucs_regcache_request_t *request);

/**
 * One registration a buffer: enlarge what is to be registered to whole pages,
 * and by the registrations that it overlaps. Under the lock.
 *
 * @param [in]    region   DORMANT one that covers the request, or NULL.
 * @param [inout] request  Range, and union of what is asked of any of them.
 *
 * @return A DORMANT region that covers the enlarged request, or NULL.
 */
ucs_regcache_region_t *ucs_regcache_coalesce(ucs_regcache_h cache,
                                             ucs_regcache_region_t *region,
                                             ucs_regcache_request_t *request);

/** Deregister what lies within a region that is about to be registered, at the
 *  end of its use if it is in use. Under the lock, which is let go
 *  meanwhile. */
void ucs_regcache_supersede(ucs_regcache_h cache, ucs_regcache_region_t *by);

/* --- register.c: outside of the lock --- */

/**
 * Register a region that is REGISTERING: keep the ceilings, call the lower
 * domain, publish. Waiters are woken. On failure the region is not the
 * caller's any more.
 *
 * @param [in]    flags       For the lower domain.
 * @param [in]    inspection  What the use has found out.
 * @param [inout] loss        The use's.
 *
 * @return UCS_OK, or the lower domain's error.
 */
ucs_status_t
ucs_regcache_register_use(ucs_regcache_h cache, ucs_regcache_region_t *region,
                          unsigned flags,
                          const ucs_regcache_inspection_t *inspection,
                          ucs_regcache_loss_t *loss);

/**
 * The same for the helper, which has no reference: the region is not its own
 * any more in any case.
 *
 * @param [in] why  What it is held for.
 *
 * @return Likewise; UCS_ERR_CANCELED if it was doomed meanwhile;
 *         UCS_ERR_REJECTED if its memory is none for registrations that nobody
 *         asked for; UCS_ERR_EXCEEDS_LIMIT if it does not fit: the region is
 *         DORMANT again.
 */
ucs_status_t ucs_regcache_register_ahead(ucs_regcache_h cache,
                                         ucs_regcache_region_t *region,
                                         ucs_regcache_held_t why);

/**
 * What does a use lose that has to register so many pages again? The lower
 * domain's time, and what is done around it: the way to the lock, the inspection
 * of the mapping, the stack, caches that are cold. That is as much again and
 * more where a registration is cheap. Under the lock.
 *
 * @return ns, not less than what the lower domain takes.
 */
double ucs_regcache_missed_ns(ucs_regcache_h cache, size_t pages);

/** Register a region that is REGISTERING for a use not at all: it is not the
 *  caller's any more. */
void ucs_regcache_register_refuse(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region);

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

#endif

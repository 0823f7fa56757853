/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_REGISTER_H_
#define UCS_REGCACHE_REGISTER_H_

#include <ucs/regcache/region/known_memory.h>
#include <ucs/regcache/region/region.h>
#include <ucs/regcache/region/request.h>

#include <stddef.h>

/*
 * How a registration is made: which range, and by which calls.
 */

BEGIN_C_DECLS

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

END_C_DECLS

#endif

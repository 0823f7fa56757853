/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_ANNOUNCE_PLAN_H_
#define UCS_REGCACHE_ANNOUNCE_PLAN_H_

#include <ucs/regcache/announce/announce.h>

/**
 * @file announce_plan.h
 *
 * What a posted receive's registration is worth, and when it is to begin. By
 * the thread that steps.
 */

BEGIN_C_DECLS

/** Set what registering and holding costs, and whether the helper is to come
 *  for it. Takes the index lock. */
void ucs_regcache_announced_price(ucs_regcache_h cache,
                                  ucs_regcache_announcement_t *announcement);


/** @return What it costs, in missed uses, to begin @a after ns after the post,
 *          if the use comes @a delay ns after it. The announcement has a
 *          price. */
double
ucs_regcache_announced_cost(const ucs_regcache_announcement_t *announcement,
                            double after, double delay);


/**
 * Set when registering begins and until when it is held: at once, or just in time for one of the delays that are known. If none
 * is, at once: at worst it costs a missed use more. After @ref
 * ucs_regcache_announced_price.
 *
 * @param [in] share       Of a delay that the next one is taken to be at least.
 * @param [in] wait_least  Missed uses that waiting has to save.
 *
 * @return WAITING, or PASSED: it does not pay.
 */
ucs_regcache_announced_state_t
ucs_regcache_announced_plan(ucs_regcache_announced_t *announced,
                            ucs_regcache_announcement_t *announcement,
                            double share, double wait_least, uint64_t now);

END_C_DECLS

#endif

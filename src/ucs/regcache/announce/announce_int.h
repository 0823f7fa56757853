/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_ANNOUNCE_INT_H_
#define UCS_REGCACHE_ANNOUNCE_INT_H_

#include <ucs/regcache/plan/plan.h>

/*
 * What announce.c, which knows the announcements and what they are worth, does for
 * announce_serve.c, which registers for them; nobody else includes it. All of it is
 * the thread's that steps, without the index lock; nothing fails, and nothing here is
 * owned by who calls: announcements stay in the list.
 */

/** @return The announcement of a number, of those from the first to before the next. */
static inline ucs_regcache_announcement_t *
ucs_regcache_announced_at(ucs_regcache_announced_t *announced, unsigned i)
{
    return &announced->list[i % UCS_REGCACHE_ANNOUNCED];
}

/** Visit all that are not NONE, as they were posted. The one that is visited may be set
 *  to any state. */
#define ucs_regcache_announced_for_each(_of, _i, _announced) \
    for ((_i) = (_announced)->first; (_i) != (_announced)->next; ++(_i)) \
        if (((_of) = ucs_regcache_announced_at(_announced, _i))->state != \
            UCS_REGCACHE_ANNOUNCED_NONE)

/**
 * Change the state, and what is counted of the READY ones. What an announcement had READY
 * stays registered.
 *
 * @param [inout] of  Of the list; if it was or becomes READY its region, generation and
 *                    bytes are set.
 */
void ucs_regcache_announced_set(ucs_regcache_announced_t *announced,
                                ucs_regcache_announcement_t *of,
                                ucs_regcache_announced_state_t state);

/** Find out how much is to be registered, when, and until when, ns; and what that
 *  costs. If it is not clear yet how it will be used, `is_settled` is 0 then, and it is to be
 *  asked again. Takes the index lock. */
void ucs_regcache_announced_settle(ucs_regcache_h cache,
                                   ucs_regcache_announcement_t *of);

/** Give up what has ended, or did not come until @a now, ns; its registrations too if
 *  nothing else keeps them. Something was said before. Takes the index lock. */
void ucs_regcache_announced_expire(ucs_regcache_h cache, uint64_t now);

#endif

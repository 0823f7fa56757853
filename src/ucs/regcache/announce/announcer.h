/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_ANNOUNCER_H_
#define UCS_REGCACHE_ANNOUNCER_H_

#include <ucs/regcache/regcache_int.h>

/**
 * @file announcer.h
 *
 * What is learned of the call sites that post receives: after how long the use
 * comes, and how much of what was posted it needs. All of it by the thread that
 * steps, without the index lock.
 */

BEGIN_C_DECLS

/** @return What is known of a call site that posts at @a start, or of the call
 *          site alone if @a start is 0; made anew where another one had its
 *          place. Never NULL. */
ucs_regcache_announcer_t *
ucs_regcache_announcer(ucs_regcache_announced_t *announced, uint32_t label,
                       uintptr_t start);


/**
 * Learn how long a use was whose receive was announced.
 *
 * @param [in] end       Address behind the region of the use; the start of the
 *                       announcement if no use came.
 * @param [in] start_ns  When the use began.
 *
 * @return What is known of its call site and place.
 */
ucs_regcache_announcer_t *ucs_regcache_announced_learn_length(
        ucs_regcache_h cache, const ucs_regcache_announcement_t *announcement,
        uintptr_t end, uint64_t start_ns);


/**
 * @param [out] alike_p  How many posts before the next one were as they are now.
 *
 * @return Pages that the next use will need; 0: none. There was a post.
 */
uint32_t ucs_regcache_announcer_pages(const ucs_regcache_announcer_t *site,
                                      unsigned *alike_p);


/** Learn from the use that an announcement was of. */
void ucs_regcache_announced_learn(
        ucs_regcache_h cache, const ucs_regcache_announcement_t *announcement,
        const ucs_use_t *use);


/** @return Delays between post and use, of the narrowest kind of post of which
 *          any are known. */
const ucs_predict_delays_t *ucs_regcache_announced_delays(
        ucs_regcache_announced_t *announced,
        const ucs_regcache_announcement_t *announcement);

END_C_DECLS

#endif

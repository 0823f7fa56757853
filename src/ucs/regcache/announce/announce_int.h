/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_ANNOUNCE_INT_H_
#define UCS_REGCACHE_ANNOUNCE_INT_H_

#include "announce.h"

#include <ucs/regcache/regcache.h>

/**
 * @file announce_int.h
 *
 * What announce.c, the list of announcements, does for due.c, which registers what is
 * due; nobody else includes it. All are of the thread that steps.
 */

BEGIN_C_DECLS

static inline ucs_regcache_announcement_t *
ucs_regcache_announced_at(ucs_regcache_announced_t *announced, unsigned i)
{
    return &announced->list[i % UCS_REGCACHE_ANNOUNCED];
}

/** Change an announcement's state, and the counts by state. READY: its region is
 *  set. */
void ucs_regcache_announced_set(ucs_regcache_announced_t *announced,
                                ucs_regcache_announcement_t *announcement,
                                ucs_regcache_announced_state_t state);

/** It is NONE or PASSED from now on: what it keeps registered goes. */
void ucs_regcache_announced_drop(ucs_regcache_h cache,
                                 ucs_regcache_announcement_t *of,
                                 ucs_regcache_announced_state_t state);

/** It is over without a use. */
void ucs_regcache_announced_unused(ucs_regcache_announced_t *announced,
                                   ucs_regcache_announcement_t *of);

/** @return Nonzero if uses have told how it is to be registered. */
int ucs_regcache_announced_is_clear(ucs_regcache_h cache,
                                    const ucs_regcache_announcement_t *of);

/** It is to be registered from @a now on, ns, until holding it has cost a missed
 *  use. */
void ucs_regcache_announced_set_due(ucs_regcache_h cache,
                                    ucs_regcache_announcement_t *of,
                                    uint64_t now);

/** Set when and how far it is to be registered, if that is clear. */
void ucs_regcache_announced_settle(ucs_regcache_h cache,
                                   ucs_regcache_announcement_t *of);

END_C_DECLS

#endif

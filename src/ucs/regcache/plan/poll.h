/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_POLL_H_
#define UCS_REGCACHE_POLL_H_

#include <ucs/regcache/regcache.h>

/**
 * @file poll.h
 *
 * A hit does not wake the helper, so while a use is expected the helper looks
 * into the queue of uses: first when the use would be over that comes at its
 * deadline and lasts as long as the last one, then ever less often, so that a
 * use that comes late by t leaves its region registered for t / share at most.
 */

BEGIN_C_DECLS

/** When to look for what is expected. */
typedef struct ucs_regcache_poll {
    uint64_t next;     /* ns: the first use that is not late would be over;
                          UCS_REGCACHE_TIME_NEVER: there is none */
    uint64_t shortest; /* ns, of the intervals of those that are late */
    uint64_t longest;  /* likewise; 0: none is late */
} ucs_regcache_poll_t;

/**
 * Look through the items that are expected.
 *
 * @param [in] share  A use that is late by t is looked for again after
 *                    t / share.
 * @param [in] bytes  Regions below this size are looked for less often.
 */
void ucs_regcache_poll_expected(ucs_regcache_h cache, unsigned share,
                                size_t bytes, uint64_t now,
                                ucs_regcache_poll_t *poll);

END_C_DECLS

#endif

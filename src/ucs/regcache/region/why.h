/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_WHY_H_
#define UCS_REGCACHE_WHY_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>
#include <stdio.h>

/*
 * Why memory is held and time is lost. Each pinned byte is held for one reason
 * at a time, and each loss has one cause, so both lists add up to the whole.
 */

BEGIN_C_DECLS

/** Why a registration is held. */
typedef enum ucs_regcache_held {
    UCS_REGCACHE_HELD_IN_USE,
    UCS_REGCACHE_HELD_SOON,    /**< its next use comes sooner than registering
                                    again pays, or the policy keeps all */
    UCS_REGCACHE_HELD_AHEAD,   /**< registered before its use, which has not
                                    come yet */
    UCS_REGCACHE_HELD_UNKNOWN, /**< nothing tells its next use so well that a
                                    plan is better than renting it */
    UCS_REGCACHE_HELD_LATE,    /**< by the plan it would be given up, but the
                                    helper has not come */
    UCS_REGCACHE_HELD_OTHER,   /**< there is room under a ceiling, or a receive
                                    was announced, or its memory is unmapped,
                                    or it is being deregistered */
    UCS_REGCACHE_HELD_LAST
} ucs_regcache_held_t;

/** Why a thread of the application lost time. */
typedef enum ucs_regcache_lost {
    UCS_REGCACHE_LOST_FIRST,     /**< registered memory that was new */
    UCS_REGCACHE_LOST_UNFORETOLD, /**< registered again what no plan had
                                       registered by then */
    UCS_REGCACHE_LOST_LATE,      /**< registered what the helper was to have
                                      registered by then */
    UCS_REGCACHE_LOST_ROOM,      /**< registered again what a ceiling had taken
                                      away before the plan did */
    UCS_REGCACHE_LOST_WAITED,    /**< waited for a registration under way */
    UCS_REGCACHE_LOST_RELEASED,  /**< deregistered */
    UCS_REGCACHE_LOST_LAST
} ucs_regcache_lost_t;

/** Sums by reason and by cause. */
typedef struct ucs_regcache_why {
    double   held_byte_ns[UCS_REGCACHE_HELD_LAST];
    uint64_t lost_ns[UCS_REGCACHE_LOST_LAST];
    uint64_t ahead;    /**< registrations ahead of their use */
    uint64_t ahead_ns; /**< that these waited for their uses */
} ucs_regcache_why_t;

/** What a reason or a cause is called. */
typedef struct ucs_regcache_why_name {
    const char *key;  /**< in JSON: a number in seconds or byte-seconds */
    const char *text; /**< for people */
} ucs_regcache_why_name_t;

extern const ucs_regcache_why_name_t
        ucs_regcache_held_names[UCS_REGCACHE_HELD_LAST];
extern const ucs_regcache_why_name_t
        ucs_regcache_lost_names[UCS_REGCACHE_LOST_LAST];

/** @return All byte-nanoseconds held; all nanoseconds lost. */
double ucs_regcache_why_held(const ucs_regcache_why_t *why);
uint64_t ucs_regcache_why_lost(const ucs_regcache_why_t *why);

/** Add to a sum. */
void ucs_regcache_why_add(ucs_regcache_why_t *sum,
                          const ucs_regcache_why_t *why);

/**
 * Print both lists, a line for each that is not 0.
 *
 * @param [in] leave_byte_ns  What leave pinned holds, for shares of it; 0: not
 *                            known.
 * @param [in] run_ns         Likewise, the run time of all ranks together.
 * @param [in] margin         Before each line.
 */
void ucs_regcache_why_print(const ucs_regcache_why_t *why, double leave_byte_ns,
                            double run_ns, const char *margin, FILE *stream);

END_C_DECLS

#endif

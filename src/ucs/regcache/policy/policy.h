/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_POLICY_H_
#define UCS_REGCACHE_POLICY_H_

#include <ucs/regcache/plan/rq.h>
#include <ucs/regcache/region/region.h>
#include <ucs/regcache/regcache.h>
#include <ucs/datastruct/dq.h>

/*
 * A policy says what becomes of a registration that nobody uses. It is a table of
 * functions; nothing else in the cache knows a policy by name.
 *
 * **To add a policy:** give it a value in @ref ucs_regcache_policy_t, and write
 * policy/policy_NAME.c with a `const ucs_regcache_policy_ops_t`, which goes into
 * the tables in policy.c under that value. What the policy keeps is a struct in
 * its own file, allocated by @a init, found in `plan.state` and released by
 * @a cleanup. A policy whose regions just stay or go needs @a idle only;
 * policy_paper.c is the shortest one with a helper.
 *
 * Unless it says otherwise, a function is called by the helper only, without
 * the index lock.
 */

/** A policy. If @a idle is UCS_REGCACHE_IDLE_QUEUE, @a init and @a cleanup are
 *  set, and @a until and @a expired are unless the policy puts nothing into the
 *  registration queue; the others may be NULL. */
typedef struct ucs_regcache_policy_ops {
    /** What the last user of a region does with it. With
     *  UCS_REGCACHE_IDLE_QUEUE the policy needs a helper, which is told. */
    ucs_regcache_idle_t idle;

    /** It holds what is worth its price. Under a ceiling of bytes, memory that
     *  the user has granted, idle regions stay until that is reached; without
     *  one there is a soft one (soft.c). */
    int                 minds_price;

    /** A registration stays until others need what it pins, and its region is
     *  DORMANT afterwards. A posted receive is registered at once. With
     *  UCS_REGCACHE_IDLE_QUEUE only. */
    int                 keeps;

    /** A region in which the policy knows a buffer stays DORMANT, also without an
     *  item, and so does one until it has heard of a use there. */
    int                 keeps_dormant;

    /**
     * Set up what the policy keeps. Called by the first step, or by the thread
     * that creates the cache if regions stay (`keeps`).
     *
     * @param [in]  max      Contexts, or buffers, that it is to know at most.
     * @param [out] state_p  Set only on success.
     *
     * @return UCS_OK, UCS_ERR_NO_MEMORY or UCS_ERR_INVALID_PARAM.
     */
    ucs_status_t (*init)(ucs_regcache_h cache, unsigned max, void **state_p);

    /** Release it. Called by the thread that destroys the cache. */
    void         (*cleanup)(void *state);

    /** Learn from one use, whose region may have gone since. NULL: there is
     *  nothing to learn. */
    void         (*use)(ucs_regcache_h cache, const ucs_use_t *use);

    /** @return Until when a region that is registered, or in use, is waited
     *          for, ns, after @a now. */
    uint64_t     (*until)(ucs_regcache_h cache,
                          const ucs_regcache_rq_item_t *item, uint64_t now);

    /** The time of an item that is not pending has come, and its region is
     *  not in use: put the item off or cancel it. */
    void         (*expired)(ucs_regcache_h cache, ucs_regcache_rq_item_t *item,
                            uint64_t now);

    /** Add to a sorted batch the uses that are under way, with an end of 0, at
     *  most UCS_REGCACHE_UNDER_WAY. @return The number of uses in the batch. */
    unsigned     (*under_way)(ucs_regcache_h cache, ucs_use_t *uses,
                              unsigned count);

    /** All uses that are known have been learned from: bring the queue up to
     *  date. NULL: @a use does that itself. */
    void         (*plan)(ucs_regcache_h cache, uint64_t now);

    /** The program has begun an operation; @a what stands for it. In the order of
     *  times, also with the uses. NULL: of no interest, and unless the policy
     *  @a keeps no posted receive is registered in advance. */
    void         (*hear)(ucs_regcache_h cache, uint64_t what, uint64_t time);

    /** @return Nonzero if short operations may be of interest now. With @a hear
     *          only. */
    int          (*listens)(ucs_regcache_h cache);

    /** A use has begun that will be learned from: short operations may be of interest
     *  again. With @a listens only. */
    void         (*begin)(ucs_regcache_h cache);

    /** A region has become DORMANT. May forget others that are. Called by any
     *  thread, under the index lock. NULL: of no interest. */
    void         (*unpinned)(ucs_regcache_h cache,
                             ucs_regcache_region_t *region);

    /** @return How far the next use of an idle region is, the farthest to be
     *          evicted first. NULL: the least recently used goes first. Called
     *          by any thread, under the index lock. */
    int64_t      (*distance)(ucs_regcache_h cache,
                             ucs_regcache_region_t *region);
} ucs_regcache_policy_ops_t;

extern const ucs_regcache_policy_ops_t ucs_regcache_policy_order;
extern const ucs_regcache_policy_ops_t ucs_regcache_policy_paper;
extern const ucs_regcache_policy_ops_t ucs_regcache_policy_overlap;

/** By the value of the policy, which is below UCS_REGCACHE_POLICY_LAST. */
extern const ucs_regcache_policy_ops_t *const ucs_regcache_policies[];

/** @return A use that is over, as a predictor learns from it. The region may
 *          have begun another life since: its access is a hint. */
static inline ucs_predict_use_t ucs_regcache_policy_learns(const ucs_use_t *use)
{
    return (ucs_predict_use_t){
            .start_ns = use->start_ns,
            .path     = use->sp,
            .address  = use->address,
            .length   = use->length,
            .type     = ucs_load_relaxed(&use->region->access)};
}

#endif

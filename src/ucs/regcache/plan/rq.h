/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_RQ_H_
#define UCS_REGCACHE_RQ_H_

#include <ucs/regcache/region/region.h>

#include <ucs/predict/use.h>
#include <ucs/type/status.h>
#include <ucs/sys/compiler_def.h>

/*
 * Registration queue: what the helper expects, ordered by time (Li et al.
 * 2011, section 3.2). Each communication context has at most one item, which
 * is in one of four lists:
 *
 *   pending   the region is to be registered by `time`, the context's deadline
 *             less a margin; neighbours are moved earlier until the helper can
 *             serve one registration and one deregistration between them
 *   expected  the region is registered; if its use has not come by `time`
 *             (deadline + slack) the registration was in vain
 *   held      the region is kept registered until `time`, for so long after its
 *             latest use holding it is worth while
 *   watched   the region is not registered; at `time` it is to be looked whether
 *             what tells its next use has come
 *
 * The items of one region form a chain, headed in the region for as long as
 * its generation lasts. Owned by the helper: not thread-safe.
 */

BEGIN_C_DECLS

typedef enum ucs_regcache_rq_list {
    UCS_REGCACHE_RQ_NONE,
    UCS_REGCACHE_RQ_PENDING,
    UCS_REGCACHE_RQ_EXPECTED,
    UCS_REGCACHE_RQ_HELD,
    UCS_REGCACHE_RQ_WATCHED,
    UCS_REGCACHE_RQ_LAST
} ucs_regcache_rq_list_t;

typedef struct ucs_regcache_rq_item {
    struct ucs_regcache_rq_item *prev;        /* by time */
    struct ucs_regcache_rq_item *next;
    struct ucs_regcache_rq_item *region_prev; /* same region */
    struct ucs_regcache_rq_item *region_next;
    ucs_regcache_region_t       *region;
    uint64_t                    generation;
    ucs_predict_ref_t           ref;          /* the context */
    uint64_t                    time;         /* ns */
    uint64_t                    deadline;     /* ns, as predicted */
    uint64_t                    use_end;      /* ns, when that use would end */
    uint64_t                    every;        /* ns, between two looks for it */
    uint64_t                    until;        /* ns, when it is given up */
    uint64_t                    hold;         /* ns, after its latest use; 0: it
                                                 is not to be held */
    ucs_regcache_rq_list_t      list;
    unsigned                    refused;      /* registrations in a row */
    unsigned                    skip;         /* uses without an expectation */
} ucs_regcache_rq_item_t;

typedef struct ucs_regcache_rq {
    ucs_regcache_rq_item_t *head[UCS_REGCACHE_RQ_LAST];
    ucs_regcache_rq_item_t *tail[UCS_REGCACHE_RQ_LAST];
    unsigned               count[UCS_REGCACHE_RQ_LAST];
    ucs_regcache_rq_item_t *items; /* by index of the context */
} ucs_regcache_rq_t;

/** Make an empty queue.
 *
 *  @param [in] max_contexts  Bound of the call-site table.
 *
 *  @return UCS_OK or UCS_ERR_NO_MEMORY. */
ucs_status_t ucs_regcache_rq_init(ucs_regcache_rq_t *rq, unsigned max_contexts);

/** Release its items; nothing refers to one any more. */
void ucs_regcache_rq_cleanup(ucs_regcache_rq_t *rq);

/**
 * Put the item of context @a ref into the pending list, in place of what that
 * context had before.
 *
 * @param [in] time  By when the region is to be registered, ns.
 * @param [in] gap   Least distance between neighbours, ns.
 *
 * @return The item.
 */
ucs_regcache_rq_item_t *
ucs_regcache_rq_expect(ucs_regcache_rq_t *rq, ucs_regcache_region_t *region,
                       ucs_predict_ref_t ref, uint64_t time, uint64_t gap);

/** The helper could not register for this context: the next one, or two, four
 *  and so on up to 2^@a max of its uses are not foreseen. */
void ucs_regcache_rq_refused(ucs_regcache_rq_item_t *item, unsigned max);

/** @return Nonzero if the use that follows the present one may be foreseen. To
 *          be asked once for each use. */
int ucs_regcache_rq_may_expect(ucs_regcache_rq_t *rq, ucs_predict_ref_t ref);

/** Move an item to the expected list, to expire at @a time. */
void ucs_regcache_rq_registered(ucs_regcache_rq_t *rq,
                                ucs_regcache_rq_item_t *item,
                                ucs_regcache_region_t *region, uint64_t time);

/** Put the item of context @a ref into a list, HELD or WATCHED, until @a time, in
 *  place of what that context had before. */
void ucs_regcache_rq_put(ucs_regcache_rq_t *rq, ucs_regcache_rq_list_t list,
                         ucs_regcache_region_t *region, ucs_predict_ref_t ref,
                         uint64_t time);

/** Let an item that is not pending expire later. */
void ucs_regcache_rq_extend(ucs_regcache_rq_t *rq, ucs_regcache_rq_item_t *item,
                            uint64_t time);

/** Take an item out of its list. */
void ucs_regcache_rq_remove(ucs_regcache_rq_t *rq,
                            ucs_regcache_rq_item_t *item);

/** @return The earliest item of a list, or NULL. */
static inline ucs_regcache_rq_item_t *
ucs_regcache_rq_first(const ucs_regcache_rq_t *rq, ucs_regcache_rq_list_t list)
{
    return rq->head[list];
}

/** @return The first item of the region's present life, or NULL. */
ucs_regcache_rq_item_t *
ucs_regcache_rq_of_region(ucs_regcache_region_t *region);

/** @return Nonzero if the item's region is still in the life that it was
 *          queued for. */
static inline int
ucs_regcache_rq_item_is_current(const ucs_regcache_rq_item_t *item)
{
    return ucs_regcache_region_gen(item->region) == item->generation;
}

/** @return Nonzero if the item's region is in use. Acquire of the word
 *  [R-LIVE], so that the fields are those of this life or the word changes. */
static inline int
ucs_regcache_rq_item_in_use(const ucs_regcache_rq_item_t *item)
{
    return ucs_regcache_rq_item_is_current(item) &&
           (ucs_regcache_word_refs(ucs_load_acquire(/* [R-LIVE] */
                                                    &item->region->word)) > 0);
}

END_C_DECLS

#endif

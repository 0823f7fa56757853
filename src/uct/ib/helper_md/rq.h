/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_RQ_H_
#define UCT_HELPER_RQ_H_

#include "region.h"

#include <ucs/predict/callsite.h>
#include <ucs/type/status.h>
#include <ucs/sys/compiler_def.h>

/**
 * @file rq.h
 *
 * Registration queue: what the helper expects, ordered by time (Li et al.
 * 2011, section 3.2). Each communication context has at most one item, which
 * is in one of three lists:
 *
 *   pending   the region is to be registered by `time`, the context's deadline
 *             less a margin; neighbours are moved earlier until the helper can
 *             serve one registration and one deregistration between them
 *   expected  the region is registered; if its use has not come by `time`
 *             (deadline + slack) the registration was in vain
 *   held      the region is kept registered until `time`, for nothing is known
 *             of its next use
 *
 * The items of one region form a chain, headed in the region for as long as
 * its generation lasts. Owned by the helper: not thread-safe.
 */

BEGIN_C_DECLS

typedef enum uct_helper_rq_list {
    UCT_HELPER_RQ_NONE,
    UCT_HELPER_RQ_PENDING,
    UCT_HELPER_RQ_EXPECTED,
    UCT_HELPER_RQ_HELD,
    UCT_HELPER_RQ_LAST
} uct_helper_rq_list_t;

typedef struct uct_helper_rq_item {
    struct uct_helper_rq_item *prev;        /* by time */
    struct uct_helper_rq_item *next;
    struct uct_helper_rq_item *region_prev; /* same region */
    struct uct_helper_rq_item *region_next;
    uct_helper_region_t       *region;
    uint64_t                  generation;
    ucs_predict_ref_t         ref;          /* the context */
    uint64_t                  time;         /* ns */
    uint64_t                  deadline;     /* ns, as predicted */
    uint64_t                  use_end;      /* ns, when that use would end */
    uint64_t                  until;        /* ns, when it is given up */
    uint64_t                  gap;          /* ns, from the latest use to the
                                               deadline; 0: not known */
    uct_helper_rq_list_t      list;
    unsigned                  refused;      /* registrations in a row */
    unsigned                  skip;         /* uses without an expectation */
} uct_helper_rq_item_t;

typedef struct uct_helper_rq {
    uct_helper_rq_item_t *head[UCT_HELPER_RQ_LAST];
    uct_helper_rq_item_t *tail[UCT_HELPER_RQ_LAST];
    unsigned             count[UCT_HELPER_RQ_LAST];
    uct_helper_rq_item_t *items;            /* by index of the context */
} uct_helper_rq_t;

/** @param [in] max_contexts  Bound of the call-site table. */
ucs_status_t uct_helper_rq_init(uct_helper_rq_t *rq, unsigned max_contexts);

void uct_helper_rq_cleanup(uct_helper_rq_t *rq);

/**
 * Put the item of context @a ref into the pending list, in place of what that
 * context had before.
 *
 * @param [in] time      By when the region is to be registered, ns.
 * @param [in] deadline  Predicted use, ns.
 * @param [in] use_end   Predicted end of that use, ns.
 * @param [in] gap       Least distance between neighbours, ns.
 */
void uct_helper_rq_expect(uct_helper_rq_t *rq, uct_helper_region_t *region,
                          ucs_predict_ref_t ref, uint64_t time,
                          uint64_t deadline, uint64_t use_end, uint64_t gap);

/** The helper could not register for this context: the next one, or two, four
 *  and so on up to a thousand of its uses are not foreseen. */
void uct_helper_rq_refused(uct_helper_rq_item_t *item);

/** @return Nonzero if the use that follows the present one may be foreseen. To
 *          be asked once for each use. */
int uct_helper_rq_may_expect(uct_helper_rq_t *rq, ucs_predict_ref_t ref);

/** Move a pending item to the expected list, to expire at @a time; the region
 *  may be another one that covers the same range. */
void uct_helper_rq_registered(uct_helper_rq_t *rq, uct_helper_rq_item_t *item,
                              uct_helper_region_t *region, uint64_t time);

/** Keep the region of context @a ref registered until @a time, in place of what
 *  that context had before. */
void uct_helper_rq_hold(uct_helper_rq_t *rq, uct_helper_region_t *region,
                        ucs_predict_ref_t ref, uint64_t time);

/** Let an expected or held item expire later. */
void uct_helper_rq_extend(uct_helper_rq_t *rq, uct_helper_rq_item_t *item,
                          uint64_t time);

/** Take an item out of its list. */
void uct_helper_rq_remove(uct_helper_rq_t *rq, uct_helper_rq_item_t *item);

/** @return The earliest item of a list, or NULL. */
static inline uct_helper_rq_item_t *
uct_helper_rq_first(const uct_helper_rq_t *rq, uct_helper_rq_list_t list)
{
    return rq->head[list];
}

/** @return The first item of the region's present life, or NULL. */
uct_helper_rq_item_t *uct_helper_rq_of_region(uct_helper_region_t *region);

/** @return Nonzero if the item's region is still in the life that it was
 *          queued for. */
static inline int
uct_helper_rq_item_is_current(const uct_helper_rq_item_t *item)
{
    return uct_helper_region_gen(item->region) == item->generation;
}

/** @return Nonzero if order, gaps' order and links hold; for tests, debug. */
int uct_helper_rq_is_valid(const uct_helper_rq_t *rq);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "rq.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* 2^10 uses without a try at most */
#define UCT_HELPER_RQ_REFUSED_MAX 10u

ucs_status_t uct_helper_rq_init(uct_helper_rq_t *rq, unsigned max_contexts)
{
    memset(rq, 0, sizeof(*rq));
    rq->items = calloc(max_contexts, sizeof(*rq->items));
    return (rq->items == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void uct_helper_rq_cleanup(uct_helper_rq_t *rq)
{
    free(rq->items);
}

uct_helper_rq_item_t *uct_helper_rq_of_region(uct_helper_region_t *region)
{
    return (region->items_gen == uct_helper_region_gen(region)) ?
                   region->items :
                   NULL;
}

static void uct_helper_rq_chain(uct_helper_rq_item_t *item,
                                uct_helper_region_t *region)
{
    /* Once: the life may end meanwhile */
    uint64_t generation        = uct_helper_region_gen(region);
    uct_helper_rq_item_t *head = (region->items_gen == generation) ?
                                         region->items :
                                         NULL;

    item->region      = region;
    item->generation  = generation;
    item->region_prev = NULL;
    item->region_next = head;
    if (head != NULL) {
        head->region_prev = item;
    }
    region->items     = item;
    region->items_gen = item->generation;
}

static void uct_helper_rq_unchain(uct_helper_rq_item_t *item)
{
    if (item->region_prev != NULL) {
        item->region_prev->region_next = item->region_next;
    } else if ((item->region->items == item) &&
               (item->region->items_gen == item->generation)) {
        item->region->items = item->region_next;
    }
    if (item->region_next != NULL) {
        item->region_next->region_prev = item->region_prev;
    }
}

static void uct_helper_rq_unlink(uct_helper_rq_t *rq,
                                 uct_helper_rq_item_t *item)
{
    uct_helper_rq_list_t list = item->list;

    if (item->prev != NULL) {
        item->prev->next = item->next;
    } else {
        rq->head[list] = item->next;
    }
    if (item->next != NULL) {
        item->next->prev = item->prev;
    } else {
        rq->tail[list] = item->prev;
    }
    --rq->count[list];
    item->list = UCT_HELPER_RQ_NONE;
}

static void uct_helper_rq_insert(uct_helper_rq_t *rq,
                                 uct_helper_rq_item_t *item,
                                 uct_helper_rq_list_t list,
                                 uct_helper_rq_item_t *prev)
{
    item->list = list;
    item->prev = prev;
    item->next = (prev != NULL) ? prev->next : rq->head[list];
    if (item->prev != NULL) {
        item->prev->next = item;
    } else {
        rq->head[list] = item;
    }
    if (item->next != NULL) {
        item->next->prev = item;
    } else {
        rq->tail[list] = item;
    }
    ++rq->count[list];
}

/* Behind the last item that is not later; expectations mostly arrive in the
 * order of their time, so the search starts at the tail */
static void uct_helper_rq_link(uct_helper_rq_t *rq, uct_helper_rq_item_t *item,
                               uct_helper_rq_list_t list)
{
    uct_helper_rq_item_t *prev = rq->tail[list];

    while ((prev != NULL) && (prev->time > item->time)) {
        prev = prev->prev;
    }
    uct_helper_rq_insert(rq, item, list, prev);
}

static uint64_t uct_helper_rq_before(uint64_t time, uint64_t gap)
{
    return (time > gap) ? time - gap : 0;
}

/* Only ever earlier: a registration that comes too soon costs memory, one that
 * comes too late costs the application time */
static void uct_helper_rq_spread(uct_helper_rq_item_t *item, uint64_t gap)
{
    uint64_t limit;

    if (item->next != NULL) {
        limit = uct_helper_rq_before(item->next->time, gap);
        if (item->time > limit) {
            item->time = limit;
        }
    }
    for (; item->prev != NULL; item = item->prev) {
        limit = uct_helper_rq_before(item->time, gap);
        if (item->prev->time <= limit) {
            break;
        }
        item->prev->time = limit;
    }
}

void uct_helper_rq_remove(uct_helper_rq_t *rq, uct_helper_rq_item_t *item)
{
    if (item->list != UCT_HELPER_RQ_NONE) {
        uct_helper_rq_unlink(rq, item);
        uct_helper_rq_unchain(item);
    }
}

void uct_helper_rq_expect(uct_helper_rq_t *rq, uct_helper_region_t *region,
                          ucs_predict_ref_t ref, uint64_t time,
                          uint64_t deadline, uint64_t use_end, uint64_t gap)
{
    uct_helper_rq_item_t *item = &rq->items[ref.index];

    uct_helper_rq_remove(rq, item);
    item->ref      = ref;
    item->time     = time;
    item->deadline = deadline;
    item->use_end  = use_end;
    uct_helper_rq_chain(item, region);
    uct_helper_rq_link(rq, item, UCT_HELPER_RQ_PENDING);
    uct_helper_rq_spread(item, gap);
}

void uct_helper_rq_refused(uct_helper_rq_item_t *item)
{
    item->skip    = 1u << item->refused;
    item->refused = ucs_min(item->refused + 1, UCT_HELPER_RQ_REFUSED_MAX);
}

int uct_helper_rq_may_expect(uct_helper_rq_t *rq, ucs_predict_ref_t ref)
{
    uct_helper_rq_item_t *item = &rq->items[ref.index];

    if (memcmp(&item->ref, &ref, sizeof(ref)) != 0) {
        item->refused = 0;
        item->skip    = 0;
    }
    if (item->skip == 0) {
        return 1;
    }
    --item->skip;
    return 0;
}

void uct_helper_rq_registered(uct_helper_rq_t *rq, uct_helper_rq_item_t *item,
                              uct_helper_region_t *region, uint64_t time)
{
    uct_helper_rq_remove(rq, item);
    item->refused = 0;
    item->time    = time;
    uct_helper_rq_chain(item, region);
    uct_helper_rq_link(rq, item, UCT_HELPER_RQ_EXPECTED);
}

void uct_helper_rq_hold(uct_helper_rq_t *rq, uct_helper_region_t *region,
                        ucs_predict_ref_t ref, uint64_t time)
{
    uct_helper_rq_item_t *item = &rq->items[ref.index];

    uct_helper_rq_remove(rq, item);
    item->ref  = ref;
    item->time = time;
    uct_helper_rq_chain(item, region);
    uct_helper_rq_link(rq, item, UCT_HELPER_RQ_HELD);
}

void uct_helper_rq_extend(uct_helper_rq_t *rq, uct_helper_rq_item_t *item,
                          uint64_t time)
{
    uct_helper_rq_list_t list  = item->list;
    uct_helper_rq_item_t *prev = item->prev;
    uct_helper_rq_item_t *next = item->next;

    /* Likewise, but not far from where it was */
    uct_helper_rq_unlink(rq, item);
    item->time = time;
    while ((prev != NULL) && (prev->time > time)) {
        prev = prev->prev;
    }
    while ((next != NULL) && (next->time <= time)) {
        prev = next;
        next = next->next;
    }
    uct_helper_rq_insert(rq, item, list, prev);
}

static int uct_helper_rq_list_is_valid(const uct_helper_rq_t *rq,
                                       uct_helper_rq_list_t list)
{
    const uct_helper_rq_item_t *prev = NULL;
    const uct_helper_rq_item_t *item;
    unsigned count = 0;

    for (item = rq->head[list]; item != NULL; item = item->next) {
        if ((item->list != list) || (item->prev != prev) ||
            ((prev != NULL) && (prev->time > item->time))) {
            return 0;
        }
        prev = item;
        ++count;
    }
    return (rq->tail[list] == prev) && (rq->count[list] == count);
}

int uct_helper_rq_is_valid(const uct_helper_rq_t *rq)
{
    return uct_helper_rq_list_is_valid(rq, UCT_HELPER_RQ_PENDING) &&
           uct_helper_rq_list_is_valid(rq, UCT_HELPER_RQ_EXPECTED) &&
           uct_helper_rq_list_is_valid(rq, UCT_HELPER_RQ_HELD);
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "rq.h"

#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_memory.h>

#include <string.h>

ucs_status_t ucs_regcache_rq_init(ucs_regcache_rq_t *rq, unsigned max_contexts)
{
    memset(rq, 0, sizeof(*rq));
    rq->items = ucs_own_alloc(max_contexts * sizeof(*rq->items));
    return (rq->items == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void ucs_regcache_rq_cleanup(ucs_regcache_rq_t *rq)
{
    ucs_own_free(rq->items);
}

ucs_regcache_rq_item_t *ucs_regcache_rq_of_region(ucs_regcache_region_t *region)
{
    return (region->items_gen == ucs_regcache_region_gen(region)) ?
                   region->items :
                   NULL;
}

static void ucs_regcache_rq_chain(ucs_regcache_rq_item_t *item,
                                  ucs_regcache_region_t *region)
{
    /* Once: the life may end meanwhile */
    uint64_t generation          = ucs_regcache_region_gen(region);
    ucs_regcache_rq_item_t *head = (region->items_gen == generation) ?
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

static void ucs_regcache_rq_unchain(ucs_regcache_rq_item_t *item)
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

static void ucs_regcache_rq_unlink(ucs_regcache_rq_t *rq,
                                   ucs_regcache_rq_item_t *item)
{
    ucs_regcache_rq_list_t list = item->list;

    if (list == UCS_REGCACHE_RQ_PENDING) {
        ucs_store_relaxed(&item->region->due, 0);
    }
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
    item->list = UCS_REGCACHE_RQ_NONE;
}

static void ucs_regcache_rq_insert(ucs_regcache_rq_t *rq,
                                   ucs_regcache_rq_item_t *item,
                                   ucs_regcache_rq_list_t list,
                                   ucs_regcache_rq_item_t *prev)
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
static void ucs_regcache_rq_link(ucs_regcache_rq_t *rq,
                                 ucs_regcache_rq_item_t *item,
                                 ucs_regcache_rq_list_t list)
{
    ucs_regcache_rq_item_t *prev = rq->tail[list];

    while ((prev != NULL) && (prev->time > item->time)) {
        prev = prev->prev;
    }
    ucs_regcache_rq_insert(rq, item, list, prev);
}

static uint64_t ucs_regcache_rq_before(uint64_t time, uint64_t gap)
{
    return (time > gap) ? time - gap : 0;
}

/* Only ever earlier: a registration that comes too soon costs memory, one that
 * comes too late costs the application time */
static void ucs_regcache_rq_spread(ucs_regcache_rq_item_t *item, uint64_t gap)
{
    uint64_t limit;

    if (item->next != NULL) {
        limit = ucs_regcache_rq_before(item->next->time, gap);
        if (item->time > limit) {
            item->time = limit;
        }
    }
    for (; item->prev != NULL; item = item->prev) {
        limit = ucs_regcache_rq_before(item->time, gap);
        if (item->prev->time <= limit) {
            break;
        }
        item->prev->time = limit;
    }
}

void ucs_regcache_rq_remove(ucs_regcache_rq_t *rq, ucs_regcache_rq_item_t *item)
{
    if (item->list != UCS_REGCACHE_RQ_NONE) {
        ucs_regcache_rq_unlink(rq, item);
        ucs_regcache_rq_unchain(item);
    }
}

void ucs_regcache_rq_put(ucs_regcache_rq_t *rq, ucs_regcache_rq_list_t list,
                         ucs_regcache_region_t *region, ucs_predict_ref_t ref,
                         uint64_t time)
{
    ucs_regcache_rq_item_t *item = &rq->items[ref.index];

    ucs_regcache_rq_remove(rq, item);
    item->ref  = ref;
    item->time = time;
    ucs_regcache_rq_chain(item, region);
    ucs_regcache_rq_link(rq, item, list);
}

ucs_regcache_rq_item_t *
ucs_regcache_rq_expect(ucs_regcache_rq_t *rq, ucs_regcache_region_t *region,
                       ucs_predict_ref_t ref, uint64_t time, uint64_t gap)
{
    ucs_regcache_rq_item_t *item = &rq->items[ref.index];

    ucs_regcache_rq_put(rq, UCS_REGCACHE_RQ_PENDING, region, ref, time);
    ucs_store_relaxed(&region->due, time);
    ucs_regcache_rq_spread(item, gap);
    return item;
}

void ucs_regcache_rq_refused(ucs_regcache_rq_item_t *item, unsigned max)
{
    item->skip    = 1u << item->refused;
    item->refused = ucs_min(item->refused + 1, max);
}

int ucs_regcache_rq_may_expect(ucs_regcache_rq_t *rq, ucs_predict_ref_t ref)
{
    ucs_regcache_rq_item_t *item = &rq->items[ref.index];

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

void ucs_regcache_rq_registered(ucs_regcache_rq_t *rq,
                                ucs_regcache_rq_item_t *item,
                                ucs_regcache_region_t *region, uint64_t time)
{
    ucs_regcache_rq_remove(rq, item);
    item->refused = 0;
    item->time    = time;
    ucs_regcache_rq_chain(item, region);
    ucs_regcache_rq_link(rq, item, UCS_REGCACHE_RQ_EXPECTED);
}

void ucs_regcache_rq_extend(ucs_regcache_rq_t *rq, ucs_regcache_rq_item_t *item,
                            uint64_t time)
{
    ucs_regcache_rq_list_t list  = item->list;
    ucs_regcache_rq_item_t *prev = item->prev;
    ucs_regcache_rq_item_t *next = item->next;

    /* Likewise, but not far from where it was */
    ucs_regcache_rq_unlink(rq, item);
    item->time = time;
    while ((prev != NULL) && (prev->time > time)) {
        prev = prev->prev;
    }
    while ((next != NULL) && (next->time <= time)) {
        prev = next;
        next = next->next;
    }
    ucs_regcache_rq_insert(rq, item, list, prev);
}

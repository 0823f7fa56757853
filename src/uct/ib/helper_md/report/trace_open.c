/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "trace_open.h"

#include <ucs/sys/mem/own_memory.h>

#include <ucs/datastruct/hlist.h>

/* The table grows in the recorder's thread, for which malloc() would make an arena */
#define kcalloc(_number, _size)  ucs_own_alloc((_number) * (_size))
#define kmalloc(_size)           ucs_own_alloc(_size)
#define krealloc(_memory, _size) ucs_own_realloc(_memory, _size)
#define kfree(_memory)           ucs_own_free(_memory)

#include <ucs/datastruct/khash.h>

typedef struct uct_helper_trace_use {
    ucs_hlist_link_t  list;
    ucs_trace_event_t event;
} uct_helper_trace_use_t;

/* By handle, its uses, the oldest first */
KHASH_MAP_INIT_INT64(uct_helper_trace_uses, ucs_hlist_head_t)

/* Invariant: count == length of all lists */
struct uct_helper_trace_open {
    khash_t(uct_helper_trace_uses) uses;
    unsigned                       count;
    khiter_t                       next; /* where take_any goes on */
};

ucs_status_t uct_helper_trace_open_create(uct_helper_trace_open_h *open_p)
{
    uct_helper_trace_open_h open = ucs_own_alloc(sizeof(*open));

    if (open == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    kh_init_inplace(uct_helper_trace_uses, &open->uses);
    *open_p = open;
    return UCS_OK;
}

void uct_helper_trace_open_destroy(uct_helper_trace_open_h open)
{
    ucs_trace_event_t event;

    while (uct_helper_trace_open_take_any(open, &event)) {
    }
    kh_destroy_inplace(uct_helper_trace_uses, &open->uses);
    ucs_own_free(open);
}

int uct_helper_trace_open_add(uct_helper_trace_open_h open, uct_mem_h memh,
                              const ucs_trace_event_t *event)
{
    uct_helper_trace_use_t *use;
    khiter_t iter;
    int ret;

    if (open->count == UCT_HELPER_TRACE_OPEN_MAX) {
        return 0;
    }

    use = ucs_own_alloc(sizeof(*use));
    if (use == NULL) {
        return 0;
    }

    iter = kh_put(uct_helper_trace_uses, &open->uses, (uintptr_t)memh,
                  &ret);
    if (ret < 0) {
        ucs_own_free(use);
        return 0;
    }

    if (ret > 0) { /* the handle has no others */
        ucs_hlist_head_init(&kh_val(&open->uses, iter));
    }
    use->event = *event;
    ucs_hlist_add_tail(&kh_val(&open->uses, iter), &use->list);
    ++open->count;
    return 1;
}

static void uct_helper_trace_open_take_oldest(uct_helper_trace_open_h open,
                                              khiter_t iter,
                                              ucs_trace_event_t *event)
{
    ucs_hlist_head_t *uses         = &kh_val(&open->uses, iter);
    uct_helper_trace_use_t *oldest = ucs_hlist_extract_head_elem(
            uses, uct_helper_trace_use_t, list);

    *event = oldest->event;
    if (ucs_hlist_is_empty(uses)) {
        kh_del(uct_helper_trace_uses, &open->uses, iter);
    }
    ucs_own_free(oldest);
    --open->count;
}

int uct_helper_trace_open_take(uct_helper_trace_open_h open, uct_mem_h memh,
                               ucs_trace_event_t *event)
{
    khiter_t iter = kh_get(uct_helper_trace_uses, &open->uses,
                           (uintptr_t)memh);

    if (iter == kh_end(&open->uses)) {
        return 0;
    }

    uct_helper_trace_open_take_oldest(open, iter, event);
    return 1;
}

int uct_helper_trace_open_take_any(uct_helper_trace_open_h open,
                                   ucs_trace_event_t *event)
{
    if (open->count == 0) {
        return 0;
    }

    /* Go on where the last search ended: from the start each time, taking all
     * would cost the square of their number. */
    do {
        open->next = (open->next + 1) % kh_end(&open->uses);
    } while (!kh_exist(&open->uses, open->next));
    uct_helper_trace_open_take_oldest(open, open->next, event);
    return 1;
}

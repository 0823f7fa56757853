/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "trace_open.h"

#include <ucs/sys/mem/own_memory.h>

/* The table grows in the recorder's thread, for which malloc() would make an arena */
#define kcalloc(_number, _size)  ucs_own_alloc((_number) * (_size))
#define kmalloc(_size)           ucs_own_alloc(_size)
#define krealloc(_memory, _size) ucs_own_realloc(_memory, _size)
#define kfree(_memory)           ucs_own_free(_memory)

#include <ucs/datastruct/khash.h>

/* The open uses of a handle are a ring */
typedef struct uct_helper_trace_use {
    struct uct_helper_trace_use *next; /* younger; at last the oldest */
    ucs_trace_event_t           event;
} uct_helper_trace_use_t;

/* By handle, the youngest use of each */
KHASH_MAP_INIT_INT64(uct_helper_trace_uses, uct_helper_trace_use_t*)

/* Invariant: count == length of all rings */
struct uct_helper_trace_open {
    khash_t(uct_helper_trace_uses) youngest;
    unsigned                       count;
    khiter_t                       next; /* where take_any goes on */
};

ucs_status_t uct_helper_trace_open_create(uct_helper_trace_open_h *open_p)
{
    uct_helper_trace_open_h open = ucs_own_alloc(sizeof(*open));

    if (open == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    kh_init_inplace(uct_helper_trace_uses, &open->youngest);
    *open_p = open;
    return UCS_OK;
}

void uct_helper_trace_open_destroy(uct_helper_trace_open_h open)
{
    ucs_trace_event_t event;

    while (uct_helper_trace_open_take_any(open, &event)) {
    }
    kh_destroy_inplace(uct_helper_trace_uses, &open->youngest);
    ucs_own_free(open);
}

int uct_helper_trace_open_add(uct_helper_trace_open_h open, uct_mem_h memh,
                              const ucs_trace_event_t *event)
{
    uct_helper_trace_use_t *use, *youngest;
    khiter_t iter;
    int ret;

    if (open->count == UCT_HELPER_TRACE_OPEN_MAX) {
        return 0;
    }

    use = ucs_own_alloc(sizeof(*use));
    if (use == NULL) {
        return 0;
    }

    iter = kh_put(uct_helper_trace_uses, &open->youngest, (uintptr_t)memh,
                  &ret);
    if (ret < 0) {
        ucs_own_free(use);
        return 0;
    }

    use->event = *event;
    use->next  = use;
    if (ret == 0) { /* the handle has others */
        youngest       = kh_val(&open->youngest, iter);
        use->next      = youngest->next;
        youngest->next = use;
    }
    kh_val(&open->youngest, iter) = use;
    ++open->count;
    return 1;
}

static void uct_helper_trace_open_take_oldest(uct_helper_trace_open_h open,
                                              khiter_t iter,
                                              ucs_trace_event_t *event)
{
    uct_helper_trace_use_t *youngest = kh_val(&open->youngest, iter);
    uct_helper_trace_use_t *oldest   = youngest->next;

    *event = oldest->event;
    if (oldest == youngest) {
        kh_del(uct_helper_trace_uses, &open->youngest, iter);
    } else {
        youngest->next = oldest->next;
    }
    ucs_own_free(oldest);
    --open->count;
}

int uct_helper_trace_open_take(uct_helper_trace_open_h open, uct_mem_h memh,
                               ucs_trace_event_t *event)
{
    khiter_t iter = kh_get(uct_helper_trace_uses, &open->youngest,
                           (uintptr_t)memh);

    if (iter == kh_end(&open->youngest)) {
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
        open->next = (open->next + 1) % kh_end(&open->youngest);
    } while (!kh_exist(&open->youngest, open->next));
    uct_helper_trace_open_take_oldest(open, open->next, event);
    return 1;
}

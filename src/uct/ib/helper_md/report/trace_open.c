/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "trace_open.h"

#include <ucs/sys/hash.h>
#include <ucs/sys/mem/own_memory.h>

/* Lists by a handle's hash: with a use each of many handles a list has few */
#define UCT_HELPER_TRACE_OPEN_LISTS 4096u

typedef struct uct_helper_trace_use {
    uct_mem_h         memh;
    unsigned          next;
    ucs_trace_event_t event;
} uct_helper_trace_use_t;

/* Uses are named by their place, 0: none. A list has the oldest first.
 * Invariant: count == length of all lists but the spare places */
struct uct_helper_trace_open {
    unsigned               first[UCT_HELPER_TRACE_OPEN_LISTS];
    unsigned               last[UCT_HELPER_TRACE_OPEN_LISTS];
    unsigned               spare; /* a list of places that were given back */
    unsigned               used;  /* places that were ever taken */
    unsigned               count;
    unsigned               any;   /* the list where take_any goes on */
    uct_helper_trace_use_t uses[UCT_HELPER_TRACE_OPEN_MAX + 1];
};

ucs_status_t uct_helper_trace_open_create(uct_helper_trace_open_h *open_p)
{
    *open_p = ucs_own_alloc(sizeof(**open_p));
    return (*open_p != NULL) ? UCS_OK : UCS_ERR_NO_MEMORY;
}

void uct_helper_trace_open_destroy(uct_helper_trace_open_h open)
{
    ucs_own_free(open);
}

static unsigned uct_helper_trace_open_list(uct_mem_h memh)
{
    return ucs_hash_mix((uintptr_t)memh) % UCT_HELPER_TRACE_OPEN_LISTS;
}

int uct_helper_trace_open_add(uct_helper_trace_open_h open, uct_mem_h memh,
                              const ucs_trace_event_t *event)
{
    unsigned list  = uct_helper_trace_open_list(memh);
    unsigned place = open->spare;

    if (place != 0) {
        open->spare = open->uses[place].next;
    } else if (open->used < UCT_HELPER_TRACE_OPEN_MAX) {
        place = ++open->used;
    } else {
        return 0;
    }

    open->uses[place] = (uct_helper_trace_use_t){memh, 0, *event};
    if (open->last[list] != 0) {
        open->uses[open->last[list]].next = place;
    } else {
        open->first[list] = place;
    }
    open->last[list] = place;
    ++open->count;
    return 1;
}

/* The use behind @a before, or the first */
static void uct_helper_trace_open_remove(uct_helper_trace_open_h open,
                                         unsigned list, unsigned before,
                                         ucs_trace_event_t *event)
{
    unsigned *link              = (before != 0) ? &open->uses[before].next :
                                                  &open->first[list];
    unsigned place              = *link;
    uct_helper_trace_use_t *use = &open->uses[place];

    *event = use->event;
    *link  = use->next;
    if (open->last[list] == place) {
        open->last[list] = before;
    }
    use->next   = open->spare;
    open->spare = place;
    --open->count;
}

int uct_helper_trace_open_take(uct_helper_trace_open_h open, uct_mem_h memh,
                               ucs_trace_event_t *event)
{
    unsigned list   = uct_helper_trace_open_list(memh);
    unsigned place  = open->first[list];
    unsigned before = 0;

    while ((place != 0) && (open->uses[place].memh != memh)) {
        before = place;
        place  = open->uses[place].next;
    }
    if (place != 0) {
        uct_helper_trace_open_remove(open, list, before, event);
    }
    return place != 0;
}

int uct_helper_trace_open_take_any(uct_helper_trace_open_h open,
                                   ucs_trace_event_t *event)
{
    if (open->count == 0) {
        return 0;
    }
    while (open->first[open->any] == 0) {
        open->any = (open->any + 1) % UCT_HELPER_TRACE_OPEN_LISTS;
    }
    uct_helper_trace_open_remove(open, open->any, 0, event);
    return 1;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "trace_open.h"

#include <ucs/sys/hash.h>

#include <stdlib.h>

#define UCT_HELPER_TRACE_BUCKETS 4096u

typedef struct uct_helper_trace_use {
    struct uct_helper_trace_use *next;
    uct_mem_h                   memh;
    ucs_trace_event_t           event;
} uct_helper_trace_use_t;

/* Invariant: count == length of all lists but unused */
struct uct_helper_trace_open {
    uct_helper_trace_use_t *unused;
    uct_helper_trace_use_t *heads[UCT_HELPER_TRACE_BUCKETS];
    uct_helper_trace_use_t **tails[UCT_HELPER_TRACE_BUCKETS];
    unsigned               count;
    unsigned               bucket; /* where take_any goes on */
};


static unsigned uct_helper_trace_bucket(uct_mem_h memh)
{
    return (((uint64_t)(uintptr_t)memh * UCS_HASH_FACTOR) >> 40) %
           UCT_HELPER_TRACE_BUCKETS;
}

ucs_status_t uct_helper_trace_open_create(uct_helper_trace_open_h *open_p)
{
    uct_helper_trace_open_h open = calloc(1, sizeof(*open));
    unsigned i;

    if (open == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    for (i = 0; i < UCT_HELPER_TRACE_BUCKETS; ++i) {
        open->tails[i] = &open->heads[i];
    }
    *open_p = open;
    return UCS_OK;
}

void uct_helper_trace_open_destroy(uct_helper_trace_open_h open)
{
    uct_helper_trace_use_t *use;
    ucs_trace_event_t event;

    while (uct_helper_trace_open_take_any(open, &event)) {
    }
    while ((use = open->unused) != NULL) {
        open->unused = use->next;
        free(use);
    }
    free(open);
}

int uct_helper_trace_open_add(uct_helper_trace_open_h open, uct_mem_h memh,
                              const ucs_trace_event_t *event)
{
    unsigned bucket             = uct_helper_trace_bucket(memh);
    uct_helper_trace_use_t *use = open->unused;

    if (open->count == UCT_HELPER_TRACE_OPEN_MAX) {
        return 0;
    }
    if (use != NULL) {
        open->unused = use->next;
    } else {
        use = malloc(sizeof(*use));
        if (use == NULL) {
            return 0;
        }
    }

    use->next            = NULL;
    use->memh            = memh;
    use->event           = *event;
    *open->tails[bucket] = use;
    open->tails[bucket]  = &use->next;
    ++open->count;
    return 1;
}

static void uct_helper_trace_open_unlink(uct_helper_trace_open_h open,
                                         unsigned bucket,
                                         uct_helper_trace_use_t **link,
                                         ucs_trace_event_t *event)
{
    uct_helper_trace_use_t *use = *link;

    *event = use->event;
    *link  = use->next;
    if (open->tails[bucket] == &use->next) {
        open->tails[bucket] = link;
    }
    use->next    = open->unused;
    open->unused = use;
    --open->count;
}

int uct_helper_trace_open_take(uct_helper_trace_open_h open, uct_mem_h memh,
                               ucs_trace_event_t *event)
{
    unsigned bucket = uct_helper_trace_bucket(memh);
    uct_helper_trace_use_t **link;

    for (link = &open->heads[bucket]; *link != NULL; link = &(*link)->next) {
        if ((*link)->memh == memh) {
            uct_helper_trace_open_unlink(open, bucket, link, event);
            return 1;
        }
    }
    return 0;
}

int uct_helper_trace_open_take_any(uct_helper_trace_open_h open,
                                   ucs_trace_event_t *event)
{
    if (open->count == 0) {
        return 0;
    }
    while (open->heads[open->bucket] == NULL) {
        open->bucket = (open->bucket + 1) % UCT_HELPER_TRACE_BUCKETS;
    }
    uct_helper_trace_open_unlink(open, open->bucket,
                                 &open->heads[open->bucket], event);
    return 1;
}

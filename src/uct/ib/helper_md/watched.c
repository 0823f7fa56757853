/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "watched.h"
#include "extents.h"
#include "lock.h"

#include <stdlib.h>

/* Protects the notes. A leaf: it may be taken wherever a memory event may come,
 * with anything held. The reader of kernel events only tries, for the thread
 * that it would wait for may itself wait for the reader; it alone holds it across
 * a system call, a read that does not block. */
static uct_helper_lock_t uct_helper_watched_lock;
static uct_helper_extents_t uct_helper_watched;


static unsigned uct_helper_watched_missing(void)
{
    unsigned spares;

    uct_helper_lock(&uct_helper_watched_lock);
    spares = uct_helper_watched.spares;
    uct_helper_unlock(&uct_helper_watched_lock);
    return (spares < UCT_HELPER_WATCHED_STOCK / 2) ?
                   UCT_HELPER_WATCHED_STOCK - spares : 0;
}

void uct_helper_watched_stock(void)
{
    unsigned missing = uct_helper_watched_missing();
    uct_helper_itree_node_t *node;

    for (; missing > 0; --missing) {
        node = malloc(sizeof(*node));
        if (node == NULL) {
            return;
        }
        uct_helper_lock(&uct_helper_watched_lock);
        uct_helper_extents_give(&uct_helper_watched, node);
        uct_helper_unlock(&uct_helper_watched_lock);
    }
}

void uct_helper_watched_clear(void)
{
    uct_helper_lock(&uct_helper_watched_lock);
    uct_helper_extents_remove(&uct_helper_watched, 0, UINTPTR_MAX);
    uct_helper_unlock(&uct_helper_watched_lock);
}

void uct_helper_watched_forget(void)
{
    uct_helper_lock_init(&uct_helper_watched_lock);
    uct_helper_extents_init(&uct_helper_watched);
}

void uct_helper_watched_add(uintptr_t start, uintptr_t end)
{
    if (uct_helper_lock_is_mine(&uct_helper_watched_lock)) {
        return;
    }

    uct_helper_lock(&uct_helper_watched_lock);
    uct_helper_extents_add(&uct_helper_watched, start, end);
    uct_helper_unlock(&uct_helper_watched_lock);
}

int uct_helper_watched_try_hold(void)
{
    return !uct_helper_lock_is_mine(&uct_helper_watched_lock) &&
           uct_helper_lock_try(&uct_helper_watched_lock);
}

void uct_helper_watched_remove_held(uintptr_t start, uintptr_t end)
{
    uct_helper_extents_remove(&uct_helper_watched, start, end);
}

void uct_helper_watched_let_go(void)
{
    uct_helper_unlock(&uct_helper_watched_lock);
}

void uct_helper_watched_remove(uintptr_t start, uintptr_t end)
{
    if (uct_helper_watched_try_hold()) {
        uct_helper_watched_remove_held(start, end);
        uct_helper_watched_let_go();
    }
}

int uct_helper_watched_any(uintptr_t start, uintptr_t end, unsigned beside)
{
    int found;

    if (uct_helper_lock_is_mine(&uct_helper_watched_lock)) {
        return 0;
    }

    start -= (start > 0) ? beside : 0;
    end   += (end < UINTPTR_MAX) ? beside : 0;
    uct_helper_lock(&uct_helper_watched_lock);
    found = (uct_helper_itree_first(&uct_helper_watched.tree, start, end) !=
             NULL);
    uct_helper_unlock(&uct_helper_watched_lock);
    return found;
}

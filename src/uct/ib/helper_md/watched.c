/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "watched.h"
#include "extents.h"
#include "lock.h"

/* Protects the notes. A leaf: it may be taken wherever a memory event may come,
 * with anything held. The reader of kernel events only tries, for the thread
 * that it would wait for may itself wait for the reader; it alone holds it across
 * a system call, a read that does not block. */
static uct_helper_lock_t uct_helper_watched_lock;
static uct_helper_extents_t uct_helper_watched;
static uct_helper_itree_node_t uct_helper_watched_nodes[UCT_HELPER_WATCHED_MAX];


static void uct_helper_watched_reset(void)
{
    unsigned i;

    uct_helper_extents_init(&uct_helper_watched);
    for (i = 0; i < UCT_HELPER_WATCHED_MAX; ++i) {
        uct_helper_extents_give(&uct_helper_watched,
                                &uct_helper_watched_nodes[i]);
    }
}

void uct_helper_watched_clear(void)
{
    uct_helper_lock(&uct_helper_watched_lock);
    uct_helper_watched_reset();
    uct_helper_unlock(&uct_helper_watched_lock);
}

void uct_helper_watched_forget(void)
{
    uct_helper_lock_init(&uct_helper_watched_lock);
    uct_helper_watched_reset();
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

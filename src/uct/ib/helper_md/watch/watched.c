/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "monitor_parts.h"
#include <ucs/datastruct/extents.h>
#include <ucs/sys/sync/lock.h>

/* Number of notes, which are intervals. Allocated at the start, for a memory
 * event must not allocate. When all are used, further memory is watched
 * without a note and may lie beside memory that is not watched. Half: that
 * begins with half as many separate mappings. Double: 40 KB more. */
#define UCT_HELPER_WATCHED_MAX 1024

/* Protects the notes. A leaf: it may be taken wherever a memory event may come,
 * with any lock held. The reader of kernel events only tries it, for its holder
 * may wait for the reader. Only the reader holds it across a system call, a
 * read that does not block. */
static ucs_lock_t uct_helper_watched_lock;
static ucs_extents_t uct_helper_watched;
static ucs_extents_node_t uct_helper_watched_nodes[UCT_HELPER_WATCHED_MAX];

static void uct_helper_watched_reset(void)
{
    unsigned i;

    uct_helper_watched = (ucs_extents_t){.spares = 0};
    for (i = 0; i < UCT_HELPER_WATCHED_MAX; ++i) {
        ucs_extents_give(&uct_helper_watched, &uct_helper_watched_nodes[i]);
    }
}

void uct_helper_watched_clear(void)
{
    ucs_lock(&uct_helper_watched_lock);
    uct_helper_watched_reset();
    ucs_unlock(&uct_helper_watched_lock);
}

void uct_helper_watched_forget(void)
{
    ucs_lock_init(&uct_helper_watched_lock);
    uct_helper_watched_reset();
}

void uct_helper_watched_add(uintptr_t start, uintptr_t end)
{
    if (ucs_lock_is_mine(&uct_helper_watched_lock)) {
        return;
    }

    ucs_lock(&uct_helper_watched_lock);
    ucs_extents_add(&uct_helper_watched, start, end);
    ucs_unlock(&uct_helper_watched_lock);
}

int uct_helper_watched_try_hold(void)
{
    return !ucs_lock_is_mine(&uct_helper_watched_lock) &&
           ucs_lock_try(&uct_helper_watched_lock);
}

void uct_helper_watched_remove_held(uintptr_t start, uintptr_t end)
{
    ucs_extents_remove(&uct_helper_watched, start, end);
}

void uct_helper_watched_let_go(void)
{
    ucs_unlock(&uct_helper_watched_lock);
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

    if (ucs_lock_is_mine(&uct_helper_watched_lock)) {
        return 0;
    }

    start -= (start > 0) ? beside : 0;
    end   += (end < UINTPTR_MAX) ? beside : 0;
    ucs_lock(&uct_helper_watched_lock);
    found = (ucs_itree_first(&uct_helper_watched.tree, start, end) != NULL);
    ucs_unlock(&uct_helper_watched_lock);
    return found;
}

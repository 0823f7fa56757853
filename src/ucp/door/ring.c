/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "ring.h"

/* The reader's view of a ring; later operations come next time */
typedef struct ucp_door_view {
    ucp_door_ring_t *ring;
    uint64_t         head;
    uint64_t         tail;
} ucp_door_view_t;

static void ucp_door_rings_widen(ucp_door_rings_t *rings, unsigned used)
{
    unsigned old = ucs_load_relaxed(&rings->used);

    /* Relaxed: a ring that the reader does not know yet is read later; its tail
     * orders its operations. */
    while ((old < used) && !ucs_cas_relaxed(&rings->used, &old, used)) {
    }
}

ucp_door_ring_t *ucp_door_rings_take(ucp_door_rings_t *rings)
{
    ucp_door_ring_t *ring;
    unsigned state, i;

    for (i = 0; i < UCP_DOOR_RINGS; ++i) {
        ring  = &rings->rings[i];
        state = UCP_DOOR_RING_FREE;
        /* [O-OWNER] The acquire pairs with the reader's release, which comes
         * after the last owner's: tail and id are as that left them. */
        if (ucs_cas_acq_rel(&ring->state, &state, UCP_DOOR_RING_OWNED)) {
            ring->number = i;
            ucp_door_rings_widen(rings, i + 1);
            return ring;
        }
    }

    return NULL;
}

void ucp_door_ring_leave(ucp_door_ring_t *ring)
{
    /* [O-OWNER] The release pairs with the reader's acquire: the tail that it
     * sees then is the last. */
    ucs_store_release(&ring->state, UCP_DOOR_RING_LEFT);
}

int ucp_door_ring_look(ucp_door_ring_t *ring)
{
    uint64_t tail = ucs_load_relaxed(&ring->tail);

    /* [O-FREE] The acquire pairs with the reader's release: it has read what is
     * overwritten now. */
    ring->head_seen = ucs_load_acquire(&ring->head);
    if ((tail - ring->head_seen) == UCP_DOOR_RING_LENGTH) {
        ucs_store_relaxed(&ring->lost, ucs_load_relaxed(&ring->lost) + 1);
        return 0;
    }
    return 1;
}

static unsigned ucp_door_rings_look(ucp_door_rings_t *rings,
                                    ucp_door_view_t *views)
{
    unsigned used  = ucs_load_relaxed(&rings->used);
    unsigned count = 0;
    ucp_door_view_t view;
    unsigned i;

    for (i = 0; i < used; ++i) {
        view.ring = &rings->rings[i];
        view.head = ucs_load_relaxed(&view.ring->head);
        /* [O-FILL] pairs with the owner's release: the operations are whole. */
        view.tail = ucs_load_acquire(&view.ring->tail);
        if (view.head != view.tail) {
            views[count++] = view;
        }
    }

    return count;
}

static const ucs_operation_t *ucp_door_view_first(const ucp_door_view_t *view)
{
    return &view->ring->operations[view->head & UCP_DOOR_RING_MASK];
}

/* The view with the earliest next operation; NULL if all are empty */
static ucp_door_view_t *ucp_door_view_earliest(ucp_door_view_t *views,
                                               unsigned count)
{
    ucp_door_view_t *earliest = NULL;
    unsigned i;

    for (i = 0; i < count; ++i) {
        if ((views[i].head != views[i].tail) &&
            ((earliest == NULL) || (ucp_door_view_first(&views[i])->time <
                                    ucp_door_view_first(earliest)->time))) {
            earliest = &views[i];
        }
    }

    return earliest;
}

static unsigned ucp_door_rings_read(ucp_door_rings_t *rings,
                                    ucs_operation_t *into, unsigned max)
{
    ucp_door_view_t views[UCP_DOOR_RINGS];
    unsigned num_views = ucp_door_rings_look(rings, views);
    unsigned count     = 0;
    ucp_door_view_t *view;
    unsigned i;

    while (count < max) {
        view = ucp_door_view_earliest(views, num_views);
        if (view == NULL) {
            break;
        }
        into[count++] = *ucp_door_view_first(view);
        ++view->head;
    }

    for (i = 0; i < num_views; ++i) {
        /* [O-FREE] The release pairs with the owner's acquire of the head. */
        ucs_store_release(&views[i].ring->head, views[i].head);
    }

    return count;
}

/* Free the empty rings of threads that have ended */
static void ucp_door_rings_free(ucp_door_rings_t *rings)
{
    unsigned used = ucs_load_relaxed(&rings->used);
    ucp_door_ring_t *ring;
    unsigned i;

    for (i = 0; i < used; ++i) {
        ring = &rings->rings[i];
        /* [O-OWNER] pairs with the release of the owner that left, and the
         * store with the acquire of the next one. */
        if ((ucs_load_acquire(&ring->state) == UCP_DOOR_RING_LEFT) &&
            (ucs_load_relaxed(&ring->head) == ucs_load_relaxed(&ring->tail))) {
            ucs_store_release(&ring->state, UCP_DOOR_RING_FREE);
        }
    }
}

unsigned ucp_door_rings_drain(ucp_door_rings_t *rings, ucs_operation_t *into,
                              unsigned max)
{
    unsigned free = 0;
    unsigned count;

    /* [O-READER] The acquire pairs with the release below: one reader's heads
     * are there for the next. */
    if (!ucs_cas_acq_rel(&rings->reading, &free, 1)) {
        return 0;
    }

    count = ucp_door_rings_read(rings, into, max);
    ucp_door_rings_free(rings);
    ucs_store_release(&rings->reading, 0); /* [O-READER] */
    return count;
}

uint64_t ucp_door_rings_lost(ucp_door_rings_t *rings)
{
    uint64_t lost = ucs_load_relaxed(&rings->unheard);
    unsigned used = ucs_load_relaxed(&rings->used);
    unsigned i;

    for (i = 0; i < used; ++i) {
        lost += ucs_load_relaxed(&rings->rings[i].lost);
    }

    return lost;
}

void ucp_door_rings_adopt(ucp_door_rings_t *rings, ucp_door_ring_t *mine)
{
    unsigned used = ucs_load_relaxed(&rings->used);
    ucp_door_ring_t *ring;
    unsigned i;

    for (i = 0; i < used; ++i) {
        ring            = &rings->rings[i];
        ring->head_seen = ucs_load_relaxed(&ring->tail);
        ucs_store_relaxed(&ring->head, ring->head_seen);
        if (ring != mine) {
            ucs_store_relaxed(&ring->state, UCP_DOOR_RING_FREE);
        }
    }
    ucs_store_relaxed(&rings->reading, 0);
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_LISTENERS_H_
#define UCS_LISTENERS_H_

#include <ucs/sys/sync/atomic.h>

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stddef.h>

/*
 * Objects that memory events visit, and that may leave while events come. An
 * event comes inside munmap() and the like, maybe from the allocator: a visit
 * takes no lock, allocates nothing and never waits. Leaving waits for the
 * events inside.
 *
 * Invariant: an event is inside an object only while readers > 0 of its slot,
 * and an object is unreachable for an event that begins after it has left.
 */

BEGIN_C_DECLS

/** Number of slots. An event looks at each, a load of a nanosecond or less. A
 *  process has a domain for each device: tens are many. */
#define UCS_LISTENERS_MAX 64

/** One slot; free if zeroed. */
typedef struct ucs_listeners_slot {
    _Atomic(void*)    object;
    _Atomic(unsigned) readers;
} ucs_listeners_slot_t;

/** All slots; a static variable has only free ones. */
typedef struct ucs_listeners {
    ucs_listeners_slot_t slots[UCS_LISTENERS_MAX];
} ucs_listeners_t;

/**
 * From now on events visit @a object, which is complete. Any thread.
 *
 * @return UCS_OK, or UCS_ERR_EXCEEDS_LIMIT if @ref UCS_LISTENERS_MAX listen.
 */
ucs_status_t ucs_listeners_join(ucs_listeners_t *listeners, void *object);

/**
 * Events do not visit @a object any more; when this returns, none is inside.
 * Any thread, but not from an event. Ignores an object that does not listen.
 */
void ucs_listeners_leave(ucs_listeners_t *listeners, void *object);

/** In a child, alone: nobody listens, and no event is inside. */
void ucs_listeners_forget(ucs_listeners_t *listeners);

/**
 * Visit the object of a slot. Any thread, anywhere.
 *
 * @param [in] i  From 0 to @ref UCS_LISTENERS_MAX - 1.
 *
 * @return The object, which stays until @ref ucs_listeners_exit, or NULL: the
 *         slot is free and there is nothing to exit.
 */
static inline void *ucs_listeners_enter(ucs_listeners_t *listeners, unsigned i)
{
    ucs_listeners_slot_t *slot = &listeners->slots[i];
    void *object;

    /* relaxed: an object that joins meanwhile has registered nothing yet */
    if (ucs_load_relaxed(&slot->object) == NULL) {
        return NULL;
    }

    /* [R-READER] Either the add comes after the one in ucs_listeners_leave(),
     * and then the NULL is seen below, or before it, and then that function
     * waits for the sub. */
    ucs_add_acq_rel(&slot->readers, 1);
    object = ucs_load_acquire(&slot->object);
    if (object == NULL) {
        ucs_sub_acq_rel(&slot->readers, 1);
    }
    return object;
}

/** End a visit that found an object. May be another thread than began it. */
static inline void ucs_listeners_exit(ucs_listeners_t *listeners, unsigned i)
{
    /* [R-READER] The sub pairs with the add in ucs_listeners_leave() */
    ucs_sub_acq_rel(&listeners->slots[i].readers, 1);
}

/** For @ref ucs_listeners_for_each. */
static inline void *ucs_listeners_next(ucs_listeners_t *listeners, void *object,
                                       unsigned *i_p)
{
    if (object != NULL) {
        ucs_listeners_exit(listeners, (*i_p)++);
        object = NULL;
    }
    while ((*i_p < UCS_LISTENERS_MAX) &&
           ((object = ucs_listeners_enter(listeners, *i_p)) == NULL)) {
        ++*i_p;
    }
    return object;
}

/** Visit all objects. A visit ends as the next one begins: not to be left before
 *  the last. */
#define ucs_listeners_for_each(_object, _i, _listeners) \
    for ((_i) = 0, (_object) = NULL; \
         ((_object) = ucs_listeners_next(_listeners, _object, &(_i))) != NULL;)

END_C_DECLS

#endif

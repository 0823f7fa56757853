/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/sync/listeners.h>
#include <ucs/sys/sync/give_way.h>

ucs_status_t ucs_listeners_join(ucs_listeners_t *listeners, void *object)
{
    void *none;
    unsigned i;

    for (i = 0; i < UCS_LISTENERS_MAX; ++i) {
        none = NULL;
        /* [R-READER] The cas publishes the object to the load in
         * ucs_listeners_enter(). */
        if (ucs_cas_acq_rel(&listeners->slots[i].object, &none, object)) {
            return UCS_OK;
        }
    }

    return UCS_ERR_EXCEEDS_LIMIT;
}

void ucs_listeners_leave(ucs_listeners_t *listeners, void *object)
{
    ucs_listeners_slot_t *slot;
    void *found;
    unsigned i;

    for (i = 0; i < UCS_LISTENERS_MAX; ++i) {
        slot  = &listeners->slots[i];
        found = object;
        /* [R-READER] The cas stands before the add below */
        if (!ucs_cas_acq_rel(&slot->object, &found, NULL)) {
            continue;
        }

        /* [R-READER] The cas above and this add of nothing stand in one order
         * with the adds, loads and subs of ucs_listeners_enter() and
         * ucs_listeners_exit(). */
        while (ucs_add_acq_rel(&slot->readers, 0) != 0) {
            ucs_give_way();
        }
    }
}

void ucs_listeners_forget(ucs_listeners_t *listeners)
{
    unsigned i;

    for (i = 0; i < UCS_LISTENERS_MAX; ++i) {
        ucs_store_relaxed(&listeners->slots[i].object, NULL);
        ucs_store_relaxed(&listeners->slots[i].readers, 0);
    }
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "slot.h"

#include <dlfcn.h>
#include <stddef.h>

#define UCP_DOOR_LIBRARY "libucp.so.0"

static ucp_door_find_func_t ucp_door_finder = ucp_door_find;

static _Atomic(unsigned) ucp_door_is_open;

/* From the linker: the addresses of all slots */
extern ucp_door_slot_t *const __start_ucp_door_slots[]
        __attribute__((visibility("hidden")));
extern ucp_door_slot_t *const __stop_ucp_door_slots[]
        __attribute__((visibility("hidden")));

static void *ucp_door_find_in(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *found  = NULL;

    if (handle != NULL) {
        found = dlsym(handle, name);
        dlclose(handle);
    }

    return found;
}

ucp_door_func_t ucp_door_find(const char *library, const char *name,
                              const void *caller)
{
    void *found = dlsym(RTLD_NEXT, name);
    Dl_info self, info;

    if ((found == NULL) && dladdr(caller, &info) &&
        (info.dli_fname != NULL) && (info.dli_fname[0] != '\0')) {
        found = ucp_door_find_in(info.dli_fname, name);
    }

    /* The program's own handle finds the door first */
    if ((found == NULL) || (dladdr(found, &info) &&
                            dladdr((void*)ucp_door_find, &self) &&
                            (info.dli_fbase == self.dli_fbase))) {
        found = ucp_door_find_in(library, name);
    }

    /* The pointer is kept for good, and the program may close its library and
     * open it again */
    if ((found != NULL) && dladdr(found, &info)) {
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
    return (ucp_door_func_t)found;
}

void ucp_door_slots_find_by(ucp_door_find_func_t find)
{
    ucp_door_finder = find;
}

ucp_door_func_t ucp_door_slot_find(ucp_door_slot_t *slot, const void *caller)
{
    ucp_door_func_t real  = ucp_door_finder(UCP_DOOR_LIBRARY, slot->name,
                                            caller);
    ucp_door_func_t first = slot->first;
    ucp_door_func_t way;

    if (real == NULL) {
        return NULL;
    }

    ucs_store_relaxed(&slot->real, real);
    /* [O-OPEN] An add of nothing, ordered with the one that opens: either that
     * comes later and sees that this slot was looked up, or this finds it
     * open. */
    way = ucs_add_acq_rel(&ucp_door_is_open, 0) ? slot->heard : real;
    /* [O-REAL] The release pairs with the acquire of a call. */
    ucs_cas_acq_rel(&slot->entry, &first, way);
    return real;
}

void ucp_door_slots_find(const void *caller)
{
    ucp_door_slot_t *const *slot;

    for (slot = __start_ucp_door_slots; slot < __stop_ucp_door_slots; ++slot) {
        if (ucs_load_relaxed(&(*slot)->real) == NULL) {
            (void)ucp_door_slot_find(*slot, caller);
        }
    }
}

void ucp_door_slots_open(void)
{
    ucp_door_slot_t *const *slot;

    /* [O-OPEN] An add as that in ucp_door_slot_find(), which is ordered with
     * it: what was looked up before it is seen below. */
    ucs_add_acq_rel(&ucp_door_is_open, 1);
    for (slot = __start_ucp_door_slots; slot < __stop_ucp_door_slots; ++slot) {
        if (ucs_load_relaxed(&(*slot)->real) != NULL) {
            /* [O-REAL] The release pairs with the acquire of a call. */
            ucs_store_release(&(*slot)->entry, (*slot)->heard);
        }
    }
}

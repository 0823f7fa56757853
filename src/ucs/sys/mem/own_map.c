/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/mem/own_map.h>

#include <ucs/sys/hash.h>
#include <ucs/sys/sync/atomic.h>

#include <string.h>
#include <sys/auxv.h>

/*
 * Where our pages lie: below the kernel's choices, and above the program, in
 * processes of 47 bits of addresses and more. The first page is anywhere in the
 * lower half, as layouts are random; the others follow. All that a place so far
 * away costs are some page tables.
 */
#define UCS_OWN_PLACE       (UINT64_C(0x22) << 40)
#define UCS_OWN_PLACE_BYTES (UINT64_C(4) << 40)
#define UCS_OWN_PLACE_SHIFT 21 /* of the first page */

/* Places that are tried before the kernel chooses. Each leaves 16 times as much
 * room to the next: eight get from a page past a mapping of half a terabyte. */
#define UCS_OWN_TRIES      8
#define UCS_OWN_ROOM_SHIFT 4

/* These sanitizers have no shadow for other places than the kernel's choices */
void __tsan_init(void) __attribute__((weak));
void __msan_init(void) __attribute__((weak));

/* Bytes of the place up to what is given away next; 0: none was yet */
static _Atomic(uint64_t) ucs_own_given;

/* @return Bytes of the place before the first page, above 0. Each library has a
 * copy of this, and begins elsewhere. */
static uint64_t ucs_own_first(void)
{
    const void *seed = (const void*)getauxval(AT_RANDOM);
    uint64_t random  = (uintptr_t)&ucs_own_given, process = 0;

    if (seed != NULL) {
        memcpy(&process, seed, sizeof(process));
    }
    random = ucs_hash_mix(random ^ process);
    return (random % (UCS_OWN_PLACE_BYTES >> (UCS_OWN_PLACE_SHIFT + 1)) + 1)
           << UCS_OWN_PLACE_SHIFT;
}

/* @return Where so many bytes are to lie, or 0: there is no such place.
 * relaxed: the kernel says what is free. */
static uintptr_t ucs_own_place(size_t length)
{
    uint64_t none = 0;

    if ((sizeof(void*) < sizeof(uint64_t)) || (__tsan_init != NULL) ||
        (__msan_init != NULL) || (length > UCS_OWN_PLACE_BYTES / 2)) {
        return 0;
    }
    if (ucs_load_relaxed(&ucs_own_given) == 0) {
        (void)ucs_cas_relaxed(&ucs_own_given, &none, ucs_own_first());
    }
    return UCS_OWN_PLACE +
           ucs_add_relaxed(&ucs_own_given, length) % UCS_OWN_PLACE_BYTES;
}

void *ucs_own_map(size_t length)
{
    void *address = NULL;
    uintptr_t place;
    unsigned i;

    length = ucs_own_round(length);
    for (i = 0; (address == NULL) && (i < UCS_OWN_TRIES); ++i) {
        place = ucs_own_place(length << (i * UCS_OWN_ROOM_SHIFT));
        if (place == 0) {
            break;
        }
        address = ucs_own_map_at(place, length);
    }
    return (address == NULL) ? ucs_own_map_at(0, length) : address;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "place.h"

#include <stdlib.h>
#include <string.h>

ucs_status_t ucs_predict_places_init(ucs_predict_places_t *places, uint32_t max)
{
    uint32_t buckets = 1;

    while (buckets < max) {
        buckets *= 2;
    }

    memset(places, 0, sizeof(*places));
    places->max     = max;
    places->mask    = buckets - 1;
    places->newest  = UCS_PREDICT_PLACE_NIL;
    places->oldest  = UCS_PREDICT_PLACE_NIL;
    places->entries = calloc(max, sizeof(*places->entries));
    places->buckets = malloc(buckets * sizeof(*places->buckets));
    if ((places->entries == NULL) || (places->buckets == NULL)) {
        ucs_predict_places_cleanup(places);
        return UCS_ERR_NO_MEMORY;
    }

    memset(places->buckets, 0xff, buckets * sizeof(*places->buckets));
    return UCS_OK;
}

void ucs_predict_places_cleanup(ucs_predict_places_t *places)
{
    free(places->entries);
    free(places->buckets);
}

static uint32_t place_index(const ucs_predict_places_t *places,
                            const ucs_predict_place_t *place)
{
    return (uint32_t)(place - places->entries);
}

static uint32_t *place_bucket(ucs_predict_places_t *places, uintptr_t address)
{
    uint64_t hash = (uint64_t)address * UINT64_C(0x9e3779b97f4a7c15);

    return &places->buckets[(hash >> 32) & places->mask];
}

static void place_lru_remove(ucs_predict_places_t *places,
                             ucs_predict_place_t *place)
{
    if (place->newer != UCS_PREDICT_PLACE_NIL) {
        places->entries[place->newer].older = place->older;
    } else {
        places->newest = place->older;
    }
    if (place->older != UCS_PREDICT_PLACE_NIL) {
        places->entries[place->older].newer = place->newer;
    } else {
        places->oldest = place->newer;
    }
}

static void place_lru_insert(ucs_predict_places_t *places,
                             ucs_predict_place_t *place)
{
    uint32_t index = place_index(places, place);

    place->newer = UCS_PREDICT_PLACE_NIL;
    place->older = places->newest;
    if (places->newest != UCS_PREDICT_PLACE_NIL) {
        places->entries[places->newest].newer = index;
    } else {
        places->oldest = index;
    }
    places->newest = index;
}

static void place_forget(ucs_predict_places_t *places,
                         ucs_predict_place_t *place)
{
    uint32_t index = place_index(places, place);
    uint32_t *link = place_bucket(places, place->address);

    while (*link != index) {
        link = &places->entries[*link].chain;
    }
    *link = place->chain;
    place_lru_remove(places, place);
}

ucs_predict_place_t *ucs_predict_places_find(ucs_predict_places_t *places,
                                             uintptr_t address)
{
    uint32_t index = *place_bucket(places, address);

    while ((index != UCS_PREDICT_PLACE_NIL) &&
           (places->entries[index].address != address)) {
        index = places->entries[index].chain;
    }
    return (index != UCS_PREDICT_PLACE_NIL) ? &places->entries[index] : NULL;
}

static ucs_predict_place_t *place_new(ucs_predict_places_t *places,
                                      uintptr_t address)
{
    ucs_predict_place_t *place;
    uint32_t *bucket, generation;

    if (places->count < places->max) {
        place = &places->entries[places->count++];
    } else {
        place = &places->entries[places->oldest];
        place_forget(places, place);
    }

    generation        = place->generation + 1;
    bucket            = place_bucket(places, address);
    memset(place, 0, sizeof(*place));
    place->address    = address;
    place->generation = (generation != 0) ? generation : 1;
    place->chain      = *bucket;
    *bucket           = place_index(places, place);
    return place;
}

ucs_predict_place_t *ucs_predict_places_get(ucs_predict_places_t *places,
                                            uintptr_t address)
{
    ucs_predict_place_t *place = ucs_predict_places_find(places, address);

    if (place != NULL) {
        place_lru_remove(places, place);
    } else {
        place = place_new(places, address);
    }
    place_lru_insert(places, place);
    return place;
}

ucs_predict_place_t *ucs_predict_places_deref(ucs_predict_places_t *places,
                                              ucs_predict_ref_t ref)
{
    if ((ref.index >= places->count) ||
        (places->entries[ref.index].generation != ref.generation)) {
        return NULL;
    }
    return &places->entries[ref.index];
}

ucs_predict_ref_t ucs_predict_places_ref(ucs_predict_places_t *places,
                                         const ucs_predict_place_t *place)
{
    return (ucs_predict_ref_t){place_index(places, place), place->generation};
}

size_t ucs_predict_places_memory(const ucs_predict_places_t *places)
{
    return (places->max * sizeof(*places->entries)) +
           ((places->mask + 1) * sizeof(*places->buckets));
}

int ucs_predict_places_is_valid(ucs_predict_places_t *places)
{
    uint32_t newer = UCS_PREDICT_PLACE_NIL;
    uint32_t count = 0;
    uint32_t index;

    /* The count bounds the walk, should the list be a ring */
    for (index = places->newest; index != UCS_PREDICT_PLACE_NIL;
         index = places->entries[index].older) {
        if ((index >= places->count) || (count++ == places->count) ||
            (places->entries[index].newer != newer) ||
            (places->entries[index].generation == 0) ||
            (ucs_predict_places_find(places, places->entries[index].address) !=
             &places->entries[index])) {
            return 0;
        }
        newer = index;
    }
    return (count == places->count) && (places->oldest == newer);
}

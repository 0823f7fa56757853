/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_PLACE_H_
#define UCS_PREDICT_PLACE_H_

#include <ucs/predict/callsite.h>

/**
 * @file place.h
 *
 * The buffers that a predictor knows, by address: a bounded hash table that
 * forgets the least recently used one. Inside of order.h.
 */

BEGIN_C_DECLS

#define UCS_PREDICT_PLACE_NIL UINT32_MAX

typedef struct ucs_predict_place {
    uintptr_t address;
    uint64_t  start_ns;   /* latest use */
    uint64_t  end_ns;     /* 0: under way */
    uint64_t  position;   /* of that use in the history */
    uint64_t  uses;
    uint64_t  serial;     /* latest forecast that named it */
    uint64_t  promise;    /* ns: not before this, as it said */
    double    gap_ns;     /* decayed maximum of idle gaps */
    unsigned  doubt;      /* so many foreseen uses until it is trusted */
    uint32_t  generation; /* 0 before the first use of this entry */
    uint32_t  chain;
    uint32_t  older;
    uint32_t  newer;
} ucs_predict_place_t;

/* Entries [0, count) are known; each is in one chain and in the LRU list. */
typedef struct ucs_predict_places {
    ucs_predict_place_t *entries;
    uint32_t            *buckets;
    uint32_t            mask;
    uint32_t            max;
    uint32_t            count;
    uint32_t            newest;
    uint32_t            oldest;
} ucs_predict_places_t;

ucs_status_t ucs_predict_places_init(ucs_predict_places_t *places,
                                     uint32_t max);

void ucs_predict_places_cleanup(ucs_predict_places_t *places);

/** @return The buffer, now the newest; made in place of the oldest if need be,
 *          then all zero but for the address. */
ucs_predict_place_t *ucs_predict_places_get(ucs_predict_places_t *places,
                                            uintptr_t address);

/** @return The buffer, or NULL. */
ucs_predict_place_t *ucs_predict_places_find(ucs_predict_places_t *places,
                                             uintptr_t address);

/** @return The buffer that @a ref refers to, NULL if it is stale. */
ucs_predict_place_t *ucs_predict_places_deref(ucs_predict_places_t *places,
                                              ucs_predict_ref_t ref);

ucs_predict_ref_t ucs_predict_places_ref(ucs_predict_places_t *places,
                                         const ucs_predict_place_t *place);

size_t ucs_predict_places_memory(const ucs_predict_places_t *places);

int ucs_predict_places_is_valid(ucs_predict_places_t *places);

END_C_DECLS

#endif

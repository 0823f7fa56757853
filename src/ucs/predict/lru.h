/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_LRU_H_
#define UCS_PREDICT_LRU_H_

#include <ucs/predict/callsite.h>

/**
 * @file lru.h
 *
 * What a predictor knows, by a 64-bit key: a bounded hash table of entries of
 * one size that forgets the least recently used one. Inside of order.h.
 */

BEGIN_C_DECLS

#define UCS_PREDICT_LRU_NIL UINT32_MAX

/** First member of each entry. */
typedef struct ucs_predict_lru_node {
    uint64_t key;
    uint32_t generation; /* 0 before the first use of this entry */
    uint32_t chain;
    uint32_t older;
    uint32_t newer;
} ucs_predict_lru_node_t;

/* Entries [0, count) are known; each is in one chain and in the LRU list. */
typedef struct ucs_predict_lru {
    char     *entries;
    size_t   size;     /* bytes of one */
    uint32_t *buckets;
    uint32_t mask;
    uint32_t max;
    uint32_t count;
    uint32_t newest;
    uint32_t oldest;
} ucs_predict_lru_t;

/** @param [in] size  Bytes of an entry, a multiple of 8. */
ucs_status_t ucs_predict_lru_init(ucs_predict_lru_t *lru, uint32_t max,
                                  size_t size);

void ucs_predict_lru_cleanup(ucs_predict_lru_t *lru);

static inline void *ucs_predict_lru_at(const ucs_predict_lru_t *lru,
                                       uint32_t index)
{
    return lru->entries + (index * lru->size);
}

static inline uint32_t ucs_predict_lru_index(const ucs_predict_lru_t *lru,
                                             const void *entry)
{
    return (uint32_t)(((const char*)entry - lru->entries) / lru->size);
}

/** @return The entry, or NULL. */
void *ucs_predict_lru_find(const ucs_predict_lru_t *lru, uint64_t key);

/** @return The entry of a key that is known, now the newest; or the one that a
 *          new key will get, with what it was about before, and its key. */
void *ucs_predict_lru_get(ucs_predict_lru_t *lru, uint64_t key, int *is_new_p);

/** @return The entry that @a ref refers to, NULL if it is stale. */
static inline void *ucs_predict_lru_deref(const ucs_predict_lru_t *lru,
                                          ucs_predict_ref_t ref)
{
    ucs_predict_lru_node_t *node;

    if (ref.index >= lru->count) {
        return NULL;
    }
    node = (ucs_predict_lru_node_t*)ucs_predict_lru_at(lru, ref.index);
    return (node->generation == ref.generation) ? node : NULL;
}

static inline ucs_predict_ref_t
ucs_predict_lru_ref(const ucs_predict_lru_t *lru, const void *entry)
{
    const ucs_predict_lru_node_t *node = (const ucs_predict_lru_node_t*)entry;
    ucs_predict_ref_t ref              = {ucs_predict_lru_index(lru, entry),
                                          node->generation};

    return ref;
}

size_t ucs_predict_lru_memory(const ucs_predict_lru_t *lru);

int ucs_predict_lru_is_valid(const ucs_predict_lru_t *lru);

END_C_DECLS

#endif

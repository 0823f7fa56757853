/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_LRU_H_
#define UCS_PREDICT_LRU_H_

#include <ucs/predict/use.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

/*
 * What a predictor knows, by a 64-bit key: a bounded hash table of entries of one
 * size that forgets the least recently used one. A table belongs to one thread at a
 * time, and each operation takes constant expected time.
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
    uint32_t index; /* its place */
    uint32_t spare;
} ucs_predict_lru_node_t;

/** Entries of one piece, a power of two: what is never used has no address. */
#define UCS_PREDICT_LRU_PIECE 64

/* Entries [0, count) are known; each is in one chain and in the LRU list. */
typedef struct ucs_predict_lru {
    char     **pieces; /* of entries; those behind the last known are NULL but for
                        *   the first, which lies with this table and the buckets:
                        *   a block has a page, and is none while it is not used */
    size_t   size;     /* bytes of one entry */
    uint32_t *buckets;
    uint32_t mask;
    uint32_t max;
    uint32_t count;
    uint32_t newest;
    uint32_t oldest;
} ucs_predict_lru_t;

/**
 * Make a table that knows nothing yet.
 *
 * @param [out] lru   Released by @ref ucs_predict_lru_cleanup, if UCS_OK is
 *                    returned.
 * @param [in]  max   Most entries, above 0.
 * @param [in]  size  Bytes of an entry, a multiple of 8.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_predict_lru_init(ucs_predict_lru_t *lru, uint32_t max,
                                  size_t size);

/** Release the entries; no pointer to one is good any more. */
void ucs_predict_lru_cleanup(ucs_predict_lru_t *lru);

/** @return The entry at a place, below count; good until the table is
 *          released. */
static inline void *ucs_predict_lru_at(const ucs_predict_lru_t *lru,
                                       uint32_t index)
{
    return lru->pieces[index / UCS_PREDICT_LRU_PIECE] +
           (index % UCS_PREDICT_LRU_PIECE) * lru->size;
}

/** @return The place of an entry of this table. */
static inline uint32_t ucs_predict_lru_index(const ucs_predict_lru_t *lru,
                                             const void *entry)
{
    return ((const ucs_predict_lru_node_t*)entry)->index;
}

/** @return The entry of a key, or NULL; which one was used last stays as it
 *          is. */
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

/** @return A reference to an entry of this table, stale once its key has been
 *          forgotten. */
static inline ucs_predict_ref_t
ucs_predict_lru_ref(const ucs_predict_lru_t *lru, const void *entry)
{
    const ucs_predict_lru_node_t *node = (const ucs_predict_lru_node_t*)entry;
    ucs_predict_ref_t ref              = {ucs_predict_lru_index(lru, entry),
                                          node->generation};

    return ref;
}

END_C_DECLS

#endif

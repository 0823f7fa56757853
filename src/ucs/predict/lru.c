/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "lru.h"

#include <ucs/sys/hash.h>
#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_memory.h>

#include <string.h>

typedef ucs_predict_lru_node_t lru_node_t;

static uint32_t lru_num_pieces(const ucs_predict_lru_t *lru)
{
    return (lru->max - 1) / UCS_PREDICT_LRU_PIECE + 1;
}

/* Bytes of the piece that begins at a place */
static size_t lru_piece_length(const ucs_predict_lru_t *lru, uint32_t place)
{
    return ucs_min(lru->max - place, UCS_PREDICT_LRU_PIECE) * lru->size;
}

/* @return Nonzero if there is an entry that is not known yet. A table that cannot
 * grow goes on with what it has. */
static int lru_grow(ucs_predict_lru_t *lru)
{
    char **piece;

    if (lru->count == lru->max) {
        return 0;
    }
    piece = &lru->pieces[lru->count / UCS_PREDICT_LRU_PIECE];
    if (*piece == NULL) {
        *piece = ucs_own_alloc(lru_piece_length(lru, lru->count));
    }
    return *piece != NULL;
}

ucs_status_t ucs_predict_lru_init(ucs_predict_lru_t *lru, uint32_t max,
                                  size_t size)
{
    uint32_t buckets = 2; /* of 4 bytes: what is behind them is aligned */
    size_t pieces_length, buckets_length;

    while (buckets < max) {
        buckets *= 2;
    }

    memset(lru, 0, sizeof(*lru));
    lru->max       = max;
    lru->size      = size;
    lru->mask      = buckets - 1;
    lru->newest    = UCS_PREDICT_LRU_NIL;
    lru->oldest    = UCS_PREDICT_LRU_NIL;
    pieces_length  = lru_num_pieces(lru) * sizeof(*lru->pieces);
    buckets_length = buckets * sizeof(*lru->buckets);
    lru->pieces    = ucs_own_alloc(pieces_length + buckets_length +
                                   lru_piece_length(lru, 0));
    if (lru->pieces == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    lru->buckets   = (uint32_t*)((char*)lru->pieces + pieces_length);
    lru->pieces[0] = (char*)lru->buckets + buckets_length;
    return UCS_OK;
}

void ucs_predict_lru_cleanup(ucs_predict_lru_t *lru)
{
    uint32_t i;

    for (i = 1; i < lru_num_pieces(lru); ++i) {
        ucs_own_free(lru->pieces[i]);
    }
    ucs_own_free(lru->pieces);
}

static lru_node_t *lru_at(const ucs_predict_lru_t *lru, uint32_t index)
{
    return ucs_predict_lru_at(lru, index);
}

/* A link is 0 at the end of a chain, else the place plus 1: a table that knows nothing
 * is all zeros, and takes no memory. */
static uint32_t lru_link(const ucs_predict_lru_t *lru, const lru_node_t *node)
{
    return ucs_predict_lru_index(lru, node) + 1;
}

static lru_node_t *lru_linked(const ucs_predict_lru_t *lru, uint32_t link)
{
    return (link == 0) ? NULL : lru_at(lru, link - 1);
}

static uint32_t *lru_bucket(const ucs_predict_lru_t *lru, uint64_t key)
{
    uint64_t hash = key * UCS_HASH_FACTOR;

    return &lru->buckets[(hash >> 32) & lru->mask];
}

static void lru_remove(ucs_predict_lru_t *lru, const lru_node_t *node)
{
    if (node->newer != UCS_PREDICT_LRU_NIL) {
        lru_at(lru, node->newer)->older = node->older;
    } else {
        lru->newest = node->older;
    }
    if (node->older != UCS_PREDICT_LRU_NIL) {
        lru_at(lru, node->older)->newer = node->newer;
    } else {
        lru->oldest = node->newer;
    }
}

static void lru_insert(ucs_predict_lru_t *lru, lru_node_t *node)
{
    uint32_t index = ucs_predict_lru_index(lru, node);

    node->newer = UCS_PREDICT_LRU_NIL;
    node->older = lru->newest;
    if (lru->newest != UCS_PREDICT_LRU_NIL) {
        lru_at(lru, lru->newest)->newer = index;
    } else {
        lru->oldest = index;
    }
    lru->newest = index;
}

static void lru_forget(ucs_predict_lru_t *lru, const lru_node_t *node)
{
    uint32_t *link = lru_bucket(lru, node->key);

    while (*link != lru_link(lru, node)) {
        link = &lru_linked(lru, *link)->chain;
    }
    *link = node->chain;
    lru_remove(lru, node);
}

void *ucs_predict_lru_find(const ucs_predict_lru_t *lru, uint64_t key)
{
    lru_node_t *node = lru_linked(lru, *lru_bucket(lru, key));

    while ((node != NULL) && (node->key != key)) {
        node = lru_linked(lru, node->chain);
    }
    return node;
}

static lru_node_t *lru_new(ucs_predict_lru_t *lru, uint64_t key)
{
    lru_node_t *node;
    uint32_t *bucket;

    if (lru_grow(lru)) {
        node        = lru_at(lru, lru->count);
        node->index = lru->count++;
    } else {
        node = lru_at(lru, lru->oldest);
        lru_forget(lru, node);
    }

    bucket           = lru_bucket(lru, key);
    node->generation = (node->generation == UINT32_MAX) ? 1 :
                                                          node->generation + 1;
    node->key        = key;
    node->chain      = *bucket;
    *bucket          = lru_link(lru, node);
    return node;
}

void *ucs_predict_lru_get(ucs_predict_lru_t *lru, uint64_t key, int *is_new_p)
{
    lru_node_t *node = ucs_predict_lru_find(lru, key);

    *is_new_p = (node == NULL);
    if (node != NULL) {
        lru_remove(lru, node);
    } else {
        node = lru_new(lru, key);
    }
    lru_insert(lru, node);
    return node;
}

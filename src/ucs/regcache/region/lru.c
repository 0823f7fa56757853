/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "lru.h"

/* A region in use goes behind all that are idle: once one is on top again there are no
 * idle ones */
ucs_regcache_region_t *
ucs_regcache_lru_oldest(ucs_heap_t *heap, uint64_t now, unsigned *left_p)
{
    ucs_regcache_region_t *best = NULL;
    ucs_regcache_region_t *top;
    uint64_t key;
    int in_use;

    while (heap->count > 0) {
        top    = ucs_regcache_lru_region(*ucs_heap_at(heap, 0));
        in_use = ucs_regcache_word_refs(ucs_load_relaxed(&top->word)) > 0;
        key    = in_use ? now + 1 : ucs_load_relaxed(&top->last_use);
        if (key <= top->lru.key) {
            return in_use ? NULL : top;
        }
        if (*left_p == 0) {
            break;
        }
        --*left_p;
        if (!in_use && ((best == NULL) || (key < best->lru.key))) {
            best = top;
        }
        ucs_heap_raise(heap, &top->lru, key);
    }
    return best;
}

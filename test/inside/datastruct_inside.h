/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef DATASTRUCT_INSIDE_H_
#define DATASTRUCT_INSIDE_H_

#include <ucs/datastruct/extents.h>
#include <ucs/datastruct/heap.h>

/**
 * @file datastruct_inside.h
 *
 * The invariants that the headers state.
 */

BEGIN_C_DECLS

/** @return Nonzero if they hold everywhere. */
int ucs_extents_is_valid(const ucs_extents_t *set);
int ucs_heap_is_valid(const ucs_heap_t *heap);
int ucs_itree_is_valid(const ucs_itree_t *tree);

END_C_DECLS

#endif

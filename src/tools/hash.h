/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_HASH_H_
#define UCX_HELPER_TOOL_HASH_H_

#include "tool.h"

/*
 * UCX's hash table, which is a header alone; the program ends when memory is
 * out, so that kh_put() does not fail. To be included instead of khash.h.
 */

#define kcalloc(_count, _size) tool_calloc(_count, _size)
#define kmalloc(_size)         tool_realloc(NULL, _size)
#define krealloc(_ptr, _size)  tool_realloc(_ptr, _size)

#include <ucs/datastruct/khash.h>

#endif

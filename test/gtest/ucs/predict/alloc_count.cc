/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "alloc_count.h"

static __thread uint64_t count, refused;
static __thread int64_t live;

uint64_t alloc_count()
{
    return count;
}

int64_t alloc_count_live()
{
    return live;
}

void alloc_count_fail_next(unsigned after)
{
    refused = count + 1 + after;
}

extern "C" {

void *__real_ucs_own_alloc(size_t size);
void __real_ucs_own_free(void *p);

void *__wrap_ucs_own_alloc(size_t size)
{
    if (++count == refused) {
        return nullptr;
    }
    ++live;
    return __real_ucs_own_alloc(size);
}

void __wrap_ucs_own_free(void *p)
{
    live -= (p != nullptr);
    __real_ucs_own_free(p);
}

} // extern "C"

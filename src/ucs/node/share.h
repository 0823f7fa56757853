/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_NODE_SHARE_H_
#define UCS_NODE_SHARE_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/**
 * @file share.h
 *
 * Who may hold how much of a budget: by need. Pure functions.
 */

BEGIN_C_DECLS

/** Sum that stops at UINT64_MAX. */
static inline uint64_t ucs_share_add(uint64_t a, uint64_t b)
{
    return (a > UINT64_MAX - b) ? UINT64_MAX : a + b;
}


/**
 * The max-min fair level: who demands no more than the level may have all of
 * it, the others the level each. It is never below @a budget / @a count, and
 * what all may have together is never above the budget:
 *
 *     budget / count <= level, sum(min(demand[i], level)) <= budget
 *
 * @param [in] demands  Bytes of each; their sum may exceed 64 bits.
 * @param [in] count    At least 1.
 *
 * @return Bytes; UINT64_MAX if all can have what they demand.
 */
uint64_t ucs_share_level(const uint64_t *demands, unsigned count,
                         uint64_t budget);

END_C_DECLS

#endif

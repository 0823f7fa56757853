/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "share.h"

/* Each round satisfies at least one more, or is the last */
uint64_t ucs_share_level(const uint64_t *demands, unsigned count,
                         uint64_t budget)
{
    uint64_t level = budget / count;
    uint64_t given, next;
    unsigned hungry, i;

    for (;;) {
        given  = 0;
        hungry = 0;
        for (i = 0; i < count; ++i) {
            if (demands[i] <= level) {
                given += demands[i]; /* at most count * level <= budget */
            } else {
                ++hungry;
            }
        }
        if (hungry == 0) {
            return UINT64_MAX;
        }

        next = (budget - given) / hungry;
        if (next <= level) {
            return level;
        }
        level = next;
    }
}

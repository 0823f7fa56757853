/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_POLICY_OPTION_H_
#define TEST_POLICY_OPTION_H_

#include "../bench/bench_options.h"

#include <ucs/regcache/regcache.h>

/** @return The policy of this name, or @a none if @a name is NULL; ends the
 *          program with 2 if there is none. */
static inline int policy_option(const char *name, int none)
{
    int policy;

    for (policy = 0; (name != NULL) && (policy < UCS_REGCACHE_POLICY_LAST);
         ++policy) {
        if (strcmp(name, ucs_regcache_policy_names[policy]) == 0) {
            return policy;
        }
    }
    if (name != NULL) {
        fprintf(stderr, "--policy: '%s' is no policy\n", name);
        exit(2);
    }
    return none;
}

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "policy.h"

static const ucs_regcache_policy_ops_t ucs_regcache_policy_leave_pinned = {
    .idle = UCS_REGCACHE_IDLE_KEEP
};

static const ucs_regcache_policy_ops_t ucs_regcache_policy_on_demand = {
    .idle = UCS_REGCACHE_IDLE_DROP
};

const ucs_regcache_policy_ops_t *const ucs_regcache_policies[] = {
    [UCS_REGCACHE_POLICY_PREDICT]      = &ucs_regcache_policy_order,
    [UCS_REGCACHE_POLICY_PAPER]        = &ucs_regcache_policy_paper,
    [UCS_REGCACHE_POLICY_RENT]         = &ucs_regcache_policy_order,
    [UCS_REGCACHE_POLICY_LEAVE_PINNED] = &ucs_regcache_policy_leave_pinned,
    [UCS_REGCACHE_POLICY_ON_DEMAND]    = &ucs_regcache_policy_on_demand,
    [UCS_REGCACHE_POLICY_LRU]          = &ucs_regcache_policy_leave_pinned,
    [UCS_REGCACHE_POLICY_OVERLAP]      = &ucs_regcache_policy_overlap
};

const char *ucs_regcache_policy_names[] = {
    [UCS_REGCACHE_POLICY_PREDICT]      = "predict",
    [UCS_REGCACHE_POLICY_PAPER]        = "paper",
    [UCS_REGCACHE_POLICY_RENT]         = "rent",
    [UCS_REGCACHE_POLICY_LEAVE_PINNED] = "leave_pinned",
    [UCS_REGCACHE_POLICY_ON_DEMAND]    = "on_demand",
    [UCS_REGCACHE_POLICY_LRU]          = "lru",
    [UCS_REGCACHE_POLICY_OVERLAP]      = "overlap",
    [UCS_REGCACHE_POLICY_LAST]         = NULL
};

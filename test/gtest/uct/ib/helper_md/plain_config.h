/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef PLAIN_CONFIG_H_
#define PLAIN_CONFIG_H_

#include <uct/ib/helper_md/config/helper_config.h>

#include <climits>
#include <cstdint>
#include <cstring>

/** Leave pinned without a ceiling, by a helper that runs whatever else does on
 * this machine. */
static inline uct_helper_config_t plain_config()
{
    uct_helper_config_t config;

    memset(&config, 0, sizeof(config));
    config.policy          = UCS_REGCACHE_POLICY_LEAVE_PINNED;
    config.min_size        = 16384;
    config.region_bytes    = UCS_REGCACHE_REGION_BYTES;
    config.max_pinned      = SIZE_MAX;
    config.node_max_pinned = SIZE_MAX;
    config.max_regions     = ULONG_MAX;
    config.cpu_policy      = UCT_HELPER_CPU_POLICY_AGGRESSIVE;
    return config;
}

#endif

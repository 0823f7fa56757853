/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_DOOR_UCP_CACHE_H_
#define UCT_DOOR_UCP_CACHE_H_

/**
 * @file ucp_cache.h
 *
 * UCP's own registration cache, above the domain: it hides what is registered.
 * It is in use from 1.14 on, and in 1.13 with UCX_PROTO_ENABLE=y.
 */

/**
 * Switch it off in the options that UCP has just read, unless they are not
 * UCX's default there. Not thread-safe, as UCP's options are not.
 *
 * @param [in] config  From ucp_config_read().
 */
void uct_door_ucp_cache_disable(void *config);


/** A helper has been attached: say once a process, in one line, if the cache is
 *  on above it, and what to set. */
void uct_door_ucp_cache_report(void);

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_DOOR_UCP_CACHE_H_
#define UCT_DOOR_UCP_CACHE_H_

/**
 * @file ucp_cache.h
 *
 * UCP's registration cache above the domain, which hides registrations. In use
 * from 1.14 on, and in 1.13 with UCX_PROTO_ENABLE=y.
 */

/**
 * Switch it off in the options that UCP has just read, if they have UCX's
 * default. Not thread-safe, as UCP's options are not.
 *
 * @param [in] config  From ucp_config_read().
 */
void uct_door_ucp_cache_disable(void *config);


/** A helper has been attached: if the cache is on, say once a process, in one
 *  line, what to set. */
void uct_door_ucp_cache_report(void);

#endif

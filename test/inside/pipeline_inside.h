/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef PIPELINE_INSIDE_H_
#define PIPELINE_INSIDE_H_

#include <ucp/pipeline/pipeline_core.h>

/**
 * @file pipeline_inside.h
 *
 * What a pipeline's users do not do to it.
 */

BEGIN_C_DECLS

/** End it with whatever is still under way: this process is dead. Requests are
 *  freed. */
void ucp_pipeline_abandon(ucx_pipeline_h pipeline);

/** @return The wire. */
ucp_wire_t *ucp_pipeline_wire(ucx_pipeline_h pipeline);

/** Hold the lock that an unmapping takes. */
void ucp_pipeline_cache_lock(ucx_pipeline_h pipeline);
void ucp_pipeline_cache_unlock(ucx_pipeline_h pipeline);

END_C_DECLS

#endif

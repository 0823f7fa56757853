/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_inside.h"

#include <ucp/pipeline/pipeline_int.h>

void ucp_pipeline_abandon(ucx_pipeline_h self)
{
    unsigned i;

    for (i = 0; i < self->wire->num_peers; ++i) {
        ucp_pipeline_peer_failed(self, i, UCS_ERR_CANCELED);
    }
    ucp_pipeline_end(self);
}

ucp_wire_t *ucp_pipeline_wire(ucx_pipeline_h self)
{
    return self->wire;
}

void ucp_pipeline_cache_lock(ucx_pipeline_h self)
{
    ucs_lock(&self->cache.lock);
}

void ucp_pipeline_cache_unlock(ucx_pipeline_h self)
{
    ucs_unlock(&self->cache.lock);
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>
#include <ucp/wire/wire_ucp.h>

#include <string.h>

/* The pipeline over UCP, and its options */

void ucx_pipeline_options_init(ucx_pipeline_options_t *options)
{
    memset(options, 0, sizeof(*options));
    options->size         = sizeof(*options);
    options->mode         = UCX_PIPELINE_MODE_CACHE;
    options->eager        = UCP_PIPELINE_EAGER;
    options->rdma_offset  = UCX_PIPELINE_DERIVED;
    options->fragment     = 0;
    options->depth        = UCP_PIPELINE_DEPTH;
    options->cache_bytes  = UCP_PIPELINE_CACHE_BYTES;
    options->max_slowdown = UCP_PIPELINE_MAX_SLOWDOWN;
}

static int ucx_pipeline_options_are_good(const ucx_pipeline_options_t *options)
{
    size_t fragment = options->fragment;

    return ((unsigned)options->mode <= UCX_PIPELINE_MODE_COPY) &&
           (options->eager <= 65536) &&
           ((fragment == 0) ||
            ((fragment >= 4096) && ((fragment & (fragment - 1)) == 0))) &&
           (options->depth >= 1) && (options->depth <= 1024) &&
           (options->max_slowdown >= 0) && (options->max_slowdown <= 1);
}

/* A program may have been compiled with a shorter or longer structure: what it
 * does not have is at its default, and what we do not know is not read. */
static ucs_status_t
ucx_pipeline_options_check(const ucx_pipeline_options_t *from,
                           ucx_pipeline_options_t *options)
{
    ucx_pipeline_options_init(options);
    if (from == NULL) {
        return UCS_OK;
    }
    if (from->size < sizeof(from->size) + sizeof(from->mode)) {
        return UCS_ERR_INVALID_PARAM;
    }
    memcpy(options, from, ucs_min(from->size, sizeof(*options)));
    options->size = sizeof(*options);
    return ucx_pipeline_options_are_good(options) ? UCS_OK :
                                                    UCS_ERR_INVALID_PARAM;
}

ucs_status_t ucx_pipeline_create(unsigned self, unsigned num_peers,
                                 const ucx_pipeline_options_t *options,
                                 ucx_pipeline_h *pipeline_p)
{
    ucx_pipeline_options_t checked;
    ucs_status_t status;
    ucp_wire_t *wire;

    status = ucx_pipeline_options_check(options, &checked);
    if (status == UCS_OK) {
        status = ucp_wire_ucp_create(self, num_peers, &wire);
    }
    return (status != UCS_OK) ? status :
           ucp_pipeline_create(wire, &checked, pipeline_p);
}

void ucx_pipeline_address(ucx_pipeline_h pipeline, const void **address_p,
                          size_t *length_p)
{
    ucp_wire_ucp_address(pipeline->wire, address_p, length_p);
}

ucs_status_t ucx_pipeline_connect(ucx_pipeline_h pipeline, unsigned peer,
                                  const void *address)
{
    ucs_status_t status;

    pthread_mutex_lock(&pipeline->lock);
    status = ucp_wire_ucp_connect(pipeline->wire, peer, address);
    pthread_mutex_unlock(&pipeline->lock);
    return status;
}

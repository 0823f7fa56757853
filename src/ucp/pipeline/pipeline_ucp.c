/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>
#include <ucp/wire/wire_ucp.h>

#include <stdio.h>
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

static ucs_status_t ucx_pipeline_refuse(const char *name, size_t value,
                                        const char *allowed)
{
    fprintf(stderr, "ucx_pipeline: option %s is %zu, allowed is %s\n", name,
            value, allowed);
    return UCS_ERR_INVALID_PARAM;
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
        return ucx_pipeline_refuse("size", from->size,
                                   "sizeof(ucx_pipeline_options_t)");
    }
    memcpy(options, from, ucs_min(from->size, sizeof(*options)));
    options->size = sizeof(*options);
    if ((unsigned)options->mode > UCX_PIPELINE_MODE_COPY) {
        return ucx_pipeline_refuse("mode", options->mode,
                                   "UCX_PIPELINE_MODE_PIPELINE, _CACHE or "
                                   "_COPY");
    }
    if (options->eager > 65536) {
        return ucx_pipeline_refuse("eager", options->eager, "0 to 65536");
    }
    if ((options->fragment != 0) &&
        ((options->fragment < 4096) ||
         ((options->fragment & (options->fragment - 1)) != 0))) {
        return ucx_pipeline_refuse("fragment", options->fragment,
                                   "0 (derived) or a power of two, 4096 or "
                                   "more");
    }
    if ((options->depth < 1) || (options->depth > 1024)) {
        return ucx_pipeline_refuse("depth", options->depth, "1 to 1024");
    }
    if (!((options->max_slowdown >= 0) && (options->max_slowdown <= 1))) {
        fprintf(stderr, "ucx_pipeline: option max_slowdown is %g, allowed is 0 "
                "to 1\n", options->max_slowdown);
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
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

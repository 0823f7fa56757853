/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_PIPELINE_CORE_H_
#define UCP_PIPELINE_CORE_H_

#include <ucp/pipeline/ucx_pipeline.h>
#include <ucp/wire/wire.h>

/* The pipeline over any wire, for tests and models. */

BEGIN_C_DECLS

/** As @ref ucx_pipeline_create, over a wire that belongs to the pipeline from
 *  then on; it is destroyed if this fails. */
ucs_status_t ucp_pipeline_create(ucp_wire_t *wire,
                                 const ucx_pipeline_options_t *options,
                                 ucx_pipeline_h *pipeline_p);

/** Memory is unmapped, as UCM's event says; any thread, any time. */
void ucp_pipeline_unmapped(ucx_pipeline_h pipeline, const void *start,
                           size_t length);

END_C_DECLS

#endif

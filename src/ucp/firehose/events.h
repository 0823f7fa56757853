/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_FIREHOSE_EVENTS_H_
#define UCP_FIREHOSE_EVENTS_H_

#include "ucx_firehose.h"

#include <ucs/sys/compiler_def.h>

/**
 * @file events.h
 *
 * UCX's memory events for all instances of the process.
 */

BEGIN_C_DECLS

/**
 * From now on what is unmapped is doomed in this instance.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED or another error: UCX's hooks do not work
 *         here; UCS_ERR_EXCEEDS_LIMIT: too many instances.
 */
ucs_status_t ucp_firehose_events_join(ucx_firehose_h firehose);

/** When this returns no event is inside the instance, and none will be. */
void ucp_firehose_events_leave(ucx_firehose_h firehose);

END_C_DECLS

#endif

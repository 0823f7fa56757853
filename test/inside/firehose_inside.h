/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef FIREHOSE_INSIDE_H_
#define FIREHOSE_INSIDE_H_

#include <ucp/firehose/buckets.h>
#include <ucp/firehose/firehose_core.h>

/**
 * @file firehose_inside.h
 *
 * The equations of a firehose, which hold outside of its calls.
 */

BEGIN_C_DECLS

/** @return Nonzero if they hold. Takes the time of all buckets and firehoses. */
int ucp_firehose_buckets_is_valid(ucp_firehose_buckets_t *table);
int ucp_firehose_is_valid(ucx_firehose_h firehose);

END_C_DECLS

#endif

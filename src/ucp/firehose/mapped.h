/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_FIREHOSE_MAPPED_H_
#define UCP_FIREHOSE_MAPPED_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file mapped.h
 *
 * Whether memory is there, asked of the kernel.
 */

BEGIN_C_DECLS

/** @return The page size in bytes. */
size_t ucp_firehose_page_size(void);

/**
 * @return UCS_OK; or UCS_ERR_INVALID_ADDR: some of it is not mapped, or, on
 *         kernels from 5.14 on, not for reading and writing, or its pages
 *         cannot be had.
 */
ucs_status_t ucp_firehose_check_mapped(uint64_t address, size_t length);

END_C_DECLS

#endif

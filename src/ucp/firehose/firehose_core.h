/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_FIREHOSE_CORE_H_
#define UCP_FIREHOSE_CORE_H_

#include "ucx_firehose.h"

#include <ucp/wire/wire.h>
#include <ucs/sys/compiler_def.h>

/*
 * The engine over any wire: what ucx_firehose_open() and ucx_firehose_close()
 * are made of, for tests and models over a virtual network, which cannot wait
 * inside a function.
 */

BEGIN_C_DECLS

/** As ucx_firehose_open(), over a wire that belongs to the instance from then
 *  on; it is destroyed if this fails. No thread is started, so that what waits
 *  needs others to make progress, and no memory event is listened to. */
ucs_status_t ucp_firehose_create(const ucx_firehose_params_t *params,
                                 ucp_wire_t *wire, ucx_firehose_h *firehose_p);

/** Say hello to a peer that the wire is connected to; once. */
void ucp_firehose_greet(ucx_firehose_h firehose, unsigned node);

/** Cancel what waits; progress until @ref ucp_firehose_is_idle. */
void ucp_firehose_stop(ucx_firehose_h firehose);

/** @return Nonzero if nothing is under way and no callback to be made. */
int ucp_firehose_is_idle(ucx_firehose_h firehose);

/** Release what is idle after @ref ucp_firehose_stop, with its wire. */
void ucp_firehose_destroy(ucx_firehose_h firehose);

/** What a memory event does: the range is being unmapped. Waits for the index
 *  lock, and with UCX_FIREHOSE_FLAG_STRICT until no peer reaches for what of
 *  the range was in use, for UCP_FIREHOSE_UNMAP_WAIT_MS at most. */
void ucp_firehose_unmapped(ucx_firehose_h firehose, uint64_t start,
                           uint64_t end);

/** The other event: new memory has been mapped in the range. */
void ucp_firehose_mapped(ucx_firehose_h firehose, uint64_t start, uint64_t end);

/** The first half of ucx_firehose_release(). @return The number of what is to
 *  be waited for by @ref ucp_firehose_is_released. */
uint64_t ucp_firehose_revoke(ucx_firehose_h firehose, uint64_t start,
                             uint64_t end);

/** @return Nonzero once nobody uses what @ref ucp_firehose_revoke took, whose
 *          number @a doom is. */
int ucp_firehose_is_released(ucx_firehose_h firehose, uint64_t doom);

END_C_DECLS

#endif

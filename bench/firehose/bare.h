/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * UCP and nothing above it: one endpoint, to put by.
 */
#ifndef BENCH_FIREHOSE_BARE_H_
#define BENCH_FIREHOSE_BARE_H_

#include <ucp/api/ucp.h>

typedef struct bare {
    ucp_context_h context;
    ucp_worker_h  worker;
    ucp_ep_h      ep;
    ucp_mem_h     memh; /**< of this process's memory */
    ucp_rkey_h    rkey; /**< of the peer's */
} bare_t;

/** A worker, and the memory registered. The address and the key are for the peer;
 *  they live as long as the process. @return Zero if that failed. */
int bare_open(bare_t *bare, void *memory, size_t length, void **address_p,
              size_t *address_length_p, void **key_p, size_t *key_length_p);

/** @return Zero if that failed. */
int bare_connect(bare_t *bare, const void *address, const void *key);

/** Put and forget. */
void bare_put(bare_t *bare, const void *local, uint64_t remote, size_t length);

/** All that was put is there. */
void bare_flush(bare_t *bare);

void bare_close(bare_t *bare);

#endif

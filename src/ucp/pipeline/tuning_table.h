/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_PIPELINE_TUNING_TABLE_H_
#define UCP_PIPELINE_TUNING_TABLE_H_

/**
 * @file tuning_table.h
 *
 * Defaults of the options and the constants that steer, each with what half
 * and double do. The defaults are Open MPI's of the paper's time in spirit;
 * they have not been swept.
 */

/** Bytes. Half: messages of 8 KiB wait for an acknowledgement. Double: more is
 *  kept, copied, for messages that nobody waits for yet. */
#define UCP_PIPELINE_EAGER (16 * 1024)

/** Bytes. Half: the link is idle while the first fragment is registered.
 *  Double: more is copied that could have been written. */
#define UCP_PIPELINE_RDMA_OFFSET (128 * 1024)

/** Bytes. Half: twice the base costs of registering. Double: what does not
 *  overlap, the first fragment's registration, is longer. */
#define UCP_PIPELINE_FRAGMENT (1024 * 1024)

/** Fragments. Half: two hide one another only if registering is cheap. Double:
 *  more memory pinned, no more overlap. */
#define UCP_PIPELINE_DEPTH 4

/** Bytes kept, mode cache. Half and double: as the user's memory allows. */
#define UCP_PIPELINE_CACHE_BYTES (256ul * 1024 * 1024)

/** Bytes of a message with copied data. Half: twice the messages. Double: not
 *  possible, a wire's payload is no longer. */
#define UCP_PIPELINE_COPY (32 * 1024)

/** Messages of a copied piece under way. Half: the link may run dry. Double: a
 *  control message waits behind more. */
#define UCP_PIPELINE_COPIES 4

/** Entries of the cache, searched one by one. Half: less is reused where
 *  fragments are small. Double: a search of twice the length. */
#define UCP_PIPELINE_CACHE_ENTRIES 1024

#endif

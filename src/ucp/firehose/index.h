/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_FIREHOSE_INDEX_H_
#define UCP_FIREHOSE_INDEX_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file index.h
 *
 * A hash table from bucket addresses to objects. Chained and intrusive, with
 * as many heads as there may ever be objects, so that each operation takes
 * constant time and none allocates. Heads that no key falls on are never
 * touched and cost no memory. The caller locks.
 */

BEGIN_C_DECLS

/** @return Zeroed memory of which nothing is there until it is touched, by large
 *          pages if it is large: what is looked up at random in it misses fewer
 *          entries of the processor's page tables. NULL: none. */
void *ucp_firehose_table_alloc(size_t size);

/** @param [in] size  As when it was allocated; @a table may be NULL. */
void ucp_firehose_table_free(void *table, size_t size);

typedef struct ucp_firehose_elem {
    struct ucp_firehose_elem *next;
    uint64_t                 key;
} ucp_firehose_elem_t;

typedef struct ucp_firehose_index {
    ucp_firehose_elem_t **heads;
    uint64_t            mask;  /**< heads - 1; a power of two less 1 */
    size_t              count; /**< objects in it */
} ucp_firehose_index_t;

/**
 * @param [in] max  Objects that will ever be in it at once.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_firehose_index_init(ucp_firehose_index_t *index, size_t max);

/** Release the heads; the objects are not touched. */
void ucp_firehose_index_cleanup(ucp_firehose_index_t *index);

/** @return The object with this key, or NULL. */
ucp_firehose_elem_t *
ucp_firehose_index_find(const ucp_firehose_index_t *index, uint64_t key);

/** Add an object whose key is not in the table. */
void ucp_firehose_index_add(ucp_firehose_index_t *index,
                            ucp_firehose_elem_t *elem, uint64_t key);

/** Remove an object that is in the table. */
void ucp_firehose_index_remove(ucp_firehose_index_t *index,
                               ucp_firehose_elem_t *elem);

END_C_DECLS

#endif

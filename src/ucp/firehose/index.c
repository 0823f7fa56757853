/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "buckets.h"

#include "firehose_tuning.h"

#include <ucs/sys/hash.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *ucp_firehose_table_alloc(size_t size)
{
    const size_t page = sysconf(_SC_PAGESIZE);
    char *table       = calloc(1, size);

    if ((table != NULL) && (size >= UCP_FIREHOSE_HUGE_TABLE)) {
        /* a wish, for the whole pages of it */
        (void)madvise(table + -(uintptr_t)table % page, size - page,
                      MADV_HUGEPAGE);
    }
    return table;
}

ucs_status_t ucp_firehose_index_init(ucp_firehose_index_t *index, size_t max)
{
    uint64_t heads = 1;

    while (heads < max) {
        heads *= 2;
    }
    index->heads = ucp_firehose_table_alloc(heads * sizeof(*index->heads));
    index->mask  = heads - 1;
    index->count = 0;
    return (index->heads == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void ucp_firehose_index_cleanup(ucp_firehose_index_t *index)
{
    free(index->heads);
    index->heads = NULL;
}

static ucp_firehose_elem_t **
ucp_firehose_index_head(const ucp_firehose_index_t *index, uint64_t key)
{
    return &index->heads[ucs_hash_mix(key) & index->mask];
}

ucp_firehose_elem_t *
ucp_firehose_index_find(const ucp_firehose_index_t *index, uint64_t key)
{
    ucp_firehose_elem_t *elem = *ucp_firehose_index_head(index, key);

    while ((elem != NULL) && (elem->key != key)) {
        elem = elem->next;
    }
    return elem;
}

void ucp_firehose_index_add(ucp_firehose_index_t *index,
                            ucp_firehose_elem_t *elem, uint64_t key)
{
    ucp_firehose_elem_t **head = ucp_firehose_index_head(index, key);

    elem->key  = key;
    elem->next = *head;
    *head      = elem;
    ++index->count;
}

void ucp_firehose_index_remove(ucp_firehose_index_t *index,
                               ucp_firehose_elem_t *elem)
{
    ucp_firehose_elem_t **at = ucp_firehose_index_head(index, elem->key);

    while (*at != elem) {
        at = &(*at)->next;
    }
    *at = elem->next;
    --index->count;
}

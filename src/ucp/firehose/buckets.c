/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "buckets.h"

#include "firehose_tuning.h"

#include <stdlib.h>
#include <string.h>

typedef ucp_firehose_bucket_t bucket_t;
typedef ucp_firehose_buckets_t table_t;

ucs_status_t ucp_firehose_buckets_init(table_t *table, size_t size,
                                       size_t max_remote, size_t max_victims,
                                       const ucp_firehose_pin_ops_t *ops)
{
    const size_t most = max_remote + max_victims;
    ucs_status_t status;

    memset(table, 0, sizeof(*table));
    ucs_lock_init(&table->lock);
    atomic_init(&table->is_struck_all, 0);
    ucs_list_head_init(&table->free);
    ucs_list_head_init(&table->victims);
    ucs_list_head_init(&table->struck);
    ucs_list_head_init(&table->doomed);
    table->ops         = *ops;
    table->size        = size;
    table->max_remote  = max_remote;
    table->max_victims = max_victims;

    status = ucp_firehose_index_init(&table->index, most);
    if (status != UCS_OK) {
        return status;
    }
    /* Zeroed pages that are never touched cost nothing */
    table->pool = ucp_firehose_table_alloc((most + 1) * sizeof(*table->pool));
    if (table->pool == NULL) {
        ucp_firehose_buckets_cleanup(table);
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}

/* The number that counts a bucket */
static size_t *
ucp_firehose_buckets_class(table_t *table, const bucket_t *bucket)
{
    return (bucket->remote > 0) ? &table->num_remote :
           (bucket->local > 0)  ? &table->local_only :
           (bucket->doom != 0)  ? &table->idle_doomed :
                                  &table->num_victims;
}

static void ucp_firehose_buckets_doom_one(table_t *table, bucket_t *bucket)
{
    ucp_firehose_index_remove(&table->index, &bucket->elem);
    --*ucp_firehose_buckets_class(table, bucket);
    if ((bucket->remote == 0) && (bucket->local == 0)) {
        ucs_list_del(&bucket->link); /* a victim no longer */
    } else {
        table->last_used = table->num_dooms;
    }
    bucket->doom = table->num_dooms;
    ++*ucp_firehose_buckets_class(table, bucket);
    ucs_list_add_tail(&table->struck, &bucket->link);
}

static void ucp_firehose_buckets_doom_chain(table_t *table,
                                            ucp_firehose_elem_t *elem,
                                            uint64_t start, uint64_t end)
{
    ucp_firehose_elem_t *next;

    for (; elem != NULL; elem = next) {
        next = elem->next;
        if ((elem->key < end) && (elem->key + table->size > start)) {
            ucp_firehose_buckets_doom_one(table, (bucket_t*)elem);
        }
    }
}

/* The pool from its start to what was used of it at most: a bucket that is in
 * the index has no doom and a user, or is a victim */
static void ucp_firehose_buckets_doom_range(table_t *table, uint64_t start,
                                            uint64_t end)
{
    uint64_t first = start & ~(uint64_t)(table->size - 1);
    ucp_firehose_elem_t *elem;
    uint64_t at;

    ++table->num_dooms;
    if ((end - first) / table->size > table->index.mask) {
        for (at = 0; at <= table->index.mask; ++at) {
            ucp_firehose_buckets_doom_chain(table, table->index.heads[at],
                                            start, end);
        }
        return;
    }
    for (at = first; at < end; at += table->size) {
        elem = ucp_firehose_index_find(&table->index, at);
        if (elem != NULL) {
            ucp_firehose_buckets_doom_one(table, (bucket_t*)elem);
        }
    }
}

static void ucp_firehose_buckets_unlock(table_t *table)
{
    /* A signal handler that finds its own thread inside leaves a mark; relaxed,
     * for it is the same thread. One that comes between the look and the
     * unlocking is seen by the second look. */
    do {
        if (ucs_unlikely(ucs_load_relaxed(&table->is_struck_all)) &&
            ucs_swap_relaxed(&table->is_struck_all, 0)) {
            ucp_firehose_buckets_doom_range(table, 0, UINT64_MAX);
        }
        ucs_unlock(&table->lock);
    } while (ucs_unlikely(ucs_load_relaxed(&table->is_struck_all)) &&
             ucs_lock_try(&table->lock));
}

uint64_t ucp_firehose_buckets_doom(table_t *table, uint64_t start, uint64_t end)
{
    uint64_t doom = 0;

    if (start >= end) {
        return 0;
    }
    if (ucs_lock_is_mine(&table->lock)) {
        ucs_store_relaxed(&table->is_struck_all, 1);
        return 0;
    }
    ucs_lock(&table->lock);
    if (table->index.count > 0) {
        ucp_firehose_buckets_doom_range(table, start, end);
        doom = (table->last_used == table->num_dooms) ? table->num_dooms : 0;
    }
    ucp_firehose_buckets_unlock(table);
    return doom;
}

/* Deregister what is in no list and counted nowhere but as pinned. The index
 * lock is held, and let go meanwhile: deregistering is a system call. */
static void ucp_firehose_buckets_unpin(table_t *table, bucket_t *bucket)
{
    ucp_firehose_buckets_unlock(table);
    table->ops.unpin(table->ops.arg, bucket->pin);
    ucs_lock(&table->lock);
    ++table->num_unpins;
    --table->pinned;
    ucs_list_add_head(&table->free, &bucket->link);
}

/* The oldest victim that was not touched lately; there is a victim */
static bucket_t *ucp_firehose_buckets_oldest(table_t *table)
{
    unsigned chances = UCP_FIREHOSE_SECOND_CHANCES;
    bucket_t *bucket = ucs_list_extract_head(&table->victims, bucket_t, link);

    while (bucket->is_recent && (chances-- > 0)) {
        bucket->is_recent = 0;
        ucs_list_add_tail(&table->victims, &bucket->link);
        bucket = ucs_list_extract_head(&table->victims, bucket_t, link);
    }
    return bucket;
}

static void ucp_firehose_buckets_evict(table_t *table)
{
    bucket_t *bucket = ucp_firehose_buckets_oldest(table);

    --table->num_victims;
    ucp_firehose_index_remove(&table->index, &bucket->elem);
    ucp_firehose_buckets_unpin(table, bucket);
}

static int ucp_firehose_buckets_has_room(const table_t *table,
                                         ucp_firehose_use_t use)
{
    return (table->pinned < table->max_remote + table->max_victims) &&
           ((use == UCP_FIREHOSE_REMOTE) ||
            (table->local_only + table->num_victims < table->max_victims));
}

static uint32_t *
ucp_firehose_bucket_users(bucket_t *bucket, ucp_firehose_use_t use)
{
    return (use == UCP_FIREHOSE_REMOTE) ? &bucket->remote : &bucket->local;
}

static void ucp_firehose_buckets_use(table_t *table, bucket_t *bucket,
                                     ucp_firehose_use_t use)
{
    if ((bucket->remote == 0) && (bucket->local == 0)) {
        ucs_list_del(&bucket->link);
    }
    --*ucp_firehose_buckets_class(table, bucket);
    ++*ucp_firehose_bucket_users(bucket, use);
    ++*ucp_firehose_buckets_class(table, bucket);
}

/* Index lock held. @return What is in the index, used once, not pinned yet */
static bucket_t *ucp_firehose_buckets_begin(table_t *table, uint64_t address,
                                            ucp_firehose_use_t use)
{
    bucket_t *bucket;

    if (ucs_list_is_empty(&table->free)) {
        bucket = &table->pool[table->num_used++];
    } else {
        bucket = ucs_list_extract_head(&table->free, bucket_t, link);
    }
    memset(bucket, 0, sizeof(*bucket));
    ucs_list_head_init(&bucket->holds);
    *ucp_firehose_bucket_users(bucket, use) = 1;
    ++*ucp_firehose_buckets_class(table, bucket);
    ucp_firehose_index_add(&table->index, &bucket->elem, address);
    if (++table->pinned > table->peak) {
        table->peak = table->pinned;
    }
    return bucket;
}

/* Index lock held. What was not pinned after all leaves no trace */
static void ucp_firehose_buckets_abandon(table_t *table, bucket_t *bucket)
{
    if (bucket->doom != 0) {
        ucs_list_del(&bucket->link);
    } else {
        ucp_firehose_index_remove(&table->index, &bucket->elem);
    }
    --*ucp_firehose_buckets_class(table, bucket);
    --table->pinned;
    ucs_list_add_head(&table->free, &bucket->link);
}

/* Index lock held; it is let go while the bucket is pinned. Memory that went
 * away meanwhile has doomed the bucket, and is what it was no longer. */
static ucs_status_t
ucp_firehose_buckets_pin(table_t *table, uint64_t address,
                         ucp_firehose_use_t use, bucket_t **bucket_p)
{
    bucket_t *bucket = ucp_firehose_buckets_begin(table, address, use);
    ucs_status_t status;

    ucp_firehose_buckets_unlock(table);
    status = table->ops.pin(table->ops.arg, address, table->size, &bucket->pin);
    ucs_lock(&table->lock);
    if (status != UCS_OK) {
        ucp_firehose_buckets_abandon(table, bucket);
        return status;
    }
    ++table->num_pins;
    if (bucket->doom != 0) {
        ucs_list_del(&bucket->link);
        --*ucp_firehose_buckets_class(table, bucket);
        ucp_firehose_buckets_unpin(table, bucket);
        return UCS_ERR_CANCELED;
    }
    *bucket_p = bucket;
    return UCS_OK;
}

ucs_status_t ucp_firehose_buckets_get(table_t *table, uint64_t address,
                                      ucp_firehose_use_t use,
                                      bucket_t **bucket_p)
{
    unsigned tries      = 0;
    ucs_status_t status = UCS_ERR_CANCELED;
    bucket_t *bucket;

    ucs_lock(&table->lock);
    while ((status == UCS_ERR_CANCELED) &&
           (++tries <= UCP_FIREHOSE_PIN_TRIES)) {
        bucket = (bucket_t*)ucp_firehose_index_find(&table->index, address);
        if (bucket != NULL) {
            ucp_firehose_buckets_use(table, bucket, use);
            *bucket_p = bucket;
            status    = UCS_OK;
        } else if (ucp_firehose_buckets_has_room(table, use)) {
            status = ucp_firehose_buckets_pin(table, address, use, bucket_p);
        } else if (table->num_victims > 0) {
            ucp_firehose_buckets_evict(table);
            --tries;
        } else {
            status = UCS_ERR_NO_RESOURCE;
        }
    }
    ucp_firehose_buckets_unlock(table);
    return (status == UCS_ERR_CANCELED) ? UCS_ERR_INVALID_ADDR : status;
}

bucket_t *ucp_firehose_buckets_touch(table_t *table, uint64_t address)
{
    bucket_t *bucket;

    ucs_lock(&table->lock);
    bucket = (bucket_t*)ucp_firehose_index_find(&table->index, address);
    if (bucket != NULL) {
        bucket->is_recent = 1;
    }
    ucp_firehose_buckets_unlock(table);
    return bucket;
}

void ucp_firehose_buckets_hold(table_t *table, bucket_t *bucket)
{
    ucs_lock(&table->lock);
    if ((bucket->remote == 0) && (bucket->local == 0) && (bucket->doom == 0)) {
        ucs_list_del(&bucket->link); /* a victim no longer */
    }
    --*ucp_firehose_buckets_class(table, bucket);
    ++bucket->local;
    ++*ucp_firehose_buckets_class(table, bucket);
    ucp_firehose_buckets_unlock(table);
}

void ucp_firehose_buckets_put(table_t *table, bucket_t *bucket,
                              ucp_firehose_use_t use)
{
    ucs_lock(&table->lock);
    --*ucp_firehose_buckets_class(table, bucket);
    --*ucp_firehose_bucket_users(bucket, use);
    if ((bucket->remote > 0) || (bucket->local > 0)) {
        ++*ucp_firehose_buckets_class(table, bucket);
    } else if (bucket->doom != 0) {
        ucs_list_del(&bucket->link);
        ucp_firehose_buckets_unpin(table, bucket);
    } else {
        ++table->num_victims;
        bucket->is_recent = 0;
        ucs_list_add_tail(&table->victims, &bucket->link);
    }
    while ((table->num_victims > 0) &&
           (table->local_only + table->num_victims > table->max_victims)) {
        ucp_firehose_buckets_evict(table);
    }
    ucp_firehose_buckets_unlock(table);
}

bucket_t *ucp_firehose_buckets_next_struck(table_t *table)
{
    bucket_t *bucket = NULL;

    ucs_lock(&table->lock);
    while (!ucs_list_is_empty(&table->struck)) {
        bucket = ucs_list_extract_head(&table->struck, bucket_t, link);
        if ((bucket->remote > 0) || (bucket->local > 0)) {
            ucs_list_add_tail(&table->doomed, &bucket->link);
            break;
        }
        --table->idle_doomed;
        ucp_firehose_buckets_unpin(table, bucket);
        bucket = NULL;
    }
    ucp_firehose_buckets_unlock(table);
    return bucket;
}

static int ucp_firehose_buckets_has_doom(ucs_list_link_t *list, uint64_t doom)
{
    return !ucs_list_is_empty(list) &&
           (ucs_list_head(list, bucket_t, link)->doom <= doom);
}

int ucp_firehose_buckets_is_doomed(table_t *table, uint64_t doom)
{
    int is_doomed;

    ucs_lock(&table->lock);
    is_doomed = ucp_firehose_buckets_has_doom(&table->struck, doom) ||
                ucp_firehose_buckets_has_doom(&table->doomed, doom);
    ucp_firehose_buckets_unlock(table);
    return is_doomed;
}

void ucp_firehose_buckets_cleanup(table_t *table)
{
    if (table->pool != NULL) {
        while (ucp_firehose_buckets_next_struck(table) != NULL) {
        }
        ucs_lock(&table->lock);
        while (table->num_victims > 0) {
            ucp_firehose_buckets_evict(table);
        }
        ucp_firehose_buckets_unlock(table);
    }
    free(table->pool);
    ucp_firehose_index_cleanup(&table->index);
}

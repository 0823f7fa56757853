/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_FIREHOSE_BUCKETS_H_
#define UCP_FIREHOSE_BUCKETS_H_

#include <ucs/datastruct/list.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/sync/lock.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/*
 * What of this process's memory is pinned, in buckets: aligned pieces of one
 * size. A bucket is used by firehoses of peers (`remote`) and by transfers of
 * this process (`local`); one that nobody uses stays pinned as a *victim* until
 * its place is needed, oldest first.
 *
 * They are found by a hash table from addresses to objects (index.c), chained and
 * intrusive, with as many heads as there may ever be objects, so that each operation
 * takes constant time and none allocates. Heads that no key falls on are never touched
 * and cost no memory.
 *
 * Invariants, which test/inside/firehose_inside.c checks; numbers are of buckets,
 * each bucket is counted in exactly one of the four:
 *   pinned == remote + local_only + victims + idle_doomed <= max_remote +
 *                                                            max_victims
 *   victims == length of the FIFO
 *   victims == 0  or  local_only + victims <= max_victims
 *
 * Two locks. The caller's lock: all functions but ucp_firehose_buckets_doom()
 * are called under one lock of the owner of the table. The index lock, the
 * table's own: protects all that doom() changes (index, FIFO, flags, counters,
 * lists). It is taken inside munmap() by a memory event, so that it is
 * never held across an allocation, a system call or a call out; anything may be
 * held when it is taken.
 */

BEGIN_C_DECLS

/** @return Zeroed memory of which nothing is there until it is touched, by large
 *          pages if it is large: what is looked up at random in it misses fewer
 *          entries of the processor's page tables. For free(); NULL: none. */
void *ucp_firehose_table_alloc(size_t size);

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

/** What a bucket is wanted for. */
typedef enum ucp_firehose_use {
    UCP_FIREHOSE_LOCAL, /**< one transfer of this process */
    UCP_FIREHOSE_REMOTE /**< a firehose that a peer pointed at it */
} ucp_firehose_use_t;

/** How memory is pinned. */
typedef struct ucp_firehose_pin_ops {
    /** @return UCS_OK and what is needed to use it in @a *pin_p;
     *          UCS_ERR_INVALID_ADDR if not all of it is mapped for reading and
     *          writing; UCS_ERR_NO_MEMORY or another error of the device. */
    ucs_status_t (*pin)(void *arg, uint64_t address, size_t length,
                        void **pin_p);
    void (*unpin)(void *arg, void *pin);
    void *arg;
} ucp_firehose_pin_ops_t;

typedef struct ucp_firehose_bucket {
    ucp_firehose_elem_t elem;   /**< its key is the address; first member */
    ucs_list_link_t     link;   /**< FIFO of victims, or a list of doomed */
    ucs_list_link_t     holds;  /**< of the owner: who points here */
    void                *pin;
    uint64_t            doom;   /**< number of the doom, 0: lives */
    uint32_t            remote; /**< firehoses that point here */
    uint32_t            local;  /**< transfers from or to here */
    uint8_t             is_recent; /**< touched since it became a victim */
} ucp_firehose_bucket_t;

typedef struct ucp_firehose_buckets {
    ucs_lock_t             lock; /**< the index lock */
    ucp_firehose_index_t   index;
    ucp_firehose_bucket_t  *pool;
    ucs_list_link_t        free;    /**< used before, and free again */
    ucs_list_link_t        victims; /**< oldest first */
    ucs_list_link_t        struck;  /**< doomed, the owner does not know yet */
    ucs_list_link_t        doomed;  /**< and told, still pinned; oldest first */
    ucp_firehose_pin_ops_t ops;
    size_t                 size; /**< bytes of a bucket, a power of two */
    size_t                 num_used;    /**< of the pool, from its start */
    size_t                 max_remote;  /**< M, in buckets */
    size_t                 max_victims; /**< MAXVICTIM, in buckets */
    size_t                 pinned;
    size_t                 num_remote;
    size_t                 local_only;
    size_t                 num_victims;
    size_t                 idle_doomed;
    size_t                 peak;     /**< the most that was pinned at once */
    uint64_t               num_pins; /**< calls of pin that succeeded */
    uint64_t               num_unpins;
    uint64_t               num_dooms;     /**< last number of a doom */
    uint64_t               last_used;     /**< last doom of a bucket in use */
    _Atomic(int)           is_struck_all; /**< an event found the lock taken */
} ucp_firehose_buckets_t;

/**
 * @param [in] size         Bytes of a bucket, a power of two.
 * @param [in] max_remote   M in buckets.
 * @param [in] max_victims  MAXVICTIM in buckets.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucp_firehose_buckets_init(ucp_firehose_buckets_t *table,
                                       size_t size, size_t max_remote,
                                       size_t max_victims,
                                       const ucp_firehose_pin_ops_t *ops);

/** Unpin all and release the memory. No bucket may be in use. */
void ucp_firehose_buckets_cleanup(ucp_firehose_buckets_t *table);

/**
 * Use a bucket; it is pinned if it was not.
 *
 * @param [in]  address   Start of the bucket.
 * @param [out] bucket_p  Set on UCS_OK only; give it back by
 *                        @ref ucp_firehose_buckets_put.
 *
 * @return UCS_OK; UCS_ERR_NO_RESOURCE: as much is in use as may be, try again
 *         when something has been given back; or an error of `pin`.
 */
ucs_status_t ucp_firehose_buckets_get(ucp_firehose_buckets_t *table,
                                      uint64_t address, ucp_firehose_use_t use,
                                      ucp_firehose_bucket_t **bucket_p);

/**
 * Find a bucket that is pinned, for a use that may be over before the caller's
 * lock is let go: until then nothing unpins it, and nothing is to be given back.
 * A victim that is touched goes later than its turn.
 *
 * @return The bucket, or NULL: it is not pinned.
 */
ucp_firehose_bucket_t *
ucp_firehose_buckets_touch(ucp_firehose_buckets_t *table, uint64_t address);

/** A transfer of what was touched goes on after the caller's lock is let go; give
 *  it back by @ref ucp_firehose_buckets_put. It may be doomed by now. */
void ucp_firehose_buckets_hold(ucp_firehose_buckets_t *table,
                               ucp_firehose_bucket_t *bucket);

/** A use is over. One that nobody uses any more becomes the youngest victim,
 *  or is unpinned if it is doomed. */
void ucp_firehose_buckets_put(ucp_firehose_buckets_t *table,
                              ucp_firehose_bucket_t *bucket,
                              ucp_firehose_use_t use);

/**
 * Memory is going away, or must not be reached any more. Takes out every bucket
 * that overlaps the range, so that no later use finds it. Takes the time of the
 * range's buckets, or of all, whichever are fewer. May be called by any thread,
 * inside munmap() and in a signal handler: it allocates, frees and logs
 * nothing. A handler that interrupts the holder of the index lock leaves a
 * mark, and all is doomed before that lock is let go.
 *
 * @return Number of this doom for @ref ucp_firehose_buckets_is_doomed if a
 *         bucket was in use; 0: nobody used any.
 */
uint64_t ucp_firehose_buckets_doom(ucp_firehose_buckets_t *table,
                                   uint64_t start, uint64_t end);

/**
 * @return A bucket that is doomed and has not been returned before, for the
 *         owner to tell those that point to it; NULL: none left. Doomed
 *         victims are unpinned here.
 */
ucp_firehose_bucket_t *
ucp_firehose_buckets_next_struck(ucp_firehose_buckets_t *table);

/** @return Nonzero while a bucket is pinned whose doom has this number or a
 *          lower one, and those that are struck are not forgotten. */
int ucp_firehose_buckets_is_doomed(ucp_firehose_buckets_t *table,
                                   uint64_t doom);

END_C_DECLS

#endif

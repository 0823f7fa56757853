/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_FIREHOSE_H_
#define UCX_FIREHOSE_H_

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file ucx_firehose.h
 *
 * One-sided put and get to memory of other processes that nobody pinned in
 * advance, after Bell and Bonachea, "A New DMA Registration Strategy for
 * Pinning-Based High Performance Networks" (CAC'03). Each node (process) lends
 * M bytes of pinned memory to the others, who decide where they lie: the memory
 * that a node reaches at a peer is moved by one message when it reaches
 * elsewhere (a miss), and used without one while it does not (a hit).
 *
 * All functions may be called by any thread; one lock of the instance makes
 * them take turns. Completion callbacks are called without that lock, by a
 * thread inside ucx_firehose_progress() or another function that
 * says so, and may call any function but ucx_firehose_close().
 */

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/** One process's end, opened by @ref ucx_firehose_open. */
typedef struct ucx_firehose *ucx_firehose_h;

/**
 * An operation that returned UCS_INPROGRESS has ended; called exactly once.
 *
 * @param [in] arg     As given with the operation.
 * @param [in] status  UCS_OK, or why it failed: UCS_ERR_INVALID_ADDR (the
 *                     peer, or this process, has not mapped all of the range
 *                     for reading and writing), UCS_ERR_EXCEEDS_LIMIT (the
 *                     peer lends no memory), UCS_ERR_CANCELED (closed), or what
 *                     registering or UCP said, at either end.
 */
typedef void (*ucx_firehose_done_func_t)(void *arg, ucs_status_t status);

/** Optional fields of @ref ucx_firehose_params_t that are set. */
enum ucx_firehose_params_field {
    UCX_FIREHOSE_PARAM_FIELD_VICTIMS = 1 << 0,
    UCX_FIREHOSE_PARAM_FIELD_BUCKET  = 1 << 1,
    UCX_FIREHOSE_PARAM_FIELD_FLAGS   = 1 << 2
};

enum ucx_firehose_flags {
    UCX_FIREHOSE_FLAG_THREAD   = 1 << 0, /**< a thread makes progress, but no
                                          *   callbacks */
    UCX_FIREHOSE_FLAG_STRICT   = 1 << 3  /**< unmapping what peers reach waits
                                          *   until they do not any more, for
                                          *   1 s at most; a thread sees to
                                          *   it, which makes no callbacks */
};

/** How to open one. */
typedef struct ucx_firehose_params {
    uint64_t           field_mask; /**< of @ref ucx_firehose_params_field */
    unsigned           node;       /**< number of this process */
    unsigned           num_nodes;  /**< of all, above `node` */
    size_t             memory;     /**< M: bytes that peers may have pinned
                                    *   here; each gets floor(M / (bucket *
                                    *   (num_nodes - 1))) buckets; 0: none */
    size_t             victims;    /**< MAXVICTIM: bytes that may be pinned
                                    *   beyond that, for this process's own
                                    *   transfers and for what nobody uses any
                                    *   more; at least one bucket. Default: an
                                    *   eighth of M, and at least 64 buckets */
    size_t             bucket;     /**< bytes of a bucket: a power of two, at
                                    *   least a page. Default: a page. Memory is
                                    *   pinned by whole buckets: with larger
                                    *   ones what is reached must lie in
                                    *   mappings that begin and end with a
                                    *   bucket */
    unsigned           flags;      /**< of @ref ucx_firehose_flags; default 0 */
} ucx_firehose_params_t;

/** Figures of one instance; sums since it was opened, unless said. */
typedef struct ucx_firehose_attr {
    size_t   bucket;         /**< bytes */
    size_t   pinned;         /**< bytes pinned now */
    size_t   pinned_peak;    /**< the most that ever was */
    size_t   pinned_max;     /**< the most that may be: M + MAXVICTIM */
    uint64_t hits;           /**< pieces that went at once */
    uint64_t misses;         /**< pieces that a firehose was moved for */
    uint64_t joined;         /**< pieces that waited for such a move */
    uint64_t moves;          /**< firehoses that were moved, here as a target */
    uint64_t pins;           /**< buckets pinned */
    uint64_t unpins;         /**< buckets unpinned */
    uint64_t revokes;        /**< firehoses that were taken back here */
    uint64_t unmaps;         /**< unmappings that found memory in use here */
    uint64_t unmaps_late;    /**< of these, went on before all had let go: not
                              *   strict, or a peer did not answer in time */
    int      has_events;     /**< 0: UCX's memory hooks do not work here,
                              *   and memory must be released before it is
                              *   unmapped */
} ucx_firehose_attr_t;

/**
 * Open this process's end: a UCP context and worker of its own.
 *
 * @param [in]  params      Not needed after this returns.
 * @param [out] firehose_p  Set on success; end it by @ref ucx_firehose_close.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM: node, num_nodes or bucket;
 *         UCS_ERR_EXCEEDS_LIMIT: MAXVICTIM is less than a bucket;
 *         UCS_ERR_NO_MEMORY; or what UCP says.
 */
ucs_status_t ucx_firehose_open(const ucx_firehose_params_t *params,
                               ucx_firehose_h *firehose_p);

/**
 * Close. What is under way ends as it will, what waits for a peer is cancelled;
 * callbacks are called before this returns. No peer may reach this process's
 * memory at that time or later: have a barrier first. Not to be called in a
 * callback, or by two threads.
 */
void ucx_firehose_close(ucx_firehose_h firehose);

/** Get the address that peers need to connect; it lives until close.
 *  @param [out] length_p  In bytes. */
void ucx_firehose_address(ucx_firehose_h firehose, const void **address_p,
                          size_t *length_p);

/**
 * Connect to a peer; each does so, once for each other, before it reaches the
 * other's memory. Does not wait: what is begun before the peer has connected
 * starts when it has.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM: no such peer;
 *         UCS_ERR_ALREADY_EXISTS; or what UCP says.
 */
ucs_status_t ucx_firehose_connect(ucx_firehose_h firehose, unsigned node,
                                  const void *address);

/**
 * Write to a peer's memory. Completion means that the local memory may be
 * changed; @ref ucx_firehose_flush_nb says when the data are at the peer.
 * Writes are ordered with nothing but by a flush.
 *
 * @param [in] node    A peer that is connected to; not this node.
 * @param [in] local   Mapped here for reading and writing; unchanged until
 *                     completion.
 * @param [in] remote  Address in the peer, any alignment.
 * @param [in] length  In bytes; 0 is done at once.
 * @param [in] done    May be NULL: failures are told by the next flush.
 * @param [in] arg     For @a done.
 *
 * @return UCS_OK: completed, @a done is not called; UCS_INPROGRESS; or an
 *         error: UCS_ERR_INVALID_PARAM: no such peer or a range that wraps
 *         around; UCS_ERR_NOT_CONNECTED; UCS_ERR_NO_MEMORY; or one of
 *         @ref ucx_firehose_done_func_t: an unknown part has been written then.
 */
ucs_status_t ucx_firehose_put_nb(ucx_firehose_h firehose, unsigned node,
                                 const void *local, uint64_t remote,
                                 size_t length, ucx_firehose_done_func_t done,
                                 void *arg);

/** Read from a peer's memory. Completion means that the data are here. As
 *  @ref ucx_firehose_put_nb. */
ucs_status_t ucx_firehose_get_nb(ucx_firehose_h firehose, unsigned node,
                                 void *local, uint64_t remote, size_t length,
                                 ucx_firehose_done_func_t done, void *arg);

/**
 * Complete when all that was begun to a peer has ended, and what was written is
 * there. What is begun after that takes effect after it.
 *
 * @return UCS_OK: so it is; UCS_INPROGRESS: @a done, if not NULL, is called
 *         with UCS_OK or the first error since the flush before; or
 *         UCS_ERR_INVALID_PARAM, UCS_ERR_NOT_CONNECTED or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucx_firehose_flush_nb(ucx_firehose_h firehose, unsigned node,
                                   ucx_firehose_done_func_t done, void *arg);

/** Flush all peers and wait, making progress and calling callbacks.
 *  @return UCS_OK or the first error of any peer. */
ucs_status_t ucx_firehose_flush(ucx_firehose_h firehose);

/** Let things happen and call callbacks; peers' misses are answered here too.
 *  @return How much happened; 0: nothing. */
unsigned ucx_firehose_progress(ucx_firehose_h firehose);

/**
 * Take memory back before it is unmapped: when this returns UCS_OK no firehose
 * points there, nothing of it is pinned, and every peer that reaches for it
 * afterwards asks anew. Waits for the peers that had reached for it (a peer has
 * to make progress), making progress and calling callbacks. Transfers of this
 * process from or to the range are waited for.
 *
 * @param [in] timeout  In nanoseconds; UINT64_MAX: none.
 *
 * @return UCS_OK; UCS_ERR_TIMED_OUT: what was revoked stays so, call it again;
 *         UCS_ERR_INVALID_PARAM: the range wraps around.
 */
ucs_status_t ucx_firehose_release(ucx_firehose_h firehose, const void *address,
                                  size_t length, uint64_t timeout);

/** Get the figures of this moment. */
void ucx_firehose_query(ucx_firehose_h firehose, ucx_firehose_attr_t *attr);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif

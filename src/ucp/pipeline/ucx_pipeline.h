/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_PIPELINE_H_
#define UCX_PIPELINE_H_

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file ucx_pipeline.h
 *
 * Tagged messages of any size over UCP, by the RDMA pipeline of Woodall et
 * al. (EuroPVM/MPI 2006): a long message is registered fragment by fragment
 * while other fragments of it move. See ucx_pipeline(3), docs/pipeline.md.
 *
 * Messages from one process to another with tags that match the same receive
 * are received in the order in which they were sent. All functions may be
 * called from any thread: each handle has one lock, which a function holds
 * until it returns; @ref ucx_pipeline_wait lets it go between its looks.
 * Nothing happens but inside of calls.
 */

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/** One end; owns a UCP context and a worker. */
typedef struct ucx_pipeline *ucx_pipeline_h;

/** A send or a receive; lives until @ref ucx_pipeline_request_free. */
typedef struct ucx_pipeline_request *ucx_pipeline_request_h;

/** A message that @ref ucx_pipeline_mprobe took; lives until @ref
 *  ucx_pipeline_mrecv. */
typedef struct ucp_pipeline_unexpected *ucx_pipeline_message_h;

/** Receive from any process. */
#define UCX_PIPELINE_ANY_SOURCE (~0u)

/** Of an option: derived from costs that are measured. */
#define UCX_PIPELINE_DERIVED ((size_t)-1)

/** What is done with registrations. */
typedef enum ucx_pipeline_mode {
    UCX_PIPELINE_MODE_PIPELINE, /**< a fragment is deregistered once over */
    UCX_PIPELINE_MODE_CACHE,    /**< kept, and used again for the same memory,
                                 *   for as long as that is worth its price */
    UCX_PIPELINE_MODE_COPY      /**< nothing is registered, all is copied */
} ucx_pipeline_mode_t;

/** Options; @ref ucx_pipeline_options_init sets them to the defaults. */
typedef struct ucx_pipeline_options {
    size_t              size;        /**< sizeof() of this, as compiled */
    ucx_pipeline_mode_t mode;
    size_t              eager;       /**< bytes of a message that goes whole with
                                      *   the match header, 0 to 65536 */
    size_t              rdma_offset; /**< bytes from which on fragments are
                                      *   registered; those before are copied;
                                      *   or UCX_PIPELINE_DERIVED */
    size_t              fragment;    /**< bytes, a power of two, 4096 or more;
                                      *   0: derived */
    unsigned            depth;       /**< fragments of a message registered at
                                      *   a time at each end, 1 to 1024 */
    size_t              cache_bytes; /**< kept while unused, mode cache */
    double              max_slowdown; /**< what all that is kept is worth, as a
                                       *   share of time, 0 to 1: unused for
                                       *   longer it goes; 0: it stays */
} ucx_pipeline_options_t;

/** How an operation ended. */
typedef struct ucx_pipeline_status {
    ucs_status_t status; /**< UCS_OK; UCS_ERR_MESSAGE_TRUNCATED;
                          *   UCS_ERR_CANCELED; else why the peer was lost */
    unsigned     peer;   /**< who sent, or to whom */
    uint64_t     tag;    /**< of the message */
    size_t       length; /**< bytes of the message, as it was sent */
} ucx_pipeline_status_t;

/** What has happened since the start. */
typedef struct ucx_pipeline_stats {
    size_t   size;            /**< set by the caller: sizeof() of this */
    uint64_t registrations;   /**< made */
    uint64_t reused;          /**< fragments that needed none: mode cache */
    uint64_t failed;          /**< refused; those fragments were copied */
    uint64_t copied;          /**< bytes that went in messages */
    uint64_t written;         /**< bytes that this end wrote by puts */
    uint64_t refused;         /**< messages that no correct peer sends */
    unsigned registered;      /**< fragments, now */
    unsigned registered_peak;
    size_t   kept;            /**< bytes registered and unused, now */
    uint64_t read;            /**< bytes that this end read by gets */
} ucx_pipeline_stats_t;

/** Set all options to their defaults, and the size. */
void ucx_pipeline_options_init(ucx_pipeline_options_t *options);

/**
 * Create one end.
 *
 * @param [in]  self        Number of this process.
 * @param [in]  num_peers   Numbers are below it; self is one.
 * @param [in]  options     NULL: defaults.
 * @param [out] pipeline_p  End it by @ref ucx_pipeline_destroy.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM, and a line on stderr says which option
 *         and what is allowed; or what UCP says.
 */
ucs_status_t ucx_pipeline_create(unsigned self, unsigned num_peers,
                                 const ucx_pipeline_options_t *options,
                                 ucx_pipeline_h *pipeline_p);

/** Get this process's address, which lives as long as the pipeline and is to be
 *  handed to every peer. */
void ucx_pipeline_address(ucx_pipeline_h pipeline, const void **address_p,
                          size_t *length_p);

/**
 * Connect to a peer, each once, and all (also `self`) before anything is sent.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_ALREADY_EXISTS, or what UCP
 *         says.
 */
ucs_status_t ucx_pipeline_connect(ucx_pipeline_h pipeline, unsigned peer,
                                  const void *address);

/**
 * Send. The buffer stays as it is until the request is complete; that it is
 * complete does not mean that the message has been received.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_NO_MEMORY, or why the peer was
 *         lost. Without UCS_OK there is no request.
 */
ucs_status_t ucx_pipeline_send(ucx_pipeline_h pipeline, unsigned peer,
                               uint64_t tag, const void *buffer, size_t length,
                               ucx_pipeline_request_h *request_p);

/**
 * Receive a message of which `(its tag ^ tag) & mask` is 0.
 *
 * @param [in] peer    From whom, or @ref UCX_PIPELINE_ANY_SOURCE.
 * @param [in] length  Room. A longer message ends the request with
 *                     UCS_ERR_MESSAGE_TRUNCATED and is lost.
 *
 * @return As of @ref ucx_pipeline_send.
 */
ucs_status_t ucx_pipeline_recv(ucx_pipeline_h pipeline, unsigned peer,
                               uint64_t tag, uint64_t mask, void *buffer,
                               size_t length,
                               ucx_pipeline_request_h *request_p);

/**
 * Look for the oldest message, of those that have come and that no receive has
 * matched, of which `(its tag ^ tag) & mask` is 0. Without progress.
 *
 * @param [in]  peer    As of @ref ucx_pipeline_recv.
 * @param [out] status  Set if there is one; may be NULL.
 *
 * @return Nonzero if there is one.
 */
int ucx_pipeline_probe(ucx_pipeline_h pipeline, unsigned peer, uint64_t tag,
                       uint64_t mask, ucx_pipeline_status_t *status);

/**
 * As @ref ucx_pipeline_probe, and take the message: no receive and no probe
 * finds it from then on.
 *
 * @param [out] message_p  Set if there is one; end it by @ref
 *                         ucx_pipeline_mrecv, each once.
 */
int ucx_pipeline_mprobe(ucx_pipeline_h pipeline, unsigned peer, uint64_t tag,
                        uint64_t mask, ucx_pipeline_message_h *message_p,
                        ucx_pipeline_status_t *status);

/**
 * Receive a message that was taken. The handle is gone if a request has come of
 * it, or its peer was lost.
 *
 * @param [in] length  Room, as of @ref ucx_pipeline_recv.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_NO_MEMORY, or why the peer was
 *         lost. Without UCS_OK there is no request.
 */
ucs_status_t ucx_pipeline_mrecv(ucx_pipeline_h pipeline,
                                ucx_pipeline_message_h message, void *buffer,
                                size_t length,
                                ucx_pipeline_request_h *request_p);

/** Let things happen. @return How much did; 0: nothing. */
unsigned ucx_pipeline_progress(ucx_pipeline_h pipeline);

/**
 * Look whether a request is complete, without progress.
 *
 * @param [out] status  Set if it is; may be NULL.
 *
 * @return Nonzero if it is.
 */
int ucx_pipeline_test(ucx_pipeline_request_h request,
                      ucx_pipeline_status_t *status);

/** Progress until a request is complete. @return How it ended. */
ucs_status_t ucx_pipeline_wait(ucx_pipeline_request_h request,
                               ucx_pipeline_status_t *status);

/**
 * Cancel a receive. It is complete then, with UCS_ERR_CANCELED, unless a
 * message has matched it.
 *
 * @return UCS_OK, UCS_ERR_BUSY (matched or complete: it ends by itself), or
 *         UCS_ERR_UNSUPPORTED (a send, which may be matched already).
 */
ucs_status_t ucx_pipeline_cancel(ucx_pipeline_request_h request);

/** Release a request that is complete. @return UCS_OK or UCS_ERR_BUSY. */
ucs_status_t ucx_pipeline_request_free(ucx_pipeline_request_h request);

/** Read what has happened into as much of @a stats as its size says. */
void ucx_pipeline_get_stats(ucx_pipeline_h pipeline,
                            ucx_pipeline_stats_t *stats);

/**
 * End it. Messages that came and were not received are lost, and peers whose
 * send waits for a receive here are told that this process is gone. Processes
 * that end together meet in a barrier of theirs before.
 *
 * @return UCS_OK, or UCS_ERR_BUSY: there are requests that are not freed, or
 *         messages that were taken and not received.
 */
ucs_status_t ucx_pipeline_destroy(ucx_pipeline_h pipeline);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif

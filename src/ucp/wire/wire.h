/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_WIRE_H_
#define UCP_WIRE_H_

#include <ucp/wire/tuning_table.h>

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/*
 * What a protocol above UCP asks of it, as a table of functions: peers by
 * number, small messages, registrations, put, get and flush. wire_ucp.h fills
 * it by UCP's public functions; bench/wire/wire_sim.h by a virtual network, for
 * tests and models.
 *
 * Rules that both keep:
 * - Not thread-safe: the caller sees to it that one thread at a time is in
 *   any function of one wire. Different wires know nothing of each other.
 * - Handlers and completions are called from @ref ucp_wire_progress and from
 *   nowhere else, so a caller may change its own state before and after any
 *   other function without being called back. They may call every function
 *   but progress and destroy.
 * - Small messages to one peer arrive in the order in which they were sent.
 *   Puts and gets are ordered with nothing: that a put is visible at its
 *   target is known when a flush that was started after it has completed.
 * - An operation returns UCS_OK (done; its completion is not called),
 *   UCS_INPROGRESS (its completion will be called exactly once), or an error
 *   (nothing was begun; its completion is not called).
 * - Once a peer has failed, all that is under way to it completes with an
 *   error, new operations to it return one, and the handler `failed` is
 *   called once. No message of that peer arrives after that call.
 */

BEGIN_C_DECLS

/** One end of the network, with the functions that it has. */
typedef struct ucp_wire ucp_wire_t;

/** A registered range of this process. */
typedef struct ucp_wire_mem ucp_wire_mem_t;

/** The key of a peer's registered range, unpacked. */
typedef struct ucp_wire_key ucp_wire_key_t;

/** A small message of @a peer has arrived; lengths as in @ref ucp_wire_am_send. Header
 *  and payload have any alignment and are valid until the handler returns. What a peer
 *  sends is not to be trusted. */
typedef void (*ucp_wire_am_func_t)(void *arg, unsigned peer,
                                   const void *header, size_t header_length,
                                   const void *payload, size_t length);

/** A peer is lost for good; called once for each. */
typedef void (*ucp_wire_failed_func_t)(void *arg, unsigned peer,
                                       ucs_status_t status);

/** An operation that was in progress has ended. */
typedef void (*ucp_wire_done_func_t)(void *arg, ucs_status_t status);

/** What is called when something comes in. */
typedef struct ucp_wire_handlers {
    ucp_wire_am_func_t     am;
    ucp_wire_failed_func_t failed;
    void                   *arg;
} ucp_wire_handlers_t;

/**
 * The functions of a wire, called by the macros below. Each returns UCS_OK,
 * UCS_INPROGRESS or an error as said above, or UCS_OK or why not.
 */
typedef struct ucp_wire_ops {
    /** Send a small message to a peer, which may be `self`: a header of at most
     *  `max_header` bytes, copied before this returns, and a payload of at most
     *  `max_payload`, NULL if @a length is 0. If @a done is NULL (nobody needs to
     *  know) it is copied, else it stays as it is until @a done is called.
     *  @return Also UCS_INPROGRESS without @a done; UCS_ERR_INVALID_PARAM (too
     *  long, no such peer), UCS_ERR_NO_MEMORY, or why the peer cannot be
     *  reached. */
    ucs_status_t (*am_send)(ucp_wire_t *wire, unsigned peer,
                            const void *header, size_t header_length,
                            const void *payload, size_t length,
                            ucp_wire_done_func_t done, void *arg);

    /** Register bytes, more than none, of any alignment, for local and remote
     *  reading and writing. @a mem_p is the caller's until mem_dereg. */
    ucs_status_t (*mem_reg)(ucp_wire_t *wire, void *address, size_t length,
                            ucp_wire_mem_t **mem_p);

    /** No put or get may be under way from, to or into the range. */
    void         (*mem_dereg)(ucp_wire_t *wire, ucp_wire_mem_t *mem);

    /** Get the key by which peers reach a range; it lives as long as @a mem. */
    ucs_status_t (*mem_pack)(ucp_wire_t *wire, ucp_wire_mem_t *mem,
                             const void **packed_p, size_t *length_p);

    /** Make a key usable that @a peer sent; the caller's until key_release. UCP
     *  trusts its bytes: a wrong length is found here, wrong bytes need not be. */
    ucs_status_t (*key_unpack)(ucp_wire_t *wire, unsigned peer,
                               const void *packed, size_t length,
                               ucp_wire_key_t **key_p);

    /** No operation with it may be under way. */
    void         (*key_release)(ucp_wire_t *wire, ucp_wire_key_t *key);

    /** Write to a peer's memory (put), or read from it; more than no bytes. @a mem
     *  covers the buffer, which of a put stays as it is until completion, and
     *  @a key is of the peer's registration that covers @a remote. @a done is not
     *  NULL. A put that is complete is not yet visible (flush). */
    ucs_status_t (*move)(ucp_wire_t *wire, unsigned peer, int is_put,
                         ucp_wire_mem_t *mem, void *buffer, size_t length,
                         uint64_t remote, ucp_wire_key_t *key,
                         ucp_wire_done_func_t done, void *arg);

    /** Complete when all puts to the peer that were started before are visible
     *  there. @a done is not NULL. */
    ucs_status_t (*flush)(ucp_wire_t *wire, unsigned peer,
                          ucp_wire_done_func_t done, void *arg);

    /** Let things happen. @return How much did; 0: nothing. */
    unsigned     (*progress)(ucp_wire_t *wire);

    /** @return Nanoseconds since some point in the past; never falls. */
    uint64_t     (*time)(ucp_wire_t *wire);

    /** End it. Neither registrations nor keys may be left. Completions that are
     *  outstanding are called, with an error if their operation did not end. */
    void         (*destroy)(ucp_wire_t *wire);
} ucp_wire_ops_t;

/** The part that all kinds of wire have in common; set at creation. */
struct ucp_wire {
    const ucp_wire_ops_t *ops;
    ucp_wire_handlers_t  handlers;    /**< set by the caller before the first
                                       *   progress */
    unsigned             self;        /**< the number of this process */
    unsigned             num_peers;   /**< numbers are below it; self is one */
    size_t               max_header;  /**< bytes; 128 to UCP_WIRE_MAX_HEADER */
    size_t               max_payload; /**< bytes; at least 4096 */
};

#define ucp_wire_am_send(_wire, ...) \
    (_wire)->ops->am_send(_wire, __VA_ARGS__)
#define ucp_wire_mem_reg(_wire, ...) \
    (_wire)->ops->mem_reg(_wire, __VA_ARGS__)
#define ucp_wire_mem_dereg(_wire, ...) \
    (_wire)->ops->mem_dereg(_wire, __VA_ARGS__)
#define ucp_wire_mem_pack(_wire, ...) \
    (_wire)->ops->mem_pack(_wire, __VA_ARGS__)
#define ucp_wire_key_unpack(_wire, ...) \
    (_wire)->ops->key_unpack(_wire, __VA_ARGS__)
#define ucp_wire_key_release(_wire, ...) \
    (_wire)->ops->key_release(_wire, __VA_ARGS__)
#define ucp_wire_move(_wire, ...) \
    (_wire)->ops->move(_wire, __VA_ARGS__)
#define ucp_wire_flush(_wire, ...) \
    (_wire)->ops->flush(_wire, __VA_ARGS__)
#define ucp_wire_progress(_wire) (_wire)->ops->progress(_wire)
#define ucp_wire_time(_wire) (_wire)->ops->time(_wire)
#define ucp_wire_destroy(_wire) (_wire)->ops->destroy(_wire)

END_C_DECLS

#endif

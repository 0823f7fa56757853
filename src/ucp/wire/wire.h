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

/** The functions of a wire; use them through those below. */
typedef struct ucp_wire_ops {
    ucs_status_t (*am_send)(ucp_wire_t *wire, unsigned peer,
                            const void *header, size_t header_length,
                            const void *payload, size_t length,
                            ucp_wire_done_func_t done, void *arg);
    ucs_status_t (*mem_reg)(ucp_wire_t *wire, void *address, size_t length,
                            ucp_wire_mem_t **mem_p);
    void         (*mem_dereg)(ucp_wire_t *wire, ucp_wire_mem_t *mem);
    ucs_status_t (*mem_pack)(ucp_wire_t *wire, ucp_wire_mem_t *mem,
                             const void **packed_p, size_t *length_p);
    ucs_status_t (*key_unpack)(ucp_wire_t *wire, unsigned peer,
                               const void *packed, size_t length,
                               ucp_wire_key_t **key_p);
    void         (*key_release)(ucp_wire_t *wire, ucp_wire_key_t *key);
    ucs_status_t (*move)(ucp_wire_t *wire, unsigned peer, int is_put,
                         ucp_wire_mem_t *mem, void *buffer, size_t length,
                         uint64_t remote, ucp_wire_key_t *key,
                         ucp_wire_done_func_t done, void *arg);
    ucs_status_t (*flush)(ucp_wire_t *wire, unsigned peer,
                          ucp_wire_done_func_t done, void *arg);
    unsigned     (*progress)(ucp_wire_t *wire);
    uint64_t     (*time)(ucp_wire_t *wire);
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

/**
 * Send a small message to @a peer, which may be `self`.
 *
 * @param [in] header   At most `max_header` bytes, copied before this returns.
 * @param [in] payload  At most `max_payload` bytes; may be NULL if @a length is 0.
 *                      Without @a done they are copied, else they stay as they are
 *                      until it is called.
 * @param [in] done     May be NULL: nobody needs to know.
 *
 * @return UCS_OK, UCS_INPROGRESS (also without @a done), or an error:
 *         UCS_ERR_INVALID_PARAM (too long, no such peer), UCS_ERR_NO_MEMORY, or why
 *         the peer cannot be reached.
 */
static inline ucs_status_t
ucp_wire_am_send(ucp_wire_t *wire, unsigned peer, const void *header,
                 size_t header_length, const void *payload, size_t length,
                 ucp_wire_done_func_t done, void *arg)
{
    return wire->ops->am_send(wire, peer, header, header_length, payload,
                              length, done, arg);
}

/**
 * Register a range of @a length bytes, above 0, of any alignment, for local and remote
 * reading and writing.
 *
 * @param [out] mem_p  Owned by the caller until @ref ucp_wire_mem_dereg.
 *
 * @return UCS_OK or why not; then nothing is registered.
 */
static inline ucs_status_t ucp_wire_mem_reg(ucp_wire_t *wire, void *address,
                                            size_t length,
                                            ucp_wire_mem_t **mem_p)
{
    return wire->ops->mem_reg(wire, address, length, mem_p);
}

/** Deregister. No put or get may be under way from, to or into the range. */
static inline void ucp_wire_mem_dereg(ucp_wire_t *wire, ucp_wire_mem_t *mem)
{
    wire->ops->mem_dereg(wire, mem);
}

/**
 * Get the key by which peers reach a range.
 *
 * @param [out] packed_p  To be sent to the peer; lives as long as @a mem.
 *
 * @return UCS_OK or why not.
 */
static inline ucs_status_t ucp_wire_mem_pack(ucp_wire_t *wire,
                                             ucp_wire_mem_t *mem,
                                             const void **packed_p,
                                             size_t *length_p)
{
    return wire->ops->mem_pack(wire, mem, packed_p, length_p);
}

/**
 * Make a key usable that @a peer sent.
 *
 * @param [in]  packed  The bytes that came. UCP trusts them: a wrong length is found
 *                      here, wrong bytes need not be.
 * @param [out] key_p   Owned by the caller until @ref ucp_wire_key_release.
 *
 * @return UCS_OK or why not.
 */
static inline ucs_status_t ucp_wire_key_unpack(ucp_wire_t *wire, unsigned peer,
                                               const void *packed,
                                               size_t length,
                                               ucp_wire_key_t **key_p)
{
    return wire->ops->key_unpack(wire, peer, packed, length, key_p);
}

/** Release a key; no operation with it may be under way. */
static inline void ucp_wire_key_release(ucp_wire_t *wire, ucp_wire_key_t *key)
{
    wire->ops->key_release(wire, key);
}

/**
 * Write to a peer's memory (put), or read from it. Completion of a put means that the
 * local buffer may be changed and deregistered (see @ref ucp_wire_flush for the
 * target), else that the data are here.
 *
 * @param [in] mem     Registration that covers the buffer.
 * @param      buffer  Of @a length bytes, above 0; of a put it stays as it is until
 *                     completion.
 * @param [in] remote  Address in the peer's process.
 * @param [in] key     Of the peer's registration that covers the target.
 * @param [in] done    Not NULL.
 *
 * @return UCS_OK, UCS_INPROGRESS or an error, as said above.
 */
static inline ucs_status_t
ucp_wire_move(ucp_wire_t *wire, unsigned peer, int is_put, ucp_wire_mem_t *mem,
              void *buffer, size_t length, uint64_t remote, ucp_wire_key_t *key,
              ucp_wire_done_func_t done, void *arg)
{
    return wire->ops->move(wire, peer, is_put, mem, buffer, length, remote, key,
                           done, arg);
}

/** Complete when all puts to the peer that were started before are visible there.
 *  @a done is not NULL. */
static inline ucs_status_t ucp_wire_flush(ucp_wire_t *wire, unsigned peer,
                                          ucp_wire_done_func_t done, void *arg)
{
    return wire->ops->flush(wire, peer, done, arg);
}

/** Let things happen. @return How much did; 0: nothing. */
static inline unsigned ucp_wire_progress(ucp_wire_t *wire)
{
    return wire->ops->progress(wire);
}

/** @return Nanoseconds since some point in the past; never falls. */
static inline uint64_t ucp_wire_time(ucp_wire_t *wire)
{
    return wire->ops->time(wire);
}

/** End it. Neither registrations nor keys may be left. Completions that are outstanding
 *  are called, with an error if their operation did not end. */
static inline void ucp_wire_destroy(ucp_wire_t *wire)
{
    wire->ops->destroy(wire);
}

END_C_DECLS

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_FIREHOSE_INT_H_
#define UCP_FIREHOSE_INT_H_

#include "buckets.h"
#include "firehose_core.h"
#include "firehose_tuning.h"
#include "message.h"

#include <ucp/wire/wire_thread.h>

/*
 * The engine. Files call down this list:
 *   open.c      over UCP, with memory events
 *   mapped.c    memory events; whether memory is there to be pinned, or goes
 *   revoker.c   what is unmapped is revoked before it goes; the thread
 *   ucx_firehose.c  what a user calls; transfers that need nobody's leave
 *   firehose.c  life of an instance, progress
 *   op.c        operations, their pieces, and flush
 *   fire.c      initiator: which firehose points where, misses, revokes
 *   serve.c     target: moves, grants, revokes
 *   peer.c      what of a peer waits to be sent; its failure
 *
 * What is below firehose.c runs under the instance's lock. No function calls
 * the user back: what ended goes to `done`, and is told when the lock has been
 * let go. Nothing recurses either: what becomes possible is noted (`ready`,
 * `active`), and ucp_firehose_run() does it.
 */

typedef struct ucp_firehose_peer ucp_firehose_peer_t;

/** Something that ended and is to be told; first member of what it is. */
typedef struct ucp_firehose_call {
    ucs_list_link_t          link;
    ucx_firehose_done_func_t done;
    void                     *arg;
    ucs_status_t             status;
    int                      is_done; /**< it is in the list `done` */
} ucp_firehose_call_t;

/** Operations between two flushes to one peer. */
typedef struct ucp_firehose_epoch {
    ucp_firehose_call_t call;  /**< its link: the peer's epochs, oldest first */
    size_t              count; /**< operations that have not ended */
    uint64_t            need;  /**< the put that must have been flushed */
    uint8_t             is_closed;
    uint8_t             is_needed; /**< `need` is set */
} ucp_firehose_epoch_t;

typedef struct ucp_firehose_op {
    ucp_firehose_call_t  call; /**< its link: held, ready or done */
    ucp_firehose_peer_t  *peer;
    ucp_firehose_epoch_t *epoch;
    char                 *local;
    uint64_t             remote;
    size_t               length;
    size_t               begun;  /**< bytes that pieces were made of */
    unsigned             pieces; /**< that have not ended */
    uint8_t              is_put;
    uint8_t              is_ready; /**< in the list of those to go on with */
} ucp_firehose_op_t;

/** What of an operation lies in one bucket at either end. */
typedef struct ucp_firehose_piece {
    ucs_list_link_t       link; /**< a list of what it waits for */
    ucp_firehose_op_t     *op;
    struct ucp_firehose_fire *fire; /**< that it holds, or NULL */
    ucp_firehose_bucket_t *bucket;  /**< of this process, or NULL */
    char                  *local;
    uint64_t              remote;
    size_t                length;
} ucp_firehose_piece_t;

typedef enum ucp_firehose_fire_state {
    UCP_FIREHOSE_FREE,     /**< points nowhere; in `free` */
    UCP_FIREHOSE_WANTED,   /**< in the outbox, to be moved */
    UCP_FIREHOSE_MOVING,   /**< the peer has been asked */
    UCP_FIREHOSE_READY,    /**< in `unused` if nobody uses it */
    UCP_FIREHOSE_REVOKED,  /**< as above, but not found any more */
    UCP_FIREHOSE_RELEASING /**< in the outbox, to be given back */
} ucp_firehose_fire_state_t;

/** A firehose, at the initiator. In the index while WANTED, MOVING or READY. */
typedef struct ucp_firehose_fire {
    ucp_firehose_elem_t elem; /**< its key is the peer's bucket; first member */
    ucs_list_link_t     link;    /**< free, unused or outbox */
    ucs_list_link_t     waiters; /**< pieces, until it is READY */
    ucp_wire_key_t      *key;
    uint64_t            last_put; /**< the last put through it */
    uint32_t            epoch;    /**< moves and releases so far */
    uint32_t            refs;     /**< pieces that use it */
    uint8_t             state;
    uint8_t             is_recent; /**< used by a hit since it came into its
                                    *   place in `unused` */
} ucp_firehose_fire_t;

/** What a hold is in a list for; it may be attached at the same time. */
typedef enum ucp_firehose_hold_out {
    UCP_FIREHOSE_OUT_NONE,
    UCP_FIREHOSE_OUT_PENDING, /**< the bucket cannot be pinned yet */
    UCP_FIREHOSE_OUT_GRANT,   /**< the answer is to be sent */
    UCP_FIREHOSE_OUT_REVOKE   /**< the peer is to be told */
} ucp_firehose_hold_out_t;

/** A firehose, at the target. Attached: in its bucket's list. */
typedef struct ucp_firehose_hold {
    ucs_list_link_t       link; /**< of the bucket's `holds` */
    ucs_list_link_t       out;  /**< of a list as `is_out` says */
    ucp_firehose_bucket_t *bucket; /**< attached to, or NULL */
    ucp_firehose_peer_t   *peer;
    uint64_t              address; /**< where it is to point */
    uint32_t              epoch;
    int8_t                status; /**< to be told in a grant */
    uint8_t               is_out;
} ucp_firehose_hold_t;

typedef enum ucp_firehose_peer_state {
    UCP_FIREHOSE_PEER_NEW,   /**< it has not said hello yet */
    UCP_FIREHOSE_PEER_READY,
    UCP_FIREHOSE_PEER_FAILED
} ucp_firehose_peer_state_t;

struct ucp_firehose_peer {
    ucx_firehose_h            firehose; /**< NULL: never heard of, all zero */
    ucs_list_link_t           active; /**< there is something to do for it */
    unsigned                  node;
    int                       is_greeted; /**< we are connected to it */
    ucp_firehose_peer_state_t state;
    ucs_status_t              status; /**< why it failed */
    uint8_t                   is_active;   /**< in a list of the instance's */
    uint8_t                   is_failing;  /**< it is to be failed */
    uint8_t                   owes_hello;  /**< it has not been greeted yet */
    uint8_t                   is_flushing;

    /* Initiator */
    unsigned                  shift;     /**< log2 of its bucket */
    uint32_t                  num_fires; /**< F, as it said */
    uint32_t                  used_fires;
    ucp_firehose_fire_t       *fires;
    ucp_firehose_index_t      index;
    ucs_list_link_t           free;
    ucs_list_link_t           unused;  /**< READY, least recently used first */
    ucs_list_link_t           outbox;  /**< WANTED and RELEASING */
    ucs_list_link_t           waiting; /**< pieces that need a firehose */
    ucs_list_link_t           held;    /**< operations, until it says hello */
    ucs_list_link_t           epochs;
    uint64_t                  puts;     /**< begun; the number of the last */
    uint64_t                  flushed;  /**< all up to this are there */
    uint64_t                  flushing; /**< will be when the flush is over */

    /* Target */
    ucp_firehose_hold_t       *holds; /**< NULL until the first move */
    ucs_list_link_t           grants;
    ucs_list_link_t           revokes;
};

/** The instance's thread, and what an unmapping waits for; revoker.c. */
typedef struct ucp_firehose_revoker {
    ucs_spawned_t     thread;
    int               runs;
    _Atomic(const void*) self;  /**< the thread, by ucs_lock_self() */
    _Atomic(uint32_t) bell;     /**< counts what is asked of the thread */
    _Atomic(uint32_t) news;     /**< counts turns that may have ended a wait */
    _Atomic(uint32_t) waiters;  /**< unmappings that wait */
    _Atomic(int)      stops;
    _Atomic(uint64_t) unmaps;
    _Atomic(uint64_t) late;
} ucp_firehose_revoker_t;

/** Ranges that are known at a time; one more takes the place of the oldest. */
#define UCP_FIREHOSE_UNMAPPING_MAX 64

typedef struct ucp_firehose_unmapping_range {
    uint64_t start;
    uint64_t end;   /**< 0: free */
    uint64_t until; /**< nanoseconds; UINT64_MAX: its event has not returned */
} ucp_firehose_unmapping_range_t;

/**
 * Memory that is being unmapped. UCX's event comes before the memory goes, and
 * none tells when it has gone: a peer that is told of the one and reaches for
 * the memory at once would have it pinned again in between. So a range counts
 * as being unmapped until memory is mapped there anew, or for some time after
 * the event. The lock is taken inside munmap(), and never held across a call out.
 */
typedef struct ucp_firehose_unmapping { /* all 0: nothing is being unmapped */
    ucs_lock_t                     lock;
    unsigned                       next;
    _Atomic(unsigned)              count; /**< that are not free */
    ucp_firehose_unmapping_range_t ranges[UCP_FIREHOSE_UNMAPPING_MAX];
} ucp_firehose_unmapping_t;

struct ucx_firehose {
    pthread_mutex_t        lock; /**< all but the parameters; anything but it
                                  *   may be held when it is taken, and
                                  *   only locks of UCX and the index lock
                                  *   after it */
    _Atomic(const void*)   owner; /**< of the lock, by ucs_lock_self(); its
                                   *   own thread alone trusts it */
    ucp_firehose_revoker_t revoker;
    ucp_firehose_unmapping_t unmapping; /**< with UCX_FIREHOSE_FLAG_STRICT */
    ucp_wire_t             *wire;
    ucp_firehose_buckets_t buckets;
    ucp_firehose_peer_t    *peers;
    unsigned               node;
    unsigned               num_nodes;
    unsigned               flags;
    unsigned               shift; /**< log2 of the bucket */
    uint32_t               lent;  /**< F: firehoses that each peer has here */
    uint8_t                has_events;
    uint32_t               process; /**< whose it is, by ucs_process_id() */
    uint8_t                is_stopped; /**< whom it has not met it ignores */
    size_t                 transfers;   /**< puts, gets, flushes under way */
    size_t                 num_done;    /**< in `done` */
    ucs_list_link_t        active;
    ucs_list_link_t        later;   /**< peers, at the next progress */
    ucs_list_link_t        ready;   /**< operations to go on with */
    ucs_list_link_t        starved; /**< pieces that need a local bucket */
    ucs_list_link_t        pending; /**< holds that need a bucket */
    ucs_list_link_t        done;    /**< calls to be made */
    ucp_firehose_piece_t   *hit;    /**< of the next hit, with its operation;
                                     *   or NULL */
    uint8_t                *packet; /**< a message that is being written */
    ucx_firehose_attr_t    attr;    /**< sums */
};

/* op.c */
ucs_status_t ucp_firehose_op_begin(ucp_firehose_peer_t *peer, int is_put,
                                   char *local, uint64_t remote, size_t length,
                                   ucx_firehose_done_func_t done, void *arg,
                                   ucp_firehose_op_t **op_p);
/** Make the pieces that may be made now. */
void ucp_firehose_op_go_on(ucp_firehose_op_t *op);
/** The piece is over and freed; what it held is given back. */
void ucp_firehose_piece_end(ucp_firehose_piece_t *piece, ucs_status_t status);
/** Move the data of a piece that has its firehose. */
void ucp_firehose_piece_transfer(ucp_firehose_piece_t *piece);
/** Go on with pieces that need a local bucket. */
void ucp_firehose_starved_run(ucx_firehose_h firehose);
/** Begin what was held until the peer's hello. */
void ucp_firehose_held_release(ucp_firehose_peer_t *peer);
/** End what was begun so far. @return UCS_OK: it is over and there;
 *  UCS_INPROGRESS and the epoch; or UCS_ERR_NO_MEMORY. */
ucs_status_t ucp_firehose_epoch_close(ucp_firehose_peer_t *peer,
                                      ucx_firehose_done_func_t done, void *arg,
                                      ucp_firehose_epoch_t **epoch_p);
/** End the epochs that may end. */
void ucp_firehose_epochs_run(ucp_firehose_peer_t *peer);

/** @return The epoch that new operations belong to, NULL: no memory. */
ucp_firehose_epoch_t *ucp_firehose_op_epoch(ucp_firehose_peer_t *peer);
/** The only piece of an operation is under way, with all that it holds; its
 *  epoch is there. */
void ucp_firehose_op_begun(ucp_firehose_piece_t *piece,
                           ucp_firehose_peer_t *peer,
                           ucx_firehose_done_func_t done, void *arg);
/** The wire has moved a piece's data. */
void ucp_firehose_piece_done(void *arg, ucs_status_t status);

/* fire.c */
/** A piece more uses it. */
void ucp_firehose_fire_hold(ucp_firehose_fire_t *fire);
/** Find a firehose for a piece, or have it wait. */
void ucp_firehose_fire_find(ucp_firehose_piece_t *piece);
void ucp_firehose_fire_put(ucp_firehose_peer_t *peer,
                           ucp_firehose_fire_t *fire);
/** Serve pieces that wait for a firehose. */
void ucp_firehose_fires_run(ucp_firehose_peer_t *peer);
void ucp_firehose_fires_send(ucp_firehose_peer_t *peer);
ucs_status_t ucp_firehose_fires_init(ucp_firehose_peer_t *peer,
                                     const ucp_firehose_entry_t *hello);
ucs_status_t ucp_firehose_fire_granted(ucp_firehose_peer_t *peer,
                                       const ucp_firehose_entry_t *entry);
ucs_status_t ucp_firehose_fire_revoked(ucp_firehose_peer_t *peer,
                                       const ucp_firehose_entry_t *entry);
void ucp_firehose_fires_fail(ucp_firehose_peer_t *peer);
void ucp_firehose_fires_cleanup(ucp_firehose_peer_t *peer);

/* serve.c */
ucs_status_t ucp_firehose_hold_move(ucp_firehose_peer_t *peer,
                                    const ucp_firehose_entry_t *entry);
/** Pin what is pending, as far as there is room. */
void ucp_firehose_holds_run(ucx_firehose_h firehose);
/** Have those told that point to what was doomed. */
void ucp_firehose_holds_strike(ucx_firehose_h firehose);
void ucp_firehose_holds_send(ucp_firehose_peer_t *peer);
void ucp_firehose_holds_drop(ucp_firehose_peer_t *peer);

/* peer.c */
/** Something is to be done for it in this run. */
void ucp_firehose_peer_activate(ucp_firehose_peer_t *peer);
/** It is lost; what that means is done when it is run. */
void ucp_firehose_peer_fail(ucp_firehose_peer_t *peer, ucs_status_t status);
/** Send what has been added. @return UCS_OK or UCS_ERR_NO_RESOURCE: try again
 *  at the next progress; or an error: the peer has been failed. */
ucs_status_t ucp_firehose_peer_send(ucp_firehose_peer_t *peer,
                                    const ucp_firehose_message_t *message);
/** @return Nonzero if all puts up to @a put are at the peer; else a flush is
 *          under way, or will be begun at the next progress. */
int ucp_firehose_peer_is_flushed(ucp_firehose_peer_t *peer, uint64_t put);
void ucp_firehose_peer_run(ucp_firehose_peer_t *peer);
void ucp_firehose_peer_receive(ucp_firehose_peer_t *peer, const void *header,
                               size_t header_length, const void *payload,
                               size_t length);

/** Do all that has become possible. */
void ucp_firehose_run(ucx_firehose_h firehose);

/* firehose.c */
/** What progress is but for the calls that are to be made. @return How much
 *  happened. */
unsigned ucp_firehose_turn(ucx_firehose_h firehose);

/* revoker.c */
/** @return Of pthread_create(). */
int ucp_firehose_revoker_start(ucx_firehose_h firehose);
/** When this returns its thread has ended, and no unmapping waits for long. */
void ucp_firehose_revoker_stop(ucx_firehose_h firehose);
/** In an unmapping: wait until what this doom took is not in use any more. */
void ucp_firehose_revoker_wait(ucx_firehose_h firehose, uint64_t doom);
/** Buckets may have been let go: those that wait are to look. */
void ucp_firehose_revoker_tell(ucx_firehose_h firehose);

/** Take the instance's lock, and be known as its owner: an event inside of a
 *  call finds out that it is its own thread's. */
static inline void ucp_firehose_lock(ucx_firehose_h firehose)
{
    pthread_mutex_lock(&firehose->lock);
    /* relaxed: compared by the thread that stored it; another one's is never
     * equal to one's own */
    ucs_store_relaxed(&firehose->owner, ucs_lock_self());
}

/** Give it back. */
static inline void ucp_firehose_unlock(ucx_firehose_h firehose)
{
    ucs_store_relaxed(&firehose->owner, NULL); /* relaxed: as above */
    pthread_mutex_unlock(&firehose->lock);
}

/* mapped.c */
/** As of @ref ucp_firehose_pin_ops_t; @a arg is the instance. */
ucs_status_t ucp_firehose_pin(void *arg, uint64_t address, size_t length,
                              void **pin_p);
void ucp_firehose_unpin(void *arg, void *pin);

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_PIPELINE_INT_H_
#define UCP_PIPELINE_INT_H_

#include <ucp/pipeline/pipeline_core.h>
#include <ucp/pipeline/tuning_table.h>
#include <ucp/wire/wire_thread.h>

#include <ucs/datastruct/list.h>
#include <ucs/predict/newcomers.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sync/lock.h>

#include <pthread.h>

#define UCP_PIPELINE_MAGIC 0x50495045u

typedef enum {
    UCP_PIPELINE_MATCH, /**< sender: tag, length, first bytes */
    UCP_PIPELINE_ACK,   /**< receiver: matched; copy up to the offset. Length 0:
                         *   nothing is wanted, the receive was too short */
    UCP_PIPELINE_READY, /**< receiver: a fragment, with its key; no key: copy */
    UCP_PIPELINE_DATA,  /**< sender: bytes of a piece that is copied */
    UCP_PIPELINE_FIN,   /**< sender: a fragment has been written */
    UCP_PIPELINE_ABORT, /**< sender: the rest will not come */
    UCP_PIPELINE_DONE   /**< receiver: it has read all; after a MATCH with
                         *   keys, in place of ACK */
} ucp_pipeline_type_t;

/** Header of each message; behind it, of READY, the packed key. Behind MATCH, if
 *  all of the sender's buffer is registered, a @ref ucp_pipeline_told_t and a key
 *  for each registration: a receiver that knows no DONE overlooks them. */
typedef struct ucp_pipeline_header {
    uint32_t magic;
    uint32_t type;
    uint64_t to;      /**< request at the receiver of this message. MATCH with
                       *   keys: address of the sender's buffer */
    uint64_t from;    /**< request at its sender */
    uint64_t tag;     /**< MATCH */
    uint64_t offset;  /**< of the bytes in the message */
    uint64_t length;  /**< MATCH, DONE: of all; READY, FIN: of the fragment */
    uint64_t address; /**< READY: of the fragment */
} ucp_pipeline_header_t;

/** Behind MATCH: part of the message that one registration has at the sender,
 *  from where the one before it ends; the key follows. */
typedef struct ucp_pipeline_told {
    uint64_t end;        /**< offset in the message; of the last one its length */
    uint64_t key_length; /**< bytes, not 0 */
} ucp_pipeline_told_t;

/** A registration; all fields but `mem` are protected by the cache's lock. */
typedef struct ucp_pipeline_reg {
    ucs_list_link_t list;
    uintptr_t       start, end;
    ucp_wire_mem_t  *mem;
    unsigned        uses;  /**< one, or so many sends that leave from it */
    int             stale; /**< not to be used again */
    uint64_t        idle;  /**< without uses since then, the wire's time */
} ucp_pipeline_reg_t;

/** A buffer that was registered once, kept or not, by its number in the account
 *  less one. */
typedef struct ucp_pipeline_newcomer {
    uintptr_t start, end; /**< 0, 0: none */
    uint64_t  since;
    int       is_lost;    /**< it was unmapped */
} ucp_pipeline_newcomer_t;

/** Invariant: bytes == sum of the lengths of the entries without uses. */
typedef struct ucp_pipeline_cache {
    ucs_lock_t      lock;    /**< held for a walk of the list; an unmap event
                              *   takes it, so nothing is allocated under it;
                              *   may be held: the pipeline's, or nothing */
    ucs_list_link_t list;    /**< the least recently used first */
    unsigned        count;
    size_t          bytes;
    int             closed;
    size_t          peak;    /**< of `bytes`, and of those in use */
    size_t          used;    /**< bytes of entries in use */
    _Atomic int     strike;  /**< a signal handler unmapped while its own
                              *   thread held the lock: all are stale */
    ucp_pipeline_newcomer_t newcomers[UCS_PREDICT_NEWCOMERS];
    ucs_predict_newcomers_t account; /**< of those; the pipeline's lock */
} ucp_pipeline_cache_t;

/** A buffer whose messages are copied. */
typedef struct ucp_pipeline_seen {
    uintptr_t start;
    size_t    length;
    double    lost_ns; /**< by copying, since it was seen first */
    uint64_t  turn;    /**< at the latest copy, counted by the tune's */
} ucp_pipeline_seen_t;

/** What a byte of a message takes from its match on, in ns; 0: not known. */
typedef struct ucp_pipeline_times {
    double copied, read;
} ucp_pipeline_times_t;

/** What costs are known, and what follows. */
typedef struct ucp_pipeline_tune {
    size_t               fragment;
    double               base_ns;    /**< to register and deregister; 0: not */
    double               byte_ns;    /*   known */
    double               reg_share;  /**< of that, to register */
    ucp_pipeline_times_t times[UCP_PIPELINE_LENGTHS]; /**< by bits of length */
    ucp_pipeline_seen_t  seen[UCP_PIPELINE_SEEN];
    uint64_t             turn;       /**< copies that were asked about */
} ucp_pipeline_tune_t;

/** Whether what is registered for a request stays. */
typedef enum {
    UCP_PIPELINE_UNDECIDED,
    UCP_PIPELINE_KEEP,
    UCP_PIPELINE_DROP
} ucp_pipeline_stay_t;

struct ucx_pipeline_request;

/** Part of a message that one registration has at the sender, from where the one
 *  before it ends. */
typedef struct ucp_pipeline_offer {
    ucs_list_link_t    list;
    size_t             end;  /**< offset in the message */
    ucp_pipeline_reg_t *reg; /**< at the sender */
    ucp_wire_key_t     *key; /**< at the receiver */
} ucp_pipeline_offer_t;

/** Part of a message that moves in one way: copied, written or read. */
typedef struct ucp_pipeline_piece {
    ucs_list_link_t             list;
    struct ucx_pipeline_request *req;
    size_t                      offset, length;
    size_t                      moved;  /**< copied: sent or received so far;
                                         *   read: all once that has begun */
    ucp_pipeline_reg_t          *reg;   /**< NULL: copied */
    ucp_wire_key_t              *key;   /**< sender's, of the target */
    uint64_t                    address; /**< sender's, of the target */
    int                         waits;  /**< sender: to be written */
    unsigned                    ops;    /**< sender: under way */
} ucp_pipeline_piece_t;

typedef enum {
    UCP_PIPELINE_SEND,
    UCP_PIPELINE_RECV
} ucp_pipeline_kind_t;

/**
 * A send, a receive, or a message that came before its receive.
 *
 * done == eager part + lengths of the pieces that are over; next == where the
 * pieces that were begun end; done <= next <= total.
 */
struct ucx_pipeline_request {
    ucs_list_link_t       all;       /**< the pipeline's requests */
    ucs_list_link_t       list;      /**< posted or active */
    struct ucx_pipeline   *pipeline;
    ucp_pipeline_kind_t   kind;
    uint64_t              id;
    uint64_t              remote;    /**< the request at the peer */
    unsigned              peer;
    uint64_t              tag, mask;
    char                  *buffer;
    size_t                room;      /**< receive: of the buffer */
    size_t                total;     /**< of the message */
    size_t                done, next;
    ucs_list_link_t       pieces;
    unsigned              num_pieces;
    unsigned              num_writes; /**< sender: pieces being written */
    unsigned              ops;       /**< under way, all pieces */
    int                   posted;    /**< receive: not matched yet */
    int                   acked;     /**< send: the peer has answered */
    ucp_pipeline_stay_t   stay;      /**< undecided until it is registered */
    ucs_list_link_t       offers;    /**< of all of the message or none: sender:
                                      *   while the receiver may read it or will
                                      *   ask for it */
    uint64_t              address;   /**< receiver: of all at the sender */
    int                   is_read;   /**< receiver: bytes come, whatever
                                      *   becomes of the peer */
    int                   is_refused; /**< receiver: some of it was not read */
    int                   is_whole;  /**< receiver: all is to be registered in one
                                      *   piece */
    uint64_t              began;     /**< receiver: to be copied or read; 0:
                                      *   neither for all of it */
    unsigned              among;     /**< receiver: active requests then */
    int                   complete;
    ucs_status_t          status;
};

/** A message that no receive has matched yet. */
typedef struct ucp_pipeline_unexpected {
    ucs_list_link_t list;   /**< unexpected or taken */
    unsigned        peer;
    ucs_status_t    status; /**< taken: why the rest will not come */
    ucp_pipeline_header_t header;
    size_t          key_length, length; /**< came with it */
    char            bytes[];            /**< key, then payload */
} ucp_pipeline_unexpected_t;

struct ucx_pipeline {
    pthread_mutex_t        lock;    /**< all but the cache's entries */
    ucp_wire_t             *wire;
    ucx_pipeline_options_t options;
    ucx_pipeline_stats_t   stats;
    ucp_pipeline_cache_t   cache;
    ucp_pipeline_tune_t    tune;
    unsigned               num_waits;  /**< pieces that are registered at both
                                        *   ends and wait to be written */
    uint64_t               swept;      /**< when entries were looked through */
    int                    hooked;  /**< listens to UCM */
    uint32_t               process; /**< whose it is */
    ucs_list_link_t        posted;  /**< receives, the oldest first */
    ucs_list_link_t        unexpected;
    ucs_list_link_t        taken;   /**< by a matched probe */
    ucs_list_link_t        active;  /**< sends, and receives that matched */
    unsigned               num_active;
    ucs_list_link_t        requests; /**< all that are not freed */
    uint64_t               last_id;
    ucs_status_t           *failed; /**< of each peer; UCS_OK: well */
    ucs_status_t           *lost;   /**< likewise: it is to fail */
    unsigned               num_lost;
};

/* pipeline_core.c */
/** Release it, with requests that are left; without the lock. */
void ucp_pipeline_end(ucx_pipeline_h self);

/* pipeline_reg.c: all with the pipeline's lock held */
void ucp_pipeline_reg_decide(ucx_pipeline_request_h req, int is_found);
ucp_pipeline_reg_t *ucp_pipeline_reg_get(ucx_pipeline_request_h req,
                                         size_t offset, size_t length);
ucp_pipeline_reg_t *ucp_pipeline_reg_find(ucx_pipeline_request_h req,
                                          size_t offset);
void ucp_pipeline_reg_share(ucx_pipeline_h self, ucp_pipeline_reg_t *reg);
size_t ucp_pipeline_reg_pack(ucx_pipeline_h self, ucp_pipeline_reg_t *reg,
                             const void **key_p);
void ucp_pipeline_reg_revoke(ucx_pipeline_h self, ucp_pipeline_reg_t *reg);
void ucp_pipeline_reg_put(ucx_pipeline_h self, ucp_pipeline_reg_t *reg);
void ucp_pipeline_cache_init(ucp_pipeline_cache_t *cache);
void ucp_pipeline_cache_close(ucx_pipeline_h self);
size_t ucp_pipeline_cache_has(ucx_pipeline_h self, const char *start);
void ucp_pipeline_cache_look(ucx_pipeline_h self);
void ucp_pipeline_cache_sweep(ucx_pipeline_h self);

/* pipeline_tune.c */
void ucp_pipeline_tune_init(ucx_pipeline_h self);
void ucp_pipeline_tune_begin(ucx_pipeline_request_h req);
/** A message is over that was copied, or read. */
void ucp_pipeline_tune_sample(ucx_pipeline_request_h req, int is_read);
int ucp_pipeline_tune_buys(ucx_pipeline_h self, const void *buffer,
                           size_t length);
double ucp_pipeline_tune_rent(ucx_pipeline_h self, size_t length);
size_t ucp_pipeline_tune_offset(ucx_pipeline_h self);
int ucp_pipeline_tune_is_whole(ucx_pipeline_h self, size_t length);

/* pipeline_request.c */
ucx_pipeline_request_h ucp_pipeline_request_new(ucx_pipeline_h self,
                                                ucp_pipeline_kind_t kind);
void ucp_pipeline_request_delete(ucx_pipeline_request_h req);
ucx_pipeline_request_h ucp_pipeline_request_find(ucx_pipeline_h self,
                                                 uint64_t id, unsigned peer,
                                                 ucp_pipeline_kind_t kind);
void ucp_pipeline_request_activate(ucx_pipeline_request_h req);
void ucp_pipeline_request_unlink(ucx_pipeline_request_h req);
void ucp_pipeline_request_release(ucx_pipeline_request_h req);
void ucp_pipeline_request_complete(ucx_pipeline_request_h req,
                                   ucs_status_t status);
ucp_pipeline_piece_t *ucp_pipeline_piece_new(ucx_pipeline_request_h req,
                                             size_t end);
void ucp_pipeline_piece_delete(ucp_pipeline_piece_t *piece);
void ucp_pipeline_pieces_delete(ucx_pipeline_request_h req);

/* pipeline_request.c: what is sent for it */
void ucp_pipeline_lose(ucx_pipeline_h self, unsigned peer, ucs_status_t status);
void ucp_pipeline_end_lost(ucx_pipeline_h self);
ucs_status_t ucp_pipeline_post(ucx_pipeline_request_h req,
                               ucp_pipeline_header_t *header, const void *key,
                               size_t key_length, const void *payload,
                               size_t length, ucp_wire_done_func_t done,
                               void *arg);
ucs_status_t ucp_pipeline_tell(ucx_pipeline_request_h req,
                               ucp_pipeline_header_t *header, const void *key,
                               size_t key_length, ucp_wire_done_func_t done,
                               void *arg);

/* pipeline_send.c, pipeline_recv.c: what came for a request */
void ucp_pipeline_send_check(ucx_pipeline_request_h req);
int ucp_pipeline_send_acked(ucx_pipeline_request_h req,
                            const ucp_pipeline_header_t *header);
int ucp_pipeline_send_ready(ucx_pipeline_request_h req,
                            const ucp_pipeline_header_t *header,
                            const void *key, size_t key_length);
ucs_status_t ucp_pipeline_send_begin(ucx_pipeline_request_h req);
void ucp_pipeline_send_write(ucx_pipeline_h self);
void ucp_pipeline_recv_match(ucx_pipeline_request_h req, unsigned peer,
                             const ucp_pipeline_header_t *header,
                             const void *key, size_t key_length,
                             const void *bytes, size_t length);
int ucp_pipeline_recv_data(ucx_pipeline_request_h req,
                           const ucp_pipeline_header_t *header,
                           const void *bytes, size_t length);
int ucp_pipeline_recv_fin(ucx_pipeline_request_h req,
                          const ucp_pipeline_header_t *header);
void ucp_pipeline_recv_abort(ucx_pipeline_request_h req, ucs_status_t status);

void ucp_pipeline_recv_begin(ucx_pipeline_request_h req);

/* pipeline_offer.c: sender, then receiver */
ucp_pipeline_offer_t *ucp_pipeline_offer_new(ucx_pipeline_request_h req,
                                             size_t end);
size_t ucp_pipeline_offer_all(ucx_pipeline_request_h req,
                              ucp_pipeline_header_t *header, char *keys);
ucp_pipeline_reg_t *ucp_pipeline_offer_withdraw(ucx_pipeline_request_h req,
                                                size_t end);
void ucp_pipeline_offer_take(ucx_pipeline_request_h req,
                             const ucp_pipeline_header_t *header,
                             const char *keys, size_t length);

/* pipeline_read.c: sender, then receiver */
int ucp_pipeline_read_done(ucx_pipeline_request_h req,
                           const ucp_pipeline_header_t *header);
int ucp_pipeline_read_begin(ucx_pipeline_request_h req);

/* pipeline_match.c: the wire's handlers */
void ucp_pipeline_arrived(void *arg, unsigned peer, const void *header,
                          size_t header_length, const void *payload,
                          size_t length);
void ucp_pipeline_peer_failed(void *arg, unsigned peer, ucs_status_t status);
int ucp_pipeline_match_unexpected(ucx_pipeline_h self,
                                  ucx_pipeline_request_h req);

#endif

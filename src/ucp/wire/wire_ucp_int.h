/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_WIRE_UCP_INT_H_
#define UCP_WIRE_UCP_INT_H_

#include <ucp/wire/tuning_table.h>
#include <ucp/wire/wire_ucp.h>

#include <ucp/api/ucp.h>
#include <ucs/datastruct/list.h>

/** First word of each message, so that a stranger's is told apart. */
#define UCP_WIRE_MAGIC 0x31574855u

/** What goes before the caller's header: the bytes are this process's own
 *  layout, for all processes of a job run the same program. */
typedef struct ucp_wire_ucp_header {
    uint32_t magic;
    uint32_t from;
    uint64_t number; /**< of the message, from this sender to this receiver */
} ucp_wire_ucp_header_t;

/** A message that came before the one that goes before it. */
typedef struct ucp_wire_ucp_early {
    ucs_list_link_t list;
    uint64_t        number;
    size_t          header_length;
    size_t          length;
    char            bytes[]; /**< header, then payload */
} ucp_wire_ucp_early_t;

typedef struct ucp_wire_ucp_peer {
    ucp_ep_h        ep;         /**< NULL: not connected, or closed */
    ucs_status_t    status;     /**< UCS_OK until it fails */
    int             told;       /**< the handler `failed` has been called */
    uint64_t        sent;       /**< messages */
    uint64_t        received;   /**< messages handed up */
    ucs_list_link_t early;      /**< by number */
    unsigned        num_early;
    ucs_list_link_t ops;        /**< under way */
    void            *closing;   /**< request by which UCP closes a peer that
                                 *   failed; NULL: nothing is closing */
    uint64_t        give_up;    /**< when closing has taken too long, ns */
} ucp_wire_ucp_peer_t;

typedef struct ucp_wire_ucp {
    ucp_wire_t          super;
    ucp_context_h       context;
    ucp_worker_h        worker;
    ucp_address_t       *address;
    size_t              address_length;
    struct ucp_wire_ucp_op *spare;  /**< operations without extra bytes that
                                     *   are over; as many as were under way
                                     *   at once */
    unsigned            num_ops;    /**< whose completion is still to come */
    unsigned            num_failed; /**< peers that failed and were not told */
    unsigned            num_closing; /**< peers that failed and whose operations
                                     *   may not be over */
    ucs_list_link_t     lost;       /**< operations that were given up; UCP may
                                     *   still look at them */
    unsigned            handed_up;  /**< messages, since progress began */
    int                 progressing;
    int                 held;       /**< messages to this process itself came
                                     *   while it was not progressing */
    ucp_wire_ucp_peer_t peers[];
} ucp_wire_ucp_t;

/** An operation under way. */
typedef struct ucp_wire_ucp_op {
    ucs_list_link_t      list;    /**< its peer's, or lost */
    ucp_wire_ucp_t       *wire;
    unsigned             peer;
    int                  is_lost; /**< `done` was called without UCP's word */
    struct ucp_wire_ucp_op *next; /**< spare */
    int                  is_bare; /**< it has no extra bytes */
    ucp_wire_done_func_t done; /**< may be NULL */
    void                 *arg;
    char                 bytes[]; /**< header, and payload where copied */
} ucp_wire_ucp_op_t;

struct ucp_wire_mem {
    ucp_mem_h memh;
    void      *packed; /**< NULL until it is asked for */
    size_t    packed_length;
};

/* wire_ucp_config.c */
/** Set what this wire wants of UCX. */
void ucp_wire_ucp_configure(ucp_config_t *config);

/** End the operations of a peer whose endpoint is gone and which UCP has not
 *  ended. */
void ucp_wire_ucp_lose_ops(ucp_wire_ucp_t *self, unsigned peer);

/** Release what is spare or lost; UCP's worker is gone. */
void ucp_wire_ucp_forget_ops(ucp_wire_ucp_t *self);

/** The handler of messages for ucp_worker_set_am_recv_handler(). */
ucs_status_t ucp_wire_ucp_arrived(void *arg, const void *header,
                                  size_t header_length, void *data,
                                  size_t length,
                                  const ucp_am_recv_param_t *param);

/** Hand up what came early and whose turn has come. */
void ucp_wire_ucp_hand_up_early(ucp_wire_ucp_t *self, unsigned from);

/** Forget messages that came early; the peer failed or the wire ends. */
void ucp_wire_ucp_forget_early(ucp_wire_ucp_peer_t *peer);

/* wire_ucp.c; see wire.h */
unsigned ucp_wire_ucp_progress(ucp_wire_t *wire);
void ucp_wire_ucp_destroy(ucp_wire_t *wire);

/* wire_ucp_ops.c */
extern const ucp_wire_ops_t ucp_wire_ucp_ops;

#endif

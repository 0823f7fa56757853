/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_SIM_INT_H_
#define BENCH_SIM_INT_H_

#include "sim_queue.h"
#include "sim_world.h"

/**
 * @file sim_int.h
 *
 * Inside of the simulator, each file above those after it: sim_world.c (a run),
 * sim_net.c (messages), sim_rank.c (when a rank goes on, what it does while it
 * waits), sim_engine.c (registrations).
 */

BEGIN_C_DECLS

enum {
    SIM_EVENT_RANK,    /* arg: a rank whose time it is */
    SIM_EVENT_IDLE,    /* arg: a rank that waits, and may step */
    SIM_EVENT_SUBMIT,  /* a message is handed to its sender's NIC */
    SIM_EVENT_TRANSMIT /* its first byte leaves */
};

typedef enum sim_state {
    SIM_RUNNING,
    SIM_WAITING, /* for messages */
    SIM_SYNCING, /* in a reduction */
    SIM_ENDED
} sim_state_t;

typedef enum sim_packet {
    SIM_PACKET_EAGER, /* the data itself */
    SIM_PACKET_READY, /* to the receiver: the data may be fetched */
    SIM_PACKET_DATA,  /* the receiver has fetched it */
    SIM_PACKET_DONE   /* to the sender: it may deregister */
} sim_packet_t;

/* One end of a message, from the call to its end */
typedef struct sim_request {
    struct sim_request *next;
    struct sim_rank    *rank;
    uint32_t           peer, tag, site;
    uint64_t           address, bytes;
    ucs_regcache_memh_t memh;
    uint64_t           use;
    uint32_t           id;   /* of a receive, pairs post and end */
} sim_request_t;

typedef struct sim_message {
    struct sim_message *next;
    sim_packet_t       packet;
    uint32_t           tag;
    struct sim_rank    *from, *to;
    uint64_t           bytes;
    uint64_t           time_ns;    /* arrival of the packet */
    sim_request_t      *send;      /* rendezvous */
    sim_request_t      *recv;      /* once matched */
} sim_message_t;

/* Objects of one size; all are gone with the pool */
typedef struct sim_pool {
    size_t size;
    void   *free;
    void   *chunks;
} sim_pool_t;

typedef struct sim_list {
    void *head, *tail;
} sim_list_t;

/* A rank's registrations */
typedef struct sim_engine {
    replay_process_t process;
    uint32_t         *delays;   /* by use: begin, end; nanoseconds */
    size_t           count;     /* begun or ended so far, of each kind */
    size_t           capacity;
} sim_engine_t;

typedef struct sim_rank {
    uint32_t        index;
    sim_state_t     state;
    sim_cursor_t    at;
    uint64_t        now_ns;
    uint64_t        due_ns;     /* of its event in the queue, or NEVER */
    uint64_t        idle_ns;    /* of its next idle step; NEVER: it has not
                                   begun to wait */
    uint64_t        tx_free_ns; /* of its NIC's two sides */
    uint64_t        rx_free_ns;
    uint64_t        random;
    uint64_t        compute_ns;
    uint32_t        open;       /* requests */
    uint64_t        uses;       /* begun */
    uint32_t        posts;      /* receives so far */
    sim_list_t      posted;     /* receives, by time */
    sim_list_t      inbox;      /* packets, by arrival */
    sim_list_t      unexpected; /* those that had no receive */
    struct sim_rank *sync_next;
    sim_engine_t    *engine;    /* its own, or NULL */
} sim_rank_t;

typedef struct sim_sync {
    uint32_t   count;
    uint64_t   latest_ns;
    sim_rank_t *ranks;
} sim_sync_t;

typedef struct sim_world {
    const sim_shape_t  *shape;
    const sim_params_t *params;
    sim_result_t       *result;
    sim_rank_t         *ranks;
    sim_sync_t         *syncs;    /* by group */
    sim_engine_t       *engines;
    replay_params_t    *process_params; /* by engine: the seed differs */
    uint32_t           stride;    /* ranks for one engine */
    sim_queue_t        queue;
    sim_queue_t        idles;     /* idle steps, which bring nothing about:
                                     without other events the run is over */
    sim_pool_t         messages;
    sim_pool_t         requests;
    uint32_t           ended;
} sim_world_t;

/* sim_rank.c */

/** Let the rank go on at @a time_ns, if it would not go on before. */
void sim_rank_schedule(sim_world_t *world, sim_rank_t *rank, uint64_t time_ns);

/** The rank waits from its time on, if it did not before. */
void sim_rank_wait(sim_world_t *world, sim_rank_t *rank);

/** It does so no longer, or what came begins its wait anew. */
void sim_rank_unwait(sim_rank_t *rank);

/** The rank takes an idle step, if it still waits for it. */
void sim_rank_idle(sim_world_t *world, sim_rank_t *rank, uint64_t now_ns);

/* sim_net.c */
void sim_net_init(sim_world_t *world);
void sim_net_cleanup(sim_world_t *world);
void sim_list_add(sim_list_t *list, void *item);
sim_request_t *sim_request_new(sim_world_t *world, sim_rank_t *rank,
                               const sim_op_t *op);
void sim_net_send(sim_world_t *world, sim_request_t *send);
void sim_net_post(sim_world_t *world, sim_request_t *recv);
void sim_net_event(sim_world_t *world, const sim_event_t *event);

/** The rank takes the first packet of its inbox. */
void sim_net_take(sim_world_t *world, sim_rank_t *rank);

/** Count what is left over. */
void sim_net_check(sim_world_t *world);

/* sim_engine.c */
ucs_status_t sim_engines_open(sim_world_t *world);
void sim_engines_stats(sim_world_t *world);
void sim_engines_close(sim_world_t *world);
void sim_engine_begin(sim_world_t *world, sim_request_t *request);
void sim_engine_end(sim_world_t *world, sim_request_t *request);

/** The rank says what it begins, or that a receive has ended. */
void sim_engine_say(sim_world_t *world, sim_request_t *request,
                    ucs_operation_kind_t kind);

/** The rank begins to wait. @return When its first step is due, or NEVER. */
uint64_t sim_engine_wait(sim_world_t *world, sim_rank_t *rank);

/** It takes one. @return When the next is due. */
uint64_t sim_engine_idle(sim_world_t *world, sim_rank_t *rank);

END_C_DECLS

#endif

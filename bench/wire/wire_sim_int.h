/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_WIRE_SIM_INT_H_
#define UCP_WIRE_SIM_INT_H_

#include "wire_sim.h"
#include "../simulator/sim_queue.h"

/** Events in the order of time, then of making. */
typedef struct ucp_wire_sim_event ucp_wire_sim_event_t;

/** A key, as it travels and unpacked. */
typedef struct ucp_wire_sim_ref {
    uint64_t magic;
    uint32_t node;
    uint32_t slot;
    uint64_t generation;
} ucp_wire_sim_ref_t;

typedef enum {
    UCP_WIRE_SIM_MESSAGE,  /**< for a node: header and payload came */
    UCP_WIRE_SIM_DONE,     /**< for a node: an operation ended */
    UCP_WIRE_SIM_FAILED,   /**< for a node: a peer is dead */
    UCP_WIRE_SIM_PUT_READ, /**< link: the bytes of a put leave */
    UCP_WIRE_SIM_PUT_LAND, /**< link: they come */
    UCP_WIRE_SIM_GET_READ, /**< link: the bytes of a get leave its target */
    UCP_WIRE_SIM_GET_LAND, /**< link: they come */
    UCP_WIRE_SIM_LEAVE     /**< link: the payload of a message leaves */
} ucp_wire_sim_kind_t;

struct ucp_wire_sim_event {
    uint64_t             time;
    uint64_t             number;
    ucp_wire_sim_kind_t  kind;
    unsigned             from;   /**< who began it */
    unsigned             to;
    ucs_status_t         status;
    ucp_wire_done_func_t done;
    void                 *arg;
    ucp_wire_sim_event_t *then;  /**< of a read: where its bytes go */
    ucp_wire_sim_ref_t   local;  /**< registration of the beginner */
    ucp_wire_sim_ref_t   remote;
    char                 *buffer;
    uint64_t             address;
    size_t               header_length;
    size_t               length;
    char                 bytes[];
};

/** A registration that is or was. */
typedef struct ucp_wire_sim_slot {
    uintptr_t start;
    size_t    length;     /**< 0: free */
    uint64_t  generation;
    uint32_t  next_free;
} ucp_wire_sim_slot_t;

typedef struct ucp_wire_sim_hole {
    uintptr_t start, end;
} ucp_wire_sim_hole_t;

/** What a node knows of another. */
typedef struct ucp_wire_sim_way {
    uint64_t last_message; /**< when the last one arrives there */
    uint64_t last_land;    /**< when the last put has landed there */
    int      failed;       /**< the node was told that the other is dead */
} ucp_wire_sim_way_t;

/** When a direction of a link is busy, in order; no two touch. */
typedef struct ucp_wire_sim_span {
    uint64_t start, end;
} ucp_wire_sim_span_t;

typedef struct ucp_wire_sim_calendar {
    ucp_wire_sim_span_t *busy;
    unsigned            count, capacity;
} ucp_wire_sim_calendar_t;

typedef struct ucp_wire_sim_node {
    ucp_wire_t           super;
    ucp_wire_sim_t       *sim;
    int                  open, dead;
    uint64_t             clock;
    ucp_wire_sim_calendar_t out, in; /**< of its link */
    sim_queue_t          inbox;
    ucp_wire_sim_way_t   *ways;
    ucp_wire_sim_slot_t  *slots;
    uint32_t             num_slots, free_slot; /**< free_slot: index + 1 */
    ucp_wire_sim_hole_t  *holes;
    unsigned             num_holes;
    unsigned             fail_reg; /**< 1: the next one fails; 0: none */
    ucp_wire_sim_stats_t stats;
} ucp_wire_sim_node_t;

struct ucp_wire_sim {
    ucp_wire_sim_params_t params;
    uint64_t              random;
    uint64_t              now;      /**< of the links; never falls */
    uint64_t              number;   /**< of events */
    uint64_t              generation;
    sim_queue_t           links;
    unsigned              errors;
    char                  error[256];
    ucp_wire_sim_node_t   nodes[];
};

struct ucp_wire_mem {
    ucp_wire_sim_ref_t ref;
};

struct ucp_wire_key {
    ucp_wire_sim_ref_t ref;
};

#define UCP_WIRE_SIM_MAGIC 0x6d69732d65726977ull

/* wire_sim.c */
void ucp_wire_sim_push(sim_queue_t *queue, ucp_wire_sim_event_t *event);
ucp_wire_sim_event_t *ucp_wire_sim_pop(sim_queue_t *queue);
ucp_wire_sim_event_t *
ucp_wire_sim_event(ucp_wire_sim_t *sim, ucp_wire_sim_kind_t kind,
                   unsigned from, unsigned to, size_t extra);
void ucp_wire_sim_complain(ucp_wire_sim_t *sim, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
unsigned ucp_wire_sim_chance(ucp_wire_sim_t *sim, unsigned of_a_million);
uint64_t ucp_wire_sim_random(ucp_wire_sim_t *sim, uint64_t below);

/* wire_sim_move.c */
void ucp_wire_sim_move(ucp_wire_sim_t *sim, ucp_wire_sim_event_t *event);
int ucp_wire_sim_covers(ucp_wire_sim_t *sim, const ucp_wire_sim_ref_t *ref,
                        uint64_t address, size_t length, const char *what);

/* wire_sim_link.c: when bytes that are ready at `start` have left `from`'s link;
 * and when they are at the other end */
uint64_t ucp_wire_sim_link(ucp_wire_sim_node_t *from, unsigned to,
                           uint64_t start, size_t length, uint64_t *arrives_p);

/* wire_sim_ops.c */
extern const ucp_wire_ops_t ucp_wire_sim_ops;

#endif

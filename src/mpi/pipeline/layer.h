/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef MPI_PIPELINE_LAYER_H_
#define MPI_PIPELINE_LAYER_H_

#include "entries.h"
#include "tuning_table.h"

#include <mpi.h>

#include <ucp/pipeline/ucx_pipeline.h>
#include <ucs/datastruct/list.h>
#include <ucs/sys/sync/atomic.h>

#include <pthread.h>
#include <stdint.h>

/*
 * The module: compiled once for each MPI. A long message is announced by a
 * short one, the *herald*, that the MPI itself carries and matches, so that
 * order, wildcards and probes are the MPI's own; its bytes go by the pipeline.
 * Whatever is received may turn out to be a herald. It is told by its length,
 * which no other message has, and its message by sender, communicator, tag and
 * order; nothing that a program may write to is asked. See docs/pipeline.md.
 *
 * Calls go down this list: wrappers (init.c, send.c, receive.c, complete.c,
 * probe.c, comm.c) to operations (op.c) to progress (progress.c).
 */

/** The MPI's own function. */
#define REAL_MPI(_name) \
    ((__typeof__(&PMPI_##_name))mpi_layer.real[MPI_PIPELINE_##_name])

/* Each wrapper has the prototype of what it stands in front of */
#define MPI_LAYER_DECLARE(_name) __typeof__(PMPI_##_name) mpi_layer_##_name;
#if MPI_VERSION >= 4
#  define MPI_LAYER_ENTRIES(_) MPI_PIPELINE_ENTRIES(_)
#else
#  define MPI_LAYER_ENTRIES(_) MPI_PIPELINE_ENTRIES_3(_)
#endif
MPI_LAYER_ENTRIES(MPI_LAYER_DECLARE)

/** Define a wrapper, and that of MPI 4 with a count of 64 bits. */
#if MPI_VERSION >= 4
#  define MPI_LAYER_BOTH(_define, _name, ...) \
    _define(_name, int, ##__VA_ARGS__) \
    _define(_name##_c, MPI_Count, ##__VA_ARGS__)
#else
#  define MPI_LAYER_BOTH(_define, _name, ...) \
    _define(_name, int, ##__VA_ARGS__)
#endif

#define MPI_LAYER_MAGIC_BYTES 16

/** What a herald says, for those who see it in a landing buffer before the MPI
 *  has said that it is there. Its magic is drawn by lot for each job. */
typedef struct mpi_layer_herald {
    uint8_t  magic[MPI_LAYER_MAGIC_BYTES];
    uint64_t tag;    /**< by which the pipeline knows the message */
    uint32_t source; /**< sender, by its rank in MPI_COMM_WORLD */
    uint32_t check;  /**< of all above */
} mpi_layer_herald_t;

/** Bytes of a herald on its way: a length that programs have no use for. An
 *  ordinary message of as many takes the pipeline as well. */
#define MPI_LAYER_HERALD_BYTES 67

/** Kept with a communicator whose messages the layer may take, and with
 *  operations, which may be pending when the communicator is freed. */
typedef struct mpi_layer_comm {
    unsigned         users; /**< the communicator and operations; lock */
    uint32_t         id;   /**< agreed by its members; no two that a process
                            *   is a member of have the same */
    _Atomic uint32_t next; /**< of the next message */
    int              size;
    int              world[]; /**< rank in MPI_COMM_WORLD of each rank */
} mpi_layer_comm_t;

typedef enum {
    MPI_LAYER_IDLE,    /**< persistent, not started */
    MPI_LAYER_POSTED,  /**< receive: the MPI has matched nothing yet */
    MPI_LAYER_MOVING,  /**< in the pipeline's hands */
    MPI_LAYER_ARRIVED, /**< all is there; the status is the layer's */
    MPI_LAYER_PLAIN    /**< an ordinary message, or an error of the MPI's */
} mpi_layer_state_t;

/** A message whose herald MPI_Mprobe took out of the MPI's queue. */
typedef struct mpi_layer_taken {
    struct mpi_layer_taken *next;
    MPI_Message            message; /**< of the herald: the program's handle */
    MPI_Comm               comm;
    int                    sender;  /**< by its rank in MPI_COMM_WORLD */
    ucx_pipeline_message_h moving;
} mpi_layer_taken_t;

/** Where the MPI sends from or receives to in place of the program's buffer. */
typedef struct mpi_layer_view {
    void         *buffer;
    int          count;
    MPI_Datatype type;
    MPI_Datatype made; /**< to be freed, or null */
} mpi_layer_view_t;

typedef int (*mpi_layer_isend_func_t)(const void*, int, MPI_Datatype, int, int,
                                      MPI_Comm, MPI_Request*);

/** A request that the layer knows more of: of the MPI's, or generalized. */
typedef struct mpi_layer_op {
    struct mpi_layer_op    *next;      /**< with the same place in the table */
    ucs_list_link_t        list;       /**< posted or unwatched */
    ucs_list_link_t        freed;
    MPI_Request            request;
    MPI_Request            herald_request; /**< send: of the herald; as persistent
                                        *   as the send is */
    mpi_layer_state_t      state;      /**< POSTED to MOVING by any thread,
                                        *   under the lock */
    int                    is_send;
    int                    persistent;
    int                    releasing;  /**< the MPI is asked to free it */
    int                    busy;       /**< counted in num_busy */
    int                    owns;       /**< `bytes` is the layer's */
    MPI_Comm               comm;       /**< for its error handler, and to send;
                                        *   the program may have freed it */
    mpi_layer_comm_t       *members;   /**< held; NULL: not asked for */
    char                   *bytes;     /**< contiguous: the program's buffer,
                                        *   or what stands in for it */
    size_t                 room;       /**< bytes there */
    char                   *landing;   /**< receive: memory of the layer's where
                                        *   its herald comes to lie; NULL: it is
                                        *   unwatched */
    void                   *buffer;    /**< the program's, if `bytes` stands in
                                        *   for it: with count and type */
    MPI_Count              count;
    MPI_Datatype           type;       /**< a duplicate, or null */
    ucx_pipeline_request_h moving;     /**< NULL: the MPI carries it, as what
                                        *   it calls the herald */
    ucx_pipeline_status_t  status;
    int                    error;      /**< MPI error code */
    int                    tag;        /**< of the message */
    int                    sender;     /**< unwatched: whose herald was seen, by
                                        *   its rank in MPI_COMM_WORLD; -1 */
    int                    dest;       /**< persistent send */
    char                   herald[MPI_LAYER_HERALD_BYTES]; /**< sent, or
                                        *   to land in */
} mpi_layer_op_t;

#define MPI_LAYER_BUCKETS 1024

/** The layer of a process. */
typedef struct mpi_layer {
    mpi_pipeline_func_t          *real;
    const mpi_pipeline_door_t    *door;
    mpi_pipeline_progress_func_t progress;  /**< UCP's own */
    _Atomic uint64_t             num_progress; /**< calls, by the MPI */
    int                          on;        /**< after init, on all ranks */
    int                          verbose;
    int                          multiple;  /**< MPI_THREAD_MULTIPLE */
    int                          rank, size; /**< in MPI_COMM_WORLD */
    size_t                       min_bytes; /**< the same on all ranks */
    uint8_t                      magic[MPI_LAYER_MAGIC_BYTES];
    int                          keyval;
    MPI_Comm                     progress_comm; /**< of MPI_COMM_WORLD, for
                                             *   nothing but progress */
    MPI_Comm                     self_comm; /**< of MPI_COMM_SELF */
    ucx_pipeline_h               pipeline;
    _Atomic uint32_t             next_comm;
    pthread_mutex_t              send_lock; /**< herald and message leave in
                                             *   one order; may be held while
                                             *   the MPI is called; nothing is
                                             *   held when it is taken */
    pthread_mutex_t              match_lock; /**< unwatched receives ask in
                                             *   order; as send_lock */
    pthread_mutex_t              lock;      /**< table, lists, POSTED to
                                             *   MOVING; the MPI is not called
                                             *   under it; next: pipeline's */
    pthread_mutex_t              step_lock; /**< one step at a time; only
                                             *   tried; `lock` is below */
    mpi_layer_op_t               *table[MPI_LAYER_BUCKETS];
    ucs_list_link_t              posted;    /**< with a landing buffer */
    ucs_list_link_t              unwatched; /**< without, the first posted
                                             *   first; match_lock */
    ucs_list_link_t              freed;     /**< by the program, not complete */
    mpi_layer_taken_t            *taken;    /**< not received yet */
    _Atomic unsigned             num_ops;   /**< in the table */
    _Atomic unsigned             num_busy;  /**< need the pipeline's progress */
} mpi_layer_t;

extern mpi_layer_t mpi_layer;

/* init.c */
/** If the user wants to know. */
void mpi_layer_say(const char *format, ...)
        __attribute__((format(printf, 1, 2)));

/** Call the communicator's error handler, as the MPI does. @return @a code, if
 *  it comes back. */
int mpi_layer_error(MPI_Comm comm, int code);

/* comm.c */
int mpi_layer_comm_setup(void);

/** @return Lives as long as the communicator, or until the last put of what was
 *          held; NULL: its messages are the MPI's alone. */
mpi_layer_comm_t *mpi_layer_comm_get(MPI_Comm comm);

/** Both take NULL as well. */
mpi_layer_comm_t *mpi_layer_comm_hold(mpi_layer_comm_t *self);
void mpi_layer_comm_put(mpi_layer_comm_t *self);

/** By all members of a new communicator: agree on its id, with collective
 *  calls. Where one cannot, all leave it to the MPI. */
void mpi_layer_comm_agree(MPI_Comm comm);

/* type.c */
/** Do elements of a type lie in one piece and in their order? */
int mpi_layer_type_is_contiguous(MPI_Datatype type);
char *mpi_layer_type_start(void *buffer, MPI_Datatype type);

/** View bytes in two parts, of which the first may have none; to be ended.
 *  @return Of the MPI. */
int mpi_layer_view_begin(mpi_layer_view_t *view, void *first,
                         size_t first_length, void *rest, size_t length);
void mpi_layer_view_end(mpi_layer_view_t *view);

/** Put bytes, which lie in one piece, where a type says. @param length  Bytes,
 *  at most those of @a count elements. @return Of the MPI. */
int mpi_layer_type_spread(const void *bytes, size_t length, void *buffer,
                          MPI_Count count, MPI_Datatype type);

/** Copy what a type says to one piece of @a room bytes. @return Of the MPI. */
int mpi_layer_type_gather(const void *buffer, MPI_Count count,
                          MPI_Datatype type, void *bytes, size_t room);

/* herald.c */
void mpi_layer_herald_write(char *to, uint64_t tag);

/** @return Nonzero if there is a herald, of which @a herald is a copy then. */
int mpi_layer_herald_read(const char *from, mpi_layer_herald_t *herald);

/** @return Whose herald the MPI has received or found, by its rank in
 *          MPI_COMM_WORLD; -1: an ordinary message. */
int mpi_layer_herald_sender(const mpi_layer_comm_t *members,
                            const MPI_Status *status);

/** @return The pipeline's tag for message @a number of a communicator, of which
 *          16 bits count, and MPI's tag, which is not negative. */
uint64_t mpi_layer_tag(const mpi_layer_comm_t *comm, uint32_t number, int tag);
#define MPI_LAYER_TAG_NUMBER_MASK (UINT64_C(0xffff) << 31)

/* op.c: requests. An operation is in the hands of the thread that has its
 * request; what else others do to it, they do under the lock. */

/** @param members  NULL where no herald is looked for. @return NULL: no memory. */
mpi_layer_op_t *mpi_layer_op_new(MPI_Comm comm, mpi_layer_comm_t *members);

/** Release one that is not in the table; NULL: nothing. */
void mpi_layer_op_delete(mpi_layer_op_t *op);

/** Where the program's bytes do not lie in one piece, have others in their
 *  place, as many as `room`; the program may free the type before the message
 *  is there. @return Nonzero if so; 0 for want of memory. */
int mpi_layer_op_stand_in(mpi_layer_op_t *op, void *buffer, MPI_Count count,
                          MPI_Datatype type);

/** The table owns it until @ref mpi_layer_op_finish. */
void mpi_layer_op_add(mpi_layer_op_t *op, MPI_Request request);

/** @return NULL if the MPI's request is all there is. */
mpi_layer_op_t *mpi_layer_op_find(MPI_Request request);

/** A receive begins: from now on a herald may come for it. Under match_lock, taken
 *  before the MPI has the receive: a thread that probes meanwhile, and finds the next
 *  herald, must not take this one's message for that herald's. */
void mpi_layer_op_post(mpi_layer_op_t *op);

/** Does it need the pipeline's progress? Under the lock, if others know it. */
void mpi_layer_op_set_busy(mpi_layer_op_t *op, int busy);

/** The herald of a receive has landed: ask for its message. Under the lock,
 *  POSTED. */
void mpi_layer_op_receive(mpi_layer_op_t *op, const mpi_layer_herald_t *herald);

/** Likewise, of one that is unwatched: ask for the oldest message with that
 *  sender, communicator and tag. Under match_lock; all that were matched
 *  before have asked. */
void mpi_layer_op_receive_oldest(mpi_layer_op_t *op, int sender, int tag);

/** Likewise, for what a matched probe took, which is released. */
void mpi_layer_op_receive_taken(mpi_layer_op_t *op, mpi_layer_taken_t *taken);

/** Have all receives ask whose herald the MPI has matched, in the order in
 *  which it did. Under match_lock. */
void mpi_layer_ops_ask(void);

/** @return Nonzero if the MPI's functions complete its request at once. */
int mpi_layer_op_is_ready(mpi_layer_op_t *op);

/** The MPI is asked to free its request, or (0) has not done so: meanwhile it
 *  is not found, for another one may have the handle. */
void mpi_layer_op_release(mpi_layer_op_t *op, int releasing);

/** Put the message's length in place of its herald's; or MPI_STATUS_IGNORE. */
void mpi_layer_op_fix_status(const mpi_layer_op_t *op, MPI_Status *status);

/** The MPI has completed its request: release it, or have it idle if it is
 *  persistent and not MPI_REQUEST_NULL. @param request  What the MPI has left.
 *  @return The layer's error, or MPI_SUCCESS. */
int mpi_layer_op_finish(mpi_layer_op_t *op, MPI_Request request);

/** The program has freed the request of one that is not complete. */
void mpi_layer_op_set_free(mpi_layer_op_t *op);

/** End those that are complete. @return Receives left that something came for. */
int mpi_layer_ops_end_freed(void);

static inline int mpi_layer_has_ops(void)
{
    /* relaxed: a thread sees the requests that it was given */
    return ucs_load_relaxed(&mpi_layer.num_ops) > 0;
}

/* progress.c */
/** The pipeline's, called from UCP's progress. @return Events. */
unsigned mpi_layer_hook(void *worker);

/** One turn of a thread that waits for something of the layer's. */
void mpi_layer_pump(void);

/** Look for heralds in the landing buffers of posted receives. */
void mpi_layer_peek(void);

/** No step from now on: the pipeline is about to go. */
void mpi_layer_progress_end(void);

/* send.c */
/** @return Nonzero if a send is not the MPI's alone: it is long, to another
 *          process and of one piece, or as long as a herald. */
int mpi_layer_send_takes(MPI_Count count, MPI_Datatype type, int dest, int tag,
                         MPI_Comm comm);

/** Send from a copy: the buffer is the caller's again at once. @return Of the
 *  MPI. */
int mpi_layer_send_copy(const void *buffer, MPI_Count count, MPI_Datatype type,
                        int dest, int tag, MPI_Comm comm,
                        mpi_layer_isend_func_t isend);

int mpi_layer_send_start(mpi_layer_op_t *op);

/* receive.c */
/** Of what the MPI is to judge: a count or a type that is none. */
#define MPI_LAYER_NO_ROOM SIZE_MAX

/** @return Bytes of so many elements, or MPI_LAYER_NO_ROOM. */
size_t mpi_layer_receive_room(MPI_Count count, MPI_Datatype type);

/** Receive what a matched probe took. @return To be completed. */
mpi_layer_op_t *mpi_layer_receive_taken(void *buffer, MPI_Count count,
                                        MPI_Datatype type,
                                        mpi_layer_taken_t *taken);

/* complete.c */
/** Wait for an operation without a request, and release it. @return MPI_SUCCESS,
 *  or what the error handler was called with. */
int mpi_layer_op_wait(mpi_layer_op_t *op, MPI_Status *status);

#endif

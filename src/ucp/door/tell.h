/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_DOOR_TELL_H_
#define UCP_DOOR_TELL_H_

#include "door.h"
#include "posted.h"
#include "ring.h"
#include "slot.h"

#include <ucp/api/ucp.h>
#include <ucs/sys/hash.h>
#include <ucs/sys/proc/stack.h>

#include <pthread.h>

/*
 * What the entry points do when the door is open: tell operations, follow
 * receives, take idle steps. Only the program's own calls are told, not UCP's
 * calls of its own entry points.
 */

/** Call site of an operation. */
typedef struct ucp_door_site {
    uintptr_t caller;   /* the return address at UCP's entry */
    uintptr_t position; /* the stack's, from ucs_stack_position() */
} ucp_door_site_t;

/** The entry point's call site; expand in the entry point itself. */
#define UCP_DOOR_SITE \
    ((ucp_door_site_t){(uintptr_t)__builtin_return_address(0), \
                       ucs_stack_position(__builtin_frame_address(0))})

/** @return The label, never 0. The size class is the highest bit of the
 *  length. */
static inline uint32_t ucp_door_label(ucp_door_site_t site, unsigned kind,
                                      size_t length)
{
    unsigned size = (length == 0) ? 0 : 64 - (unsigned)__builtin_clzll(length);
    uint64_t what = kind * 65u + size + 1;
    uint32_t label;

    /* The high bits depend on all three products */
    label = (uint32_t)(((site.caller * UCS_HASH_FACTOR) ^
                        (site.position * UCS_HASH_FACTOR_2) ^
                        (what * UCS_HASH_FACTOR_3)) >> 32);
    return (label != 0) ? label : 1;
}

/** Where a thread is. */
typedef enum ucp_door_place {
    UCP_DOOR_OUTSIDE,     /* in the program */
    UCP_DOOR_IN_PROGRESS, /* in progress or a completion function: calls are
                             told, but no idle step is taken */
    UCP_DOOR_IN_UCP       /* in an operation: calls are UCP's */
} ucp_door_place_t;

/** A thread of the program. */
typedef struct ucp_door_thread {
    ucp_door_ring_t *ring;     /* NULL: none, or not yet */
    unsigned         place;    /* ucp_door_place_t */
    unsigned         empty;    /* progress calls in a row without an event */
    unsigned         is_over;  /* no ring for it, now or ever */
    uint64_t         heard;    /* operations */
    uint64_t         idle_at;  /* ns, when the latest idle step of this wait
                                  ended, or else the first look at the clock */
    uint64_t         idle_ns;  /* the shortest idle step so far; 0: none */
    uint64_t         first_ns; /* the shortest first step of a wait that heard
                                  operations and did nothing; 0: none */
    uint64_t         told;     /* operations heard by the latest step */
    unsigned         waits;    /* with a possible step, since the last early
                                  one */
    unsigned         rest;     /* waits until the next early one */
    unsigned         is_first; /* none in this wait yet */
    unsigned         is_worth; /* the latest step that heard operations, or a
                                  later one, found something to do */
    uint64_t         spare_ns; /* waited and not spent on steps */
} ucp_door_thread_t;

/** Contiguous data of an operation; address 0 if they are not, or not known. */
typedef struct ucp_door_data {
    uintptr_t address;
    size_t    length;
} ucp_door_data_t;

/** A receive on its way through the door. */
typedef struct ucp_door_receive {
    ucp_door_posted_t *posted;
    ucp_door_ticket_t ticket; /* 0: its end is not followed */
    ucp_door_data_t   data;
    unsigned          place;
} ucp_door_receive_t;

extern __thread ucp_door_thread_t ucp_door_thread
        __attribute__((tls_model("initial-exec"), visibility("hidden")));

/** What the helper wants to be told. */
extern _Atomic(ucs_operation_wants_t*) ucp_door_wants
        __attribute__((visibility("hidden")));

/** @return Nonzero if an operation is wanted. */
static inline int ucp_door_is_wanted(ucs_operation_kind_t kind, size_t length)
{
    /* [O-WANTS] The acquire pairs with the release in ucp_door_open(). */
    return ucs_operation_is_wanted(ucs_load_acquire(&ucp_door_wants), kind,
                                   length);
}

/**
 * @param [in] most  Upper bound of the operation's bytes.
 *
 * @return Nonzero if the operation is not wanted: the call is only passed on.
 */
static inline int ucp_door_passes(size_t most)
{
    return !ucp_door_is_wanted(UCS_OPERATION_SEND, most);
}

/** The most bytes that a buffer may have; 0 if they are not contiguous. */
static inline size_t ucp_door_most(size_t count, ucp_datatype_t datatype)
{
    return ((datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG) ?
                   count * (datatype >> UCP_DATATYPE_SHIFT) :
                   0;
}

/** The same by @a param; SIZE_MAX where UCX may call the program's completion
 *  function inside the operation. */
static inline size_t ucp_door_param_most(size_t count,
                                         const ucp_request_param_t *param)
{
    uint32_t mask = param->op_attr_mask;

    if (mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) {
        return SIZE_MAX;
    }
    return (mask & UCP_OP_ATTR_FIELD_DATATYPE) ?
                   ucp_door_most(count, param->datatype) :
                   count;
}

/** Data of a buffer of this datatype. */
ucp_door_data_t ucp_door_data(const void *buffer, size_t count,
                              ucp_datatype_t datatype);

/** The same by @a param; unknown for a device's memory and for memory that the program
 *  has registered itself. */
ucp_door_data_t ucp_door_param_data(const void *buffer, size_t count,
                                    const ucp_request_param_t *param);

/** An entry point begins: tell the operation, unless the call is UCP's own.
 *  @return The thread's place, for @ref ucp_door_leave. */
unsigned ucp_door_enter(ucs_operation_kind_t kind, ucp_door_data_t data,
                        ucp_door_site_t site);

/** A receive begins: tell it, unless the call is UCP's own. @a receive is set until
 *  @ref ucp_door_receive_end. */
void ucp_door_receive_begin(ucp_door_receive_t *receive, ucp_door_data_t data,
                            ucp_door_site_t site);

/** UCP has answered, with a request, NULL or an error. */
void ucp_door_receive_end(ucp_door_receive_t *receive,
                          ucs_status_ptr_t request);

/** Tell the end of the receive that @a request may belong to. */
void ucp_door_request_ended(const void *request);

/** @return Nonzero if an idle step may be due (@ref ucp_door_idle) after a call
 *          of progress that came from the program and found @a count events. */
static inline int ucp_door_is_idle(unsigned count)
{
    ucp_door_thread_t *thread = &ucp_door_thread;

    if (count != 0) {
        thread->empty = 0;
        return 0;
    }

    return (++thread->empty & (UCP_DOOR_IDLE_CALLS - 1)) == 0;
}

/** Take it, if the thread has waited long enough. */
void ucp_door_idle(void);

/** A call of UCP ends, in the same thread. @param place  The thread's former
 *  place. */
static inline void ucp_door_leave(unsigned place)
{
    ucp_door_thread.place = place;
}

/* What the threads share; for tell.c and receive.c only. Allocated when the door is
 * opened. */
typedef struct ucp_door_state {
    _Atomic(const ucp_door_listener_t*) listener;
    pthread_key_t                       key; /* of a thread's end */
    int                                 has_key;
    ucp_door_posted_t                   posted;
    ucp_door_rings_t                    rings;
} ucp_door_state_t;

/** @return The state; NULL before the door was opened. */
ucp_door_state_t *ucp_door_get(void);

/** @return The calling thread's ring; NULL, and the operation counts as lost,
 *          if it has none. */
ucp_door_ring_t *ucp_door_ring(ucp_door_state_t *state);

/** Tell an operation, by the owner of @a ring. @a id is a receive's, or 0. */
void ucp_door_tell(ucp_door_state_t *state, ucp_door_ring_t *ring,
                   ucs_operation_kind_t kind, ucp_door_data_t data,
                   ucp_door_site_t site, uint32_t id);

/** A told receive waits for its message: the helper, or a waiting rank, may
 *  register its buffer. */
void ucp_door_posted(ucp_door_data_t data);

/** Tell the end of a receive, for the thread that posted it; 0: of none. Any
 *  thread. */
void ucp_door_tell_end(ucp_door_ticket_t ticket);

/* What an entry point does that tells its operation */
#define UCP_DOOR_TELLS(_ret, _name, _kind, _data, _args) \
    { \
        unsigned place = ucp_door_enter(_kind, _data, UCP_DOOR_SITE); \
        _ret ret       = UCP_DOOR_REAL(_name) _args; \
        \
        ucp_door_leave(place); \
        return ret; \
    }

/** What the entry point of a receive does. */
#define UCP_DOOR_RECEIVES(_name, _data, _args) \
    { \
        ucp_door_receive_t receive; \
        ucs_status_ptr_t ret; \
        \
        ucp_door_receive_begin(&receive, _data, UCP_DOOR_SITE); \
        ret = UCP_DOOR_REAL(_name) _args; \
        ucp_door_receive_end(&receive, ret); \
        return ret; \
    }

/** Define the entry point of an operation whose data are @a _data: what it is
 *  called with is told, and nothing else. See UCP_DOOR_ENTRY. */
#define UCP_DOOR_OPERATION(_ret, _name, _kind, _data, _params, _args) \
    UCP_DOOR_ENTRY(_ret, _name, UCP_DOOR_REFUSAL(_ret), _params, _args) \
    UCP_DOOR_TELLS(_ret, _name, _kind, _data, _args)

/** The same of one that is passed by where @a _most bytes are too few. See
 *  UCP_DOOR_PASSING_ENTRY. */
#define UCP_DOOR_PASSING(_ret, _name, _kind, _most, _data, _params, _args) \
    UCP_DOOR_PASSING_ENTRY(_ret, _name, ucp_door_passes(_most), _params, _args) \
    UCP_DOOR_TELLS(_ret, _name, _kind, _data, _args)

/** The same of one with parameters: its arguments are named buffer, count, param. */
#define UCP_DOOR_WITH_PARAM(_name, _kind, _params, _args) \
    UCP_DOOR_PASSING(ucs_status_ptr_t, _name, _kind, \
                     ucp_door_param_most(count, param), \
                     ucp_door_param_data(buffer, count, param), _params, _args)

#endif

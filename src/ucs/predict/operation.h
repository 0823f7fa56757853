/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
/*
 * What a program says before it registers: its operations at UCP's public entry
 * points, as the door hears them and the registration cache is told them. The
 * papers take the signature of a call site from there (Li et al., section 4.2),
 * not from the registration.
 */

#ifndef UCS_PREDICT_OPERATION_H
#define UCS_PREDICT_OPERATION_H

#include <ucs/sys/sync/atomic.h>

#include <stdint.h>

typedef enum ucs_operation_kind {
    UCS_OPERATION_SEND,      /* a tagged send or an active message begins */
    UCS_OPERATION_RECEIVE,   /* a receive is posted */
    UCS_OPERATION_RECEIVED,  /* a posted receive has completed, or was cancelled */
    UCS_OPERATION_PUT,
    UCS_OPERATION_GET,
    UCS_OPERATION_ATOMIC,
    UCS_OPERATION_MAP,       /* the program registers memory by itself */
    UCS_OPERATION_UNMAP,     /* and deregisters it; of no address */
    UCS_OPERATION_LAST
} ucs_operation_kind_t;

/**
 * One operation. A value: nothing in it is owned or pointed at.
 *
 * A @ref UCS_OPERATION_RECEIVED repeats the @a id of its
 * @ref UCS_OPERATION_RECEIVE, and is the only kind beside it that has one.
 */
typedef struct ucs_operation {
    uint64_t time;     /* nanoseconds, monotonic, when UCP was entered or, of
                          RECEIVED, when it told the end */
    uint64_t address;  /* first byte of contiguous data; 0 if it is not
                          contiguous or not known */
    uint64_t length;   /* bytes from address; 0 with address 0 */
    uint32_t label;    /* signature of the call site: return addresses from
                          UCP's entry up, the kind and the class of the size;
                          0 for RECEIVED */
    uint32_t id;       /* pairs RECEIVE and RECEIVED of one thread; 0: none */
    uint32_t kind;     /* ucs_operation_kind_t */
    uint32_t thread;   /* number of the thread that called, from 0 */
} ucs_operation_t;

/**
 * Which operations those who learn from them want to be told. Read by the
 * threads that speak, at each operation, and written when it changes; so nothing
 * else that is written is to share its cache line. Relaxed at both ends: what is
 * told does not depend on anything that was written before, and a thread sees
 * what it has changed itself.
 */
typedef struct ucs_operation_wants {
    _Atomic(uint64_t) all;   /* nonzero: any. So many as learn from them: they
                                begin and end by themselves */
    _Atomic(uint64_t) least; /* else those of so many bytes at least */
} ucs_operation_wants_t;

/**
 * Any thread. Some kinds are wanted at all times: they are rare, or end what was
 * told before.
 *
 * @param [in] length  Bytes of the operation's data.
 *
 * @return Nonzero if an operation is to be told.
 */
static inline int ucs_operation_is_wanted(ucs_operation_wants_t *wants,
                                          uint32_t kind, uint64_t length)
{
    return (ucs_load_relaxed(&wants->all) != 0) ||
           (length >= ucs_load_relaxed(&wants->least)) ||
           (kind == UCS_OPERATION_RECEIVED) || (kind >= UCS_OPERATION_MAP);
}

/** One that wants any begins to, or ends it. Any thread. */
static inline void ucs_operation_listen(ucs_operation_wants_t *wants,
                                        int listens)
{
    ucs_add_relaxed(&wants->all, listens ? 1 : UINT64_MAX);
}

/** What came of a step by a thread that waits. */
typedef enum ucs_idle_outcome {
    UCS_IDLE_NOT_TAKEN, /* another is under way, say: nothing was heard */
    UCS_IDLE_HEARD,     /* nothing was to be done */
    UCS_IDLE_USED       /* something was registered or deregistered, or left, or uses
                           had registered since the one before */
} ucs_idle_outcome_t;

#endif

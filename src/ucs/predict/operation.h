/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * What a program says before it registers: its operations at UCP's public entry
 * points, as the door hears them and the registration cache is told them. The
 * papers take the signature of a call site from there (Li et al., section 4.2),
 * not from the registration.
 */

#ifndef UCS_PREDICT_OPERATION_H
#define UCS_PREDICT_OPERATION_H

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

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_TRACE_H_
#define UCS_TRACE_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/*
 * The binary trace of one process: what was registered, given back and
 * unmapped, what the program said before that, and when. Pure: buffers in,
 * buffers out; trace_format.h specifies the bytes. Version 2, which has the
 * operations, is written; the tool reads version 1 as well (tools/decode.h). Nothing here is thread
 * safe; different objects are independent.
 */

BEGIN_C_DECLS

/** What happened. */
typedef enum ucs_trace_kind {
    UCS_TRACE_USE,     /**< a registration was asked for */
    UCS_TRACE_RELEASE, /**< it was given back: address, length, signature and
                            access are those of its use */
    UCS_TRACE_UNMAP,   /**< [address, address + length) is about to go */
    UCS_TRACE_LOST,    /**< @a length events are missing here */
    UCS_TRACE_OPERATION /**< something was said at UCP's entry points */
} ucs_trace_kind_t;

/** One event. */
typedef struct ucs_trace_event {
    uint64_t         time_ns;   /**< monotonic clock */
    uint64_t         address;
    uint64_t         length;    /**< bytes, above 0 but for OPERATION; events
                                     for LOST */
    uint64_t         signature; /**< of the call path; USE and RELEASE; of
                                     OPERATION, 32 bits */
    uint32_t         access;    /**< UCT_MD_MEM_ACCESS_xx; USE and RELEASE; of
                                     OPERATION, its kind, and 256 times its
                                     thread */
    ucs_trace_kind_t kind;
    uint32_t         id;        /**< pairs post and end; OPERATION */
} ucs_trace_event_t;

/** The part of an OPERATION's @a access that is its kind; the rest is the
 *  thread. */
#define UCS_TRACE_OPERATION_KIND   0xffu
#define UCS_TRACE_OPERATION_THREAD 256u

/** The part of a USE's @a access that gives others any. */
#define UCS_TRACE_ACCESS_REMOTE 0xe0u

/** Bytes of a host's name, with the terminating zero. */
#define UCS_TRACE_HOST_MAX 24

/** What a trace says about itself. */
typedef struct ucs_trace_header {
    uint64_t start_ns;  /**< monotonic clock, when recording began */
    uint32_t page_size; /**< bytes, a power of two from 512 to 1 GiB */
    uint32_t pid;
    int32_t  rank;      /**< in the job, -1 if unknown */
    char     host[UCS_TRACE_HOST_MAX];
} ucs_trace_header_t;

/** Most bytes that one call of the encoder writes. */
#define UCS_TRACE_RECORD_MAX 96

typedef struct ucs_trace_encoder *ucs_trace_encoder_h;

/**
 * Create an encoder; about 400 KB.
 *
 * @param [out] encoder_p  Set only on success; owned by the caller.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_trace_encoder_create(ucs_trace_encoder_h *encoder_p);

/** Release an encoder; what it was not told to end is read as cut short. */
void ucs_trace_encoder_destroy(ucs_trace_encoder_h encoder);

/**
 * The three calls write at most @ref UCS_TRACE_RECORD_MAX bytes to @a buffer:
 * first begin, then any number of events, last end.
 *
 * @return Bytes written.
 */
size_t ucs_trace_encode_begin(ucs_trace_encoder_h encoder,
                              const ucs_trace_header_t *header, void *buffer);
size_t ucs_trace_encode(ucs_trace_encoder_h encoder,
                        const ucs_trace_event_t *event, void *buffer);
size_t ucs_trace_encode_end(ucs_trace_encoder_h encoder, void *buffer);

END_C_DECLS

#endif

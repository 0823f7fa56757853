/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_TRACE_FORMAT_H_
#define UCS_TRACE_FORMAT_H_

#include "trace.h"

/*
 * What encoder and decoder agree upon. All numbers are little endian; a
 * varint has seven bits a byte, the least significant first, and its last
 * byte's top bit is clear. A difference d is written by zigzag: 2d, or -2d - 1.
 */

#define UCS_TRACE_MAGIC       "UCXHMTRC"
#define UCS_TRACE_MAGIC_SIZE  8
#define UCS_TRACE_MARK        UINT32_C(0x01020304)
#define UCS_TRACE_VERSION     2
#define UCS_TRACE_VERSION_MIN 1 /* without operations */
#define UCS_TRACE_HEADER_SIZE 64

#define UCS_TRACE_PAGE_MIN    UINT32_C(512)
#define UCS_TRACE_PAGE_MAX    (UINT32_C(1) << 30)

/* Where a number of the header lies, and how many bytes it has */
typedef struct ucs_trace_place {
    uint8_t at;
    uint8_t bytes;
} ucs_trace_place_t;

#define UCS_TRACE_PLACE(_at, _bytes) ((ucs_trace_place_t){_at, _bytes})

#define UCS_TRACE_AT_MAGIC     0
#define UCS_TRACE_AT_MARK      UCS_TRACE_PLACE(8, 4)
#define UCS_TRACE_AT_VERSION   UCS_TRACE_PLACE(12, 2)
#define UCS_TRACE_AT_SIZE      UCS_TRACE_PLACE(14, 2)
#define UCS_TRACE_AT_PAGE_SIZE UCS_TRACE_PLACE(16, 4)
#define UCS_TRACE_AT_RANK      UCS_TRACE_PLACE(20, 4)
#define UCS_TRACE_AT_PID       UCS_TRACE_PLACE(24, 4) /* 4 zeros follow */
#define UCS_TRACE_AT_START     UCS_TRACE_PLACE(32, 8)
#define UCS_TRACE_AT_HOST      40

/* A record begins with a varint, its key: the low bits are one of these, the
 * rest is a slot where there is one */
enum {
    UCS_TRACE_REC_DEFINE,
    UCS_TRACE_REC_USE,
    UCS_TRACE_REC_RELEASE,
    UCS_TRACE_REC_UNMAP,
    UCS_TRACE_REC_LOST,
    UCS_TRACE_REC_END,
    UCS_TRACE_REC_OPERATION, /* from version 2 on */
    UCS_TRACE_REC_SAY,       /* defines a slot of operations; likewise */
    UCS_TRACE_REC_LAST
};
#define UCS_TRACE_REC_BITS 3
#define UCS_TRACE_REC_MASK 7u

/* A number of a record, by the field of the event that it is */
typedef enum ucs_trace_operand {
    UCS_TRACE_NOTHING,  /* the record ends */
    UCS_TRACE_TIME,     /* varint, difference to the time before, zigzag */
    UCS_TRACE_ADDRESS,  /* varint */
    UCS_TRACE_LENGTH,   /* varint; of a range whose address came before */
    UCS_TRACE_COUNT,    /* varint, in place of a length */
    UCS_TRACE_ACCESS,   /* varint of 32 bits */
    UCS_TRACE_SIGNATURE, /* 8 bytes, as it has no small values */
    UCS_TRACE_LABEL,     /* varint of 32 bits, in place of a signature */
    UCS_TRACE_EXTENT,    /* varint, in place of a length: may be 0 */
    UCS_TRACE_ID         /* varint: 0 for 0, else one more than the difference
                            to the latest that was not, zigzag */
} ucs_trace_operand_t;

#define UCS_TRACE_OPERANDS_MAX 5

/* What follows the key */
static const uint8_t
ucs_trace_operands[UCS_TRACE_REC_LAST][UCS_TRACE_OPERANDS_MAX] = {
    [UCS_TRACE_REC_DEFINE]  = {UCS_TRACE_ADDRESS, UCS_TRACE_LENGTH,
                               UCS_TRACE_ACCESS, UCS_TRACE_SIGNATURE},
    [UCS_TRACE_REC_USE]     = {UCS_TRACE_TIME},
    [UCS_TRACE_REC_RELEASE] = {UCS_TRACE_TIME},
    [UCS_TRACE_REC_UNMAP]   = {UCS_TRACE_TIME, UCS_TRACE_ADDRESS,
                               UCS_TRACE_LENGTH},
    [UCS_TRACE_REC_LOST]    = {UCS_TRACE_TIME, UCS_TRACE_COUNT},
    /* Of all records of USE, RELEASE, UNMAP and OPERATION */
    [UCS_TRACE_REC_END]       = {UCS_TRACE_COUNT},
    [UCS_TRACE_REC_OPERATION] = {UCS_TRACE_TIME, UCS_TRACE_ID},
    [UCS_TRACE_REC_SAY]       = {UCS_TRACE_ADDRESS, UCS_TRACE_EXTENT,
                                 UCS_TRACE_ACCESS, UCS_TRACE_LABEL}
};

/* The record of an event, for the kinds stand in the same order up to LOST */
static inline unsigned ucs_trace_record_of(ucs_trace_kind_t kind)
{
    return (kind == UCS_TRACE_OPERATION) ? UCS_TRACE_REC_OPERATION :
                                           UCS_TRACE_REC_USE + (unsigned)kind;
}

/* What USE and RELEASE refer to, and in a table of its own OPERATION, an event
 * without time and kind: a process has few buffers and call sites, and uses them
 * over and over. A slot whose length is 0 is not defined; one of operations is
 * there from the beginning, as all zeros. */
#define UCS_TRACE_SLOTS 4096u

#endif

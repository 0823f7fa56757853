/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_TRACE_FORMAT_H_
#define UCS_TRACE_FORMAT_H_

#include "trace.h"

/**
 * @file trace_format.h
 *
 * What encoder and decoder agree upon. All numbers are little endian; a
 * varint has seven bits a byte, the least significant first, and its last
 * byte's top bit is clear.
 */

#define UCS_TRACE_MAGIC       "UCXHMTRC"
#define UCS_TRACE_MAGIC_SIZE  8
#define UCS_TRACE_MARK        UINT32_C(0x01020304)
#define UCS_TRACE_VERSION     1
#define UCS_TRACE_HEADER_SIZE 64

#define UCS_TRACE_PAGE_MIN    UINT32_C(512)
#define UCS_TRACE_PAGE_MAX    (UINT32_C(1) << 30)

/* Offsets in the header */
enum {
    UCS_TRACE_AT_MAGIC     = 0,
    UCS_TRACE_AT_MARK      = 8,
    UCS_TRACE_AT_VERSION   = 12, /* 16 bits */
    UCS_TRACE_AT_SIZE      = 14, /* 16 bits */
    UCS_TRACE_AT_PAGE_SIZE = 16,
    UCS_TRACE_AT_RANK      = 20,
    UCS_TRACE_AT_PID       = 24,
    UCS_TRACE_AT_ZERO      = 28,
    UCS_TRACE_AT_START     = 32, /* 64 bits */
    UCS_TRACE_AT_HOST      = 40
};

/* A record begins with a varint: the low bits are one of these, the rest is
 * a slot where there is one */
enum {
    UCS_TRACE_REC_DEFINE,  /* slot | address, length, access, signature */
    UCS_TRACE_REC_USE,     /* slot | time */
    UCS_TRACE_REC_RELEASE, /* slot | time */
    UCS_TRACE_REC_UNMAP,   /* 0 | time, address, length */
    UCS_TRACE_REC_LOST,    /* 0 | time, events */
    UCS_TRACE_REC_END,     /* 0 | events in all, LOST and this one apart */
    UCS_TRACE_REC_LAST
};
#define UCS_TRACE_REC_BITS 3
#define UCS_TRACE_REC_MASK 7u

/* What USE and RELEASE refer to: a process has few buffers and call sites, and
 * uses them over and over */
#define UCS_TRACE_SLOTS    4096u

typedef struct ucs_trace_slot {
    uint64_t address;
    uint64_t length;    /* 0: not defined */
    uint64_t signature;
    uint32_t access;
} ucs_trace_slot_t;

#endif

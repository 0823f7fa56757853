/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_MPI_SEMANTICS_H_
#define TEST_MPI_SEMANTICS_H_

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/**
 * @file semantics.h
 *
 * What the cases of `semantics` have in common. Every rank runs every case;
 * rank 0 sends to rank 1 unless a case says otherwise. The checks may be called
 * by any thread; whichever fails ends all ranks.
 */

/* MPICH's MPI_STATUSES_IGNORE is an address, which the compiler takes for an
 * array that is too short */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

/** Lengths, in bytes */
#define SHORT     100
#define ODD       67 /**< As long as a header of the layer's */
#define LONG      (1024 * 1024)
#define LONGER    (3 * 1024 * 1024 + 12345)

#define NUM_ROOMS 8
#define NUM_MIXED 8

/** What a room is full of before anything is received */
#define UNTOUCHED 0xa5

extern int           rank, num_ranks;
extern int           threads;          /**< MPI_THREAD_MULTIPLE is asked for */
extern unsigned char *rooms[NUM_ROOMS]; /**< LONGER bytes each */
extern const int     mixed[NUM_MIXED]; /**< Short and long ones in turn */

/** Says on which case and rank it happened, and aborts. */
__attribute__((noreturn, format(printf, 1, 2)))
void fail(const char *format, ...);

#define CHECK(_condition) \
    do { \
        if (!(_condition)) { \
            fail("%s line %d: %s", __FILE__, __LINE__, #_condition); \
        } \
    } while (0)

/** @return Byte @a i of the message of @a key. */
unsigned char content(unsigned key, size_t i);

/** Writes the message of @a key. @return @a buffer. */
void *fill(unsigned char *buffer, size_t length, unsigned key);

/** The first @a length bytes are those of @a key. */
void check(const unsigned char *buffer, size_t length, unsigned key);

/** @return The room of this number, of which every byte is UNTOUCHED. */
void *fresh(int room);

/** Whatever follows the first @a length bytes of a room was not written. */
void check_rest(const unsigned char *buffer, size_t length);

void check_status(MPI_Status *status, int source, int tag, int length);

/** The status of a receive from MPI_PROC_NULL. */
void check_nobody(MPI_Status *status);

/** All cases, in the order in which they run: semantics_*.c have them. */
#define CASES(_do) \
    _do(order) _do(tags) _do(waitall) _do(waitany) _do(waitsome) _do(testany) \
    _do(testsome) _do(testall) _do(wait) _do(get_status) _do(any_source) \
    _do(probes) _do(iprobes) _do(mprobe) _do(sendrecv) _do(large) _do(self) \
    _do(communicators) _do(inter) _do(freed_comm) _do(types) _do(truncate) \
    _do(cancel) _do(modes) _do(synchronous) _do(persistent) \
    _do(persistent_sends) _do(same) _do(bandwidth) _do(same_blocking) \
    _do(truncations) _do(taken) _do(small_types) _do(freed) _do(many) \
    _do(threads) _do(corrupt)

#define CASE_DECLARE(_name) void case_##_name(void);
CASES(CASE_DECLARE)

#endif

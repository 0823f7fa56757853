/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_MPI_RING_H_
#define TEST_MPI_RING_H_

#include <stddef.h>
#include <stdint.h>

/**
 * @file ring.h
 *
 * What the programs that exchange verified messages with their neighbours have
 * in common.
 */

extern int rank, num_ranks;

/** MPI_Init_thread() for this level, and the ranks. The job ends if there are
 *  fewer than two, or the MPI has not got the level. What fails names
 *  @a program. */
void ring_begin(const char *program, int thread_level);

/** The job ends, with what has failed. */
__attribute__((noreturn, format(printf, 1, 2)))
void fail(const char *format, ...);

int left(void);
int right(void);

/** Word @a index of the content of @a key. */
static inline uint64_t content_word(uint64_t key, size_t index)
{
    uint64_t word = key + index * 0xd6e8feb86659fd93ul;

    word ^= word >> 32;
    word *= 0xd6e8feb86659fd93ul;
    return word ^ (word >> 32);
}

void content_fill(uint8_t *buffer, size_t size, uint64_t key);

/** @return Offset of the first byte that differs, @a size if none does. */
size_t content_check(const uint8_t *buffer, size_t size, uint64_t key);

#endif

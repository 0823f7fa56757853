/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "ring.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int rank, num_ranks;

static const char *ring_program;

void fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "%s: FAILED on rank %d: ", ring_program, rank);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

void ring_begin(const char *program, int thread_level)
{
    int provided;

    ring_program = program;
    MPI_Init_thread(NULL, NULL, thread_level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
    if ((num_ranks < 2) || (provided < thread_level)) {
        fail("needs two ranks, and of this MPI thread level %d, which has %d",
             thread_level, provided);
    }
}

int left(void)
{
    return (rank + num_ranks - 1) % num_ranks;
}

int right(void)
{
    return (rank + 1) % num_ranks;
}

void content_fill(uint8_t *buffer, size_t size, uint64_t key)
{
    size_t num_words = size / sizeof(uint64_t);
    size_t i;
    uint64_t word;

    for (i = 0; i < num_words; i++) {
        word = content_word(key, i);
        memcpy(buffer + i * sizeof(word), &word, sizeof(word));
    }

    word = content_word(key, num_words);
    memcpy(buffer + num_words * sizeof(word), &word, size % sizeof(word));
}

size_t content_check(const uint8_t *buffer, size_t size, uint64_t key)
{
    size_t num_words = size / sizeof(uint64_t);
    size_t i, j;
    uint64_t word, got;

    for (i = 0; i <= num_words; i++) {
        word = content_word(key, i);
        got  = word;
        j    = (i < num_words) ? sizeof(got) : size % sizeof(got);
        memcpy(&got, buffer + i * sizeof(word), j);
        if (got != word) {
            for (j = 0; ((got ^ word) & 0xff) == 0; j++) {
                got  >>= 8;
                word >>= 8;
            }
            return i * sizeof(uint64_t) + j;
        }
    }

    return size;
}

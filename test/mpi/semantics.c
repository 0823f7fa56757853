/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * What MPI promises about point-to-point messages, long and short ones mixed:
 * order, wildcards, probes, status, truncation, cancel, communicators, types,
 * all ways to complete, threads. Every byte is checked. It knows nothing of
 * what carries the messages, and passes with the MPI alone.
 */

#include "semantics/semantics.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rank, num_ranks, threads;
unsigned char *rooms[NUM_ROOMS];
const int mixed[NUM_MIXED] = {LONG, SHORT, ODD, LONGER, 1, LONG, ODD, SHORT};

static int corrupt;
static const char *current = "start";

void fail(const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "semantics: %s FAILED on rank %d: ", current, rank);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

unsigned char content(unsigned key, size_t i)
{
    uint64_t word = (key + 1) * UINT64_C(0x9e3779b97f4a7c15) + i;

    word ^= word >> 29;
    word *= UINT64_C(0xbf58476d1ce4e5b9);
    return (unsigned char)(word >> 32);
}

void *fill(unsigned char *buffer, size_t length, unsigned key)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        buffer[i] = content(key, i);
    }
    return buffer;
}

void check(const unsigned char *buffer, size_t length, unsigned key)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        if (buffer[i] != content(key, i)) {
            fail("byte %zu of %zu of message %u is wrong", i, length, key);
        }
    }
}

void *fresh(int room)
{
    memset(rooms[room], UNTOUCHED, LONGER);
    return rooms[room];
}

void check_rest(const unsigned char *buffer, size_t length)
{
    size_t i;

    for (i = length; i < LONGER; ++i) {
        if (buffer[i] != UNTOUCHED) {
            fail("byte %zu behind a message of %zu was written", i, length);
        }
    }
}

void check_status(MPI_Status *status, int source, int tag, int length)
{
    int count;

    MPI_Get_count(status, MPI_BYTE, &count);
    if ((status->MPI_SOURCE != source) || (status->MPI_TAG != tag) ||
        (count != length)) {
        fail("status: source %d, tag %d, %d bytes; not %d, %d, %d",
             status->MPI_SOURCE, status->MPI_TAG, count, source, tag, length);
    }
}

void check_nobody(MPI_Status *status)
{
#ifdef MPICH_NUMVERSION
    /* 4.0 leaves the status as it was under MPI_THREAD_MULTIPLE */
    if (threads) {
        return;
    }
#endif
    check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

/* What a checker that works must find */
void case_corrupt(void)
{
    if (!corrupt) {
        return;
    }
    if (rank == 0) {
        fill(rooms[0], LONG, 1);
        rooms[0][LONG / 2] ^= 1;
        MPI_Send(rooms[0], LONG, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(rooms[0], LONG, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        check(rooms[0], LONG, 1);
    }
}

#define CASE_ROW(_name) {#_name, case_##_name},

static const struct {
    const char *name;
    void       (*run)(void);
} cases[] = {CASES(CASE_ROW)};

/* semantics [threads] [corrupt] [CASE]... */
int main(int argc, char **argv)
{
    int provided, i, k, wanted = 0, done = 0;
    MPI_Request forgotten;
    unsigned n;

    for (i = 1; i < argc; ++i) {
        threads |= !strcmp(argv[i], "threads");
        corrupt |= !strcmp(argv[i], "corrupt");
        wanted  += strcmp(argv[i], "threads") && strcmp(argv[i], "corrupt");
    }
    if (threads) {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    } else {
        MPI_Init(&argc, &argv);
        provided = MPI_THREAD_SINGLE;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
    CHECK((num_ranks >= 2) && (num_ranks < 256));
    CHECK(!threads || (provided == MPI_THREAD_MULTIPLE));
    for (i = 0; i < NUM_ROOMS; ++i) {
        rooms[i] = malloc(LONGER);
    }
    for (n = 0; n < sizeof(cases) / sizeof(*cases); ++n) {
        for (k = 1; (wanted > 0) && (k < argc); ++k) {
            if (!strcmp(argv[k], cases[n].name)) {
                break;
            }
        }
        if ((wanted > 0) && (k == argc)) {
            continue;
        }
        current = cases[n].name;
        cases[n].run();
        MPI_Barrier(MPI_COMM_WORLD);
        ++done;
    }
    /* A slip: freed, and nothing ever comes for it */
    MPI_Irecv(rooms[0], LONG, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
              MPI_COMM_WORLD, &forgotten);
    MPI_Request_free(&forgotten);
    if (rank == 0) {
        printf("semantics: %d cases, %d ranks, OK\n", done, num_ranks);
    }
    MPI_Finalize();
    for (i = 0; i < NUM_ROOMS; ++i) {
        free(rooms[i]);
    }
    return 0;
}

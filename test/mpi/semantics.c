/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * What MPI promises about point-to-point messages, long and short ones mixed:
 * order, wildcards, probes, status, truncation, cancel, communicators, types,
 * all ways to complete, threads. Every byte is checked. It knows nothing of
 * what carries the messages, and passes with the MPI alone.
 */

#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* MPICH's MPI_STATUSES_IGNORE is an address, which the compiler takes for an
 * array that is too short */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

#define SHORT    100           /* bytes */
#define ODD      67            /* as long as a header of the layer's */
#define LONG     (1024 * 1024)
#define LONGER   (3 * 1024 * 1024 + 12345)
#define NUM_ROOMS 8

static int rank, num_ranks, corrupt, threads;
static unsigned char *rooms[NUM_ROOMS]; /* LONGER bytes each */
static const char *current = "start";


__attribute__((noreturn, format(printf, 1, 2)))
static void fail(const char *format, ...)
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

#define CHECK(_condition) \
    do { \
        if (!(_condition)) { \
            fail("line %d: %s", __LINE__, #_condition); \
        } \
    } while (0)

static unsigned char content(unsigned key, size_t i)
{
    uint64_t word = (key + 1) * UINT64_C(0x9e3779b97f4a7c15) + i;

    word ^= word >> 29;
    word *= UINT64_C(0xbf58476d1ce4e5b9);
    return (unsigned char)(word >> 32);
}

static void *fill(unsigned char *buffer, size_t length, unsigned key)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        buffer[i] = content(key, i);
    }
    return buffer;
}

/* The first `length` bytes are those of `key`; the next ones were not touched */
static void check(const unsigned char *buffer, size_t length, unsigned key)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        if (buffer[i] != content(key, i)) {
            fail("byte %zu of %zu of message %u is wrong", i, length, key);
        }
    }
}

#define UNTOUCHED 0xa5

static void *fresh(int room)
{
    memset(rooms[room], UNTOUCHED, LONGER);
    return rooms[room];
}

static void check_rest(const unsigned char *buffer, size_t length)
{
    size_t i;

    for (i = length; i < LONGER; ++i) {
        if (buffer[i] != UNTOUCHED) {
            fail("byte %zu behind a message of %zu was written", i, length);
        }
    }
}

static void check_status(MPI_Status *status, int source, int tag, int length)
{
    int count;

    MPI_Get_count(status, MPI_BYTE, &count);
    if ((status->MPI_SOURCE != source) || (status->MPI_TAG != tag) ||
        (count != length)) {
        fail("status: source %d, tag %d, %d bytes; not %d, %d, %d",
             status->MPI_SOURCE, status->MPI_TAG, count, source, tag, length);
    }
}

/* MPICH 4.0 leaves the status as it was under MPI_THREAD_MULTIPLE */
static void check_nobody(MPI_Status *status)
{
#ifdef MPICH_NUMVERSION
    if (threads) {
        return;
    }
#endif
    check_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

/* --- Cases: rank 0 sends to rank 1 unless it says otherwise --------------- */

static const int mixed[] = {LONG, SHORT, ODD, LONGER, 1, LONG, ODD, SHORT};
#define NUM_MIXED ((int)(sizeof(mixed) / sizeof(*mixed)))

/* One tag: the order of sending, whatever the length */
static void case_order(void)
{
    MPI_Status status;
    int i;

    for (i = 0; i < NUM_MIXED; ++i) {
        if (rank == 0) {
            MPI_Send(fill(rooms[0], mixed[i], i), mixed[i], MPI_BYTE, 1, 5,
                     MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Recv(fresh(0), LONGER, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
                     MPI_COMM_WORLD, &status);
            check_status(&status, 0, 5, mixed[i]);
            check(rooms[0], mixed[i], i);
            check_rest(rooms[0], mixed[i]);
        }
    }
}

/* All under way at once, received by tags from the last to the first */
static void case_tags(void)
{
    MPI_Request requests[NUM_MIXED];
    MPI_Status status;
    int i;

    for (i = 0; (i < NUM_MIXED) && (rank == 0); ++i) {
        MPI_Isend(fill(rooms[i], mixed[i], i), mixed[i], MPI_BYTE, 1, i,
                  MPI_COMM_WORLD, &requests[i]);
    }
    for (i = NUM_MIXED - 1; (i >= 0) && (rank == 1); --i) {
        MPI_Recv(fresh(0), LONGER, MPI_BYTE, 0, i, MPI_COMM_WORLD, &status);
        check_status(&status, 0, i, mixed[i]);
        check(rooms[0], mixed[i], i);
    }
    if (rank == 0) {
        MPI_Waitall(NUM_MIXED, requests, MPI_STATUSES_IGNORE);
    }
}

/* Some or all of the receives complete, in one of many ways. The ways that take
 * one by one begin with the last of the @a left ones.
 * @return How many have completed; which ones, and how, is written down. */
static int posted_complete(int way, int left, MPI_Request *requests,
                           int *indices, MPI_Status *statuses)
{
    int count = 1;
    int i, flag;

    switch (way) {
    case 0:
    case 5:
        flag = 1;
        if (way == 0) {
            MPI_Waitall(NUM_MIXED, requests, statuses);
        } else {
            MPI_Testall(NUM_MIXED, requests, &flag, statuses);
        }
        for (i = 0; i < NUM_MIXED; ++i) {
            indices[i] = i;
        }
        return flag ? NUM_MIXED : 0;
    case 1:
        MPI_Waitany(NUM_MIXED, requests, &indices[0], &statuses[0]);
        return 1;
    case 2:
        MPI_Waitsome(NUM_MIXED, requests, &count, indices, statuses);
        return count;
    case 3:
        MPI_Testany(NUM_MIXED, requests, &indices[0], &flag, &statuses[0]);
        return flag;
    case 4:
        MPI_Testsome(NUM_MIXED, requests, &count, indices, statuses);
        return count;
    case 6:
        indices[0] = left - 1;
        MPI_Wait(&requests[left - 1], &statuses[0]);
        return 1;
    default:
        indices[0] = left - 1;
        MPI_Request_get_status(requests[left - 1], &flag, &statuses[0]);
        if (!flag) {
            return 0;
        }
        check_status(&statuses[0], 0, 9, mixed[left - 1]);
        MPI_Test(&requests[left - 1], &flag, &statuses[0]);
        CHECK(flag);
        return 1;
    }
}

/* Receives posted first, completed in many ways */
static void case_posted(int way)
{
    MPI_Request requests[NUM_MIXED];
    MPI_Status statuses[NUM_MIXED];
    int indices[NUM_MIXED], i, k, count, left = NUM_MIXED;

    if (rank == 1) {
        for (i = 0; i < NUM_MIXED; ++i) {
            MPI_Irecv(fresh(i), LONGER, MPI_BYTE, 0, 9, MPI_COMM_WORLD,
                      &requests[i]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        for (i = 0; i < NUM_MIXED; ++i) {
            MPI_Send(fill(rooms[0], mixed[i], i), mixed[i], MPI_BYTE, 1, 9,
                     MPI_COMM_WORLD);
        }
    }
    if (way == 0) { /* blocking sends are over though the receiver is here */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    while ((rank == 1) && (left > 0)) {
        count = posted_complete(way, left, requests, indices, statuses);
        for (k = 0; k < count; ++k) {
            i = indices[k];
            CHECK((i >= 0) && (i < NUM_MIXED));
            CHECK(requests[i] == MPI_REQUEST_NULL);
            check_status(&statuses[k], 0, 9, mixed[i]);
            check(rooms[i], mixed[i], i);
            check_rest(rooms[i], mixed[i]);
        }
        left -= count;
    }
    if (rank == 1) {
        MPI_Waitany(NUM_MIXED, requests, &i, MPI_STATUS_IGNORE);
        CHECK(i == MPI_UNDEFINED);
    }
}

static void case_waitall(void)    { case_posted(0); }
static void case_waitany(void)    { case_posted(1); }
static void case_waitsome(void)   { case_posted(2); }
static void case_testany(void)    { case_posted(3); }
static void case_testsome(void)   { case_posted(4); }
static void case_testall(void)    { case_posted(5); }
static void case_wait(void)       { case_posted(6); }
static void case_get_status(void) { case_posted(7); }

/* From all to the last, by wildcards: messages of one sender keep their order */
static void case_any_source(void)
{
    int next[256] = {0}, i, last = num_ranks - 1;
    MPI_Status status;

    if (rank != last) {
        for (i = 0; i < NUM_MIXED; ++i) {
            MPI_Send(fill(rooms[0], mixed[i], 100 * rank + i), mixed[i],
                     MPI_BYTE, last, 3, MPI_COMM_WORLD);
        }
        return;
    }
    for (i = 0; i < NUM_MIXED * last; ++i) {
        MPI_Recv(fresh(0), LONGER, MPI_BYTE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD,
                 &status);
        check_status(&status, status.MPI_SOURCE, 3,
                     mixed[next[status.MPI_SOURCE]]);
        check(rooms[0], mixed[next[status.MPI_SOURCE]],
              100 * status.MPI_SOURCE + next[status.MPI_SOURCE]);
        ++next[status.MPI_SOURCE];
    }
}

/* A probe tells the length; what is received then is what was probed for */
static void case_probe(int nonblocking)
{
    MPI_Request requests[NUM_MIXED], posted;
    MPI_Status status;
    int i, flag, count;

    if (rank == 0) {
        for (i = 0; i < NUM_MIXED; ++i) {
            MPI_Isend(fill(rooms[i], mixed[i], i), mixed[i], MPI_BYTE, 1, 2,
                      MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(NUM_MIXED, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        /* the first is matched by a receive that nobody looks at yet */
        MPI_Irecv(fresh(1), LONGER, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &posted);
        for (i = 1; i < NUM_MIXED; ++i) {
            if (nonblocking) {
                do {
                    MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag,
                               &status);
                } while (!flag);
            } else {
                MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            }
            check_status(&status, 0, 2, mixed[i]);
            MPI_Get_count(&status, MPI_BYTE, &count);
            MPI_Recv(fresh(0), count, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &status);
            check_status(&status, 0, 2, mixed[i]);
            check(rooms[0], mixed[i], i);
        }
        MPI_Wait(&posted, &status);
        check_status(&status, 0, 2, mixed[0]);
        check(rooms[1], mixed[0], 0);
    }
}

static void case_probes(void)  { case_probe(0); }
static void case_iprobes(void) { case_probe(1); }

/* Taken out of the queue, from the first; received from the last */
static void case_mprobe(void)
{
    MPI_Message messages[NUM_MIXED];
    MPI_Request requests[NUM_MIXED];
    MPI_Status status;
    int i, flag;

    if (rank == 0) {
        for (i = 0; i < NUM_MIXED; ++i) {
            MPI_Isend(fill(rooms[i], mixed[i], i), mixed[i], MPI_BYTE, 1, 2,
                      MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(NUM_MIXED, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        for (i = 0; i < NUM_MIXED; ++i) {
            if (i % 2 == 0) {
                MPI_Mprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &messages[i],
                           &status);
            } else {
                do {
                    MPI_Improbe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag,
                                &messages[i], &status);
                } while (!flag);
            }
            check_status(&status, 0, 2, mixed[i]);
        }
        for (i = NUM_MIXED - 1; i >= 0; --i) {
            if (i % 2 == 0) {
                MPI_Mrecv(fresh(0), LONGER, MPI_BYTE, &messages[i], &status);
            } else {
                MPI_Imrecv(fresh(0), LONGER, MPI_BYTE, &messages[i],
                           &requests[0]);
                MPI_Wait(&requests[0], &status);
            }
            CHECK(messages[i] == MPI_MESSAGE_NULL);
            check_status(&status, 0, 2, mixed[i]);
            check(rooms[0], mixed[i], i);
            check_rest(rooms[0], mixed[i]);
        }
    }
}

/* Both at once, and in place */
static void case_sendrecv(void)
{
    int i, to = (rank + 1) % num_ranks, from = (rank + num_ranks - 1) %
                                               num_ranks;
    MPI_Status status;

    for (i = 0; i < NUM_MIXED; ++i) {
        fill(rooms[0], mixed[i], 10 * rank + i);
        MPI_Sendrecv(rooms[0], mixed[i], MPI_BYTE, to, i, fresh(1), LONGER,
                     MPI_BYTE, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        check_status(&status, from, i, mixed[i]);
        check(rooms[1], mixed[i], 10 * from + i);
        check_rest(rooms[1], mixed[i]);
        MPI_Sendrecv_replace(rooms[0], mixed[i], MPI_BYTE, to, i, from, i,
                             MPI_COMM_WORLD, &status);
        check_status(&status, from, i, mixed[i]);
        check(rooms[0], mixed[i], 10 * from + i);
        /* one side long, the other short or nothing */
        fill(rooms[0], LONG, rank);
        MPI_Sendrecv(rooms[0], (rank % 2) ? LONG : SHORT, MPI_BYTE, to, 1,
                     fresh(1), LONGER, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                     &status);
        check_status(&status, from, 1, (from % 2) ? LONG : SHORT);
        check(rooms[1], (from % 2) ? LONG : SHORT, from);
    }
    MPI_Sendrecv(rooms[0], LONG, MPI_BYTE, MPI_PROC_NULL, 1, rooms[1], LONG,
                 MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    check_nobody(&status);
}

#if MPI_VERSION >= 4

/* Whatever entry receives what another one sends */
static void large_between(int way, int size, int to, int from)
{
    MPI_Request requests[2];
    MPI_Status status;

    fill(rooms[0], size, 20 * rank + way);
    fresh(1);
    switch (way) {
    case 0:
        MPI_Isend(rooms[0], size, MPI_BYTE, to, way, MPI_COMM_WORLD,
                  &requests[0]);
        MPI_Recv_c(rooms[1], LONGER, MPI_BYTE, from, way, MPI_COMM_WORLD,
                   &status);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        break;
    case 1:
        MPI_Irecv_c(rooms[1], LONGER, MPI_BYTE, from, MPI_ANY_TAG,
                    MPI_COMM_WORLD, &requests[0]);
        MPI_Send_c(rooms[0], size, MPI_BYTE, to, way, MPI_COMM_WORLD);
        MPI_Wait(&requests[0], &status);
        break;
    case 2:
        MPI_Sendrecv_c(rooms[0], size, MPI_BYTE, to, way, rooms[1], LONGER,
                       MPI_BYTE, from, way, MPI_COMM_WORLD, &status);
        break;
    case 3:
        MPI_Isendrecv(rooms[0], size, MPI_BYTE, to, way, rooms[1], LONGER,
                      MPI_BYTE, from, way, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], &status);
        break;
    default:
        memcpy(rooms[1], rooms[0], size);
        MPI_Isendrecv_replace_c(rooms[1], size, MPI_BYTE, to, way, from, way,
                                MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], &status);
    }
    if (way < 3) { /* MPICH alone leaves the status of the others as it was */
        check_status(&status, from, way, size);
    }
    check(rooms[1], size, 20 * from + way);
    check_rest(rooms[1], size);
}

#define LARGE_ROOM (((MPI_Count)1 << 31) + 5)

/* A room of which only the beginning is touched */
static void large_room(int size, int to, int from)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    unsigned char *room;

    room = mmap(NULL, LARGE_ROOM, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(room != MAP_FAILED);
    fill(rooms[0], size, 30 + rank);
    MPI_Irecv_c(room, LARGE_ROOM, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                &requests[0]);
    MPI_Isend_c(rooms[0], size, MPI_BYTE, to, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    check_status(&statuses[0], from, 1, size);
    check(room, size, 30 + from);
    munmap(room, LARGE_ROOM);
}

#endif

/* What MPI 4 has added: counts of 64 bits, both ways in one request */
static void case_large(void)
{
#if MPI_VERSION >= 4
    int to = (rank + 1) % num_ranks, from = (rank + num_ranks - 1) % num_ranks;
    int way, i;

    for (i = 0; i < NUM_MIXED; ++i) {
        for (way = 0; way < 5; ++way) {
            large_between(way, mixed[i], to, from);
        }
        large_room(mixed[i], to, from);
    }
    fill(rooms[0], LONG, rank); /* one side long, the other short */
    MPI_Request request;
    MPI_Isendrecv(rooms[0], (rank % 2) ? LONG : SHORT, MPI_BYTE, to, 1,
                  fresh(1), LONGER, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                  &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(rooms[1], (from % 2) ? LONG : SHORT, from);
#endif
}

/* To oneself and to nobody */
static void case_self(void)
{
    MPI_Request requests[2];
    MPI_Status status;
    int i;

    for (i = 0; i < NUM_MIXED; ++i) {
        MPI_Irecv(fresh(1), LONGER, MPI_BYTE, rank, 1, MPI_COMM_WORLD,
                  &requests[0]);
        MPI_Isend(fill(rooms[0], mixed[i], i), mixed[i], MPI_BYTE, rank, 1,
                  MPI_COMM_WORLD, &requests[1]);
        MPI_Wait(&requests[0], &status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        check_status(&status, rank, 1, mixed[i]);
        check(rooms[1], mixed[i], i);
    }
    MPI_Send(rooms[0], LONG, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Recv(rooms[0], LONG, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD,
             &status);
    check_nobody(&status);
    MPI_Irecv(rooms[0], LONG, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD,
              &requests[0]);
    MPI_Wait(&requests[0], &status);
    check_nobody(&status);
}

/* One tag in several communicators, received from the last to the first */
static void case_communicators(void)
{
    int other = (rank == 0) ? 1 : 0, i, k, size, new_rank;
    MPI_Comm comms[5];
    MPI_Request requests[5];
    MPI_Status status;
    MPI_Group world, pair;
    const int members[2] = {0, 1}, dims[1] = {2}, periods[1] = {0};

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, members, &pair);
    for (k = 0; k < 20; ++k) { /* made and freed again and again */
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
        MPI_Comm_split(MPI_COMM_WORLD, rank < 2, -rank, &comms[1]);
        MPI_Comm_create(MPI_COMM_WORLD, pair, &comms[2]);
        MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comms[3]);
        MPI_Comm_dup(comms[0], &comms[4]);
        for (i = 0; (i < 5) && (rank == 0); ++i) {
            MPI_Comm_size(comms[i], &size);
            MPI_Comm_rank(comms[i], &new_rank);
            other = (i == 1) ? size - 2 : 1; /* the order is turned round */
            MPI_Isend(fill(rooms[i], LONG + i, 10 * k + i), LONG + i, MPI_BYTE,
                      other, 4, comms[i], &requests[i]);
        }
        for (i = 4; (i >= 0) && (rank == 1); --i) {
            MPI_Comm_size(comms[i], &size);
            other = (i == 1) ? size - 1 : 0;
            MPI_Recv(fresh(0), LONGER, MPI_BYTE, MPI_ANY_SOURCE, 4, comms[i],
                     &status);
            check_status(&status, other, 4, LONG + i);
            check(rooms[0], LONG + i, 10 * k + i);
        }
        if (rank == 0) {
            MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
        }
        for (i = 0; i < 5; ++i) {
            if (comms[i] != MPI_COMM_NULL) {
                MPI_Comm_free(&comms[i]);
            }
        }
    }
    MPI_Group_free(&pair);
    MPI_Group_free(&world);
}

/* Between two groups, and merged */
static void case_inter(void)
{
    MPI_Comm half, inter, merged;
    MPI_Status status;
    int color = (rank == 0) ? 0 : 1, merged_rank;

    MPI_Comm_split(MPI_COMM_WORLD, color, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, color ? 0 : 1, 6, &inter);
    MPI_Intercomm_merge(inter, color, &merged);
    MPI_Comm_rank(merged, &merged_rank);
    CHECK(merged_rank == rank);
    if (rank == 0) {
        MPI_Send(fill(rooms[0], LONG, 1), LONG, MPI_BYTE, 0, 1, inter);
        MPI_Send(fill(rooms[0], LONG, 2), LONG, MPI_BYTE, 1, 1, merged);
    } else if (rank == 1) {
        MPI_Recv(fresh(0), LONGER, MPI_BYTE, 0, 1, inter, &status);
        check_status(&status, 0, 1, LONG);
        check(rooms[0], LONG, 1);
        MPI_Recv(fresh(0), LONGER, MPI_BYTE, 0, 1, merged, &status);
        check_status(&status, 0, 1, LONG);
        check(rooms[0], LONG, 2);
    }
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

enum { TYPE_BLOCKS = LONG / 64 };

/* Dense bytes to such with gaps, posted or not, and back; @a way from 0 to 3 */
static void types_between(int way, MPI_Datatype dense, MPI_Datatype gaps)
{
    MPI_Request request;
    MPI_Status status;
    int i, count;

    if (rank == 0) {
        fill(rooms[0], LONG, way);
        if (way % 2 == 0) {
            MPI_Send(rooms[0], 2, dense, 1, 1, MPI_COMM_WORLD);
        } else {
            memset(rooms[1], 0, 2 * LONG);
            for (i = 0; i < TYPE_BLOCKS; ++i) {
                memcpy(rooms[1] + 128 * i, rooms[0] + 64 * i, 64);
            }
            MPI_Send(rooms[1], 1, gaps, 1, 1, MPI_COMM_WORLD);
        }
    } else if (rank == 1) {
        fresh(0);
        if (way < 2) {
            MPI_Recv(rooms[0], 1, gaps, 0, 1, MPI_COMM_WORLD, &status);
        } else {
            MPI_Irecv(rooms[0], 1, gaps, 0, 1, MPI_COMM_WORLD, &request);
        }
    }
    if (way >= 2) { /* the receiver stands here while the message comes */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 1) {
        if (way >= 2) {
            MPI_Wait(&request, &status);
        }
        MPI_Get_count(&status, gaps, &count);
        CHECK(count == 1);
        for (i = 0; i < LONG; ++i) {
            if (rooms[0][i / 64 * 128 + i % 64] != content(way, i)) {
                fail("byte %d of a type with gaps", i);
            }
            CHECK((i % 64 > 0) || (i / 64 == TYPE_BLOCKS - 1) ||
                  (rooms[0][i / 64 * 128 + 64] == UNTOUCHED));
        }
    }
}

/* A part of a type, and a short one */
static void types_in_part(MPI_Datatype gaps)
{
    MPI_Request request;
    MPI_Status status;
    int count;

    if (rank == 0) {
        MPI_Send(fill(rooms[0], LONG / 2, 7), LONG / 2, MPI_BYTE, 1, 1,
                 MPI_COMM_WORLD);
        MPI_Send(fill(rooms[0], ODD, 8), ODD, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Irecv(fresh(0), 1, gaps, 0, 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        MPI_Get_elements(&status, MPI_BYTE, &count);
        CHECK(count == LONG / 2);
        CHECK(rooms[0][(LONG / 2 - 64) * 2 + 63] == content(7, LONG / 2 - 1));
        MPI_Recv(fresh(0), 1, gaps, 0, 1, MPI_COMM_WORLD, &status);
        check(rooms[0], 64, 8);
        CHECK(rooms[0][128 + 2] == content(8, ODD - 1));
        CHECK(rooms[0][128 + 3] == UNTOUCHED);
    }
}

/* Where the receiver's or the sender's bytes do not lie in one piece */
static void case_types(void)
{
    MPI_Datatype gaps, dense, pair;
    int way;

    MPI_Type_vector(TYPE_BLOCKS, 64, 128, MPI_BYTE, &gaps);
    MPI_Type_contiguous(LONG / 16, MPI_DOUBLE, &pair);
    MPI_Type_dup(pair, &dense);
    MPI_Type_commit(&gaps);
    MPI_Type_commit(&dense);
    MPI_Type_commit(&pair);
    for (way = 0; way < 4; ++way) {
        types_between(way, dense, gaps);
    }
    types_in_part(gaps);
    MPI_Type_free(&gaps);
    MPI_Type_free(&dense);
    MPI_Type_free(&pair);
}

/* Too little room: the error, and life goes on for both */
static void case_truncate(void)
{
    static const int room[] = {ODD, SHORT, LONG - 1};
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int i, result, class;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* Waitall */
    for (i = 0; i < 3; ++i) {
        if (rank == 0) {
            MPI_Send(fill(rooms[0], LONG, i), LONG, MPI_BYTE, 1, 1, comm);
            MPI_Send(fill(rooms[0], LONG, i), LONG, MPI_BYTE, 1, 1, comm);
            MPI_Send(fill(rooms[0], LONG, i), LONG, MPI_BYTE, 1, 2, comm);
        } else if (rank == 1) {
            result = MPI_Recv(fresh(0), room[i], MPI_BYTE, 0, 1, comm,
                              &statuses[0]);
            MPI_Error_class(result, &class);
            CHECK(class == MPI_ERR_TRUNCATE);
            check_rest(rooms[0], room[i]);
            MPI_Irecv(fresh(0), room[i], MPI_BYTE, 0, 1, comm, &requests[0]);
            MPI_Irecv(fresh(1), LONG, MPI_BYTE, 0, 2, comm, &requests[1]);
            /* one alone: of several, Open MPI may lose those that are not over
             * when the first has failed */
            result = MPI_Waitall(1, requests, statuses);
            MPI_Error_class(result, &class);
            CHECK(class == MPI_ERR_IN_STATUS);
            MPI_Error_class(statuses[0].MPI_ERROR, &class);
            CHECK(class == MPI_ERR_TRUNCATE);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            check_rest(rooms[0], room[i]);
            check(rooms[1], LONG, i);
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
}

static void case_cancel(void)
{
    MPI_Request request;
    MPI_Status status;
    int cancelled;

    if (rank == 1) {
        MPI_Irecv(fresh(0), LONG, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled);
        check_rest(rooms[0], 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Send(fill(rooms[0], LONG, 3), LONG, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(fresh(0), LONG, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status);
        check(rooms[0], LONG, 3);
    }
}

/* All modes of sending */
static void case_modes(void)
{
    static char attached[4 * LONG];
    MPI_Request requests[4];
    void *detached;
    int i, k, size;

    MPI_Buffer_attach(attached, sizeof(attached));
    for (k = 0; k < NUM_MIXED; ++k) {
        if (mixed[k] == LONGER) {
            continue;
        }
        if (rank == 1) {
            for (i = 0; i < 7; ++i) {
                MPI_Irecv(fresh(i), LONGER, MPI_BYTE, 0, i, MPI_COMM_WORLD,
                          &requests[0]);
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
                check(rooms[i], mixed[k], i);
                check_rest(rooms[i], mixed[k]);
            }
            continue;
        }
        for (i = 0; i < 7; ++i) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank != 0) {
                continue;
            }
            fill(rooms[0], mixed[k], i);
            requests[0] = MPI_REQUEST_NULL;
            switch (i) {
            case 0: MPI_Ssend(rooms[0], mixed[k], MPI_BYTE, 1, i,
                              MPI_COMM_WORLD); break;
            case 1: MPI_Rsend(rooms[0], mixed[k], MPI_BYTE, 1, i,
                              MPI_COMM_WORLD); break;
            case 2: MPI_Bsend(rooms[0], mixed[k], MPI_BYTE, 1, i,
                              MPI_COMM_WORLD); break;
            case 3: MPI_Issend(rooms[0], mixed[k], MPI_BYTE, 1, i,
                               MPI_COMM_WORLD, &requests[0]); break;
            case 4: MPI_Irsend(rooms[0], mixed[k], MPI_BYTE, 1, i,
                               MPI_COMM_WORLD, &requests[0]); break;
            case 5: MPI_Ibsend(rooms[0], mixed[k], MPI_BYTE, 1, i,
                               MPI_COMM_WORLD, &requests[0]); break;
            default: MPI_Send_init(rooms[0], mixed[k], MPI_BYTE, 1, i,
                                   MPI_COMM_WORLD, &requests[0]);
                     MPI_Start(&requests[0]);
            }
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
            if (i == 6) {
                MPI_Request_free(&requests[0]);
            }
        }
    }
    MPI_Buffer_detach(&detached, &size);
}

/* A send ends in synchronous mode no earlier than its receive begins */
static void case_synchronous(void)
{
    MPI_Request request;
    int flag, i, go;

    if (rank == 0) {
        MPI_Issend(fill(rooms[0], LONG, 1), LONG, MPI_BYTE, 1, 1,
                   MPI_COMM_WORLD, &request);
        for (i = 0; i < 1000; ++i) {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag);
        }
        MPI_Send(&flag, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(&go, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(fresh(0), LONG, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        check(rooms[0], LONG, 1);
    }
}

/* Persistent receives, started together, among others that are idle */
static void case_persistent(void)
{
    MPI_Request requests[4];
    MPI_Status status;
    int i, k, index;

    if (rank == 1) {
        for (i = 0; i < 4; ++i) {
            MPI_Recv_init(rooms[i], LONGER, MPI_BYTE, 0, i, MPI_COMM_WORLD,
                          &requests[i]);
        }
    }
    for (k = 0; k < NUM_MIXED; ++k) {
        if (rank == 1) {
            for (i = 0; i < 3; ++i) {
                fresh(i);
            }
            MPI_Startall(3, requests);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (i = 0; (i < 3) && (rank == 0); ++i) {
            MPI_Send(fill(rooms[0], mixed[k], 10 * k + i), mixed[k], MPI_BYTE,
                     1, i, MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (i = 0; (i < 3) && (rank == 1); ++i) {
            MPI_Waitany(4, requests, &index, &status);
            CHECK((index >= 0) && (index < 3));
            check_status(&status, 0, index, mixed[k]);
            check(rooms[index], mixed[k], 10 * k + index);
            check_rest(rooms[index], mixed[k]);
        }
        if (rank == 1) {
            MPI_Waitany(4, requests, &index, &status);
            CHECK(index == MPI_UNDEFINED);
        }
    }
    for (i = 0; (i < 4) && (rank == 1); ++i) {
        MPI_Request_free(&requests[i]);
    }
}

/* Freed before they are over */
static void case_freed(void)
{
    MPI_Request request;
    int done;

    if (rank == 0) {
        MPI_Isend(fill(rooms[0], LONG, 1), LONG, MPI_BYTE, 1, 1, MPI_COMM_WORLD,
                  &request);
        MPI_Request_free(&request);
        CHECK(request == MPI_REQUEST_NULL);
        MPI_Recv(&done, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        usleep(20000);
        MPI_Recv(fresh(0), LONG, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        check(rooms[0], LONG, 1);
        MPI_Send(&rank, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    }
}

/* More requests than fit a small array, both ways at once */
static void case_many(void)
{
    enum { COUNT = 64, LENGTH = 300000 };
    unsigned char *send = malloc((size_t)COUNT * LENGTH);
    unsigned char *receive = malloc((size_t)COUNT * LENGTH);
    MPI_Request requests[2 * COUNT];
    int i, to = (rank + 1) % num_ranks, from = (rank + num_ranks - 1) %
                                               num_ranks;

    for (i = 0; i < COUNT; ++i) {
        MPI_Irecv(receive + (size_t)i * LENGTH, LENGTH, MPI_BYTE, from,
                  i % 3, MPI_COMM_WORLD, &requests[i]);
        MPI_Isend(fill(send + (size_t)i * LENGTH, LENGTH, 100 * rank + i),
                  LENGTH, MPI_BYTE, to, i % 3, MPI_COMM_WORLD,
                  &requests[COUNT + i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(2 * COUNT, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < COUNT; ++i) {
        check(receive + (size_t)i * LENGTH, LENGTH, 100 * from + i);
    }
    free(send);
    free(receive);
}

/* --- Threads -------------------------------------------------------------- */

static void *thread_main(void *arg)
{
    int number = (int)(intptr_t)arg, other = 1 - rank, i, count;
    unsigned char *send = malloc(LONG), *receive = malloc(LONG);
    MPI_Request requests[2];
    MPI_Message message;
    MPI_Status status;

    for (i = 0; i < 12; ++i) {
        fill(send, LONG, 1000 * rank + 100 * number + i);
        memset(receive, UNTOUCHED, LONG);
        MPI_Isend(send, LONG - i, MPI_BYTE, other, number, MPI_COMM_WORLD,
                  &requests[0]);
        if (i % 3 == 0) {
            MPI_Recv(receive, LONG, MPI_BYTE, other, number, MPI_COMM_WORLD,
                     &status);
        } else if (i % 3 == 1) {
            MPI_Irecv(receive, LONG, MPI_BYTE, MPI_ANY_SOURCE, number,
                      MPI_COMM_WORLD, &requests[1]);
            MPI_Wait(&requests[1], &status);
        } else {
            MPI_Mprobe(other, number, MPI_COMM_WORLD, &message, &status);
            check_status(&status, other, number, LONG - i);
            MPI_Get_count(&status, MPI_BYTE, &count);
            MPI_Mrecv(receive, count, MPI_BYTE, &message, &status);
        }
        check_status(&status, other, number, LONG - i);
        check(receive, LONG - i, 1000 * other + 100 * number + i);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    free(send);
    free(receive);
    return NULL;
}

static void case_threads(void)
{
    pthread_t ids[4];
    int i;

    if (!threads || (rank > 1)) {
        return;
    }
    for (i = 0; i < 4; ++i) {
        pthread_create(&ids[i], NULL, thread_main, (void*)(intptr_t)i);
    }
    for (i = 0; i < 4; ++i) {
        pthread_join(ids[i], NULL);
    }
}

/* What a checker that works must find */
static void case_corrupt(void)
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

#define CASE(_name) {#_name, case_##_name}

static const struct {
    const char *name;
    void       (*run)(void);
} cases[] = {
    CASE(order), CASE(tags), CASE(waitall), CASE(waitany), CASE(waitsome),
    CASE(testany), CASE(testsome), CASE(testall), CASE(wait), CASE(get_status),
    CASE(any_source), CASE(probes), CASE(iprobes), CASE(mprobe), CASE(sendrecv),
    CASE(large), CASE(self), CASE(communicators), CASE(inter), CASE(types), CASE(truncate),
    CASE(cancel), CASE(modes), CASE(synchronous), CASE(persistent), CASE(freed),
    CASE(many), CASE(threads), CASE(corrupt)
};

/* semantics [threads] [corrupt] [CASE]... */
int main(int argc, char **argv)
{
    int provided, i, k, wanted = 0, done = 0;
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
    if (rank == 0) {
        printf("semantics: %d cases, %d ranks, OK\n", done, num_ranks);
    }
    for (i = 0; i < NUM_ROOMS; ++i) {
        free(rooms[i]);
    }
    MPI_Finalize();
    return 0;
}

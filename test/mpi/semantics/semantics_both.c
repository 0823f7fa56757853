/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/* Both ways at once: in one call, in one request, with oneself */

#include "semantics.h"

#include <string.h>
#include <sys/mman.h>

/* Both at once, and in place */
void case_sendrecv(void)
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
void case_large(void)
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
void case_self(void)
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

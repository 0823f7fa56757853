/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/* Communicators: many of them, and between groups */

#include "semantics.h"

/* One tag in several communicators, received from the last to the first */
void case_communicators(void)
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
void case_inter(void)
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

static const int freed_lengths[] = {SHORT, ODD, ODD, LONG};
static const int freed_rooms[]   = {LONGER, ODD, SHORT, LONG};

/* Persistent requests are started when their communicator has been freed */
static void start_freed(void)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Comm comm, next;
    int i, round;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (i = 0; (i < 4) && (rank == 1); ++i) {
        MPI_Recv_init(rooms[i], freed_rooms[i], MPI_BYTE, 0, i, comm,
                      &requests[i]);
    }
    for (i = 0; (i < 4) && (rank == 0); ++i) {
        (i % 2) ? MPI_Send_init(rooms[i], freed_lengths[i], MPI_BYTE, 1, i,
                                comm, &requests[i]) :
                  MPI_Ssend_init(rooms[i], freed_lengths[i], MPI_BYTE, 1, i,
                                 comm, &requests[i]);
    }
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_SELF, &next);
    for (round = 0; (round < 3) && (rank < 2); ++round) {
        for (i = 0; i < 4; ++i) {
            (rank == 0) ? fill(rooms[i], freed_lengths[i], round + i) : fresh(i);
        }
        MPI_Startall(4, requests);
        MPI_Waitall(4, requests, statuses);
        for (i = 0; (i < 4) && (rank == 1); ++i) {
            check_status(&statuses[i], 0, i, freed_lengths[i]);
            check(rooms[i], freed_lengths[i], round + i);
        }
    }
    for (i = 0; (i < 4) && (rank < 2); ++i) {
        MPI_Request_free(&requests[i]);
    }
    MPI_Comm_free(&next);
}

/* A communicator may be freed while messages of it are on their way, and others be
 * made of its memory: posted receives of all kinds, and sends */
void case_freed_comm(void)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Comm comm, next;
    int i, round;

    for (round = 0; round < 10; ++round) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (i = 0; (i < 4) && (rank == 1); ++i) {
            MPI_Irecv(fresh(i), freed_rooms[i], MPI_BYTE,
                      (round % 2) ? MPI_ANY_SOURCE : 0, i, comm, &requests[i]);
        }
        for (i = 0; (i < 4) && (rank == 0); ++i) {
            MPI_Isend(fill(rooms[i], freed_lengths[i], round + i), freed_lengths[i],
                      MPI_BYTE, 1, i, comm, &requests[i]);
        }
        (round % 4 < 2) ? MPI_Comm_free(&comm) : MPI_Comm_disconnect(&comm);
        MPI_Comm_dup(MPI_COMM_SELF, &next);
        if (rank < 2) {
            MPI_Waitall(4, requests, statuses);
        }
        for (i = 0; (i < 4) && (rank == 1); ++i) {
            check_status(&statuses[i], 0, i, freed_lengths[i]);
            check(rooms[i], freed_lengths[i], round + i);
        }
        MPI_Comm_free(&next);
    }
    start_freed();
}

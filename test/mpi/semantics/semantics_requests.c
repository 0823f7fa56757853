/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/* How requests begin and end: all ways to complete, errors, cancel, free */

#include "semantics.h"

#include <stdlib.h>
#include <unistd.h>

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

void case_waitall(void)    { case_posted(0); }
void case_waitany(void)    { case_posted(1); }
void case_waitsome(void)   { case_posted(2); }
void case_testany(void)    { case_posted(3); }
void case_testsome(void)   { case_posted(4); }
void case_testall(void)    { case_posted(5); }
void case_wait(void)       { case_posted(6); }
void case_get_status(void) { case_posted(7); }

/* Too little room: the error, and life goes on for both */
void case_truncate(void)
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

void case_cancel(void)
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

/* Persistent receives, started together, among others that are idle */
void case_persistent(void)
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
void case_freed(void)
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
void case_many(void)
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

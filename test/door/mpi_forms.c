/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Two ranks, in each form of MPI's point-to-point messages and a window: what
 * arrived is checked here, and printed by rank 0 as one sum. Rank 0's last line
 * tells how many messages the program itself sent.
 */

#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COUNT 40000
#define ROUNDS    5

static int rank;
static double data[MAX_COUNT], room[MAX_COUNT];
static uint64_t sum;
static int num_sent;


static void fill(int salt)
{
    int i;

    for (i = 0; i < MAX_COUNT; ++i) {
        data[i] = i * 3 + salt;
        room[i] = -1;
    }
}

static void verify(int count, int salt, const char *form)
{
    int i;

    for (i = 0; i < count; ++i) {
        if (room[i] != i * 3 + salt) {
            fprintf(stderr, "mpi_forms: %s: wrong at %d of %d\n", form, i,
                    count);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        sum = sum * 31 + (uint64_t)room[i];
    }
}

static void send_and_receive(int count, int salt)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Message message;
    int other = !rank;

    fill(salt);
    MPI_Irecv(room, count, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data, count, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    verify(count, salt, "isend");

    fill(salt + 1);
    MPI_Isend(data, count, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv(room, count, MPI_DOUBLE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    verify(count, salt + 1, "recv");

    fill(salt + 2);
    MPI_Issend(data, count, MPI_DOUBLE, other, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Mprobe(other, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(room, count, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    verify(count, salt + 2, "mrecv");
    num_sent += 3;
}

static void persistent(int count, int salt)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int i;

    MPI_Recv_init(room, count, MPI_DOUBLE, !rank, 4, MPI_COMM_WORLD,
                  &requests[0]);
    MPI_Send_init(data, count, MPI_DOUBLE, !rank, 4, MPI_COMM_WORLD,
                  &requests[1]);
    for (i = 0; i < ROUNDS; ++i) {
        fill(salt + i);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        verify(count, salt + i, "persistent");
        ++num_sent;
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* Every second double: not contiguous for UCX */
static void strided(int count, int salt)
{
    MPI_Request request;
    MPI_Datatype type;
    int i;

    MPI_Type_vector(count / 2, 1, 2, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    fill(salt);
    MPI_Irecv(room, 1, type, !rank, 5, MPI_COMM_WORLD, &request);
    MPI_Send(data, 1, type, !rank, 5, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (i = 1; i < count; i += 2) {
        if (room[i] != -1) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        room[i] = i * 3 + salt;
    }
    verify(count - (count % 2), salt, "strided");
    MPI_Type_free(&type);
    ++num_sent;
}

static void cancelled(void)
{
    MPI_Request request;
    MPI_Status status;
    int is_cancelled;

    MPI_Irecv(room, MAX_COUNT, MPI_DOUBLE, !rank, 6, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &is_cancelled);
    sum = sum * 31 + (uint64_t)is_cancelled;
}

/* What comes is shorter than what was posted, and once longer */
static void other_lengths(int salt)
{
    MPI_Request request;
    MPI_Status status;
    int count, code;

    fill(salt);
    MPI_Irecv(room, MAX_COUNT, MPI_DOUBLE, !rank, 7, MPI_COMM_WORLD, &request);
    MPI_Send(data, 100, MPI_DOUBLE, !rank, 7, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    verify(count, salt, "short");

    MPI_Irecv(room, 1000, MPI_DOUBLE, !rank, 8, MPI_COMM_WORLD, &request);
    MPI_Send(data, 1001, MPI_DOUBLE, !rank, 8, MPI_COMM_WORLD);
    code = MPI_Wait(&request, &status);
    sum  = sum * 31 + (uint64_t)(code != MPI_SUCCESS);
    num_sent += 2;
}

static void window(int salt)
{
    MPI_Win win;

    fill(salt);
    MPI_Win_create(room, sizeof(room), sizeof(double), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(data, MAX_COUNT, MPI_DOUBLE, !rank, 0, MAX_COUNT, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    verify(MAX_COUNT, salt, "put");
    memset(data, 0, sizeof(data));
    MPI_Get(data, MAX_COUNT, MPI_DOUBLE, !rank, 0, MAX_COUNT, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    memcpy(room, data, sizeof(room));
    verify(MAX_COUNT, salt, "get");
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    static const int counts[] = {1, 500, 3000, MAX_COUNT};
    unsigned i;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        send_and_receive(counts[i], 100 * i);
        persistent(counts[i], 100 * i + 10);
        strided(counts[i], 100 * i + 20);
    }
    cancelled();
    other_lengths(1000);
    window(2000);
    if (rank == 0) {
        printf("sum %016llx\nsent %d\n", (unsigned long long)sum, num_sent);
    }
    MPI_Finalize();
    return 0;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/* Modes of sending */

#include "semantics.h"

/* All modes of sending */
void case_modes(void)
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
void case_synchronous(void)
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

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/* Types whose bytes do not lie in one piece */

#include "semantics.h"

#include <string.h>

enum { TYPE_BLOCKS = LONG / 64 };

/* Dense bytes to such with gaps, posted or not, with a send or not, and back; @a way from
 * 0 to 5 */
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
        } else if (way >= 4) {
            MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 1, rooms[0], 1, gaps,
                         0, 1, MPI_COMM_WORLD, &status);
        } else {
            MPI_Irecv(rooms[0], 1, gaps, 0, 1, MPI_COMM_WORLD, &request);
        }
    }
    if ((way == 2) || (way == 3)) { /* the receiver stands here while it comes */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 1) {
        if ((way == 2) || (way == 3)) {
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
void case_types(void)
{
    MPI_Datatype gaps, numbers, dense, pair;
    int way;

    MPI_Type_vector(TYPE_BLOCKS, 64, 128, MPI_BYTE, &gaps);
    MPI_Type_vector(TYPE_BLOCKS, 8, 16, MPI_DOUBLE, &numbers);
    MPI_Type_contiguous(LONG / 16, MPI_DOUBLE, &pair);
    MPI_Type_dup(pair, &dense);
    MPI_Type_commit(&gaps);
    MPI_Type_commit(&numbers);
    MPI_Type_commit(&dense);
    MPI_Type_commit(&pair);
    for (way = 0; way < 6; ++way) {
        types_between(way, dense, gaps);
        types_between(way, dense, numbers);
    }
    types_in_part(gaps);
    MPI_Type_free(&gaps);
    MPI_Type_free(&numbers);
    MPI_Type_free(&dense);
    MPI_Type_free(&pair);
}

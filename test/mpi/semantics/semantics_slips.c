/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/* What programs do that they should not, and MPIs bear: several receives into
 * one memory, too little room, and what lies near the lengths that matter */

#include "semantics.h"

#include <string.h>

#define MAX_SAME 64

/* Lengths around what the layer knows: of a header, of a long message */
static const int near[] = {0, 1, ODD - 1, ODD, ODD + 1, 4096, 262143, 262144,
                           LONG};
enum { NUM_NEAR = sizeof(near) / sizeof(*near) };

/* @a count receives at places that are @a apart, while the receiver stands in a
 * barrier; all messages are alike, as those of benchmarks are */
static void same_memory(int count, int length, int apart, int is_sent)
{
    MPI_Request requests[MAX_SAME + 1];
    unsigned char *room = rooms[1];
    int i, k;

    if (rank == 0) {
        fill(rooms[0], length, 1);
        for (i = 0; i < count; ++i) {
            MPI_Isend(rooms[0], length, MPI_BYTE, 1, 6, MPI_COMM_WORLD,
                      &requests[i]);
        }
        MPI_Recv(fresh(2), length, MPI_BYTE, 1, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        fresh(1);
        if (is_sent) {
            room = fill(room, length, 1);
        }
        for (i = 0; i < count; ++i) {
            MPI_Irecv(room + i * apart, length, MPI_BYTE, 0, 6, MPI_COMM_WORLD,
                      &requests[i]);
        }
        MPI_Isend(room, length, MPI_BYTE, 0, 7, MPI_COMM_WORLD,
                  &requests[count]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Waitall(count + 1, requests, MPI_STATUSES_IGNORE);
        for (k = 0; (k < length) && (apart == 0); ++k) {
            CHECK(room[k] == content(1, k));
        }
        check_rest(room, length + (count - 1) * apart);
    }
}

void case_same(void)
{
    static const int counts[] = {2, 3, MAX_SAME};
    int i, k;

    for (i = 0; i < NUM_NEAR; ++i) {
        for (k = 0; k < 3; ++k) {
            same_memory(counts[k], near[i], 0, k % 2);
        }
        same_memory(3, near[i], 1, 0);
        same_memory(3, near[i], ODD, 0);
    }
}

/* As the bandwidth tests of IMB (Biband) and OSU (bibw) have it: pairs of ranks,
 * both ways, a window from one buffer and to one buffer, then a word each */
void case_bandwidth(void)
{
    int other = (rank < num_ranks / 2) ? rank + num_ranks / 2 :
                                         rank - num_ranks / 2;
    MPI_Request requests[2 * MAX_SAME];
    int i, k, round, word = 0;

    if ((num_ranks % 2) != 0) {
        return;
    }
    for (k = 1; k <= 4 * LONG; k *= 4) {
        fill(rooms[0], k / 2, k);
        for (round = 0; round < 2; ++round) {
            fresh(1);
            for (i = 0; i < MAX_SAME; ++i) {
                MPI_Irecv(rooms[1], k / 2, MPI_BYTE, other, 10, MPI_COMM_WORLD,
                          &requests[i]);
            }
            for (i = 0; i < MAX_SAME; ++i) {
                MPI_Isend(rooms[0], k / 2, MPI_BYTE, other, 10, MPI_COMM_WORLD,
                          &requests[MAX_SAME + i]);
            }
            MPI_Waitall(2 * MAX_SAME, requests, MPI_STATUSES_IGNORE);
            check(rooms[1], k / 2, k);
            check_rest(rooms[1], k / 2);
            MPI_Sendrecv(&k, 1, MPI_INT, other, 11, &word, 1, MPI_INT, other,
                         11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(word == k);
        }
    }
}

/* One that blocks after one that does not, of one memory and any length */
void case_same_blocking(void)
{
    MPI_Request request;
    MPI_Status status;
    int i, k;

    for (i = 0; i < NUM_NEAR; ++i) {
        for (k = 0; k < NUM_NEAR; ++k) {
            if (rank == 0) {
                MPI_Send(fill(rooms[0], near[i], i), near[i], MPI_BYTE, 1, 6,
                         MPI_COMM_WORLD);
                MPI_Send(fill(rooms[0], near[k], k), near[k], MPI_BYTE, 1, 6,
                         MPI_COMM_WORLD);
            } else if (rank == 1) {
                MPI_Irecv(rooms[1], near[i], MPI_BYTE, 0, MPI_ANY_TAG,
                          MPI_COMM_WORLD, &request);
                MPI_Recv(rooms[1], near[k], MPI_BYTE, 0, 6, MPI_COMM_WORLD,
                         &status);
                check_status(&status, 0, 6, near[k]);
                MPI_Wait(&request, &status);
                check_status(&status, 0, 6, near[i]);
            }
        }
    }
}

/* --- Too little room ------------------------------------------------------ */

enum { TRUNCATE_WAYS = 7 };

/* Receive with so much room, in one of several ways. @return Of the MPI */
static int receive_short(int way, int room, MPI_Comm comm)
{
    MPI_Request request, none = MPI_REQUEST_NULL;
    MPI_Status status;
    MPI_Message message;
    int result, flag = 0;

    memset(rooms[1], UNTOUCHED, room + SHORT);
    switch (way) {
    case 0:
        return MPI_Recv(rooms[1], room, MPI_BYTE, 0, 1, comm, &status);
    case 1:
        MPI_Irecv(rooms[1], room, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                  &request);
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    case 2:
        MPI_Irecv(rooms[1], room, MPI_BYTE, 0, 1, comm, &request);
        do {
            result = MPI_Test(&request, &flag, &status);
        } while (!flag && (result == MPI_SUCCESS));
        return result;
    case 3:
        return MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 1, rooms[1], room,
                            MPI_BYTE, 0, 1, comm, &status);
    case 4:
        MPI_Recv_init(rooms[1], room, MPI_BYTE, 0, 1, comm, &request);
        MPI_Start(&request);
        result = MPI_Wait(&request, &status);
        if (request != none) {
            MPI_Request_free(&request);
        }
        return result;
    case 5:
        MPI_Mprobe(0, 1, comm, &message, &status);
        return MPI_Mrecv(rooms[1], room, MPI_BYTE, &message, &status);
    default:
        MPI_Mprobe(0, 1, comm, &message, &status);
        MPI_Imrecv(rooms[1], room, MPI_BYTE, &message, &request);
        return MPI_Wait(&request, &status);
    }
}

static void truncate_one(int way, int length, int room, MPI_Comm comm)
{
    int result, class, i;

    if (rank == 0) {
        fill(rooms[0], (length > ODD) ? length : ODD, way);
        MPI_Send(rooms[0], length, MPI_BYTE, 1, 1, comm);
        MPI_Send(rooms[0], ODD, MPI_BYTE, 1, 1, comm);
    } else if (rank == 1) {
        result = receive_short(way, room, comm);
        MPI_Error_class(result, &class);
        if (class != ((length > room) ? MPI_ERR_TRUNCATE : MPI_SUCCESS)) {
            fail("way %d, %d bytes to room for %d: class %d", way, length, room,
                 class);
        }
        if (length <= room) {
            check(rooms[1], length, way);
        }
        for (i = room; i < room + SHORT; ++i) {
            CHECK(rooms[1][i] == UNTOUCHED);
        }
        CHECK(MPI_Recv(rooms[1], SHORT, MPI_BYTE, 0, 1, comm,
                       MPI_STATUS_IGNORE) == MPI_SUCCESS);
        check(rooms[1], ODD, way);
    }
}

/* The error in all ways, for all lengths and rooms, and the next message is
 * whole. Some of MPICH's functions ask the handler of MPI_COMM_WORLD; those of a
 * persistent receive do not. */
void case_truncations(void)
{
    int way, i, k;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (way = 0; way < TRUNCATE_WAYS; ++way) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, ((way == 4) && !threads) ?
                                MPI_ERRORS_ARE_FATAL : MPI_ERRORS_RETURN);
        for (i = 0; i < NUM_NEAR; ++i) {
            for (k = 0; k < NUM_NEAR; ++k) {
#ifdef OPEN_MPI
                if ((way == 6) && (near[i] > near[k])) {
                    continue; /* it crashes by itself (4.1) */
                }
#endif
                truncate_one(way, near[i], near[k], comm);
            }
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

/* --- Short ones beside long ones ------------------------------------------ */

/* Persistent sends of all lengths; a probe tells each one's own */
void case_persistent_sends(void)
{
    MPI_Request requests[NUM_NEAR];
    MPI_Status status;
    int i, round;

    for (i = 0; (i < NUM_NEAR) && (rank == 0); ++i) {
        if (i % 2) {
            MPI_Send_init(rooms[i % NUM_ROOMS], near[i], MPI_BYTE, 1, 4,
                          MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Ssend_init(rooms[i % NUM_ROOMS], near[i], MPI_BYTE, 1, 4,
                           MPI_COMM_WORLD, &requests[i]);
        }
    }
    for (round = 0; round < 3; ++round) {
        if (rank == 0) {
            for (i = 0; i < NUM_ROOMS; ++i) {
                fill(rooms[i], LONG, round);
            }
            for (i = 0; i < NUM_NEAR; ++i) { /* all at once have no order */
                MPI_Start(&requests[i]);
            }
            MPI_Waitall(NUM_NEAR, requests, MPI_STATUSES_IGNORE);
        }
        for (i = 0; (i < NUM_NEAR) && (rank == 1); ++i) {
            MPI_Probe(0, 4, MPI_COMM_WORLD, &status);
            check_status(&status, 0, 4, near[i]);
            MPI_Recv(fresh(0), near[i], MPI_BYTE, 0, 4, MPI_COMM_WORLD,
                     &status);
            check_status(&status, 0, 4, near[i]);
            check(rooms[0], near[i], round);
        }
    }
    for (i = 0; (i < NUM_NEAR) && (rank == 0); ++i) {
        MPI_Request_free(&requests[i]);
    }
}

/* What a matched probe has taken is no other receive's */
void case_taken(void)
{
    MPI_Message message;
    MPI_Request requests[2];
    MPI_Status status;
    int i;

    if (rank == 0) {
        for (i = 0; i < 3; ++i) {
            MPI_Isend(fill(rooms[i], LONG, i), (i == 1) ? LONG : ODD, MPI_BYTE,
                      1, 2, MPI_COMM_WORLD, &requests[0]);
            MPI_Request_free(&requests[0]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Irecv(fresh(0), SHORT, MPI_BYTE, 0, 2, MPI_COMM_WORLD,
                  &requests[0]);
        MPI_Mprobe(0, 2, MPI_COMM_WORLD, &message, &status);
        check_status(&status, 0, 2, LONG);
        MPI_Recv(fresh(2), SHORT, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &status);
        check_status(&status, 0, 2, ODD);
        check(rooms[2], ODD, 2);
        MPI_Imrecv(fresh(1), LONG, MPI_BYTE, &message, &requests[1]);
        MPI_Wait(&requests[1], &status);
        check_status(&status, 0, 2, LONG);
        check(rooms[1], LONG, 1);
        MPI_Wait(&requests[0], &status);
        check_status(&status, 0, 2, ODD);
        check(rooms[0], ODD, 0);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Small types with gaps and at absolute addresses, to room for few bytes */
void case_small_types(void)
{
    static int values[4];
    MPI_Datatype gaps, absolute;
    MPI_Request request;
    MPI_Status status;
    MPI_Aint at;
    int one = 1, i, count, sent[2];

    MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
    MPI_Get_address(&values[1], &at);
    MPI_Type_create_hindexed(1, &one, &at, MPI_INT, &absolute);
    MPI_Type_commit(&gaps);
    MPI_Type_commit(&absolute);
    for (i = 0; i < 2; ++i) {
        sent[0] = 10 + i, sent[1] = 20 + i;
        if (rank == 0) {
            MPI_Send(sent, 2, MPI_INT, 1, 1, MPI_COMM_WORLD);
            MPI_Send(sent, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        } else if (rank == 1) {
            memset(values, 0, sizeof(values));
            if (i == 0) {
                MPI_Recv(values, 1, gaps, 0, 1, MPI_COMM_WORLD, &status);
            } else {
                MPI_Irecv(values, 1, gaps, 0, 1, MPI_COMM_WORLD, &request);
                MPI_Wait(&request, &status);
            }
            MPI_Get_count(&status, gaps, &count);
            CHECK((count == 1) && (values[0] == 10 + i) && (values[1] == 0) &&
                  (values[2] == 20 + i) && (values[3] == 0));
            if (i == 0) {
                MPI_Recv(MPI_BOTTOM, 1, absolute, 0, 1, MPI_COMM_WORLD,
                         &status);
            } else {
                MPI_Irecv(MPI_BOTTOM, 1, absolute, 0, 1, MPI_COMM_WORLD,
                          &request);
                MPI_Wait(&request, &status);
            }
            CHECK(values[1] == 10 + i);
        }
    }
    MPI_Type_free(&gaps);
    MPI_Type_free(&absolute);
}

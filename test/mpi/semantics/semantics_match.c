/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/* Which message a receive or a probe gets */

#include "semantics.h"

/* One tag: the order of sending, whatever the length */
void case_order(void)
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
void case_tags(void)
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

/* From all to the last, by wildcards: those of one sender keep their order */
void case_any_source(void)
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

/* All under way at once, of one tag */
static void send_mixed(void)
{
    MPI_Request requests[NUM_MIXED];
    int i;

    for (i = 0; i < NUM_MIXED; ++i) {
        MPI_Isend(fill(rooms[i], mixed[i], i), mixed[i], MPI_BYTE, 1, 2,
                  MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(NUM_MIXED, requests, MPI_STATUSES_IGNORE);
}

/* A probe tells the length; what is received then is what was probed for */
static void case_probe(int nonblocking)
{
    MPI_Request posted;
    MPI_Status status;
    int i, flag, count;

    if (rank == 0) {
        send_mixed();
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

void case_probes(void)  { case_probe(0); }
void case_iprobes(void) { case_probe(1); }

/* Taken out of the queue, from the first; received from the last */
void case_mprobe(void)
{
    MPI_Message messages[NUM_MIXED];
    MPI_Request request;
    MPI_Status status;
    int i, flag;

    if (rank == 0) {
        send_mixed();
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
                           &request);
                MPI_Wait(&request, &status);
            }
            CHECK(messages[i] == MPI_MESSAGE_NULL);
            check_status(&status, 0, 2, mixed[i]);
            check(rooms[0], mixed[i], i);
            check_rest(rooms[0], mixed[i]);
        }
    }
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/* Several threads send and receive at once */

#include "semantics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

#define SHARED_TAG 9

static unsigned shared_received[NUM_ROOMS];

/* Half of the messages of one sender and tag: by receives, or by matched probes */
static void *shared_main(void *arg)
{
    unsigned char *receive = malloc(LONG);
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    int i, count;

    for (i = 0; i < NUM_ROOMS / 2; ++i) {
        if (arg != NULL) {
            MPI_Mprobe(0, SHARED_TAG, MPI_COMM_WORLD, &message, &status);
            MPI_Mrecv(receive, LONG, MPI_BYTE, &message, &status);
        } else {
            MPI_Irecv(receive, LONG, MPI_BYTE, 0, SHARED_TAG, MPI_COMM_WORLD,
                      &request);
            MPI_Wait(&request, &status);
        }
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK((count <= LONG) && (count > LONG - NUM_ROOMS));
        check(receive, count, LONG - count);
        __atomic_fetch_add(&shared_received[LONG - count], 1, __ATOMIC_RELAXED);
    }
    free(receive);
    return NULL;
}

/* A thread that takes a message has all of it and nothing else */
static void shared_messages(void)
{
    MPI_Request requests[NUM_ROOMS];
    pthread_t ids[2];
    int i;

    if (rank == 0) {
        for (i = 0; i < NUM_ROOMS; ++i) {
            MPI_Isend(fill(rooms[i], LONG, i), LONG - i, MPI_BYTE, 1,
                      SHARED_TAG, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(NUM_ROOMS, requests, MPI_STATUSES_IGNORE);
        return;
    }
    memset(shared_received, 0, sizeof(shared_received));
    for (i = 0; i < 2; ++i) {
        pthread_create(&ids[i], NULL, shared_main, (i == 0) ? NULL : &ids[i]);
    }
    for (i = 0; i < 2; ++i) {
        pthread_join(ids[i], NULL);
    }
    for (i = 0; i < NUM_ROOMS; ++i) {
        CHECK(shared_received[i] == 1);
    }
}

void case_threads(void)
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
    for (i = 0; i < 20; ++i) {
        shared_messages();
    }
}

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
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * Two processes put a word into each other's memory. The example of
 * docs/firehose.md; test/firehose/run compiles it as a user does.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucx_firehose.h>
#include <unistd.h>

static struct {
    volatile int ready[2];
    uint64_t     memory[2];
    char         address[2][4096];
} *shared;

static void barrier(ucx_firehose_h firehose, int self, int number)
{
    __sync_synchronize();
    shared->ready[self] = number;
    while (shared->ready[!self] < number) {
        ucx_firehose_progress(firehose); /* peers' misses are answered here */
        sched_yield();
    }
    __sync_synchronize();
}

static int node(int self)
{
    ucx_firehose_params_t params = {.node = self, .num_nodes = 2,
                                    .memory = 1 << 20};
    char *memory = calloc(1, 4 << 20), text[32];
    ucx_firehose_h firehose;
    const void *address;
    size_t length;

    if (ucx_firehose_open(&params, &firehose) != UCS_OK) {
        return 1;
    }
    ucx_firehose_address(firehose, &address, &length);
    memcpy(shared->address[self], address, length);
    shared->memory[self] = (uintptr_t)memory;
    barrier(firehose, self, 1);
    ucx_firehose_connect(firehose, !self, shared->address[!self]);

    sprintf(text, "what node %d put", self);
    ucx_firehose_put_nb(firehose, !self, text, shared->memory[!self] + 1000000,
                        sizeof(text), NULL, NULL);
    if (ucx_firehose_flush(firehose) != UCS_OK) {
        return 1;
    }
    barrier(firehose, self, 2);
    printf("node %d has %s\n", self, memory + 1000000);
    barrier(firehose, self, 3);
    ucx_firehose_close(firehose);
    return 0;
}

int main(void)
{
    int status;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fork() == 0) {
        return node(1);
    }
    status = node(0);
    wait(NULL);
    return status;
}

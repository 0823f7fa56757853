/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nodes.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/*
 * Random 8-byte puts over more than M, a peer that dies, and memory that is
 * released and unmapped.
 */

enum { RANDOM_PUTS = 20000, RANDOM_FLIGHT = 64 };

static uint64_t random_value(unsigned node, uint64_t word)
{
    return ucs_hash_mix(node * UCS_HASH_FACTOR + word) | 1;
}

/* Each word of each node has one writer, by its number; who has written it
 * says so in `bits`, where the owner looks */
int nodes_random(nodes_t *nodes)
{
    const uint64_t words = nodes->length / sizeof(uint64_t);
    static uint64_t values[RANDOM_FLIGHT];
    uint64_t state = nodes->self + 1, word, value, got = 0, *memory;
    unsigned i, node;

    for (i = 0; i < RANDOM_PUTS; ++i) {
        if (i % RANDOM_FLIGHT == 0) {
            nodes_flush(nodes); /* values may be written again */
        }
        state = ucs_hash_mix(state + i);
        node  = state % nodes->count;
        word  = (state >> 8) % words / nodes->count * nodes->count +
                nodes->self;
        if ((node == nodes->self) || (word >= words)) {
            continue;
        }
        values[i % RANDOM_FLIGHT] = random_value(node, word);
        nodes_put(nodes, node, &values[i % RANDOM_FLIGHT], word * 8, 8);
        nodes->bits[node * nodes->length + word] = 1;
        if (i % 100 == 0) {
            nodes_flush(nodes);
            nodes_get(nodes, node, &got, word * 8, 8);
            nodes_flush(nodes);
            NODES_CHECK(got == random_value(node, word),
                        "word %lu of node %u is %lx", word, node, got);
        }
    }
    nodes_flush(nodes);
    nodes_barrier(nodes, nodes->count);
    memory = (uint64_t*)nodes->memory;
    for (word = 0; word < words; ++word) {
        value = nodes->bits[nodes->self * nodes->length + word] ?
                        random_value(nodes->self, word) :
                        0;
        NODES_CHECK(memory[word] == value, "word %lu is %lx, not %lx", word,
                    memory[word], value);
    }
    return 0;
}

/* Puts that are waited for one by one. Each takes some turns of the scheduler
 * where other work runs beside. */
enum { KILLED_AFTER = 200 };

/* Far below the 20 s that UCX's keepalive takes by itself */
enum { KILLED_SECONDS = 12, KILLED_HANGS_SECONDS = 45 };

/* Put to the node that is about to die until that fails; nothing may hang */
static int killed_until_error(nodes_t *nodes, int is_anywhere)
{
    ucs_status_t status = UCS_OK;
    time_t killed       = 0;
    unsigned i;

    for (i = 0; !UCS_STATUS_IS_ERR(status); ++i) {
        status = nodes_move(nodes, 1, 2, nodes->memory,
                            nodes->shared->memory[2] + i % 200 * 5000, 3000);
        if ((i == KILLED_AFTER) && (nodes->self == 0)) {
            atomic_store(&nodes->shared->doomed, 1);
            if (is_anywhere) {
                kill(nodes->shared->pids[2], SIGKILL);
            }
        }
        killed = (i == KILLED_AFTER) ? time(NULL) : killed;
        nodes_progress(nodes);
    }
    printf("# node %u: %s after %u puts\n", nodes->self,
           ucs_status_string(status), i);
    NODES_CHECK((killed == 0) || (time(NULL) - killed < KILLED_SECONDS),
                "it took %ld s", (long)(time(NULL) - killed));
    return 0;
}

/* The survivors go on */
static int killed(nodes_t *nodes, int is_anywhere)
{
    size_t i;

    NODES_CHECK(nodes->count > 2, "node 2 is the one that dies");
    alarm(KILLED_HANGS_SECONDS);
    nodes_barrier(nodes, nodes->count);
    if (nodes->self == 2) {
        while (is_anywhere || !atomic_load(&nodes->shared->doomed)) {
            nodes_progress(nodes);
        }
        raise(SIGKILL);
    }
    if (killed_until_error(nodes, is_anywhere) != 0) {
        return 1;
    }
    if (nodes->self < 2) {
        for (i = 0; i < nodes->length / 4; ++i) {
            nodes->memory[i] = (char)ucs_hash_mix(i + nodes->self);
        }
        nodes_put(nodes, !nodes->self, nodes->memory, nodes->length / 2,
                  nodes->length / 4);
        ucx_firehose_flush(nodes->firehose); /* of the dead one an error */
        nodes_barrier(nodes, nodes->count - 1);
        for (i = 0; i < nodes->length / 4; ++i) {
            NODES_CHECK(nodes->memory[nodes->length / 2 + i] ==
                                (char)ucs_hash_mix(i + !nodes->self),
                        "byte %zu is wrong", i);
        }
    } else {
        nodes_barrier(nodes, nodes->count - 1);
    }
    return 0;
}

/* Outside UCX: a message that is half written stops a queue of UCX's shared
 * memory for ever, and with it a survivor */
int nodes_killed(nodes_t *nodes)
{
    return killed(nodes, 0);
}

/* A thread would be inside UCX */
void nodes_killed_before(nodes_t *nodes)
{
    if (nodes->self == 2) {
        nodes->flags &= ~UCX_FIREHOSE_FLAG_THREAD;
    }
}

int nodes_killed_anywhere(nodes_t *nodes)
{
    return killed(nodes, 1);
}

/* By turns released first, and just unmapped. What is mapped there anew is what
 * the next put writes to, as long as it begins after the peer has told */
int nodes_unmap(nodes_t *nodes)
{
    const size_t length = 64 << 10;
    const unsigned next = (nodes->self + 1) % nodes->count;
    const unsigned prev = (nodes->self + nodes->count - 1) % nodes->count;
    ucs_status_t status;
    unsigned round;
    char *memory;
    size_t i;

    memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NODES_CHECK(memory != MAP_FAILED, "mmap");
    nodes->shared->number[nodes->self] = (uintptr_t)memory;
    for (round = 0; round < 20; ++round) {
        memset(nodes->memory, round * 16 + nodes->self + 1, length);
        nodes_barrier(nodes, nodes->count);
        status = nodes_move(nodes, 1, next, nodes->memory,
                            nodes->shared->number[next], length);
        NODES_CHECK(status == UCS_OK, "put: %s", ucs_status_string(status));
        nodes_flush(nodes);
        nodes_barrier(nodes, nodes->count);
        for (i = 0; i < length; ++i) {
            NODES_CHECK(memory[i] == (char)(round * 16 + prev + 1),
                        "round %u: byte %zu is %d", round, i, memory[i]);
        }
        nodes_barrier(nodes, nodes->count);
        if (round % 2) {
            status = ucx_firehose_release(nodes->firehose, memory, length,
                                          UINT64_MAX);
            NODES_CHECK(status == UCS_OK, "release");
        }
        munmap(memory, length);
        NODES_CHECK(mmap(memory, length, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                         0) == memory, /* so that nothing else comes there */
                    "mmap");
        if (round % 2 == 0) { /* the event has taken it out: now all are told */
            status = ucx_firehose_release(nodes->firehose, memory, length,
                                          UINT64_MAX);
            NODES_CHECK(status == UCS_OK, "release");
        }
        nodes_barrier(nodes, nodes->count);
        status = nodes_move(nodes, 1, next, nodes->memory,
                            nodes->shared->number[next], 8);
        NODES_CHECK(status == UCS_ERR_INVALID_ADDR, "put to nothing: %s",
                    ucs_status_string(status));
        ucx_firehose_flush(nodes->firehose);
        nodes_barrier(nodes, nodes->count);
        NODES_CHECK(mmap(memory, length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                         0) == memory,
                    "mmap");
    }
    return 0;
}

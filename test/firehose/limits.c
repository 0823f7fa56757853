/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nodes.h"

#include <linux/capability.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A peer that lends nothing, one that may not lock as much memory as it lends,
 * and one that has children.
 */

/* @return How a put or a get of a page of the peer's memory ended */
static ucs_status_t limits_move(nodes_t *nodes, int is_put, size_t page)
{
    return nodes_move(nodes, is_put, !nodes->self, nodes->memory,
                      nodes->shared->memory[!nodes->self] + page * 4096, 100);
}

void nodes_nothing_before(nodes_t *nodes)
{
    nodes->lent *= (nodes->self != 1);
}

/* Node 1 lends nothing, and reaches for what node 0 lends */
int nodes_nothing(nodes_t *nodes)
{
    const ucs_status_t wanted = (nodes->self == 0) ? UCS_ERR_EXCEEDS_LIMIT :
                                                     UCS_OK;
    ucs_status_t status;
    unsigned i;

    NODES_CHECK(nodes->count == 2, "two nodes");
    nodes_barrier(nodes, nodes->count);
    for (i = 0; i < 20; ++i) {
        status = limits_move(nodes, i % 2, i);
        NODES_CHECK(status == wanted, "%s", ucs_status_string(status));
    }
    status = ucx_firehose_flush(nodes->firehose);
    NODES_CHECK((status == UCS_OK) || (nodes->self == 0), "flush: %s",
                ucs_status_string(status));
    nodes_barrier(nodes, nodes->count);
    return 0;
}

static int limits_lower(size_t bytes)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    struct rlimit limit = {bytes, bytes};

    if (syscall(SYS_capget, &header, data) != 0) {
        return -1;
    }
    data[CAP_IPC_LOCK / 32].effective &= ~(1u << (CAP_IPC_LOCK % 32));
    data[CAP_IPC_LOCK / 32].permitted &= ~(1u << (CAP_IPC_LOCK % 32));
    return (syscall(SYS_capset, &header, data) == 0) ?
                   setrlimit(RLIMIT_MEMLOCK, &limit) :
                   -1;
}

/* Before a domain is opened, which may ask then what it may do */
void nodes_memlock_before(nodes_t *nodes)
{
    NODES_CHECK((nodes->self == 0) || (limits_lower(nodes->lent / 4) == 0),
                "a lower limit");
}

/* Node 1 may lock a quarter of what it lends. What fails is told, what is
 * there goes on, and what was given back can be had again */
int nodes_memlock(nodes_t *nodes)
{
    const size_t pages = nodes->length / 4096;
    ucs_status_t status, refused = UCS_OK;
    size_t page, good = 0;

    NODES_CHECK(nodes->count == 2, "two nodes");
    nodes_barrier(nodes, nodes->count);
    for (page = 0; (nodes->self == 0) && (page < pages); ++page) {
        status = limits_move(nodes, 1, page);
        good  += (status == UCS_OK);
        if (status != UCS_OK) {
            refused = status;
        }
    }
    if (nodes->self == 0) {
        printf("# %zu of %zu pages, then: %s\n", good, pages,
               ucs_status_string(refused));
        NODES_CHECK((good > 0) && (refused != UCS_OK),
                    "%zu of %zu pages could be reached", good, pages);
        (void)ucx_firehose_flush(nodes->firehose); /* tells it once more */
        for (page = 0; page < good / 2; ++page) {
            status = limits_move(nodes, 0, page);
            NODES_CHECK(status == UCS_OK, "page %zu that was there: %s", page,
                        ucs_status_string(status));
        }
    }
    nodes_barrier(nodes, nodes->count);
    if (nodes->self == 1) { /* what it takes back makes room */
        status = ucx_firehose_release(nodes->firehose, nodes->memory,
                                      nodes->length, UINT64_MAX);
        NODES_CHECK(status == UCS_OK, "release: %s", ucs_status_string(status));
    }
    nodes_barrier(nodes, nodes->count);
    if (nodes->self == 0) {
        status = limits_move(nodes, 1, pages - 1);
        NODES_CHECK(status == UCS_OK, "after a release: %s",
                    ucs_status_string(status));
        nodes_flush(nodes);
    }
    nodes_barrier(nodes, nodes->count);
    return 0;
}

/* Has nothing of its parent's instance, unmaps its copy of what peers reach,
 * and uses an instance of its own */
static int forked_child(nodes_t *nodes)
{
    ucx_firehose_params_t params = {.num_nodes = 1, .memory = 1 << 20};
    ucx_firehose_h firehose;

    munmap(nodes->memory, nodes->length);
    if (ucx_firehose_open(&params, &firehose) != UCS_OK) {
        return 1;
    }
    ucx_firehose_close(firehose);
    return 0;
}

static void forked_await(nodes_t *nodes, pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, WNOHANG) == 0) {
        nodes_progress(nodes);
    }
    NODES_CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0),
                "the child ended with %#x", status);
}

int nodes_forked(nodes_t *nodes)
{
    ucx_firehose_attr_t before, after;
    unsigned round;
    pid_t child;
    size_t i;

    NODES_CHECK(nodes->count == 2, "two nodes");
    for (round = 0; round < 10; ++round) {
        memset(nodes->memory, round * 2 + nodes->self + 1, 4096);
        nodes_barrier(nodes, nodes->count);
        ucx_firehose_query(nodes->firehose, &before);
        child = fork();
        if (child == 0) {
            _exit(forked_child(nodes));
        }
        NODES_CHECK(child > 0, "fork");
        for (i = 0; i < 32; ++i) {
            nodes_put(nodes, !nodes->self, nodes->memory,
                      nodes->length / 2 + i * 4096, 4096);
        }
        nodes_flush(nodes);
        forked_await(nodes, child);
        nodes_barrier(nodes, nodes->count);
        ucx_firehose_query(nodes->firehose, &after);
        NODES_CHECK(after.unmaps == before.unmaps,
                    "what the child unmapped was taken for this process's");
        for (i = 0; i < 32 * 4096; ++i) {
            NODES_CHECK(nodes->memory[nodes->length / 2 + i] ==
                                (char)(round * 2 + !nodes->self + 1),
                        "byte %zu is wrong", i);
        }
        nodes_barrier(nodes, nodes->count);
    }
    return 0;
}

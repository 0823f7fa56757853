/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nodes.h"
#include "../../bench/bench_util.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct nodes_program {
    const char   *name;
    nodes_func_t func;
    size_t       length; /* of each node's memory, in bytes */
    int          killed; /* the node that does not live, -1: none */
    void         (*before)(nodes_t *nodes); /* it is opened; may be NULL */
} nodes_program_t;

static const nodes_program_t nodes_programs[] = {
    {"random",  nodes_random,  8ul << 20, -1, NULL},
    {"killed",  nodes_killed,  1ul << 20, 2,  nodes_killed_before},
    {"killed-anywhere", nodes_killed_anywhere, 1ul << 20, 2, NULL},
    {"unmap",   nodes_unmap,   1ul << 20, -1, NULL},
    {"strict",  nodes_strict,  1ul << 20, -1, NULL},
    {"race",    nodes_race,    1ul << 20, -1, NULL},
    {"nothing", nodes_nothing, 1ul << 20, -1, nodes_nothing_before},
    {"memlock", nodes_memlock, 1ul << 20, -1, nodes_memlock_before},
    {"forked",  nodes_forked,  1ul << 20, -1, NULL}
};

#define NODES_PROGRAMS (sizeof(nodes_programs) / sizeof(nodes_programs[0]))

void nodes_progress(nodes_t *nodes)
{
    if ((nodes->firehose == NULL) ||
        (ucx_firehose_progress(nodes->firehose) == 0)) {
        sched_yield();
    }
}

void nodes_barrier(nodes_t *nodes, unsigned count)
{
    _Atomic unsigned *arrived = &nodes->shared->arrived[count != nodes->count];
    unsigned goal;

    /* Counts up for ever: the nodes of one barrier are those of the next */
    goal = (atomic_fetch_add(arrived, 1) / count + 1) * count;
    while (atomic_load(arrived) < goal) {
        nodes_progress(nodes);
        if (atomic_load(&nodes->shared->failed) > 0) {
            _exit(1); /* another one has told why */
        }
    }
}

static void nodes_done(void *arg, ucs_status_t status)
{
    nodes_t *nodes = arg;

    NODES_CHECK(status == UCS_OK, "%s", ucs_status_string(status));
}

void nodes_put(nodes_t *nodes, unsigned node, const void *local, size_t offset,
               size_t length)
{
    ucs_status_t status;

    status = ucx_firehose_put_nb(nodes->firehose, node, local,
                                 nodes->shared->memory[node] + offset, length,
                                 nodes_done, nodes);
    NODES_CHECK(!UCS_STATUS_IS_ERR(status), "put: %s",
                ucs_status_string(status));
}

void nodes_get(nodes_t *nodes, unsigned node, void *local, size_t offset,
               size_t length)
{
    ucs_status_t status;

    status = ucx_firehose_get_nb(nodes->firehose, node, local,
                                 nodes->shared->memory[node] + offset, length,
                                 nodes_done, nodes);
    NODES_CHECK(!UCS_STATUS_IS_ERR(status), "get: %s",
                ucs_status_string(status));
}

void nodes_flush(nodes_t *nodes)
{
    ucs_status_t status = ucx_firehose_flush(nodes->firehose);

    NODES_CHECK(status == UCS_OK, "flush: %s", ucs_status_string(status));
}

static void nodes_ended(void *arg, ucs_status_t status)
{
    *(volatile ucs_status_t*)arg = status;
}

ucs_status_t nodes_move(nodes_t *nodes, int is_put, unsigned node, void *local,
                        uint64_t remote, size_t length)
{
    volatile ucs_status_t ended = UCS_INPROGRESS;
    ucs_status_t status;

    status = is_put ? ucx_firehose_put_nb(nodes->firehose, node, local, remote,
                                          length, nodes_ended, (void*)&ended) :
                      ucx_firehose_get_nb(nodes->firehose, node, local, remote,
                                          length, nodes_ended, (void*)&ended);
    while ((status == UCS_INPROGRESS) && (ended == UCS_INPROGRESS)) {
        nodes_progress(nodes);
    }
    return (status == UCS_INPROGRESS) ? ended : status;
}

static void nodes_connect(nodes_t *nodes)
{
    ucx_firehose_params_t params = {
        .field_mask = UCX_FIREHOSE_PARAM_FIELD_FLAGS,
        .node       = nodes->self,
        .num_nodes  = nodes->count,
        .memory     = nodes->lent,
        .flags      = nodes->flags
    };
    const void *address;
    ucs_status_t status;
    size_t length;
    unsigned node;

    status = ucx_firehose_open(&params, &nodes->firehose);
    NODES_CHECK(status == UCS_OK, "open: %s", ucs_status_string(status));
    ucx_firehose_address(nodes->firehose, &address, &length);
    NODES_CHECK(length <= NODES_ADDRESS, "an address of %zu bytes", length);
    memcpy(nodes->shared->address[nodes->self], address, length);
    nodes->shared->memory[nodes->self] = (uintptr_t)nodes->memory;
    nodes_barrier(nodes, nodes->count);
    for (node = 0; node < nodes->count; ++node) {
        if (node != nodes->self) {
            status = ucx_firehose_connect(nodes->firehose, node,
                                          nodes->shared->address[node]);
            NODES_CHECK(status == UCS_OK, "connect: %s",
                        ucs_status_string(status));
        }
    }
}

static void nodes_tell(nodes_t *nodes)
{
    ucx_firehose_attr_t attr;

    ucx_firehose_query(nodes->firehose, &attr);
    NODES_CHECK(attr.has_events, "UCX's memory hooks do not work");
    NODES_CHECK(attr.pinned_peak <= attr.pinned_max,
                "%zu bytes were pinned, %zu may be", attr.pinned_peak,
                attr.pinned_max);
    printf("# node %u: %lu hits, %lu misses, %lu joined, %lu moves, %lu pins, "
           "%zu of %zu KiB pinned at most\n",
           nodes->self, attr.hits, attr.misses, attr.joined, attr.moves,
           attr.pins, attr.pinned_peak >> 10, attr.pinned_max >> 10);
}

static void nodes_live(nodes_t *nodes, const nodes_program_t *program)
{
    unsigned left = nodes->count - (program->killed >= 0);

    nodes->shared->pids[nodes->self] = getpid();
    nodes->memory                    = bench_map(nodes->length, MAP_PRIVATE);
    if (program->before != NULL) {
        program->before(nodes);
    }
    nodes_connect(nodes);
    if (program->func(nodes) != 0) {
        atomic_fetch_add(&nodes->shared->failed, 1);
        _exit(1);
    }
    nodes_tell(nodes);
    nodes_barrier(nodes, left);
    ucx_firehose_close(nodes->firehose);
    exit(0);
}

/* @return Nonzero if a node did not end as it should */
static int nodes_judge(nodes_t *nodes, int is_killed, unsigned node, int status)
{
    if (is_killed) {
        return !WIFSIGNALED(status) || (WTERMSIG(status) != SIGKILL);
    }
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0)) {
        return 0;
    }
    printf("# node %u: status %#x\n", node, status);
    atomic_fetch_add(&nodes->shared->failed, 1);
    return 1;
}

/* As a launcher does: each when it has ended. @return How many did not end as they
 * should */
static int nodes_wait(nodes_t *nodes, const nodes_program_t *program,
                      pid_t *pids)
{
    unsigned left = nodes->count, node;
    int wrong     = 0, status, is_killed;

    while (left > 0) {
        for (node = 0; node < nodes->count; ++node) {
            is_killed = ((int)node == program->killed);
            if ((pids[node] == 0) ||
                (waitpid(pids[node], &status, WNOHANG) != pids[node])) {
                continue;
            }
            pids[node] = 0;
            wrong     += nodes_judge(nodes, is_killed, node, status);
            --left;
        }
        usleep(1000);
    }
    return wrong;
}

static int nodes_run(nodes_t *nodes, const nodes_program_t *program)
{
    pid_t pids[NODES_MAX];

    nodes->length = program->length;
    nodes->shared = bench_map(sizeof(*nodes->shared), MAP_SHARED);
    nodes->bits   = bench_map(nodes->count * nodes->length, MAP_SHARED);
    fflush(stdout);
    for (nodes->self = 0; nodes->self < nodes->count; ++nodes->self) {
        pids[nodes->self] = fork();
        if (pids[nodes->self] == 0) {
            nodes_live(nodes, program);
        } else if (pids[nodes->self] < 0) {
            perror("fork");
            exit(2);
        }
    }
    return nodes_wait(nodes, program, pids);
}

static unsigned nodes_flag(const char *name)
{
    static const struct {
        const char *name;
        unsigned   flag;
    } flags[] = {{"thread", UCX_FIREHOSE_FLAG_THREAD},
                 {"strict", UCX_FIREHOSE_FLAG_STRICT}};
    unsigned i;

    for (i = 0; i < sizeof(flags) / sizeof(flags[0]); ++i) {
        if (strcmp(name, flags[i].name) == 0) {
            return flags[i].flag;
        }
    }
    fprintf(stderr, "nodes: no flag %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    nodes_t nodes = {.count = 2, .lent = 256 << 10};
    unsigned i;

    if (argc < 4) {
        fprintf(stderr, "usage: nodes PROGRAM NODES KIB [FLAG...]\n");
        return 2;
    }
    nodes.count = atoi(argv[2]);
    nodes.lent  = strtoul(argv[3], NULL, 10) << 10;
    for (i = 4; i < (unsigned)argc; ++i) {
        nodes.flags |= nodes_flag(argv[i]);
    }
    for (i = 0; (i < NODES_PROGRAMS) && (nodes.count >= 2) &&
                (nodes.count <= NODES_MAX);
         ++i) {
        if (strcmp(argv[1], nodes_programs[i].name) == 0) {
            return nodes_run(&nodes, &nodes_programs[i]) > 0;
        }
    }
    fprintf(stderr, "nodes: no program %s for %u nodes\n", argv[1],
            nodes.count);
    return 2;
}

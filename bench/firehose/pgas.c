/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pgas.h"

#include "../bench_options.h"

#include <ucp/wire/wire_ucp.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of so many puts one is waited for, so that the others stay under way */
#define PGAS_SAMPLE 61

typedef struct pgas_program {
    const char *name;
    void       (*func)(pgas_t *pgas);
    size_t     length;
} pgas_program_t;

static const pgas_program_t pgas_programs[] = {
    {"cannon",   program_cannon,   64ul << 20 },
    {"bitonic",  program_bitonic,  64ul << 20 },
    {"random",   program_random,   256ul << 20},
    {"overhead", program_overhead, 1ul << 20  }
};

static const char * const pgas_ways[PGAS_WAY_LAST] = {
    [PGAS_FIREHOSE]         = "firehose",
    [PGAS_RENDEZVOUS]       = "rendezvous",
    [PGAS_RENDEZVOUS_UNPIN] = "rendezvous-unpin"
};

/* UCP's wire, whose registrations may take longer than they do: UCP's functions
 * with another one for these */
static struct {
    ucp_wire_ops_t       ops;
    const ucp_wire_ops_t *real;
    uint64_t             pin_base;
} pgas_wire;

void pgas_die(const pgas_t *pgas, const char *what, ucs_status_t status)
{
    fprintf(stderr, "node %u: %s: %s\n", pgas->self, what,
            ucs_status_string(status));
    atomic_fetch_add(&pgas->shared->failed, 1);
    _exit(1);
}

static ucs_status_t pgas_mem_reg(ucp_wire_t *wire, void *address, size_t length,
                                 ucp_wire_mem_t **mem_p)
{
    uint64_t end = bench_cpu_now() + pgas_wire.pin_base;

    while (bench_cpu_now() < end) {
    }
    return pgas_wire.real->mem_reg(wire, address, length, mem_p);
}

static ucs_status_t pgas_make_wire(pgas_t *pgas)
{
    ucs_status_t status;

    status = ucp_wire_ucp_create(pgas->self, pgas->options->nodes,
                                 &pgas->wire);
    if ((status == UCS_OK) && (pgas->options->pin_base > 0)) {
        pgas_wire.real        = pgas->wire->ops;
        pgas_wire.ops         = *pgas_wire.real;
        pgas_wire.ops.mem_reg = pgas_mem_reg;
        pgas_wire.pin_base    = pgas->options->pin_base;
        pgas->wire->ops       = &pgas_wire.ops;
    }
    return status;
}

unsigned pgas_progress(pgas_t *pgas)
{
    unsigned count = (pgas->firehose != NULL) ?
                             ucx_firehose_progress(pgas->firehose) :
                             ucp_wire_progress(pgas->wire);

    if (count == 0) {
        sched_yield();
    }
    if (atomic_load(&pgas->shared->failed) > 0) {
        _exit(1); /* another one has told why */
    }
    return count;
}

void pgas_barrier(pgas_t *pgas)
{
    unsigned count = pgas->options->nodes, goal;

    goal = (atomic_fetch_add(&pgas->shared->arrived, 1) / count + 1) * count;
    while (atomic_load(&pgas->shared->arrived) < goal) {
        pgas_progress(pgas);
    }
}

static void pgas_flushed(void *arg, ucs_status_t status)
{
    *(ucs_status_t*)arg = status;
}

/* Until what was put to one node is there */
static void pgas_flush_node(pgas_t *pgas, unsigned node)
{
    ucs_status_t status = UCS_INPROGRESS, begun;

    if (pgas->firehose != NULL) {
        begun = ucx_firehose_flush_nb(pgas->firehose, node, pgas_flushed,
                                      &status);
    } else {
        rendezvous_wait(pgas->rendezvous);
        begun = ucp_wire_flush(pgas->wire, node, pgas_flushed, &status);
    }
    status = (begun == UCS_INPROGRESS) ? status : begun;
    while (status == UCS_INPROGRESS) {
        pgas_progress(pgas);
    }
    if (status != UCS_OK) {
        pgas_die(pgas, "flush", status);
    }
}

void pgas_flush(pgas_t *pgas)
{
    unsigned node;

    for (node = 0; node < pgas->options->nodes; ++node) {
        if (node != pgas->self) {
            pgas_flush_node(pgas, node);
        }
    }
}

static void pgas_put_one(pgas_t *pgas, unsigned node, const void *local,
                         uint64_t remote, size_t length)
{
    ucs_status_t status;

    ++pgas->result->puts;
    if (pgas->firehose == NULL) {
        rendezvous_put(pgas->rendezvous, node, local, remote, length);
        return;
    }
    status = ucx_firehose_put_nb(pgas->firehose, node, local, remote, length,
                                 NULL, NULL);
    if (UCS_STATUS_IS_ERR(status)) {
        pgas_die(pgas, "put", status);
    }
}

void pgas_put(pgas_t *pgas, unsigned node, const void *local, size_t offset,
              size_t length)
{
    uint64_t remote = pgas->shared->memory[node] + offset;
    size_t at, step, room;
    int is_sample;

    /* By pages at either end, as firehose would do itself */
    for (at = 0; at < length; at += step) {
        step = length - at;
        room = PGAS_PAGE - (remote + at) % PGAS_PAGE;
        step = (room < step) ? room : step;
        room = PGAS_PAGE - ((uintptr_t)local + at) % PGAS_PAGE;
        step = (room < step) ? room : step;
        is_sample = ++pgas->sampled % pgas->options->sample == 0;
        if (is_sample) {
            pgas_flush_node(pgas, node); /* from a silent wire */
        }
        pgas_put_one(pgas, node, (const char*)local + at, remote + at, step);
        if (is_sample) {
            pgas_flush_node(pgas, node);
        }
    }
}

static ucs_status_t pgas_open(pgas_t *pgas)
{
    const pgas_options_t *options = pgas->options;
    ucx_firehose_params_t params  = {
         .field_mask = (options->victims > 0) ?
                               UCX_FIREHOSE_PARAM_FIELD_VICTIMS : 0,
         .node       = pgas->self,
         .num_nodes  = options->nodes,
         .memory     = options->lent,
         .victims    = options->victims
    };
    ucs_status_t status           = pgas_make_wire(pgas);

    if (status != UCS_OK) {
        return status;
    }
    if (options->way == PGAS_FIREHOSE) {
        return ucp_firehose_create(&params, pgas->wire, &pgas->firehose);
    }
    pgas->rendezvous     = rendezvous_create(pgas);
    pgas->wire->handlers = *rendezvous_handlers(pgas->rendezvous);
    return UCS_OK;
}

static void pgas_connect(pgas_t *pgas)
{
    ucs_status_t status = pgas_open(pgas);
    const void *address;
    size_t length;
    unsigned node;

    if (status != UCS_OK) {
        pgas_die(pgas, "open", status);
    }
    ucp_wire_ucp_address(pgas->wire, &address, &length);
    memcpy(pgas->shared->address[pgas->self], address, length);
    pgas->shared->memory[pgas->self] = (uintptr_t)pgas->memory;
    pgas_barrier(pgas);
    for (node = 0; node < pgas->options->nodes; ++node) {
        if (node != pgas->self) {
            status = ucp_wire_ucp_connect(pgas->wire, node,
                                          pgas->shared->address[node]);
            if ((status == UCS_OK) && (pgas->firehose != NULL)) {
                ucp_firehose_greet(pgas->firehose, node);
            }
            if (status != UCS_OK) {
                pgas_die(pgas, "connect", status);
            }
        }
    }
}

static void pgas_close(pgas_t *pgas)
{
    ucx_firehose_attr_t attr;

    if (pgas->firehose == NULL) {
        rendezvous_destroy(pgas->rendezvous, pgas->result);
        pgas_barrier(pgas);
        return;
    }
    ucx_firehose_query(pgas->firehose, &attr);
    pgas->result->hits   = attr.hits;
    pgas->result->misses = attr.misses;
    pgas->result->joined = attr.joined;
    pgas->result->pins   = attr.pins;
    pgas_barrier(pgas);
}

static void pgas_live(pgas_t *pgas, const pgas_program_t *program)
{
    uint64_t start;

    pgas->result = &pgas->shared->result[pgas->self];
    pgas->memory = bench_map(pgas->length, MAP_PRIVATE);
    pgas_connect(pgas);
    pgas_barrier(pgas);
    start = bench_now();
    program->func(pgas);
    pgas_flush(pgas);
    pgas_barrier(pgas);
    pgas->result->seconds = (bench_now() - start) * 1e-9;
    pgas_close(pgas);
    _exit(0); /* nothing of it is measured any more */
}

static int pgas_wait(unsigned count)
{
    int status, wrong = 0;

    while (count > 0) {
        if (waitpid(-1, &status, 0) > 0) {
            --count;
            wrong += !WIFEXITED(status) || (WEXITSTATUS(status) != 0);
        } else if (errno != EINTR) {
            return 1;
        }
    }
    return wrong;
}

static void pgas_print(const pgas_t *pgas, const char *program)
{
    const pgas_options_t *options = pgas->options;
    pgas_result_t all             = {0}, *one;
    unsigned node;

    for (node = 0; node < options->nodes; ++node) {
        one           = &pgas->shared->result[node];
        all.puts     += one->puts;
        all.hits     += one->hits;
        all.misses   += one->misses;
        all.joined   += one->joined;
        all.pins     += one->pins;
        all.extra[0] += one->extra[0];
        all.extra[1] += one->extra[1];
        all.seconds   = (one->seconds > all.seconds) ? one->seconds : all.seconds;
    }
    printf("{\"bench\":\"firehose\",\"program\":\"%s\",\"way\":\"%s\","
           "\"nodes\":%u,\"lent\":%zu,\"working_set\":%zu,\"sample\":%zu,"
           "\"pin_ns_modelled\":%zu,\"seconds\":%.6f,\"puts\":%lu,"
           "\"hits\":%lu,\"misses\":%lu,\"joined\":%lu,\"pins\":%lu,"
           "\"extra\":[%.2f,%.2f]}\n",
           program, pgas_ways[options->way], options->nodes, options->lent,
           options->working_set, options->sample, options->pin_base,
           all.seconds, all.puts, all.hits, all.misses, all.joined, all.pins,
           all.extra[0], all.extra[1]);
}

static int pgas_run(pgas_t *pgas, const pgas_program_t *program)
{
    pgas->length = program->length;
    pgas->shared = bench_map(sizeof(*pgas->shared), MAP_SHARED);
    for (pgas->self = 0; pgas->self < pgas->options->nodes; ++pgas->self) {
        switch (fork()) {
        case 0:
            pgas_live(pgas, program);
            break;
        case -1:
            perror("fork");
            exit(2);
        default:
            break;
        }
    }
    if (pgas_wait(pgas->options->nodes) > 0) {
        return 1;
    }
    pgas_print(pgas, program->name);
    return 0;
}

int main(int argc, char **argv)
{
    const char *way = pgas_ways[PGAS_FIREHOSE], *program;
    pgas_options_t options = {.nodes = 2, .lent = 16ul << 20, .size = 64,
                              .rounds = 1, .sample = PGAS_SAMPLE,
                              .working_set = 1ul << 20};
    const bench_option_t table[] = {
        {"way", BENCH_TEXT, &way, 0, 0,
         "firehose|rendezvous|rendezvous-unpin [firehose]"},
        {"nodes", BENCH_COUNT, &options.nodes, 2, PGAS_MAX, "N     [2]"},
        {"lent", BENCH_SIZE, &options.lent, 1, 1e12, "SIZE  M [16m]"},
        {"victims", BENCH_SIZE, &options.victims, 0, 1e12,
         "SIZE  MAXVICTIM [an eighth of M]"},
        {"pin-ns", BENCH_SIZE, &options.pin_base, 0, 1e9,
         "NS    that a pin takes more: MODELLED [0]"},
        {"size", BENCH_SIZE, &options.size, 1, 1e9, "N     as a program likes [64]"},
        {"rounds", BENCH_SIZE, &options.rounds, 1, 1e9, "N     [1]"},
        {"sample", BENCH_SIZE, &options.sample, 1, 1e9,
         "N     of so many puts one is waited for [61]"},
        {"set", BENCH_SIZE, &options.working_set, 8, 1e12, "SIZE  of random [1m]"},
        {0}
    };
    pgas_t pgas = {.options = &options};
    unsigned i;
    int ret;

    ret = bench_options_parse(
            "firehose_pgas [options] cannon|bitonic|random|overhead", table, argv,
            0, &program);
    while ((options.way < PGAS_WAY_LAST) &&
           (strcmp(pgas_ways[options.way], way) != 0)) {
        ++options.way;
    }
    if ((ret != 0) || (program == NULL) || (options.way == PGAS_WAY_LAST)) {
        return (ret > 0) ? 0 : 2;
    }
    for (i = 0; i < sizeof(pgas_programs) / sizeof(pgas_programs[0]); ++i) {
        if (strcmp(program, pgas_programs[i].name) == 0) {
            return pgas_run(&pgas, &pgas_programs[i]);
        }
    }
    fprintf(stderr, "firehose_pgas: no program %s\n", program);
    return 2;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "paced_run.h"
#include "../bench_util.h"

#include <stdlib.h>

/* Computation differs by up to this share from rank to rank and from time to
 * time, the same for every policy */
#define PACED_NOISE 0.01

/* What ranks reduce: too large a whole number for its sum not to be exact */
#define PACED_PART(_rank, _count) ((double)((_rank) + 1 + (_count) % 1009))

/* A call of its own for each site: a compiler that knew them to be the same
 * would make one of them */
#define PACED_CASE(_n, _call) \
    case _n: \
        status = _call; \
        __asm__ volatile("" : : "i"(_n)); \
        break;
#define PACED_CASES_4(_n, _call) \
    PACED_CASE((_n), _call) PACED_CASE((_n) + 1, _call) \
    PACED_CASE((_n) + 2, _call) PACED_CASE((_n) + 3, _call)
#define PACED_CASES_16(_n, _call) \
    PACED_CASES_4((_n), _call) PACED_CASES_4((_n) + 4, _call) \
    PACED_CASES_4((_n) + 8, _call) PACED_CASES_4((_n) + 12, _call)
#define PACED_CASES(_call) \
    PACED_CASES_16(0, _call) PACED_CASES_16(16, _call) \
    PACED_CASES_16(32, _call) PACED_CASES_16(48, _call)

static int paced_isend(uint32_t site, const void *address, int bytes, int peer,
                       int tag, MPI_Request *request)
{
    int status = MPI_ERR_OTHER;

    switch (site) {
        PACED_CASES(MPI_Isend(address, bytes, MPI_BYTE, peer, tag,
                              MPI_COMM_WORLD, request))
    }
    return status;
}

static int paced_irecv(uint32_t site, void *address, int bytes, int peer,
                       int tag, MPI_Request *request)
{
    int status = MPI_ERR_OTHER;

    switch (site) {
        PACED_CASES(MPI_Irecv(address, bytes, MPI_BYTE, peer, tag,
                              MPI_COMM_WORLD, request))
    }
    return status;
}

static uint64_t *paced_count(const paced_t *paced, uint64_t *counts,
                             const sim_op_t *op)
{
    if ((op->tag >= PACED_TAGS) || (op->peer >= (uint32_t)paced->size)) {
        paced_fatal(paced, "a message to rank %u with tag %u", op->peer,
                    op->tag);
    }
    return &counts[op->peer * PACED_TAGS + op->tag];
}

static void paced_send(paced_t *paced, const sim_op_t *op,
                       paced_request_t *request, MPI_Request *mpi)
{
    uint64_t count = (*paced_count(paced, paced->sent, op))++;

    paced_stamp_put(request->address, op->bytes,
                    paced_stamp(paced->rank, op->peer, op->tag, count));
    if (paced_isend(op->site, request->address, op->bytes, op->peer, op->tag,
                    mpi) != MPI_SUCCESS) {
        paced_fatal(paced, "cannot send from site %u", op->site);
    }
}

static void paced_receive(paced_t *paced, const sim_op_t *op,
                          paced_request_t *request, MPI_Request *mpi)
{
    uint64_t count = (*paced_count(paced, paced->received, op))++;

    request->is_receive = 1;
    request->stamp      = paced_stamp(op->peer, paced->rank, op->tag, count);
    if (paced_irecv(op->site, request->address, op->bytes, op->peer, op->tag,
                    mpi) != MPI_SUCCESS) {
        paced_fatal(paced, "cannot receive at site %u", op->site);
    }
}

static void paced_begin(paced_t *paced, const sim_op_t *op)
{
    int i                    = paced->num_open++;
    paced_request_t *request = &paced->open[i];

    if (paced->num_open > PACED_REQUESTS) {
        paced_fatal(paced, "more than %d messages at once", PACED_REQUESTS);
    }
    request->address    = paced_data_get(&paced->data, op->address);
    request->bytes      = op->bytes;
    request->is_receive = 0;
    if (op->kind == SIM_OP_SEND) {
        paced_send(paced, op, request, &paced->requests[i]);
    } else {
        paced_receive(paced, op, request, &paced->requests[i]);
    }
}

static void paced_wait(paced_t *paced)
{
    paced_request_t *request;

    if (MPI_Waitall(paced->num_open, paced->requests, paced->statuses) !=
        MPI_SUCCESS) {
        paced_fatal(paced, "messages have failed");
    }
    for (request = paced->open; request != paced->open + paced->num_open;
         ++request) {
        if (request->is_receive) {
            ++paced->blocks;
            paced->wrong += !paced_stamp_is(request->address, request->bytes,
                                            request->stamp);
        }
    }
    paced->num_open = 0;
}

static double paced_part_sum(const paced_t *paced, uint64_t count)
{
    double sum = 0;
    int rank;

    for (rank = 0; rank < paced->size; ++rank) {
        sum += PACED_PART(rank, count);
    }
    return sum;
}

static void paced_reduce(paced_t *paced, const sim_op_t *op)
{
    double *array   = paced_data_get(&paced->data, op->address);
    int length      = op->bytes / sizeof(*array);
    uint64_t count  = paced->reductions++;
    double expected = paced_part_sum(paced, count);

    array[0] = array[length - 1] = PACED_PART(paced->rank, count);
    if (MPI_Allreduce(MPI_IN_PLACE, array, length, MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD) != MPI_SUCCESS) {
        paced_fatal(paced, "a reduction has failed");
    }
    ++paced->blocks;
    paced->wrong += (array[0] != expected) || (array[length - 1] != expected);
}

static void paced_sync(paced_t *paced)
{
    int one = 1, sum = 0, size;

    MPI_Comm_size(paced->group, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, paced->group);
    paced->wrong += (sum != size);
}

static void paced_compute(paced_t *paced, const sim_cursor_t *at, double flops)
{
    uint64_t position = ((uint64_t)at->phase << 32) | at->index;
    double noise      = 2 * sim_hash(paced->rank, at->iteration, position) - 1;
    uint64_t late;

    if (flops <= 0) {
        return;
    }
    late = paced_work(paced->work, flops * paced->ns_per_flop *
                                           (1 + PACED_NOISE * noise));
    if (paced->num_late < PACED_LATE_MAX) {
        paced->late_us[paced->num_late++] = late * 1e-3;
    }
}

static void paced_step(paced_t *paced, const sim_cursor_t *at,
                       const sim_op_t *op)
{
    switch ((unsigned)op->kind) {
    case SIM_OP_COMPUTE:
        paced_compute(paced, at, op->flops);
        break;
    case SIM_OP_WAIT:
        paced_wait(paced);
        break;
    case SIM_OP_SYNC:
        paced_sync(paced);
        break;
    case PACED_OP_REDUCE:
        paced_reduce(paced, op);
        break;
    case PACED_OP_UNMAP:
        paced_data_unmap(&paced->data, op->address);
        break;
    default:
        paced_begin(paced, op);
    }
}

void paced_run(paced_t *paced)
{
    uint64_t now = bench_now(), before;
    sim_cursor_t at, here;
    sim_op_t op;

    sim_cursor_init(&paced->shape, &at);
    for (here = at; sim_cursor_next(&paced->shape, paced->rank,
                                    paced->iterations, &at, &op); here = at) {
        before = now;
        paced_step(paced, &here, &op);
        now    = bench_now();
        if ((op.kind == SIM_OP_COMPUTE) ||
            ((unsigned)op.kind == PACED_OP_UNMAP)) {
            paced->compute_ns += now - before;
        } else {
            paced->message_ns += now - before;
        }
    }
}

/* Ranks whose reductions go among fewer than all have a group of their own */
static void paced_plan_group(paced_t *paced, const sim_op_t *sync)
{
    MPI_Comm_split(MPI_COMM_WORLD, sync->peer, paced->rank, &paced->group);
}

static void paced_plan_op(paced_t *paced, const sim_op_t *op, sim_op_t *sync,
                          double *flops)
{
    switch ((unsigned)op->kind) {
    case SIM_OP_COMPUTE:
        *flops += op->flops;
        break;
    case SIM_OP_SYNC:
        *sync = *op;
        break;
    case SIM_OP_WAIT:
        break;
    case PACED_OP_UNMAP:
        paced_data_brief(&paced->data, op->address);
        break;
    default:
        paced_data_reach(&paced->data, op->address, op->bytes);
    }
}

void paced_plan(paced_t *paced, double iteration_ms)
{
    size_t counts   = (size_t)paced->size * PACED_TAGS;
    double flops    = 0, prologue = 0;
    int is_prologue = 1;
    sim_op_t op, sync = {0};
    sim_cursor_t at;

    paced->sent     = calloc(counts, sizeof(*paced->sent));
    paced->received = calloc(counts, sizeof(*paced->received));
    if ((paced->sent == NULL) || (paced->received == NULL)) {
        paced_fatal(paced, "no memory");
    }
    sim_cursor_init(&paced->shape, &at);
    while (sim_cursor_next(&paced->shape, paced->rank, paced->iterations, &at,
                           &op)) {
        if (is_prologue && (at.iteration >= 0)) {
            is_prologue = 0;
            prologue    = flops;
        }
        paced_plan_op(paced, &op, &sync, &flops);
    }
    paced->ns_per_flop = iteration_ms * 1e6 * paced->iterations /
                         (flops - prologue);
    paced_plan_group(paced, &sync);
    paced_data_map(&paced->data);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pgas.h"

#include "../bench_util.h"

#include <ucp/api/ucp.h>
#include <ucs/sys/hash.h>

#include <stdlib.h>
#include <string.h>

/*
 * The paper's two programs, puts to random words, and what a hit costs over UCP
 * alone.
 */

/* Rows of blocks of `size` doubles; a process has two places for each factor and
 * writes the neighbours' */
void program_cannon(pgas_t *pgas)
{
    const uint64_t size = pgas->options->size, row_bytes = size * sizeof(double);
    const size_t block  = size * row_bytes;
    unsigned grid = 1, row, column, left, up;
    double *c     = (double*)(pgas->memory + 4 * block), *a, *b;
    uint64_t step, turn, i, j, k;

    while (grid * grid < pgas->options->nodes) {
        ++grid;
    }
    if ((grid * grid != pgas->options->nodes) || (5 * block > pgas->length)) {
        pgas_die(pgas, "cannon: a square of nodes, and blocks that fit",
                 UCS_ERR_INVALID_PARAM);
    }
    row    = pgas->self / grid;
    column = pgas->self % grid;
    left   = row * grid + (column + grid - 1) % grid;
    up     = (row + grid - 1) % grid * grid + column;
    memset(pgas->memory, 0, 5 * block);
    for (step = 0; step < pgas->options->rounds * grid; ++step) {
        turn = step % 2;
        a    = (double*)(pgas->memory + turn * block);
        b    = (double*)(pgas->memory + (2 + turn) * block);
        pgas_barrier(pgas);
        for (i = 0; i < size; ++i) {
            pgas_put(pgas, left, a + i * size, !turn * block + i * row_bytes,
                     row_bytes);
            pgas_put(pgas, up, b + i * size,
                     (2 + !turn) * block + i * row_bytes, row_bytes);
        }
        for (i = 0; i < size; ++i) {
            for (k = 0; k < size; ++k) {
                for (j = 0; j < size; ++j) {
                    c[i * size + j] += a[i * size + k] * b[k * size + j];
                }
            }
        }
        pgas_flush(pgas);
    }
}

static int program_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;

    return (x > y) - (x < y);
}

/* The smaller, or the larger half of two sorted lists */
static void program_split(uint64_t *out, const uint64_t *x, const uint64_t *y,
                          uint64_t size, int is_low)
{
    uint64_t i = is_low ? 0 : size, j = i, k;

    for (k = 0; k < size; ++k) {
        if (is_low) {
            out[k] = (x[i] <= y[j]) ? x[i++] : y[j++];
        } else {
            out[size - 1 - k] = (x[i - 1] > y[j - 1]) ? x[--i] : y[--j];
        }
    }
}

/* `size` keys a process, put by 64 bytes; so many sorts as `rounds` */
void program_bitonic(pgas_t *pgas)
{
    const uint64_t size = pgas->options->size, bytes = size * sizeof(uint64_t);
    uint64_t *mine = (uint64_t*)pgas->memory, *theirs = mine + size;
    uint64_t *out = theirs + size, round, i, at;
    unsigned width, distance, partner;

    if (3 * bytes > pgas->length) {
        pgas_die(pgas, "bitonic: keys that fit", UCS_ERR_INVALID_PARAM);
    }
    for (round = 0; round < pgas->options->rounds; ++round) {
        for (i = 0; i < size; ++i) {
            mine[i] = ucs_hash_mix((round * PGAS_MAX + pgas->self) * size + i);
        }
        qsort(mine, size, sizeof(*mine), program_compare);
        for (width = 2; width <= pgas->options->nodes; width *= 2) {
            for (distance = width / 2; distance > 0; distance /= 2) {
                partner = pgas->self ^ distance;
                pgas_barrier(pgas);
                for (at = 0; at < bytes; at += 64) {
                    pgas_put(pgas, partner, (char*)mine + at, bytes + at,
                             (bytes - at < 64) ? bytes - at : 64);
                }
                pgas_flush(pgas);
                pgas_barrier(pgas);
                program_split(out, mine, theirs, size,
                              !(pgas->self & width) ==
                                      !(pgas->self & distance));
                memcpy(mine, out, bytes);
            }
        }
    }
}

/* `rounds` puts of 8 bytes anywhere in the others' working sets */
void program_random(pgas_t *pgas)
{
    const size_t words = pgas->options->working_set / 8;
    uint64_t i, at, random;
    unsigned node;

    for (i = 0; i < pgas->options->rounds; ++i) {
        random = ucs_hash_mix(i * PGAS_MAX + pgas->self + 1);
        at     = random % words;
        node   = (pgas->self + 1 + (random >> 40) % (pgas->options->nodes - 1)) %
                 pgas->options->nodes;
        pgas_put(pgas, node, pgas->memory + i % 512 * 8, at * 8, 8);
        if (i % 64 == 0) {
            pgas_progress(pgas);
        }
    }
}

/* Few enough at a time that a socket takes them */
enum { OVERHEAD_BATCH = 200, OVERHEAD_BATCHES = 301 };

/* UCP and nothing above it: one endpoint, to put by */
typedef struct bare {
    ucp_context_h context;
    ucp_worker_h  worker;
    ucp_ep_h      ep;
    ucp_mem_h     memh; /**< of this process's memory */
    ucp_rkey_h    rkey; /**< of the peer's */
} bare_t;

/* A worker, and the memory registered. The address and the key are for the peer;
 * they live as long as the process. @return Zero if that failed. */
static int bare_open(bare_t *bare, void *memory, size_t length, void **address_p,
              size_t *address_length_p, void **key_p, size_t *key_length_p)
{
    ucp_params_t params            = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                      .features   = UCP_FEATURE_RMA};
    ucp_worker_params_t worker     = {0};
    ucp_mem_map_params_t mem       = {.field_mask =
                                              UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                              UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                      .address = memory,
                                      .length  = length};
    ucp_address_t **worker_address = (ucp_address_t**)address_p;

    memset(bare, 0, sizeof(*bare));
    return (ucp_init(&params, NULL, &bare->context) == UCS_OK) &&
           (ucp_worker_create(bare->context, &worker, &bare->worker) ==
            UCS_OK) &&
           (ucp_worker_get_address(bare->worker, worker_address,
                                   address_length_p) == UCS_OK) &&
           (ucp_mem_map(bare->context, &mem, &bare->memh) == UCS_OK) &&
           (ucp_rkey_pack(bare->context, bare->memh, key_p, key_length_p) ==
            UCS_OK);
}

/* @return Zero if that failed */
static int bare_connect(bare_t *bare, const void *address, const void *key)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                              .address    = address,
                              .err_mode   = UCP_ERR_HANDLING_MODE_PEER};

    return (ucp_ep_create(bare->worker, &params, &bare->ep) == UCS_OK) &&
           (ucp_ep_rkey_unpack(bare->ep, key, &bare->rkey) == UCS_OK);
}

/* Put and forget */
static void bare_put(bare_t *bare, const void *local, uint64_t remote, size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH,
                                 .memh         = bare->memh};
    ucs_status_ptr_t request;

    request = ucp_put_nbx(bare->ep, local, length, remote, bare->rkey, &param);
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request); /* it goes when it has ended */
    }
}

/* All that was put is there */
static void bare_flush(bare_t *bare)
{
    ucp_request_param_t param = {0};
    ucs_status_ptr_t request  = ucp_ep_flush_nbx(bare->ep, &param);

    while (UCS_PTR_IS_PTR(request) &&
           (ucp_request_check_status(request) == UCS_INPROGRESS)) {
        ucp_worker_progress(bare->worker);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

static void bare_close(bare_t *bare)
{
    if (bare->rkey != NULL) {
        ucp_rkey_destroy(bare->rkey);
    }
    ucp_mem_unmap(bare->context, bare->memh);
    ucp_worker_destroy(bare->worker); /* with its endpoint */
    ucp_cleanup(bare->context);
}

/* Both ends of the bare endpoint; what each needs goes by shared memory. @return
 * Zero if that failed. */
static int overhead_connect(pgas_t *pgas, bare_t *bare)
{
    uint8_t *mine = pgas->shared->address[pgas->self];
    uint8_t *its  = pgas->shared->address[!pgas->self];
    size_t address_length, key_length;
    void *address, *key;

    if (!bare_open(bare, pgas->memory, PGAS_PAGE, &address, &address_length,
                   &key, &key_length) ||
        (address_length > PGAS_ADDRESS / 2) ||
        (key_length > PGAS_ADDRESS / 2)) {
        return 0;
    }
    pgas_barrier(pgas); /* firehose has read the addresses */
    memcpy(mine, address, address_length);
    memcpy(mine + PGAS_ADDRESS / 2, key, key_length);
    pgas_barrier(pgas);
    return bare_connect(bare, its, its + PGAS_ADDRESS / 2);
}

/* Processor time of a put of 8 bytes that hits, with firehose and without, by
 * turns; medians in extra[0] (with) and extra[1] */
static void overhead_measure(pgas_t *pgas, bare_t *bare)
{
    uint64_t remote = pgas->shared->memory[1], start;
    double with[OVERHEAD_BATCHES], without[OVERHEAD_BATCHES];
    unsigned batch, i;

    for (batch = 0; batch < OVERHEAD_BATCHES; ++batch) {
        pgas_put(pgas, 1, pgas->memory, 0, 8);
        pgas_flush(pgas);
        start = bench_cpu_now();
        for (i = 0; i < OVERHEAD_BATCH; ++i) {
            ucx_firehose_put_nb(pgas->firehose, 1, pgas->memory, remote, 8,
                                NULL, NULL);
        }
        with[batch] = (double)(bench_cpu_now() - start) / OVERHEAD_BATCH;
        pgas_flush(pgas);
        start = bench_cpu_now();
        for (i = 0; i < OVERHEAD_BATCH; ++i) {
            bare_put(bare, pgas->memory, remote, 8);
        }
        without[batch] = (double)(bench_cpu_now() - start) / OVERHEAD_BATCH;
        bare_flush(bare);
    }
    bench_sort(with, OVERHEAD_BATCHES);
    bench_sort(without, OVERHEAD_BATCHES);
    pgas->result->extra[0] = bench_quantile(with, OVERHEAD_BATCHES, 0.5);
    pgas->result->extra[1] = bench_quantile(without, OVERHEAD_BATCHES, 0.5);
}

/* Node 1 makes progress for both ends until node 0 has done */
void program_overhead(pgas_t *pgas)
{
    bare_t bare;

    if ((pgas->options->nodes != 2) ||
        (pgas->options->way != PGAS_FIREHOSE) ||
        !overhead_connect(pgas, &bare)) {
        pgas_die(pgas, "overhead: two nodes, over UCP", UCS_ERR_UNSUPPORTED);
    }
    if (pgas->self == 0) {
        overhead_measure(pgas, &bare);
        atomic_store(&pgas->shared->is_over, 1);
    }
    while (!atomic_load(&pgas->shared->is_over)) {
        ucx_firehose_progress(pgas->firehose);
        ucp_worker_progress(bare.worker);
    }
    pgas_barrier(pgas);
    bare_close(&bare);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * What a peer sends to a pipeline. Node 0 has a pipeline with a receive and a
 * send under way; node 1 sends the input, cut into messages: one byte of header
 * length, one of payload length, then both. Ids in use can be guessed. The
 * network stops the run if bytes move where nothing is registered. Each input is
 * sent twice: once to a pipeline that keeps nothing, and once to one that has
 * both its buffers registered, so that the send offers a key and the receive
 * would read what node 1 offers.
 */
#include "fuzz.h"

#include "../inside/pipeline_inside.h"
#include "../../bench/wire/wire_sim.h"

#include <string.h>

static void fuzz_ignore_am(void *arg, unsigned peer, const void *header,
                           size_t header_length, const void *payload,
                           size_t length)
{
}

static void fuzz_ignore_failed(void *arg, unsigned peer, ucs_status_t status)
{
}

#define FUZZ_LENGTH 20000

static char fuzz_in[FUZZ_LENGTH], fuzz_out[FUZZ_LENGTH], fuzz_back[FUZZ_LENGTH];

/* Nodes 0 and 2 have pipelines, node 1 is the peer */
typedef struct fuzz {
    ucp_wire_sim_t *sim;
    ucx_pipeline_h pipeline, other;
    ucp_wire_t     *peer;
} fuzz_t;

static ucx_pipeline_h fuzz_pipeline(fuzz_t *fuzz, unsigned node, int is_kept)
{
    ucx_pipeline_options_t options = {.size  = sizeof(options),
                                      .eager = 64, .rdma_offset = 256,
                                      .fragment = 4096, .depth = 2};
    ucx_pipeline_h pipeline;
    ucp_wire_t *wire;

    if (is_kept) {
        options.mode        = UCX_PIPELINE_MODE_CACHE;
        options.rdma_offset = UCX_PIPELINE_DERIVED;
        options.fragment    = 32768;
        options.cache_bytes = 1 << 20;
    }
    if ((ucp_wire_sim_open(fuzz->sim, node, NULL, &wire) != UCS_OK) ||
        (ucp_pipeline_create(wire, &options, &pipeline) != UCS_OK)) {
        abort();
    }
    return pipeline;
}

static void fuzz_run(fuzz_t *fuzz)
{
    int node;

    while ((node = ucp_wire_sim_next(fuzz->sim)) >= 0) {
        if (node == 1) {
            ucp_wire_progress(fuzz->peer);
        } else {
            ucx_pipeline_progress((node == 0) ? fuzz->pipeline : fuzz->other);
        }
    }
}

/* A message between the two pipelines */
static void fuzz_message(fuzz_t *fuzz, ucx_pipeline_h from, char *out,
                         ucx_pipeline_h to, char *in)
{
    unsigned to_node = (to == fuzz->pipeline) ? 0 : 2;
    ucx_pipeline_request_h send, recv;

    if ((ucx_pipeline_recv(to, 2 - to_node, 0, 0, in, FUZZ_LENGTH, &recv) !=
         UCS_OK) ||
        (ucx_pipeline_send(from, to_node, 0, out, FUZZ_LENGTH, &send) !=
         UCS_OK)) {
        abort();
    }
    fuzz_run(fuzz);
    if ((ucx_pipeline_request_free(send) != UCS_OK) ||
        (ucx_pipeline_request_free(recv) != UCS_OK)) {
        abort();
    }
}

static void fuzz_open(fuzz_t *fuzz, int is_kept)
{
    ucp_wire_handlers_t handlers = {fuzz_ignore_am, fuzz_ignore_failed, NULL};
    ucp_wire_sim_params_t params = {.num_nodes = 3, .seed = 1, .latency = 10};
    unsigned i;

    if (is_kept) {
        params.copy_per_byte = 1;
        params.reg_base      = 1000;
    }
    fuzz->sim = ucp_wire_sim_create(&params);
    if ((fuzz->sim == NULL) ||
        (ucp_wire_sim_open(fuzz->sim, 1, &handlers, &fuzz->peer) != UCS_OK)) {
        abort();
    }
    fuzz->pipeline = fuzz_pipeline(fuzz, 0, is_kept);
    fuzz->other    = fuzz_pipeline(fuzz, 2, is_kept);
    for (i = 0; is_kept && (i < 4); ++i) {
        fuzz_message(fuzz, fuzz->pipeline, fuzz_out, fuzz->other, fuzz_back);
        fuzz_message(fuzz, fuzz->other, fuzz_back, fuzz->pipeline, fuzz_in);
    }
}

static void fuzz_close(fuzz_t *fuzz)
{
    ucp_wire_sim_kill(fuzz->sim, 1);
    fuzz_run(fuzz);
    ucp_pipeline_abandon(fuzz->pipeline);
    ucp_pipeline_abandon(fuzz->other);
    ucp_wire_destroy(fuzz->peer);
    if (ucp_wire_sim_errors(fuzz->sim) > 0) {
        abort();
    }
    ucp_wire_sim_destroy(fuzz->sim);
}

static void fuzz_once(const uint8_t *data, size_t size, int is_kept)
{
    ucx_pipeline_request_h req;
    size_t header, length;
    fuzz_t fuzz;

    fuzz_open(&fuzz, is_kept);
    if ((ucx_pipeline_recv(fuzz.pipeline, 1, 0, 0, fuzz_in, FUZZ_LENGTH,
                           &req) != UCS_OK) ||
        (ucx_pipeline_send(fuzz.pipeline, 1, 0, fuzz_out, FUZZ_LENGTH, &req) !=
         UCS_OK)) {
        abort();
    }
    while (size >= 2) {
        header = data[0];
        length = data[1];
        data  += 2;
        size  -= 2;
        header = (header < size) ? header : size;
        length = (length < size - header) ? length : size - header;
        ucp_wire_am_send(fuzz.peer, 0, data, header, data + header, length,
                         NULL, NULL);
        data += header + length;
        size -= header + length;
        fuzz_run(&fuzz);
    }
    fuzz_close(&fuzz);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_once(data, size, 0);
    fuzz_once(data, size, 1);
    return 0;
}

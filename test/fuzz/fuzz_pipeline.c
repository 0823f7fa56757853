/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * What a peer sends to a pipeline. Node 0 has a pipeline with a receive and a
 * send under way; node 1 sends the input, cut into messages: one byte of header
 * length, one of payload length, then both. Ids in use can be guessed. The
 * network stops the run if bytes move where nothing is registered.
 */
#include <ucp/pipeline/pipeline_core.h>
#include <ucp/wire/wire_sim.h>

#include <stdlib.h>
#include <string.h>

static void fuzz_ignore_am(void *arg, unsigned peer, const void *header,
                           size_t header_length, const void *payload,
                           size_t length)
{
    (void)arg, (void)peer, (void)header, (void)header_length, (void)payload;
    (void)length;
}

static void fuzz_ignore_failed(void *arg, unsigned peer, ucs_status_t status)
{
    (void)arg, (void)peer, (void)status;
}

static ucs_status_t fuzz_wire(void *arg, const ucp_wire_handlers_t *handlers,
                              ucp_wire_t **wire_p)
{
    return ucp_wire_sim_open(arg, 0, handlers, wire_p);
}

static void fuzz_run(ucp_wire_sim_t *sim, ucx_pipeline_h pipeline,
                     ucp_wire_t *peer)
{
    int node;

    while ((node = ucp_wire_sim_next(sim)) >= 0) {
        if (node == 0) {
            ucx_pipeline_progress(pipeline);
        } else {
            ucp_wire_progress(peer);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char in[20000], out[20000];
    ucp_wire_handlers_t handlers = {fuzz_ignore_am, fuzz_ignore_failed, NULL};
    ucp_wire_sim_params_t params = {.num_nodes = 2, .seed = 1, .latency = 10};
    ucx_pipeline_options_t options = {.size  = sizeof(options),
                                      .eager = 64, .rdma_offset = 256,
                                      .fragment = 4096, .depth = 2};
    ucx_pipeline_request_h req;
    ucx_pipeline_h pipeline;
    ucp_wire_sim_t *sim;
    ucp_wire_t *peer;

    sim = ucp_wire_sim_create(&params);
    if ((sim == NULL) ||
        (ucp_wire_sim_open(sim, 1, &handlers, &peer) != UCS_OK) ||
        (ucp_pipeline_create(fuzz_wire, sim, &options, &pipeline) != UCS_OK) ||
        (ucx_pipeline_recv(pipeline, 1, 0, 0, in, sizeof(in), &req) !=
         UCS_OK) ||
        (ucx_pipeline_send(pipeline, 1, 0, out, sizeof(out), &req) != UCS_OK)) {
        abort();
    }
    while (size >= 2) {
        size_t header = data[0], length = data[1];
        data         += 2;
        size         -= 2;
        header        = (header < size) ? header : size;
        length        = (length < size - header) ? length : size - header;
        ucp_wire_am_send(peer, 0, data, header, data + header, length, NULL,
                         NULL);
        data += header + length;
        size -= header + length;
        fuzz_run(sim, pipeline, peer);
    }
    ucp_wire_sim_kill(sim, 1);
    fuzz_run(sim, pipeline, peer);
    ucp_pipeline_abandon(pipeline);
    ucp_wire_destroy(peer);
    if (ucp_wire_sim_errors(sim) > 0) {
        abort();
    }
    ucp_wire_sim_destroy(sim);
    return 0;
}

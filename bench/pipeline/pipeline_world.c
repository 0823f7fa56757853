/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_model.h"

#include <tools/tool.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Nodes that run scripts over one system */

#define PIPE_TAG     1
#define PIPE_MAX_OPS 64 /* of a node at a time */

struct pipe_request {
    ucx_pipeline_request_h pipeline;
    pipe_rndv_request_t    *rndv;
};

typedef struct pipe_node {
    ucx_pipeline_h pipeline; /* this, or */
    pipe_rndv_t    *rndv;
    pipe_request_t ops[PIPE_MAX_OPS];
    unsigned       num_ops;
    int            has_ended;
} pipe_node_t;

struct pipe_world {
    ucp_wire_sim_t  *sim;
    unsigned        num_nodes;
    pipe_node_t     nodes[];
};

const char *pipe_system_names[PIPE_NUM_SYSTEMS] = {
    "leave_pinned", "helper", "copy", "pipeline", "caching"
};

void pipe_die(const char *format, ...)
{
    va_list ap;

    fprintf(stderr, "pipeline_model: ");
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    exit(2);
}

static int pipe_is_pipeline(pipe_system_t system)
{
    return system >= PIPE_COPY;
}

static ucx_pipeline_mode_t pipe_mode(pipe_system_t system)
{
    switch (system) {
    case PIPE_COPY:
        return UCX_PIPELINE_MODE_COPY;
    case PIPE_PIPELINE:
        return UCX_PIPELINE_MODE_PIPELINE;
    default:
        return UCX_PIPELINE_MODE_CACHE;
    }
}

static void pipe_node_open(pipe_world_t *world, unsigned index,
                           pipe_system_t system, const pipe_costs_t *costs)
{
    pipe_node_t *node = &world->nodes[index];
    ucx_pipeline_options_t options;
    ucp_wire_t *wire;

    if (!pipe_is_pipeline(system)) {
        node->rndv = pipe_rndv_open(world->sim, index, system, costs);
        return;
    }
    ucx_pipeline_options_init(&options);
    options.mode = pipe_mode(system);
    if ((ucp_wire_sim_open(world->sim, index, NULL, &wire) != UCS_OK) ||
        (ucp_pipeline_create(wire, &options, &node->pipeline) != UCS_OK)) {
        pipe_die("node %u has no pipeline", index);
    }
}

pipe_world_t *pipe_world_open(pipe_system_t system, const pipe_costs_t *costs,
                              unsigned num_nodes)
{
    ucp_wire_sim_params_t params = {
        .num_nodes     = num_nodes,
        .seed          = 1,
        .latency       = costs->latency_ns,
        .ns_per_byte   = costs->wire_ns,
        .copy_per_byte = costs->copy_ns,
        .send_cost     = costs->op_ns
    };
    pipe_world_t *world;
    unsigned i;

    /* the others pay in their cache */
    if (pipe_is_pipeline(system)) {
        params.reg_base       = costs->reg.base_ns;
        params.reg_per_page   = costs->reg.page_ns;
        params.dereg_base     = costs->dereg.base_ns;
        params.dereg_per_page = costs->dereg.page_ns;
    }
    world = calloc(1, sizeof(*world) + num_nodes * sizeof(world->nodes[0]));
    if (world == NULL) {
        pipe_die("no memory for %u nodes", num_nodes);
    }
    world->num_nodes = num_nodes;
    world->sim       = ucp_wire_sim_create(&params);
    if (world->sim == NULL) {
        pipe_die("no memory for a network");
    }
    for (i = 0; i < num_nodes; ++i) {
        pipe_node_open(world, i, system, costs);
    }
    return world;
}

void pipe_world_close(pipe_world_t *world)
{
    unsigned i;

    for (i = 0; i < world->num_nodes; ++i) {
        if (world->nodes[i].rndv != NULL) {
            pipe_rndv_close(world->nodes[i].rndv);
        } else if (ucx_pipeline_destroy(world->nodes[i].pipeline) != UCS_OK) {
            pipe_die("node %u is busy at the end", i);
        }
    }
    if (ucp_wire_sim_errors(world->sim) > 0) {
        pipe_die("the network found: %s", ucp_wire_sim_error(world->sim));
    }
    ucp_wire_sim_destroy(world->sim);
    free(world);
}

static pipe_request_t *pipe_request(pipe_node_t *node)
{
    if (node->num_ops == PIPE_MAX_OPS) {
        pipe_die("more than %u operations of a node", PIPE_MAX_OPS);
    }
    return &node->ops[node->num_ops++];
}

void pipe_send(pipe_world_t *world, unsigned index, unsigned peer,
               const void *buffer, size_t length)
{
    pipe_node_t *node   = &world->nodes[index];
    pipe_request_t *req = pipe_request(node);

    if (node->rndv != NULL) {
        req->rndv = pipe_rndv_send(node->rndv, peer, buffer, length);
    } else if (ucx_pipeline_send(node->pipeline, peer, PIPE_TAG, buffer, length,
                                 &req->pipeline) != UCS_OK) {
        pipe_die("node %u cannot send", index);
    }
}

void pipe_recv(pipe_world_t *world, unsigned index, unsigned peer, void *buffer,
               size_t length)
{
    pipe_node_t *node   = &world->nodes[index];
    pipe_request_t *req = pipe_request(node);

    if (node->rndv != NULL) {
        req->rndv = pipe_rndv_recv(node->rndv, peer, buffer, length);
    } else if (ucx_pipeline_recv(node->pipeline, peer, PIPE_TAG, UINT64_MAX,
                                 buffer, length, &req->pipeline) != UCS_OK) {
        pipe_die("node %u cannot receive", index);
    }
}

static int pipe_node_is_done(pipe_node_t *node)
{
    unsigned i;

    for (i = 0; i < node->num_ops; ++i) {
        if (node->rndv != NULL) {
            if (!pipe_rndv_test(node->ops[i].rndv)) {
                return 0;
            }
        } else if (!ucx_pipeline_test(node->ops[i].pipeline, NULL)) {
            return 0;
        }
    }
    return 1;
}

/* What was begun is complete: the script goes on */
static void pipe_node_go(pipe_world_t *world, unsigned index,
                         pipe_script_func_t script, void *arg)
{
    pipe_node_t *node = &world->nodes[index];
    unsigned i;

    while (!node->has_ended && pipe_node_is_done(node)) {
        for (i = 0; i < node->num_ops; ++i) {
            if (node->rndv != NULL) {
                pipe_rndv_free(node->ops[i].rndv);
            } else {
                ucx_pipeline_request_free(node->ops[i].pipeline);
            }
        }
        node->num_ops   = 0;
        node->has_ended = !script(arg, world, index);
    }
}

uint64_t pipe_world_run(pipe_world_t *world, pipe_script_func_t script,
                        void *arg)
{
    uint64_t start = 0, end = 0, time;
    unsigned i;
    int next;

    for (i = 0; i < world->num_nodes; ++i) {
        time  = ucp_wire_sim_time(world->sim, i);
        start = (time > start) ? time : start;
        world->nodes[i].has_ended = 0;
    }
    for (i = 0; i < world->num_nodes; ++i) { /* a barrier that costs nothing */
        ucp_wire_sim_work(world->sim, i,
                          start - ucp_wire_sim_time(world->sim, i));
    }
    for (i = 0; i < world->num_nodes; ++i) {
        pipe_node_go(world, i, script, arg);
    }
    while ((next = ucp_wire_sim_next(world->sim)) >= 0) {
        if (world->nodes[next].rndv != NULL) {
            pipe_rndv_progress(world->nodes[next].rndv);
        } else {
            ucx_pipeline_progress(world->nodes[next].pipeline);
        }
        pipe_node_go(world, next, script, arg);
    }
    for (i = 0; i < world->num_nodes; ++i) {
        if (!world->nodes[i].has_ended) {
            pipe_die("node %u waits for ever", i);
        }
        time = ucp_wire_sim_time(world->sim, i);
        end  = (time > end) ? time : end;
    }
    return end - start;
}

uint64_t pipe_world_time(const pipe_world_t *world, unsigned node)
{
    return ucp_wire_sim_time(world->sim, node);
}

size_t pipe_world_peak(const pipe_world_t *world)
{
    size_t peak = 0, bytes;
    ucp_wire_sim_stats_t stats;
    unsigned i;

    for (i = 0; i < world->num_nodes; ++i) {
        ucp_wire_sim_get_stats(world->sim, i, &stats);
        bytes = (world->nodes[i].rndv != NULL) ?
                pipe_rndv_peak(world->nodes[i].rndv) : stats.bytes_peak;
        peak = (bytes > peak) ? bytes : peak;
    }
    return peak;
}

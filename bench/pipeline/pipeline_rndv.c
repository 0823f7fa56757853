/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_model.h"

#include <tools/tool.h>
#include <ucs/datastruct/list.h>

#include <stdlib.h>
#include <string.h>

/*
 * A rendezvous as UCP's, over the virtual network. The sender registers and
 * tells its key, the receiver registers and reads: one after the other, as in
 * UCX over RDMA and in Open MPI of the paper's time, which looked the buffer up
 * before the first header left.
 *
 * Registrations go through the registration cache, in the virtual time of
 * src/tools/replay, whose helper thread has a processor of its own.
 */

/* Shorter ones are copied: UCX_RNDV_THRESH of the other benches */
#define PIPE_RNDV_THRESH (16 * 1024)

/* Median lateness of a helper that wakes up, as ucx-helper replay */
#define PIPE_LATENESS_NS 30000

typedef enum {
    PIPE_EAGER,
    PIPE_RTS, /* sender: here it is, with its key */
    PIPE_FIN  /* done, from the receiver */
} pipe_type_t;

typedef struct pipe_header {
    uint64_t type, length, address;
    uint64_t send, recv; /* requests, at their ends */
} pipe_header_t;

struct pipe_rndv_request {
    ucs_list_link_t     list;
    pipe_rndv_t         *self;
    unsigned            peer;
    char                *buffer;
    size_t              length;
    int                 is_complete;
    uint64_t            remote;
    ucs_regcache_memh_t memh;
    ucp_wire_mem_t      *mem;
    ucp_wire_key_t      *key;
};

/* What came before its receive, with what came with it */
typedef struct pipe_early {
    ucs_list_link_t list;
    unsigned        peer;
    pipe_header_t   header;
    size_t          length;
    char            bytes[];
} pipe_early_t;

struct pipe_rndv {
    ucp_wire_sim_t    *sim;
    ucp_wire_t        *wire;
    unsigned          node;
    replay_params_t   params;
    replay_process_t  process;
    size_t            bytes, peak; /* registered */
    ucs_list_link_t   posted, early;
};

static void pipe_rndv_arrived(void *arg, unsigned peer, const void *header,
                              size_t header_length, const void *payload,
                              size_t length);

static void pipe_rndv_lost(void *arg, unsigned peer, ucs_status_t status)
{
    pipe_die("peer %u: %s", peer, ucs_status_string(status));
}

static void pipe_rndv_pinned(void *arg, uint64_t time_ns, uint64_t bytes)
{
    pipe_rndv_t *self = arg;

    self->peak = (bytes > self->peak) ? bytes : self->peak;
}

pipe_rndv_t *pipe_rndv_open(ucp_wire_sim_t *sim, unsigned node,
                            pipe_system_t system, const pipe_costs_t *costs)
{
    pipe_rndv_t *self            = calloc(1, sizeof(*self));
    ucp_wire_handlers_t handlers = {pipe_rndv_arrived, pipe_rndv_lost, self};

    if ((self == NULL) ||
        (ucp_wire_sim_open(sim, node, &handlers, &self->wire) != UCS_OK)) {
        pipe_die("no memory for node %u", node);
    }
    self->sim                    = sim;
    self->node                   = node;
    self->params.policy          = (system == PIPE_HELPER) ?
                                           UCS_REGCACHE_POLICY_PREDICT :
                                           UCS_REGCACHE_POLICY_LEAVE_PINNED;
    self->params.max_pinned      = UINT64_MAX;
    self->params.register_cost   = costs->reg;
    self->params.deregister_cost = costs->dereg;
    self->params.lateness_ns     = PIPE_LATENESS_NS;
    self->params.seed            = node + 1;
    self->params.is_deaf         = 1;
    self->process.params         = &self->params;
    self->process.page_size      = 4096;
    self->process.on_pinned      = pipe_rndv_pinned;
    self->process.pinned_arg     = self;
    ucs_list_head_init(&self->posted);
    ucs_list_head_init(&self->early);
    if (replay_process_open(&self->process) != UCS_OK) {
        pipe_die("no registration cache for node %u", node);
    }
    return self;
}

void pipe_rndv_close(pipe_rndv_t *self)
{
    replay_process_settle(&self->process);
    replay_process_close(&self->process);
    ucp_wire_destroy(self->wire);
    free(self);
}

size_t pipe_rndv_peak(const pipe_rndv_t *self)
{
    return self->peak;
}

/* The cache's main thread stands where the node's processor stands */
static void pipe_rndv_enter(pipe_rndv_t *self)
{
    uint64_t now = ucp_wire_time(self->wire);

    while (replay_process_help_time(&self->process) <= now) {
        replay_process_help(&self->process);
    }
    self->process.main_ns = now;
}

static void pipe_rndv_leave(pipe_rndv_t *self)
{
    ucp_wire_sim_work(self->sim, self->node,
                      self->process.main_ns - ucp_wire_time(self->wire));
}

/* Where the buffer is registered: one call site sends, another receives */
static void pipe_rndv_register(pipe_rndv_request_t *req, uint64_t site)
{
    pipe_rndv_t *self = req->self;

    pipe_rndv_enter(self);
    req->memh = replay_process_get(&self->process, (uintptr_t)req->buffer,
                                   req->length, 1, site);
    pipe_rndv_leave(self);
    if ((req->memh == NULL) ||
        (ucp_wire_mem_reg(self->wire, req->buffer, req->length, &req->mem) !=
         UCS_OK)) {
        pipe_die("a registration failed");
    }
}

static void pipe_rndv_release(pipe_rndv_request_t *req)
{
    pipe_rndv_t *self = req->self;

    if (req->key != NULL) {
        ucp_wire_key_release(self->wire, req->key);
    }
    ucp_wire_mem_dereg(self->wire, req->mem);
    pipe_rndv_enter(self);
    replay_process_put(&self->process, req->memh);
    pipe_rndv_leave(self);
    req->is_complete = 1;
}

/* A header about the request @a send of the sender, and in an RTS the key */
static void pipe_rndv_post(pipe_rndv_request_t *req, pipe_type_t type,
                           uint64_t send)
{
    pipe_header_t header = {type, req->length, (uintptr_t)req->buffer, send,
                            (uintptr_t)req};
    char bytes[256];
    const void *key;
    size_t length = 0;

    memcpy(bytes, &header, sizeof(header));
    if (type == PIPE_RTS) {
        if ((ucp_wire_mem_pack(req->self->wire, req->mem, &key, &length) !=
             UCS_OK) || (length > sizeof(bytes) - sizeof(header))) {
            pipe_die("a key cannot be packed");
        }
        memcpy(bytes + sizeof(header), key, length);
    }
    if (UCS_STATUS_IS_ERR(ucp_wire_am_send(req->self->wire, req->peer, bytes,
                                           sizeof(header) + length, NULL, 0,
                                           NULL, NULL))) {
        pipe_die("a message cannot be sent");
    }
}

static pipe_rndv_request_t *pipe_rndv_new(pipe_rndv_t *self, unsigned peer,
                                          char *buffer, size_t length)
{
    pipe_rndv_request_t *req = calloc(1, sizeof(*req));

    if (req == NULL) {
        pipe_die("no memory for a request");
    }
    req->self   = self;
    req->peer   = peer;
    req->buffer = buffer;
    req->length = length;
    ucs_list_head_init(&req->list);
    return req;
}

static void pipe_rndv_sent(void *arg, ucs_status_t status)
{
    ((pipe_rndv_request_t*)arg)->is_complete = 1;
}

pipe_rndv_request_t *pipe_rndv_send(pipe_rndv_t *self, unsigned peer,
                                    const void *buffer, size_t length)
{
    pipe_rndv_request_t *req = pipe_rndv_new(self, peer, (char*)buffer, length);
    pipe_header_t header     = {PIPE_EAGER, length, 0, (uintptr_t)req, 0};
    ucs_status_t status;

    if (length < PIPE_RNDV_THRESH) {
        status = ucp_wire_am_send(self->wire, peer, &header, sizeof(header),
                                  buffer, length, pipe_rndv_sent, req);
        req->is_complete = status == UCS_OK;
    } else {
        pipe_rndv_register(req, 1);
        pipe_rndv_post(req, PIPE_RTS, (uintptr_t)req);
    }
    return req;
}

static void pipe_rndv_moved(void *arg, ucs_status_t status)
{
    pipe_rndv_request_t *req = arg;

    if (status != UCS_OK) {
        pipe_die("bytes did not move: %s", ucs_status_string(status));
    }
    pipe_rndv_post(req, PIPE_FIN, req->remote);
    pipe_rndv_release(req);
}

/* The message for a receive is there */
static void pipe_rndv_match(pipe_rndv_request_t *req,
                            const pipe_header_t *header, const void *key,
                            size_t key_length, const void *bytes)
{
    if (header->length != req->length) {
        pipe_die("a receive of another length");
    }
    req->remote = header->send;
    if (header->type == PIPE_EAGER) {
        memcpy(req->buffer, bytes, header->length);
        req->is_complete = 1;
        return;
    }
    pipe_rndv_register(req, 2);
    if (ucp_wire_key_unpack(req->self->wire, req->peer, key, key_length,
                            &req->key) != UCS_OK) {
        pipe_die("a key cannot be used");
    }
    (void)ucp_wire_move(req->self->wire, req->peer, 0, req->mem, req->buffer,
                        req->length, header->address, req->key, pipe_rndv_moved,
                        req);
}

static void pipe_rndv_came(pipe_rndv_t *self, unsigned peer,
                           const pipe_header_t *header, const void *key,
                           size_t key_length, const void *bytes, size_t length)
{
    pipe_rndv_request_t *req;
    pipe_early_t *early;

    ucs_list_for_each(req, &self->posted, list) {
        if (req->peer == peer) {
            ucs_list_del(&req->list);
            ucs_list_head_init(&req->list);
            pipe_rndv_match(req, header, key, key_length, bytes);
            return;
        }
    }
    early         = tool_realloc(NULL, sizeof(*early) + key_length + length);
    early->peer   = peer;
    early->header = *header;
    early->length = key_length;
    memcpy(early->bytes, key, key_length);
    if (length > 0) {
        memcpy(early->bytes + key_length, bytes, length);
    }
    ucs_list_add_tail(&self->early, &early->list);
}

pipe_rndv_request_t *pipe_rndv_recv(pipe_rndv_t *self, unsigned peer,
                                    void *buffer, size_t length)
{
    pipe_rndv_request_t *req = pipe_rndv_new(self, peer, buffer, length);
    pipe_early_t *early;

    ucs_list_for_each(early, &self->early, list) {
        if (early->peer == peer) {
            ucs_list_del(&early->list);
            pipe_rndv_match(req, &early->header, early->bytes, early->length,
                            early->bytes + early->length);
            free(early);
            return req;
        }
    }
    ucs_list_add_tail(&self->posted, &req->list);
    return req;
}

static void pipe_rndv_arrived(void *arg, unsigned peer, const void *header,
                              size_t header_length, const void *payload,
                              size_t length)
{
    const void *key = (const char*)header + sizeof(pipe_header_t);
    size_t key_length = header_length - sizeof(pipe_header_t);
    pipe_header_t first;

    memcpy(&first, header, sizeof(first));
    if (first.type == PIPE_FIN) {
        pipe_rndv_release((pipe_rndv_request_t*)(uintptr_t)first.send);
    } else {
        pipe_rndv_came(arg, peer, &first, key, key_length, payload, length);
    }
}

int pipe_rndv_test(const pipe_rndv_request_t *req)
{
    return req->is_complete;
}

void pipe_rndv_free(pipe_rndv_request_t *req)
{
    free(req);
}

unsigned pipe_rndv_progress(pipe_rndv_t *self)
{
    return ucp_wire_progress(self->wire);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <ucp/wire/wire_null.h>

#include <ucs/datastruct/list.h>

#include <stdlib.h>
#include <string.h>

typedef struct ucp_wire_null_message {
    ucs_list_link_t link;
    unsigned        from;
    size_t          header_length;
    size_t          length;
    char            bytes[];
} ucp_wire_null_message_t;

typedef struct ucp_wire_null_node {
    ucp_wire_t      super;
    ucp_wire_null_t *null;
    ucs_list_link_t inbox;
} ucp_wire_null_node_t;

struct ucp_wire_null {
    unsigned             num_nodes;
    uint64_t             moves;
    ucp_wire_null_node_t nodes[];
};

/* What all registrations and all keys are: nothing is behind them */
struct ucp_wire_mem {
    uint64_t packed;
};

struct ucp_wire_key {
    uint64_t packed;
};

static struct ucp_wire_mem ucp_wire_null_mem;
static struct ucp_wire_key ucp_wire_null_key;

static ucs_status_t
ucp_wire_null_am_send(ucp_wire_t *wire, unsigned peer, const void *header,
                      size_t header_length, const void *payload, size_t length,
                      ucp_wire_done_func_t done, void *arg)
{
    ucp_wire_null_node_t *node = (ucp_wire_null_node_t*)wire;
    ucp_wire_null_message_t *message;

    (void)done; /* copied: it has ended */
    (void)arg;
    if (peer >= wire->num_peers) {
        return UCS_ERR_INVALID_PARAM;
    }
    message = malloc(sizeof(*message) + header_length + length);
    if (message == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    message->from          = wire->self;
    message->header_length = header_length;
    message->length        = length;
    memcpy(message->bytes, header, header_length);
    if (length > 0) {
        memcpy(message->bytes + header_length, payload, length);
    }
    ucs_list_add_tail(&node->null->nodes[peer].inbox, &message->link);
    return UCS_OK;
}

static ucs_status_t ucp_wire_null_mem_reg(ucp_wire_t *wire, void *address,
                                          size_t length, ucp_wire_mem_t **mem_p)
{
    (void)wire;
    (void)address;
    (void)length;
    *mem_p = &ucp_wire_null_mem;
    return UCS_OK;
}

static void ucp_wire_null_mem_dereg(ucp_wire_t *wire, ucp_wire_mem_t *mem)
{
    (void)wire;
    (void)mem;
}

static ucs_status_t
ucp_wire_null_mem_pack(ucp_wire_t *wire, ucp_wire_mem_t *mem,
                       const void **packed_p, size_t *length_p)
{
    (void)wire;
    *packed_p = &mem->packed;
    *length_p = sizeof(mem->packed);
    return UCS_OK;
}

static ucs_status_t ucp_wire_null_key_unpack(ucp_wire_t *wire, unsigned peer,
                                             const void *packed, size_t length,
                                             ucp_wire_key_t **key_p)
{
    (void)wire;
    (void)peer;
    (void)packed;
    *key_p = &ucp_wire_null_key;
    return (length == sizeof(uint64_t)) ? UCS_OK : UCS_ERR_INVALID_PARAM;
}

static void ucp_wire_null_key_release(ucp_wire_t *wire, ucp_wire_key_t *key)
{
    (void)wire;
    (void)key;
}

static ucs_status_t
ucp_wire_null_move(ucp_wire_t *wire, unsigned peer, ucp_wire_mem_t *mem,
                   const void *buffer, size_t length, uint64_t remote,
                   ucp_wire_key_t *key, ucp_wire_done_func_t done, void *arg)
{
    (void)peer;
    (void)mem;
    (void)buffer;
    (void)length;
    (void)remote;
    (void)key;
    (void)done;
    (void)arg;
    ++((ucp_wire_null_node_t*)wire)->null->moves;
    return UCS_OK;
}

static ucs_status_t
ucp_wire_null_get(ucp_wire_t *wire, unsigned peer, ucp_wire_mem_t *mem,
                  void *buffer, size_t length, uint64_t remote,
                  ucp_wire_key_t *key, ucp_wire_done_func_t done, void *arg)
{
    return ucp_wire_null_move(wire, peer, mem, buffer, length, remote, key,
                              done, arg);
}

static ucs_status_t ucp_wire_null_flush(ucp_wire_t *wire, unsigned peer,
                                        ucp_wire_done_func_t done, void *arg)
{
    (void)wire;
    (void)peer;
    (void)done;
    (void)arg;
    return UCS_OK;
}

static unsigned ucp_wire_null_progress(ucp_wire_t *wire)
{
    ucp_wire_null_node_t *node = (ucp_wire_null_node_t*)wire;
    ucp_wire_null_message_t *message;

    if (ucs_list_is_empty(&node->inbox)) {
        return 0;
    }
    message = ucs_list_extract_head(&node->inbox, ucp_wire_null_message_t,
                                    link);
    wire->handlers.am(wire->handlers.arg, message->from, message->bytes,
                      message->header_length,
                      message->bytes + message->header_length, message->length);
    free(message);
    return 1;
}

static uint64_t ucp_wire_null_time(ucp_wire_t *wire)
{
    return ((ucp_wire_null_node_t*)wire)->null->moves;
}

static void ucp_wire_null_close(ucp_wire_t *wire)
{
    ucp_wire_null_node_t *node = (ucp_wire_null_node_t*)wire;

    while (!ucs_list_is_empty(&node->inbox)) {
        free(ucs_list_extract_head(&node->inbox, ucp_wire_null_message_t,
                                   link));
    }
}

static const ucp_wire_ops_t ucp_wire_null_ops = {
    .am_send     = ucp_wire_null_am_send,
    .mem_reg     = ucp_wire_null_mem_reg,
    .mem_dereg   = ucp_wire_null_mem_dereg,
    .mem_pack    = ucp_wire_null_mem_pack,
    .key_unpack  = ucp_wire_null_key_unpack,
    .key_release = ucp_wire_null_key_release,
    .put         = ucp_wire_null_move,
    .get         = ucp_wire_null_get,
    .flush       = ucp_wire_null_flush,
    .progress    = ucp_wire_null_progress,
    .time        = ucp_wire_null_time,
    .destroy     = ucp_wire_null_close
};

ucp_wire_null_t *ucp_wire_null_create(unsigned num_nodes)
{
    ucp_wire_null_t *null;
    unsigned i;

    null = calloc(1, sizeof(*null) + num_nodes * sizeof(null->nodes[0]));
    if (null == NULL) {
        return NULL;
    }
    null->num_nodes = num_nodes;
    for (i = 0; i < num_nodes; ++i) {
        null->nodes[i].null = null;
        ucs_list_head_init(&null->nodes[i].inbox);
    }
    return null;
}

void ucp_wire_null_destroy(ucp_wire_null_t *null)
{
    free(null);
}

void ucp_wire_null_open(ucp_wire_null_t *null, unsigned node,
                        const ucp_wire_handlers_t *handlers,
                        ucp_wire_t **wire_p)
{
    ucp_wire_null_node_t *self = &null->nodes[node];

    self->super.ops         = &ucp_wire_null_ops;
    self->super.handlers    = *handlers;
    self->super.self        = node;
    self->super.num_peers   = null->num_nodes;
    self->super.max_header  = UCP_WIRE_MAX_HEADER;
    self->super.max_payload = 65536;
    *wire_p                 = &self->super;
}

uint64_t ucp_wire_null_moves(const ucp_wire_null_t *null)
{
    return null->moves;
}

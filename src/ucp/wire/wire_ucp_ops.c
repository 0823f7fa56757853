/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/wire/wire_ucp_int.h>

#include <ucs/sys/clock.h>

#include <stdlib.h>
#include <string.h>

/* @return The peer if it is connected and well, else NULL and why not */
static ucp_wire_ucp_peer_t *
ucp_wire_ucp_peer(ucp_wire_ucp_t *self, unsigned peer, ucs_status_t *status_p)
{
    if (peer >= self->super.num_peers) {
        *status_p = UCS_ERR_INVALID_PARAM;
        return NULL;
    }
    if (self->peers[peer].status != UCS_OK) {
        *status_p = self->peers[peer].status;
        return NULL;
    }
    if (self->peers[peer].ep == NULL) {
        *status_p = UCS_ERR_NOT_CONNECTED;
        return NULL;
    }
    return &self->peers[peer];
}

/* An operation to a peer, with `extra` bytes behind it; NULL: no memory */
static ucp_wire_ucp_op_t *
ucp_wire_ucp_op(ucp_wire_ucp_t *self, unsigned peer, size_t extra,
                ucp_wire_done_func_t done, void *arg)
{
    ucp_wire_ucp_op_t *op = (extra == 0) ? self->spare : NULL;

    if (op != NULL) {
        self->spare = op->next;
    } else {
        op = malloc(sizeof(*op) + extra);
        if (op == NULL) {
            return NULL;
        }
        op->wire    = self;
        op->is_bare = extra == 0;
    }
    op->peer    = peer;
    op->is_lost = 0;
    op->done    = done;
    op->arg     = arg;
    return op;
}

/* What moves data all the time allocates nothing */
static void ucp_wire_ucp_op_release(ucp_wire_ucp_op_t *op)
{
    if (op->is_bare) {
        op->next        = op->wire->spare;
        op->wire->spare = op;
    } else {
        free(op);
    }
}

void ucp_wire_ucp_forget_ops(ucp_wire_ucp_t *self)
{
    ucp_wire_ucp_op_t *op;

    while (!ucs_list_is_empty(&self->lost)) {
        free(ucs_list_extract_head(&self->lost, ucp_wire_ucp_op_t, list));
    }
    while ((op = self->spare) != NULL) {
        self->spare = op->next;
        free(op);
    }
}

static void ucp_wire_ucp_op_ended(void *request, ucs_status_t status,
                                  void *user_data)
{
    ucp_wire_ucp_op_t *op = user_data;

    ucp_request_free(request);
    ucs_list_del(&op->list);
    if (!op->is_lost) {
        --op->wire->num_ops;
        if (op->done != NULL) {
            op->done(op->arg, status);
        }
    }
    ucp_wire_ucp_op_release(op);
}

/* UCP 1.13.1 never ends some of what was under way over shared memory when the
 * peer died, and a caller that waits for it would wait for ever */
void ucp_wire_ucp_lose_ops(ucp_wire_ucp_t *self, unsigned peer)
{
    ucp_wire_ucp_peer_t *gone = &self->peers[peer];
    ucp_wire_ucp_op_t *op;

    while (!ucs_list_is_empty(&gone->ops)) {
        op = ucs_list_extract_head(&gone->ops, ucp_wire_ucp_op_t, list);
        ucs_list_add_tail(&self->lost, &op->list);
        op->is_lost = 1;
        --self->num_ops;
        if (op->done != NULL) {
            op->done(op->arg, gone->status);
        }
    }
}

/* Parameters by which UCP calls the operation's end */
static void
ucp_wire_ucp_op_param(ucp_wire_ucp_op_t *op, ucp_request_param_t *param)
{
    /* UCP reads the fields that the mask names and no others */
    param->op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                          UCP_OP_ATTR_FIELD_USER_DATA;
    param->cb.send      = ucp_wire_ucp_op_ended;
    param->user_data    = op;
}

/* What UCP answered, as a status of ours; released unless it is in progress */
static ucs_status_t
ucp_wire_ucp_op_begun(ucp_wire_ucp_op_t *op, ucs_status_ptr_t result)
{
    if (UCS_PTR_IS_PTR(result)) {
        ++op->wire->num_ops;
        ucs_list_add_tail(&op->wire->peers[op->peer].ops, &op->list);
        return UCS_INPROGRESS;
    }
    ucp_wire_ucp_op_release(op);
    return UCS_PTR_STATUS(result);
}

static ucs_status_t ucp_wire_ucp_am_send(ucp_wire_t *wire, unsigned peer,
                                         const void *header,
                                         size_t header_length,
                                         const void *payload, size_t length,
                                         ucp_wire_done_func_t done, void *arg)
{
    ucp_wire_ucp_t *self        = (ucp_wire_ucp_t*)wire;
    ucp_wire_ucp_header_t first = {UCP_WIRE_MAGIC, wire->self, 0};
    size_t all                  = sizeof(first) + header_length;
    ucp_wire_ucp_peer_t *to;
    ucp_request_param_t param;
    ucp_wire_ucp_op_t *op;
    ucs_status_t status;

    if ((header_length > wire->max_header) || (length > wire->max_payload)) {
        return UCS_ERR_INVALID_PARAM;
    }
    to = ucp_wire_ucp_peer(self, peer, &status);
    if (to == NULL) {
        return status;
    }
    op = ucp_wire_ucp_op(self, peer, all + ((done == NULL) ? length : 0), done,
                         arg);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    first.number = to->sent++; /* a handler may send before this returns */
    memcpy(op->bytes, &first, sizeof(first));
    memcpy(op->bytes + sizeof(first), header, header_length);
    if ((done == NULL) && (length > 0)) {
        payload = memcpy(op->bytes + all, payload, length);
    }
    ucp_wire_ucp_op_param(op, &param);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags         = UCP_AM_SEND_FLAG_EAGER;
    status              = ucp_wire_ucp_op_begun(
            op, ucp_am_send_nbx(to->ep, UCP_WIRE_AM_ID, op->bytes, all, payload,
                                length, &param));
    if (UCS_STATUS_IS_ERR(status)) {
        --to->sent;
    }
    return status;
}

static ucs_status_t ucp_wire_ucp_mem_reg(ucp_wire_t *wire, void *address,
                                         size_t length, ucp_wire_mem_t **mem_p)
{
    ucp_wire_ucp_t *self        = (ucp_wire_ucp_t*)wire;
    ucp_mem_map_params_t params = {0};
    ucp_wire_mem_t *mem;
    ucs_status_t status;

    mem = calloc(1, sizeof(*mem));
    if (mem == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                        UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address    = address;
    params.length     = length;
    status            = ucp_mem_map(self->context, &params, &mem->memh);
    if (status != UCS_OK) {
        free(mem);
        return status;
    }
    *mem_p = mem;
    return UCS_OK;
}

static void ucp_wire_ucp_mem_dereg(ucp_wire_t *wire, ucp_wire_mem_t *mem)
{
    ucp_wire_ucp_t *self = (ucp_wire_ucp_t*)wire;

    if (mem->packed != NULL) {
        ucp_rkey_buffer_release(mem->packed);
    }
    ucp_mem_unmap(self->context, mem->memh);
    free(mem);
}

static ucs_status_t ucp_wire_ucp_mem_pack(ucp_wire_t *wire, ucp_wire_mem_t *mem,
                                          const void **packed_p,
                                          size_t *length_p)
{
    ucp_wire_ucp_t *self = (ucp_wire_ucp_t*)wire;
    ucs_status_t status;

    if (mem->packed == NULL) {
        status = ucp_rkey_pack(self->context, mem->memh, &mem->packed,
                               &mem->packed_length);
        if (status != UCS_OK) {
            mem->packed = NULL;
            return status;
        }
    }
    *packed_p = mem->packed;
    *length_p = mem->packed_length;
    return UCS_OK;
}

static ucs_status_t ucp_wire_ucp_key_unpack(ucp_wire_t *wire, unsigned peer,
                                            const void *packed, size_t length,
                                            ucp_wire_key_t **key_p)
{
    ucp_wire_ucp_peer_t *from;
    ucp_rkey_h rkey;
    ucs_status_t status;

    from = ucp_wire_ucp_peer((ucp_wire_ucp_t*)wire, peer, &status);
    if (from == NULL) {
        return status;
    }
    if (length < sizeof(uint64_t)) { /* less than its map of domains */
        return UCS_ERR_INVALID_PARAM;
    }
    status = ucp_ep_rkey_unpack(from->ep, packed, &rkey);
    if (status == UCS_OK) {
        *key_p = (ucp_wire_key_t*)rkey;
    }
    return status;
}

static void ucp_wire_ucp_key_release(ucp_wire_t *wire, ucp_wire_key_t *key)
{
    ucp_rkey_destroy((ucp_rkey_h)key);
}

/* An operation of a peer that has no bytes of its own; @a mem is NULL if it moves
 * no data. @return NULL, and why not. */
static ucp_wire_ucp_op_t *
ucp_wire_ucp_begin(ucp_wire_t *wire, unsigned peer, ucp_wire_mem_t *mem,
                   ucp_wire_done_func_t done, void *arg,
                   ucp_request_param_t *param, ucs_status_t *status_p)
{
    ucp_wire_ucp_t *self = (ucp_wire_ucp_t*)wire;
    ucp_wire_ucp_op_t *op;

    if (ucp_wire_ucp_peer(self, peer, status_p) == NULL) {
        return NULL;
    }
    op = ucp_wire_ucp_op(self, peer, 0, done, arg);
    if (op == NULL) {
        *status_p = UCS_ERR_NO_MEMORY;
        return NULL;
    }
    ucp_wire_ucp_op_param(op, param);
    if (mem != NULL) {
        param->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param->memh          = mem->memh;
    }
    return op;
}

static ucp_ep_h ucp_wire_ucp_op_ep(const ucp_wire_ucp_op_t *op)
{
    return op->wire->peers[op->peer].ep;
}

static ucs_status_t
ucp_wire_ucp_move(ucp_wire_t *wire, unsigned peer, int is_put,
                  ucp_wire_mem_t *mem, void *buffer, size_t length,
                  uint64_t remote, ucp_wire_key_t *key,
                  ucp_wire_done_func_t done, void *arg)
{
    ucp_request_param_t param;
    ucs_status_t status;
    ucp_wire_ucp_op_t *op = ucp_wire_ucp_begin(wire, peer, mem, done, arg,
                                               &param, &status);

    if (op == NULL) {
        return status;
    }
    return ucp_wire_ucp_op_begun(
            op, is_put ? ucp_put_nbx(ucp_wire_ucp_op_ep(op), buffer, length,
                                     remote, (ucp_rkey_h)key, &param) :
                         ucp_get_nbx(ucp_wire_ucp_op_ep(op), buffer, length,
                                     remote, (ucp_rkey_h)key, &param));
}

static ucs_status_t ucp_wire_ucp_flush(ucp_wire_t *wire, unsigned peer,
                                       ucp_wire_done_func_t done, void *arg)
{
    ucp_request_param_t param;
    ucs_status_t status;
    ucp_wire_ucp_op_t *op = ucp_wire_ucp_begin(wire, peer, NULL, done, arg,
                                               &param, &status);

    return (op == NULL) ?
                   status :
                   ucp_wire_ucp_op_begun(
                           op,
                           ucp_ep_flush_nbx(ucp_wire_ucp_op_ep(op), &param));
}

static uint64_t ucp_wire_ucp_time(ucp_wire_t *wire)
{
    return ucs_clock_monotonic();
}

const ucp_wire_ops_t ucp_wire_ucp_ops = {
    .am_send     = ucp_wire_ucp_am_send,
    .mem_reg     = ucp_wire_ucp_mem_reg,
    .mem_dereg   = ucp_wire_ucp_mem_dereg,
    .mem_pack    = ucp_wire_ucp_mem_pack,
    .key_unpack  = ucp_wire_ucp_key_unpack,
    .key_release = ucp_wire_ucp_key_release,
    .move        = ucp_wire_ucp_move,
    .flush       = ucp_wire_ucp_flush,
    .progress    = ucp_wire_ucp_progress,
    .time        = ucp_wire_ucp_time,
    .destroy     = ucp_wire_ucp_destroy
};

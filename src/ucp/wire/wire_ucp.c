/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/wire/wire_ucp_int.h>

#include <ucs/sys/clock.h>

#include <stdlib.h>

#define UCP_WIRE_CLOSE_NS (UCP_WIRE_CLOSE_SECONDS * UCS_CLOCK_NSEC_PER_SEC)

/* UCP calls this from progress. The endpoint is closed later, by progress
 * itself, for UCP may still be walking it. */
static void ucp_wire_ucp_ep_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ucp_wire_ucp_t *self = arg;
    unsigned i;

    for (i = 0; i < self->super.num_peers; ++i) {
        if ((self->peers[i].ep == ep) && (self->peers[i].status == UCS_OK)) {
            self->peers[i].status = status;
            ++self->num_failed;
        }
    }
}

/* Close an endpoint. `force` drops what is under way, with an error. */
static ucs_status_ptr_t ucp_wire_ucp_close(ucp_wire_ucp_peer_t *peer, int force)
{
    ucp_request_param_t param = {0};
    ucs_status_ptr_t request;

    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags        = force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    request            = ucp_ep_close_nbx(peer->ep, &param);
    peer->ep           = NULL;
    return request;
}

static void ucp_wire_ucp_tell_failed(ucp_wire_ucp_t *self)
{
    ucp_wire_ucp_peer_t *peer;
    unsigned i;

    for (i = 0; i < self->super.num_peers; ++i) {
        peer = &self->peers[i];
        if ((peer->status == UCS_OK) || peer->told) {
            continue;
        }
        --self->num_failed;
        peer->told = 1;
        ucp_wire_ucp_forget_early(peer);
        peer->closing = ucp_wire_ucp_close(peer, 1);
        peer->give_up = ucs_clock_monotonic() + UCP_WIRE_CLOSE_NS;
        ++self->num_closing;
        self->super.handlers.failed(self->super.handlers.arg, i, peer->status);
    }
}

/* A peer's operations are over once its endpoint is gone, whether UCP says so
 * or not */
static void ucp_wire_ucp_end_closing(ucp_wire_ucp_t *self)
{
    ucp_wire_ucp_peer_t *peer;
    unsigned i;

    for (i = 0; i < self->super.num_peers; ++i) {
        peer = &self->peers[i];
        if ((peer->give_up == 0) ||
            (UCS_PTR_IS_PTR(peer->closing) &&
             (ucp_request_check_status(peer->closing) == UCS_INPROGRESS) &&
             (ucs_clock_monotonic() < peer->give_up))) {
            continue;
        }
        if (UCS_PTR_IS_PTR(peer->closing)) {
            ucp_request_free(peer->closing);
        }
        peer->give_up = 0;
        --self->num_closing;
        ucp_wire_ucp_lose_ops(self, i);
    }
}

static void ucp_wire_ucp_hand_up_held(ucp_wire_ucp_t *self)
{
    unsigned i;

    self->held = 0;
    for (i = 0; i < self->super.num_peers; ++i) {
        ucp_wire_ucp_hand_up_early(self, i);
    }
}

unsigned ucp_wire_ucp_progress(ucp_wire_t *wire)
{
    ucp_wire_ucp_t *self = (ucp_wire_ucp_t*)wire;
    unsigned count;

    self->handed_up   = 0;
    self->progressing = 1;
    count             = ucp_worker_progress(self->worker);
    if (self->held) {
        ucp_wire_ucp_hand_up_held(self);
    }
    if (self->num_failed > 0) {
        ucp_wire_ucp_tell_failed(self);
        ++count;
    }
    if (self->num_closing > 0) {
        ucp_wire_ucp_end_closing(self);
    }
    self->progressing = 0;
    return count + self->handed_up;
}

/* Progress until nothing is under way, or for as long as the table allows. */
static void ucp_wire_ucp_drain(ucp_wire_ucp_t *self, ucs_status_ptr_t request)
{
    uint64_t end = ucs_clock_monotonic() + UCP_WIRE_CLOSE_NS;

    while ((self->num_ops > 0) ||
           (UCS_PTR_IS_PTR(request) &&
            (ucp_request_check_status(request) == UCS_INPROGRESS))) {
        ucp_worker_progress(self->worker);
        if (ucs_clock_monotonic() > end) {
            break;
        }
    }
}

/* No handler is called: what comes in now is kept until the worker has gone */
void ucp_wire_ucp_destroy(ucp_wire_t *wire)
{
    ucp_wire_ucp_t *self     = (ucp_wire_ucp_t*)wire;
    ucs_status_ptr_t request = NULL;
    ucp_wire_ucp_peer_t *peer;
    unsigned i;

    ucp_wire_ucp_drain(self, NULL);
    for (i = 0; i < wire->num_peers; ++i) {
        peer = &self->peers[i];
        if (peer->ep != NULL) {
            request = ucp_wire_ucp_close(peer, (peer->status != UCS_OK) ||
                                                       (self->num_ops > 0));
            ucp_wire_ucp_drain(self, request);
            if (UCS_PTR_IS_PTR(request)) {
                ucp_request_free(request);
            }
        }
        if ((peer->give_up > 0) && UCS_PTR_IS_PTR(peer->closing)) {
            ucp_request_free(peer->closing);
        }
    }
    ucp_worker_release_address(self->worker, self->address);
    ucp_worker_destroy(self->worker);
    ucp_cleanup(self->context);
    for (i = 0; i < wire->num_peers; ++i) {
        ucp_wire_ucp_forget_early(&self->peers[i]);
    }
    ucp_wire_ucp_forget_ops(self);
    free(self);
}

static ucs_status_t ucp_wire_ucp_init_context(ucp_wire_ucp_t *self)
{
    ucp_params_t params = {0};
    ucp_config_t *config;
    ucs_status_t status;

    status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }
    ucp_wire_ucp_configure(config);
    params.field_mask   = UCP_PARAM_FIELD_FEATURES |
                          UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    params.features     = UCP_FEATURE_AM | UCP_FEATURE_RMA;
    params.estimated_num_eps = self->super.num_peers;
    status              = ucp_init(&params, config, &self->context);
    ucp_config_release(config);
    return status;
}

static ucs_status_t ucp_wire_ucp_set_handler(ucp_wire_ucp_t *self)
{
    ucp_am_handler_param_t param = {0};

    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                       UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
    param.id         = UCP_WIRE_AM_ID;
    param.flags      = UCP_AM_FLAG_WHOLE_MSG;
    param.cb         = ucp_wire_ucp_arrived;
    param.arg        = self;
    return ucp_worker_set_am_recv_handler(self->worker, &param);
}

static void ucp_wire_ucp_set_limits(ucp_wire_ucp_t *self)
{
    ucp_worker_attr_t attr = {0};
    size_t limit           = UCP_WIRE_MAX_HEADER;

    attr.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
    if ((ucp_worker_query(self->worker, &attr) == UCS_OK) &&
        (attr.max_am_header < limit + sizeof(ucp_wire_ucp_header_t))) {
        limit = attr.max_am_header - sizeof(ucp_wire_ucp_header_t);
    }
    self->super.max_header  = limit;
    self->super.max_payload = UCP_WIRE_MAX_PAYLOAD;
}

static ucs_status_t ucp_wire_ucp_init_worker(ucp_wire_ucp_t *self)
{
    ucp_worker_params_t params = {0};
    ucs_status_t status;

    params.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    status = ucp_worker_create(self->context, &params, &self->worker);
    if (status != UCS_OK) {
        return status;
    }
    ucp_wire_ucp_set_limits(self);
    status = ucp_wire_ucp_set_handler(self);
    if (status == UCS_OK) {
        status = ucp_worker_get_address(self->worker, &self->address,
                                        &self->address_length);
    }
    if (status != UCS_OK) {
        ucp_worker_destroy(self->worker);
    }
    return status;
}

ucs_status_t ucp_wire_ucp_create(unsigned number, unsigned num_peers,
                                 ucp_wire_t **wire_p)
{
    ucp_wire_ucp_t *self;
    ucs_status_t status;
    unsigned i;

    if (number >= num_peers) {
        return UCS_ERR_INVALID_PARAM;
    }
    self = calloc(1, sizeof(*self) + num_peers * sizeof(*self->peers));
    if (self == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    self->super.ops       = &ucp_wire_ucp_ops;
    self->super.self      = number;
    self->super.num_peers = num_peers;
    ucs_list_head_init(&self->lost);
    for (i = 0; i < num_peers; ++i) {
        ucs_list_head_init(&self->peers[i].early);
        ucs_list_head_init(&self->peers[i].ops);
    }

    status = ucp_wire_ucp_init_context(self);
    if (status != UCS_OK) {
        goto err_free;
    }
    status = ucp_wire_ucp_init_worker(self);
    if (status != UCS_OK) {
        goto err_cleanup;
    }
    *wire_p = &self->super;
    return UCS_OK;

err_cleanup:
    ucp_cleanup(self->context);
err_free:
    free(self);
    return status;
}

void ucp_wire_ucp_address(ucp_wire_t *wire, const void **address_p,
                          size_t *length_p)
{
    ucp_wire_ucp_t *self = (ucp_wire_ucp_t*)wire;

    *address_p = self->address;
    *length_p  = self->address_length;
}

ucs_status_t ucp_wire_ucp_connect(ucp_wire_t *wire, unsigned peer,
                                  const void *address)
{
    ucp_wire_ucp_t *self   = (ucp_wire_ucp_t*)wire;
    ucp_ep_params_t params = {0};

    if (peer >= wire->num_peers) {
        return UCS_ERR_INVALID_PARAM;
    }
    if ((self->peers[peer].ep != NULL) || self->peers[peer].told) {
        return UCS_ERR_ALREADY_EXISTS;
    }
    params.field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                             UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                             UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address         = address;
    /* a process does not outlive itself, and UCP has no such handler for it */
    params.err_mode        = (peer == wire->self) ? UCP_ERR_HANDLING_MODE_NONE :
                                                    UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb  = ucp_wire_ucp_ep_failed;
    params.err_handler.arg = self;
    return ucp_ep_create(self->worker, &params, &self->peers[peer].ep);
}

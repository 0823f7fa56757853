/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>

#include <stdlib.h>
#include <string.h>

/* What MATCH says of where its message is registered: all of it, in as many
 * registrations as there are, or nothing. The sender holds them until its
 * receiver has read the message or asks for some of it. */

ucp_pipeline_offer_t *ucp_pipeline_offer_new(ucx_pipeline_request_h req,
                                             size_t end)
{
    ucp_pipeline_offer_t *offer = calloc(1, sizeof(*offer));

    if (offer != NULL) {
        offer->end = end;
        ucs_list_add_tail(&req->offers, &offer->list);
    }
    return offer;
}

static size_t ucp_pipeline_offer_start(ucx_pipeline_request_h req)
{
    return ucs_list_is_empty(&req->offers) ? 0 :
           ucs_list_tail(&req->offers, ucp_pipeline_offer_t, list)->end;
}

/* What is registered where the last offer ends. @return Bytes to be told, 0 if
 * it is none, or the rest of the message would not find room */
static size_t ucp_pipeline_offer_next(ucx_pipeline_request_h req, char *keys,
                                      size_t room)
{
    ucx_pipeline_h self     = req->pipeline;
    size_t start            = ucp_pipeline_offer_start(req);
    ucp_pipeline_reg_t *reg = ucp_pipeline_reg_find(req, start);
    ucp_pipeline_offer_t *offer;
    ucp_pipeline_told_t told;
    size_t length, rest;
    const void *key;

    if (reg == NULL) {
        return 0;
    }
    told.end = ucs_min(reg->end - (uintptr_t)req->buffer, req->total);
    offer    = ucp_pipeline_offer_new(req, told.end);
    if (offer == NULL) {
        ucp_pipeline_reg_put(self, reg);
        return 0;
    }
    offer->reg      = reg;
    told.key_length = ucp_pipeline_reg_pack(self, reg, &key);
    length          = sizeof(told) + told.key_length;
    rest            = (req->total - told.end) /
                      ucs_max(told.end - start, self->tune.fragment);
    if ((told.key_length == 0) || ((rest + 1) * length > room)) {
        return 0;
    }
    memcpy(keys, &told, sizeof(told));
    memcpy(keys + sizeof(told), key, told.key_length);
    return length;
}

/* @return Bytes of keys behind the header, 0 if nothing is offered */
size_t ucp_pipeline_offer_all(ucx_pipeline_request_h req,
                              ucp_pipeline_header_t *header, char *keys)
{
    size_t room = req->pipeline->wire->max_header - sizeof(*header), told = 0;
    size_t length;

    while (ucp_pipeline_offer_start(req) < req->total) {
        length = ucp_pipeline_offer_next(req, keys + told, room - told);
        if (length == 0) {
            ucp_pipeline_request_release(req);
            return 0;
        }
        told += length;
    }
    header->to = (uintptr_t)req->buffer;
    return told;
}

/* The message is asked for, so nothing is offered any more. @return What the
 * first offer has registered, if that goes as far as the first fragment: its
 * use is the caller's then. Others are found in the cache. */
ucp_pipeline_reg_t *ucp_pipeline_offer_withdraw(ucx_pipeline_request_h req,
                                                size_t end)
{
    ucp_pipeline_reg_t *reg = NULL;
    ucp_pipeline_offer_t *offer;

    if (!ucs_list_is_empty(&req->offers)) {
        offer = ucs_list_head(&req->offers, ucp_pipeline_offer_t, list);
        if (offer->end >= end) {
            reg        = offer->reg;
            offer->reg = NULL;
        }
        ucp_pipeline_request_release(req);
    }
    return reg;
}

/* @return Bytes that were read, 0 if they are no offer */
static size_t ucp_pipeline_offer_take_next(ucx_pipeline_request_h req,
                                           const char *keys, size_t length)
{
    ucp_pipeline_offer_t *offer;
    ucp_pipeline_told_t told;

    if (length < sizeof(told)) {
        return 0;
    }
    memcpy(&told, keys, sizeof(told));
    if ((told.end <= ucp_pipeline_offer_start(req)) ||
        (told.end > req->total) || (told.key_length == 0) ||
        (told.key_length > length - sizeof(told))) {
        return 0;
    }
    offer = ucp_pipeline_offer_new(req, told.end);
    if ((offer == NULL) ||
        (ucp_wire_key_unpack(req->pipeline->wire, req->peer,
                             keys + sizeof(told), told.key_length,
                             &offer->key) != UCS_OK)) {
        return 0;
    }
    return sizeof(told) + told.key_length;
}

/* Offers that cannot be any, or are not of all, are overlooked: the message is
 * asked for */
void ucp_pipeline_offer_take(ucx_pipeline_request_h req,
                             const ucp_pipeline_header_t *header,
                             const char *keys, size_t length)
{
    size_t taken = 1;

    if ((length == 0) || (req->next > 0) || (header->to == 0) ||
        (req->total > UINT64_MAX - header->to)) {
        return;
    }
    req->address = header->to;
    for (; (length > 0) && (taken > 0); keys += taken, length -= taken) {
        taken = ucp_pipeline_offer_take_next(req, keys, length);
    }
    if ((taken == 0) || (ucp_pipeline_offer_start(req) < req->total)) {
        ucp_pipeline_request_release(req);
    }
}

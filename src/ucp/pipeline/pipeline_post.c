/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <ucp/pipeline/pipeline_int.h>

#include <stdlib.h>
#include <string.h>

/* A message that the wire has no memory for is tried again at each progress,
 * and those to the same peer wait behind it: their order is what the protocol
 * rests on. */

static int ucp_pipeline_is_late(ucx_pipeline_h self, unsigned peer)
{
    ucp_pipeline_late_t *late;

    ucs_list_for_each(late, &self->late, list) {
        if (late->peer == peer) {
            return 1;
        }
    }
    return 0;
}

static ucs_status_t
ucp_pipeline_keep_late(ucx_pipeline_h self, unsigned peer, const char *header,
                       size_t header_length, const void *payload,
                       size_t length, ucp_wire_done_func_t done, void *arg)
{
    ucp_pipeline_late_t *late;

    late = self->allocate(1, sizeof(*late) + header_length);
    if (late == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    late->peer          = peer;
    late->payload       = payload;
    late->header_length = header_length;
    late->length        = length;
    late->done          = done;
    late->arg           = arg;
    memcpy(late->header, header, header_length);
    ucs_list_add_tail(&self->late, &late->list);
    return UCS_INPROGRESS;
}

ucs_status_t ucp_pipeline_post(ucx_pipeline_h self, unsigned peer,
                               ucp_pipeline_header_t *header, const void *key,
                               size_t key_length, const void *payload,
                               size_t length, ucp_wire_done_func_t done,
                               void *arg)
{
    char bytes[UCP_WIRE_MAX_HEADER];
    size_t header_length = sizeof(*header) + key_length;
    ucs_status_t status  = UCS_ERR_NO_MEMORY;

    header->magic = UCP_PIPELINE_MAGIC;
    memcpy(bytes, header, sizeof(*header));
    if (key_length > 0) {
        memcpy(bytes + sizeof(*header), key, key_length);
    }
    if (!ucp_pipeline_is_late(self, peer)) {
        status = ucp_wire_am_send(self->wire, peer, bytes, header_length,
                                  payload, length, done, arg);
    }
    if (status == UCS_ERR_NO_MEMORY) {
        status = ucp_pipeline_keep_late(self, peer, bytes, header_length,
                                        payload, length, done, arg);
    }
    return status;
}

void ucp_pipeline_post_late(ucx_pipeline_h self)
{
    ucp_pipeline_late_t *late;
    ucs_status_t status;

    while (!ucs_list_is_empty(&self->late)) {
        late   = ucs_list_head(&self->late, ucp_pipeline_late_t, list);
        status = ucp_wire_am_send(self->wire, late->peer, late->header,
                                  late->header_length, late->payload,
                                  late->length, late->done, late->arg);
        if (status == UCS_ERR_NO_MEMORY) {
            break;
        }
        ucs_list_del(&late->list);
        if ((status != UCS_INPROGRESS) && (late->done != NULL)) {
            late->done(late->arg, status);
        }
        free(late);
    }
}

/* Where there was no memory to keep a message either, or for what it would tell
 * of, the request is as it was before, and tries again at the next progress: a
 * message that nobody is told to be lost leaves both sides waiting */
void ucp_pipeline_resume(ucx_pipeline_h self)
{
    ucx_pipeline_request_h req, next;

    if (!self->is_starved) {
        return;
    }
    self->is_starved = 0;
    ucs_list_for_each_safe(req, next, &self->active, list) {
        if (req->kind == UCP_PIPELINE_RECV) {
            ucp_pipeline_recv_resume(req);
        } else {
            ucp_pipeline_send_check(req);
        }
    }
}

void ucp_pipeline_drop_late(ucx_pipeline_h self, unsigned peer,
                            ucs_status_t status)
{
    ucp_pipeline_late_t *late, *next;

    ucs_list_for_each_safe(late, next, &self->late, list) {
        if (late->peer == peer) {
            ucs_list_del(&late->list);
            if (late->done != NULL) {
                late->done(late->arg, status);
            }
            free(late);
        }
    }
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>

#include <ucm/api/ucm.h>
#include <ucs/sys/proc/process.h>

#include <stdlib.h>
#include <string.h>

/* The life of a pipeline, over any wire */

/* After all that UCX itself does at an event */
#define UCP_PIPELINE_HOOK_PRIORITY 1000

static void ucp_pipeline_hook_event(ucm_event_type_t type, ucm_event_t *event,
                                    void *arg)
{
    ucx_pipeline_h self = arg;

    if (ucs_process_is(self->process)) {
        ucp_pipeline_unmapped(self, event->vm_unmapped.address,
                              event->vm_unmapped.size);
    }
}

ucs_status_t ucp_pipeline_create(ucp_wire_t *wire,
                                 const ucx_pipeline_options_t *options,
                                 ucx_pipeline_h *pipeline_p)
{
    ucx_pipeline_h self  = calloc(1, sizeof(*self));
    ucs_status_t *failed = calloc(2 * wire->num_peers, sizeof(*failed));

    if ((self == NULL) || (failed == NULL)) {
        free(failed);
        free(self);
        ucp_wire_destroy(wire);
        return UCS_ERR_NO_MEMORY;
    }
    pthread_mutex_init(&self->lock, NULL);
    self->options = *options;
    ucp_pipeline_cache_init(&self->cache);
    ucs_list_head_init(&self->posted);
    ucs_list_head_init(&self->unexpected);
    ucs_list_head_init(&self->taken);
    ucs_list_head_init(&self->active);
    ucs_list_head_init(&self->requests);
    wire->handlers = (ucp_wire_handlers_t){ucp_pipeline_arrived,
                                           ucp_pipeline_peer_failed, self};
    self->wire     = wire;
    self->failed   = failed;
    self->lost     = failed + wire->num_peers;
    self->process  = ucp_wire_process();
    ucp_pipeline_tune_init(self);
    self->options.eager = ucs_min(self->options.eager, wire->max_payload);
    if (self->options.mode == UCX_PIPELINE_MODE_CACHE) {
        self->hooked = ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED,
                                             UCP_PIPELINE_HOOK_PRIORITY,
                                             ucp_pipeline_hook_event,
                                             self) == UCS_OK;
        if (!self->hooked) { /* nobody tells of what is unmapped */
            self->options.mode = UCX_PIPELINE_MODE_PIPELINE;
        }
    }
    *pipeline_p = self;
    return UCS_OK;
}

void ucp_pipeline_end(ucx_pipeline_h self)
{
    ucp_pipeline_unexpected_t *message;
    ucx_pipeline_request_h req, next;

    if (self->hooked) {
        ucm_unset_event_handler(UCM_EVENT_VM_UNMAPPED, ucp_pipeline_hook_event,
                                self);
    }
    ucs_list_splice_tail(&self->unexpected, &self->taken);
    while (!ucs_list_is_empty(&self->unexpected)) {
        message = ucs_list_extract_head(&self->unexpected,
                                        ucp_pipeline_unexpected_t, list);
        free(message);
    }
    ucp_pipeline_cache_close(self);
    ucp_wire_destroy(self->wire); /* ends what is under way for requests */
    ucs_list_for_each_safe(req, next, &self->requests, all) {
        ucp_pipeline_request_delete(req);
    }
    free(self->failed);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

ucs_status_t ucx_pipeline_destroy(ucx_pipeline_h self)
{
    int is_busy;

    pthread_mutex_lock(&self->lock);
    is_busy = !ucs_list_is_empty(&self->requests) ||
              !ucs_list_is_empty(&self->taken);
    pthread_mutex_unlock(&self->lock);
    if (is_busy) {
        return UCS_ERR_BUSY;
    }
    ucp_pipeline_end(self);
    return UCS_OK;
}

unsigned ucx_pipeline_progress(ucx_pipeline_h self)
{
    unsigned count;

    pthread_mutex_lock(&self->lock);
    ucp_pipeline_cache_look(self);
    count = ucp_wire_progress(self->wire);
    ucp_pipeline_send_write(self);
    ucp_pipeline_end_lost(self);
    pthread_mutex_unlock(&self->lock);
    return count;
}

void ucx_pipeline_get_stats(ucx_pipeline_h self, ucx_pipeline_stats_t *stats)
{
    size_t size = ucs_min(stats->size, sizeof(self->stats));

    pthread_mutex_lock(&self->lock);
    self->stats.kept = self->cache.bytes;
    memcpy(stats, &self->stats, size);
    stats->size = size;
    pthread_mutex_unlock(&self->lock);
}

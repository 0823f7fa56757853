/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "order_int.h"
#include <ucs/predict/saturate.h>

#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_memory.h>

#include <assert.h>
#include <string.h>

#define ORDER_MAX  (1u << 20)

static_assert(sizeof(order_buffer_t) <= UCS_PREDICT_ORDER_BUFFER_BYTES,
              "counted as less");
static_assert(sizeof(order_label_t) <= UCS_PREDICT_ORDER_LABEL_BYTES,
              "counted as less");

/*
 * Creation
 */

static int order_is_bound_valid(uint32_t value)
{
    return (value > 0) && (value <= ORDER_MAX);
}

static ucs_status_t order_tables_init(ucs_predict_order_h order)
{
    const ucs_predict_order_params_t *params = &order->params;
    ucs_status_t status;

    status = ucs_predict_lru_init(&order->buffers, params->max_buffers,
                                  sizeof(order_buffer_t));
    if (status != UCS_OK) {
        goto err;
    }
    status = ucs_predict_lru_init(&order->labels, params->max_labels,
                                  sizeof(order_label_t));
    if (status != UCS_OK) {
        goto err_cleanup_buffers;
    }
    status = ucs_predict_lru_init(&order->sounds, params->max_labels,
                                  sizeof(order_sound_t));
    if (status != UCS_OK) {
        goto err_cleanup_labels;
    }
    return UCS_OK;

err_cleanup_labels:
    ucs_predict_lru_cleanup(&order->labels);
err_cleanup_buffers:
    ucs_predict_lru_cleanup(&order->buffers);
err:
    return status;
}

ucs_status_t ucs_predict_order_create(const ucs_predict_order_params_t *params,
                                      ucs_predict_order_h *order_p)
{
    ucs_predict_order_h order;
    ucs_status_t status;

    if (!order_is_bound_valid(params->max_buffers) ||
        !order_is_bound_valid(params->max_labels)) {
        return UCS_ERR_INVALID_PARAM;
    }

    order = ucs_own_alloc(sizeof(*order) +
                          params->max_buffers * sizeof(order->changed[0]));
    if (order == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    order->params = *params;
    order->tuning = (params->tuning != NULL) ? *params->tuning :
                                               ucs_predict_tuning_default;
    ucs_predict_scores_init(&order->scores);
    status = order_tables_init(order);
    if (status != UCS_OK) {
        goto err_free;
    }
    *order_p = order;
    return UCS_OK;

err_free:
    ucs_own_free(order);
    return status;
}

void ucs_predict_order_destroy(ucs_predict_order_h order)
{
    if (order == NULL) {
        return;
    }
    ucs_predict_lru_cleanup(&order->sounds);
    ucs_predict_lru_cleanup(&order->labels);
    ucs_predict_lru_cleanup(&order->buffers);
    ucs_own_free(order);
}

/*
 * Buffers and labels
 */

/* A buffer that is forgotten has nothing to tell any more */
static void order_unchange(ucs_predict_order_h order, uint32_t index)
{
    uint32_t i;

    for (i = 0; order->changed[i] != index; ++i) {
    }
    order->changed[i] = order->changed[--order->num_changed];
}

static order_buffer_t *order_buffer_get(ucs_predict_order_h order,
                                        uintptr_t address, size_t length)
{
    order_buffer_t *buffer;
    order_label_t *label;
    int is_new;

    buffer = ucs_predict_lru_get(&order->buffers,
                                 ucs_predict_order_buffer_key(address, length),
                                 &is_new);
    if (is_new) {
        if (buffer->is_changed) {
            order_unchange(order,
                           ucs_predict_lru_index(&order->buffers, buffer));
        }
        label = ucs_predict_lru_deref(&order->labels, buffer->label);
        if (label != NULL) {
            ucs_predict_order_keys_unlink(order, label);
        }
        memset((char*)buffer + sizeof(buffer->node), 0,
               sizeof(*buffer) - sizeof(buffer->node));
    }
    return buffer;
}

/* A label is forgotten: no key waits for it, and its own keys wait for nothing */
static void order_label_leave(ucs_predict_order_h order, order_label_t *label)
{
    ucs_predict_order_source_leave(order, &label->source);
    ucs_predict_order_keys_unlink(order, label);
}

static order_label_t *order_label_get(ucs_predict_order_h order,
                                      const order_buffer_t *buffer,
                                      uint64_t path)
{
    uint64_t key = (path ^ (path >> 29)) * UCS_HASH_ROUND_1;
    order_label_t *label;
    int is_new;

    label = ucs_predict_lru_get(&order->labels, key ^ buffer->node.key,
                                &is_new);
    if (is_new) {
        if (label->source.count > 0) { /* not the first that has this place */
            order_label_leave(order, label);
        }
        memset((char*)label + sizeof(label->node), 0,
               sizeof(*label) - sizeof(label->node));
        label->source.heard = ORDER_NONE;
        label->buffer = ucs_predict_lru_ref(&order->buffers, buffer);
    }
    return label;
}

static void order_announce(ucs_predict_order_h order, order_label_t *label,
                           uint64_t now)
{
    label->positions[label->source.count % UCS_PREDICT_OCCURRENCES] =
            (uint32_t)order->uses;
    ucs_predict_order_source_announce(order, &label->source, now);
}

/*
 * A use
 */

static void order_start(ucs_predict_order_h order, order_buffer_t *buffer,
                        const ucs_predict_use_t *use,
                        const ucs_predict_price_t *price, int is_ready)
{
    int is_first = (buffer->position == 0);
    order_label_t *label;
    order_event_t *event;

    if (!is_first) {
        ucs_predict_order_gap_end(order, buffer, price, use->start_ns,
                                  is_ready);
    }

    ucs_predict_order_begin(order);
    label            = order_label_get(order, buffer, use->path);
    buffer->position = ++order->uses;
    buffer->sounds   = order->num_sounds;
    buffer->start_ns = use->start_ns;
    buffer->end_ns   = 0;
    buffer->label    = ucs_predict_lru_ref(&order->labels, label);
    ucs_predict_order_gap_begin(order, buffer, label, price, is_first);

    event           = &order->ring[buffer->position % ORDER_RING];
    event->label    = buffer->label;
    event->start_ns = use->start_ns;
    ucs_predict_order_fire(order, buffer, label, ORDER_KEY_START,
                           use->start_ns);
    order_announce(order, label, use->start_ns);
}

/* Before it could be deregistered and registered again, or so soon that it is
 * held in any case */
static int order_is_in_row(const order_buffer_t *buffer,
                           const ucs_predict_price_t *price, uint64_t start_ns)
{
    double turn = ucs_predict_order_drops(buffer) ?
                          0 :
                          ucs_predict_order_turn(price);
    double row  = ucs_max(turn, buffer->row_ns);

    return start_ns < buffer->end_ns + (uint64_t)row;
}

static void order_end(ucs_predict_order_h order, order_buffer_t *buffer,
                      uint64_t end_ns)
{
    order_label_t *label = ucs_predict_lru_deref(&order->labels,
                                                 buffer->label);

    buffer->end_ns = ucs_max(end_ns, buffer->start_ns + 1);
    if (label != NULL) {
        ucs_predict_order_fire(order, buffer, label, ORDER_KEY_END,
                               buffer->end_ns);
    }
}

ucs_predict_ref_t ucs_predict_order_record(ucs_predict_order_h order,
                                           const ucs_predict_use_t *use,
                                           uint64_t end_ns,
                                           const ucs_predict_price_t *price,
                                           int is_ready)
{
    order_buffer_t *buffer = order_buffer_get(order, use->address,
                                              use->length);

    if ((buffer->position == 0) || (buffer->latest_ns != use->start_ns)) {
        if ((buffer->position != 0) && (buffer->end_ns != 0)) {
            ucs_predict_delays_add(
                    &buffer->gaps,
                    (float)ucs_predict_sat_sub(use->start_ns, buffer->end_ns));
        }
        if ((buffer->position != 0) && (buffer->end_ns != 0) &&
            order_is_in_row(buffer, price, use->start_ns)) {
            buffer->end_ns = 0;
        } else {
            order_start(order, buffer, use, price, is_ready);
        }
        buffer->latest_ns = use->start_ns;
    }
    if ((end_ns != 0) && (buffer->end_ns == 0)) {
        order_end(order, buffer, end_ns);
    }
    ucs_predict_order_change(order, buffer);
    return ucs_predict_lru_ref(&order->buffers, buffer);
}

uint64_t ucs_predict_order_next(ucs_predict_order_h order,
                                ucs_predict_ref_t ref)
{
    order_buffer_t *buffer = ucs_predict_lru_deref(&order->buffers, ref);
    order_label_t *label   = (buffer == NULL) ?
                                   NULL :
                                   ucs_predict_lru_deref(&order->labels,
                                                         buffer->label);

    if ((label == NULL) || (label->learned < 2)) {
        return 0; /* once is no habit */
    }
    return buffer->position + (uint64_t)(label->again + 0.5);
}

uint64_t ucs_predict_order_uses(ucs_predict_order_h order)
{
    return order->uses;
}

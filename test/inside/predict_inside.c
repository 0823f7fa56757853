/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "predict_inside.h"

#include <ucs/predict/order/order_int.h>
#include <ucs/predict/paper/callsite_int.h>

/*
 * LRU table
 */

size_t ucs_predict_lru_memory(const ucs_predict_lru_t *lru)
{
    return (lru->max * lru->size) +
           ((lru->mask + 1) * sizeof(*lru->buckets));
}

int ucs_predict_lru_is_valid(const ucs_predict_lru_t *lru)
{
    uint32_t newer = UCS_PREDICT_LRU_NIL;
    uint32_t count = 0;
    const ucs_predict_lru_node_t *node;
    uint32_t index;

    /* The count bounds the walk, should the list be a ring */
    for (index = lru->newest; index != UCS_PREDICT_LRU_NIL;
         index = node->older) {
        node = ucs_predict_lru_at(lru, index);
        if ((index >= lru->count) || (count++ == lru->count) ||
            (node->newer != newer) || (node->generation == 0) ||
            (ucs_predict_lru_find(lru, node->key) != node)) {
            return 0;
        }
        newer = index;
    }
    return (count == lru->count) && (lru->oldest == newer);
}

/*
 * Order of communications
 */

size_t ucs_predict_order_memory(ucs_predict_order_h order)
{
    return sizeof(*order) +
           (order->params.max_buffers * sizeof(*order->changed)) +
           ucs_predict_lru_memory(&order->buffers) +
           ucs_predict_lru_memory(&order->labels) +
           ucs_predict_lru_memory(&order->sounds);
}

ucs_predict_ref_t ucs_predict_order_find(ucs_predict_order_h order,
                                         uintptr_t address, size_t length)
{
    const order_buffer_t *buffer = ucs_predict_lru_find(
            &order->buffers, ucs_predict_order_buffer_key(address, length));

    return (buffer == NULL) ? (ucs_predict_ref_t){0, 0} :
                              ucs_predict_lru_ref(&order->buffers, buffer);
}

int ucs_predict_order_plan(ucs_predict_order_h order, ucs_predict_ref_t ref)
{
    const order_buffer_t *buffer = ucs_predict_lru_deref(&order->buffers, ref);

    return (buffer == NULL) ? UCS_PREDICT_PLAN_LAST : buffer->choice;
}

uint32_t ucs_predict_order_buffers(ucs_predict_order_h order)
{
    return order->buffers.count;
}

uint32_t ucs_predict_order_labels(ucs_predict_order_h order)
{
    return order->labels.count;
}

/* A delay has passed, so it is no longer than half of what a clock counts */
static int order_delays_are_valid(const ucs_predict_delays_t *delays)
{
    float before = 0;
    unsigned i;

    for (i = 0; i < delays->count; ++i) {
        if ((delays->sorted[i] < before) ||
            (delays->sorted[i] > (float)(UINT64_MAX / 2))) {
            return 0;
        }
        before = delays->sorted[i];
    }
    return 1;
}

/* Each key in the list of @a source waits for it; @a count_p grows by their
 * number */
static int order_keys_are_valid(ucs_predict_order_h order,
                                const order_source_t *source, uint32_t *count_p)
{
    uint32_t prev = ORDER_NONE;
    uint32_t number;
    const order_key_t *key;

    for (number = source->heard; number != ORDER_NONE; number = key->next) {
        key = ucs_predict_order_key_at(order, number);
        if ((key->prev != prev) || !key->is_linked ||
            !order_delays_are_valid(&key->delays) ||
            (ucs_predict_order_key_source(order, key,
                                          number % ORDER_KEY_LAST) != source)) {
            return 0;
        }
        prev = number;
        ++*count_p;
    }
    return 1;
}

/* Each buffer that has something to tell is listed, once */
static int order_changed_is_valid(ucs_predict_order_h order)
{
    uint32_t changed = 0;
    const order_buffer_t *buffer;
    uint32_t i;

    for (i = 0; i < order->buffers.count; ++i) {
        buffer   = ucs_predict_lru_at(&order->buffers, i);
        changed += buffer->is_changed;
    }
    for (i = 0; i < order->num_changed; ++i) {
        buffer = ucs_predict_lru_at(&order->buffers, order->changed[i]);
        if (!buffer->is_changed) {
            return 0;
        }
    }
    return changed == order->num_changed;
}

/* Each key that waits is in the list of what it waits for */
static int order_links_are_valid(ucs_predict_order_h order)
{
    uint32_t listed = 0, linked = 0;
    const order_label_t *label;
    const order_sound_t *sound;
    uint32_t i, j;

    for (i = 0; i < order->sounds.count; ++i) {
        sound = ucs_predict_lru_at(&order->sounds, i);
        if (!order_keys_are_valid(order, &sound->source, &listed)) {
            return 0;
        }
    }
    for (i = 0; i < order->labels.count; ++i) {
        label = ucs_predict_lru_at(&order->labels, i);
        if (!order_keys_are_valid(order, &label->source, &listed)) {
            return 0;
        }
        for (j = ORDER_KEY_FIRST; j < ORDER_KEY_LAST; ++j) {
            linked += label->keys[j].is_linked;
        }
    }
    return listed == linked;
}

int ucs_predict_order_is_valid(ucs_predict_order_h order)
{
    return ucs_predict_lru_is_valid(&order->buffers) &&
           ucs_predict_lru_is_valid(&order->labels) &&
           ucs_predict_lru_is_valid(&order->sounds) &&
           order_changed_is_valid(order) && order_links_are_valid(order);
}

/*
 * Call sites
 */

size_t ucs_predict_table_memory(ucs_predict_table_h table)
{
    return sizeof(*table) + ucs_predict_lru_memory(&table->contexts);
}

uint32_t ucs_predict_table_count(ucs_predict_table_h table)
{
    return table->contexts.count;
}

ucs_status_t ucs_predict_table_entry(ucs_predict_table_h table,
                                     ucs_predict_ref_t ref,
                                     ucs_predict_entry_info_t *info)
{
    const callsite_entry_t *entry = ucs_predict_lru_deref(&table->contexts, ref);

    if (entry == NULL) {
        return UCS_ERR_NO_ELEM;
    }
    info->signature  = entry->node.key;
    info->period_ns  = entry->period_ns;
    info->last_ns    = entry->last_ns;
    info->confidence = entry->confidence;
    info->uses       = entry->uses;
    return UCS_OK;
}

static int table_entry_is_valid(ucs_predict_table_h table,
                                const callsite_entry_t *entry)
{
    return (entry->node.key != 0) &&
           ((entry->period_ns != 0) == (entry->confidence != 0)) &&
           ((entry->period_ns == 0) || (entry->flags & CALLSITE_FLAG_LAST)) &&
           (entry->confidence <= table->params.confidence_max);
}

int ucs_predict_table_is_valid(ucs_predict_table_h table)
{
    uint32_t i;

    for (i = 0; i < table->contexts.count; ++i) {
        if (!table_entry_is_valid(table,
                                  ucs_predict_lru_at(&table->contexts, i))) {
            return 0;
        }
    }
    return ucs_predict_lru_is_valid(&table->contexts);
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "order_int.h"
#include <ucs/predict/saturate.h>

#include <ucs/sys/math.h>

#include <string.h>

/*
 * Dues
 */

void ucs_predict_order_change(ucs_predict_order_h order,
                              order_buffer_t *buffer)
{
    if (!buffer->is_changed) {
        buffer->is_changed = 1;
        order->changed[order->num_changed++] =
                ucs_predict_lru_index(&order->buffers, buffer);
    }
}

double ucs_predict_order_hold(const order_buffer_t *buffer,
                              const ucs_predict_price_t *price, int plan)
{
    switch (plan) {
    case UCS_PREDICT_PLAN_RENT:
        return price->rent_ns;
    case UCS_PREDICT_PLAN_BURST:
        return ucs_max(buffer->hold_ns, buffer->row_ns);
    default:
        return buffer->row_ns;
    }
}

uint64_t ucs_predict_order_due(const order_buffer_t *buffer, int plan)
{
    switch (plan) {
    case UCS_PREDICT_PLAN_KEY:
        return buffer->key_due_ns;
    case UCS_PREDICT_PLAN_BURST:
        return buffer->burst_due_ns;
    default:
        return 0;
    }
}

/* @return By which key the plan goes; ORDER_KEY_LAST: by none */
static unsigned order_plan_key(const order_label_t *label, int plan)
{
    switch (plan) {
    case UCS_PREDICT_PLAN_KEY:
        return label->key;
    case UCS_PREDICT_PLAN_BURST:
        return label->burst_key;
    default:
        return ORDER_KEY_LAST;
    }
}

/* Of a plan that goes by a key */
static double order_plan_wait(ucs_predict_order_h order,
                              const order_label_t *label, int plan,
                              const ucs_predict_price_t *price)
{
    return ucs_predict_order_key_wait(
            order, &label->keys[order_plan_key(label, plan)],
            (plan == UCS_PREDICT_PLAN_KEY) ? label->share : ORDER_SHARE_LEAST,
            price);
}

double ucs_predict_order_looks(ucs_predict_order_h order,
                               const order_label_t *label, int plan,
                               const ucs_predict_price_t *price,
                               uint64_t gap_start, double gap_ns)
{
    unsigned i = order_plan_key(label, plan);
    order_watch_t watch;

    if ((i < ORDER_KEY_FIRST) || (i == ORDER_KEY_LAST)) {
        return 0; /* the gap begins with it, or there is none */
    }
    ucs_predict_order_key_watch(order, label,
                                order_plan_wait(order, label, plan, price),
                                price, &watch);
    return ucs_predict_order_watch_looks(
            &watch, ucs_predict_order_key_came(&label->keys[i], gap_start, gap_ns));
}

/* What is overdue is told again, for it may have been given up: while another length of
 * the buffer was registered, that had to do */
void ucs_predict_order_fire(ucs_predict_order_h order, order_buffer_t *buffer,
                            order_label_t *label, unsigned i, uint64_t now)
{
    order_key_t *key = &label->keys[i];
    uint64_t due;

    key->fired_ns = now;
    if (key->delays.count == 0) {
        return;
    }
    if (i == label->key) {
        buffer->key_due_ns = now + (uint64_t)ucs_predict_order_key_wait(
                                           order, key, label->share,
                                           &buffer->price);
    }
    if (i == label->burst_key) {
        buffer->burst_due_ns = now + (uint64_t)ucs_predict_order_key_wait(
                                             order, key, ORDER_SHARE_LEAST,
                                             &buffer->price);
    }
    due = ucs_predict_order_due(buffer, buffer->choice);
    if ((due != 0) && ((i == order_plan_key(label, buffer->choice)) || (due < now))) {
        ucs_predict_order_change(order, buffer);
    }
}

void ucs_predict_order_source_announce(ucs_predict_order_h order,
                                       order_source_t *source, uint64_t now)
{
    order_label_t *owner;
    const order_key_t *key;
    uint32_t number;

    ++source->count;
    for (number = source->heard; number != ORDER_NONE; number = key->next) {
        key = ucs_predict_order_key_at(order, number);
        if (source->count - key->base == key->occurrence) {
            owner = ucs_predict_order_key_owner(order, number);
            ucs_predict_order_fire(order,
                                   ucs_predict_lru_at(&order->buffers,
                                                      owner->buffer.index),
                                   owner, number % ORDER_KEY_LAST, now);
        }
    }
}

/*
 * Forecast
 */

/* The plan's key has not come yet: when may it come, and when is it given up? */
static void order_forecast_watch(ucs_predict_order_h order,
                                 const order_buffer_t *buffer,
                                 const order_label_t *label,
                                 ucs_predict_forecast_t *forecast)
{
    const ucs_predict_delays_t *own = &label->keys[ORDER_KEY_START].delays;
    double wait = order_plan_wait(order, label, buffer->choice, &buffer->price);
    double most = own->sorted[own->count - 1];
    order_watch_t watch;

    ucs_predict_order_key_watch(order, label, wait, &buffer->price, &watch);
    forecast->watch_ns = buffer->start_ns + (uint64_t)watch.from_ns;
    forecast->every_ns = (uint64_t)watch.every_ns;
    forecast->until_ns = ucs_predict_sat_add(
            buffer->start_ns,
            ucs_predict_sat_ceil(ucs_min(most + buffer->price.rent_ns,
                                         watch.until_ns)));
}

static void order_forecast(ucs_predict_order_h order,
                           const order_buffer_t *buffer,
                           ucs_predict_forecast_t *forecast)
{
    const order_label_t *label = ucs_predict_lru_deref(&order->labels,
                                                       buffer->label);
    int plan                   = buffer->choice;

    memset(forecast, 0, sizeof(*forecast));
    forecast->ref         = ucs_predict_lru_ref(&order->buffers, buffer);
    forecast->duration_ns = (uint64_t)ucs_predict_delays_at(&buffer->durations,
                                                            0);
    forecast->hold_ns = (uint64_t)ucs_predict_order_hold(buffer, &buffer->price,
                                                         plan);
    forecast->due_ns  = ucs_predict_order_due(buffer, plan);
    forecast->drops   = ucs_predict_order_drops(buffer);
    forecast->is_known = (plan != UCS_PREDICT_PLAN_RENT);
    if ((forecast->due_ns == 0) && (label != NULL) &&
        (order_plan_key(label, plan) != ORDER_KEY_LAST)) {
        order_forecast_watch(order, buffer, label, forecast);
    }
    if (forecast->due_ns != 0) {
        forecast->until_ns = ucs_predict_sat_add(
                forecast->due_ns, (uint64_t)buffer->price.rent_ns);
    }
}

unsigned ucs_predict_order_changed(ucs_predict_order_h order,
                                   ucs_predict_forecast_t *forecast,
                                   unsigned max)
{
    unsigned count = 0;
    order_buffer_t *buffer;

    while ((count < max) && (order->num_changed > 0)) {
        buffer = ucs_predict_lru_at(&order->buffers,
                                    order->changed[--order->num_changed]);
        buffer->is_changed = 0;
        order_forecast(order, buffer, &forecast[count++]);
    }
    return count;
}

int ucs_predict_order_forecast(ucs_predict_order_h order,
                               ucs_predict_ref_t ref,
                               ucs_predict_forecast_t *forecast)
{
    const order_buffer_t *buffer = ucs_predict_lru_deref(&order->buffers, ref);

    if (buffer == NULL) {
        return 0;
    }
    order_forecast(order, buffer, forecast);
    return 1;
}

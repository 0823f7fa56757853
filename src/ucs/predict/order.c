/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "order_int.h"
#include "saturate.h"

#include <ucs/sys/math.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ORDER_MAX  (1u << 20)

static_assert(sizeof(order_buffer_t) <= UCS_PREDICT_ORDER_BUFFER_BYTES,
              "counted as less");
static_assert(sizeof(order_label_t) <= UCS_PREDICT_ORDER_LABEL_BYTES,
              "counted as less");

/*
 * Creation
 */

void ucs_predict_order_params_init(ucs_predict_order_params_t *params)
{
    params->max_buffers = 4096;
    params->max_labels  = 4096;
    params->only_rent   = 0;
    params->tuning      = NULL;
}

static int order_is_bound_valid(uint32_t value)
{
    return (value > 0) && (value <= ORDER_MAX);
}

ucs_status_t ucs_predict_order_create(const ucs_predict_order_params_t *params,
                                      ucs_predict_order_h *order_p)
{
    ucs_predict_order_params_t defaults;
    ucs_predict_order_h order;
    ucs_status_t status;

    ucs_predict_order_params_init(&defaults);
    params = (params != NULL) ? params : &defaults;
    if (!order_is_bound_valid(params->max_buffers) ||
        !order_is_bound_valid(params->max_labels)) {
        return UCS_ERR_INVALID_PARAM;
    }

    order = calloc(1, sizeof(*order));
    if (order == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    order->params = *params;
    order->tuning = (params->tuning != NULL) ? *params->tuning :
                                               ucs_predict_tuning_default;
    ucs_predict_scores_init(&order->scores);
    status         = UCS_ERR_NO_MEMORY;
    order->changed = malloc(params->max_buffers * sizeof(*order->changed));
    if (order->changed == NULL) {
        goto err_free;
    }
    status = ucs_predict_lru_init(&order->buffers, params->max_buffers,
                                  sizeof(order_buffer_t));
    if (status != UCS_OK) {
        goto err_free_changed;
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
    *order_p = order;
    return UCS_OK;

err_cleanup_labels:
    ucs_predict_lru_cleanup(&order->labels);
err_cleanup_buffers:
    ucs_predict_lru_cleanup(&order->buffers);
err_free_changed:
    free(order->changed);
err_free:
    free(order);
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
    free(order->changed);
    free(order);
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

/* A label is forgotten: nothing waits for it any more, nor it for others */
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
            (uint32_t)order->info.uses;
    ucs_predict_order_source_announce(order, &label->source, now);
}

/*
 * A gap is over
 */

static void order_learn_again(ucs_predict_order_h order,
                              const order_buffer_t *buffer,
                              order_label_t *label)
{
    double between = (double)(order->info.uses - buffer->position) + 1;

    label->again    = (label->learned == 0) ? between :
                                              (label->again + between) / 2;
    label->learned += (label->learned < UINT32_MAX);
}

/* What the plans cost in the gap that ends at @a now */
static void order_judge(ucs_predict_order_h order, order_buffer_t *buffer,
                        order_label_t *label, const ucs_predict_price_t *price,
                        uint64_t now, int is_ready)
{
    uint64_t start = (buffer->end_ns != 0) ? buffer->end_ns : buffer->start_ns;
    double gap_ns  = (double)ucs_predict_sat_sub(now, start);
    double cost[UCS_PREDICT_PLAN_LAST];
    /* Its own latest use, if nothing else */
    int is_foretold = label->keys[ORDER_KEY_START].delays.count > 0;
    ucs_predict_course_t course;
    uint64_t due;
    int plan, i;

    for (plan = 0; plan < UCS_PREDICT_PLAN_LAST; ++plan) {
        course.hold_ns = ucs_predict_order_hold(buffer, price, plan);
        due            = ucs_predict_order_due(buffer, plan);
        course.due_ns  = (due == 0) ? -1.0 :
                                      (double)ucs_predict_sat_sub(due, start);
        course.drops   = (plan == UCS_PREDICT_PLAN_DROP) &&
                         (course.hold_ns == 0) &&
                         ucs_predict_price_drops(price);
        cost[plan]     = ucs_predict_course_cost(&course, price, gap_ns);
    }
    ucs_predict_newcomers_return(&order->newcomers, buffer->newcomer,
                                 buffer->start_ns, now,
                                 order->tuning.plan_decay_all);
    buffer->newcomer = 0;
    ++order->info.gaps[buffer->choice];
    ucs_predict_judge_gap(&label->judge, cost,
                          !is_ready && (cost[buffer->choice] < 1), is_foretold,
                          &order->tuning, &buffer->scores);
    ucs_predict_scores_gap(&order->scores, cost, is_foretold, &order->tuning);
    for (i = 0; i < ORDER_KEY_LAST; ++i) {
        if ((i < ORDER_KEY_FIRST) || (label->keys[i].label.generation != 0)) {
            ucs_predict_order_key_rate(order, buffer, &label->keys[i], price,
                                       gap_ns, start, now);
        }
    }
}

/*
 * A new gap
 */

/* Hold just longer than one of the latest gaps was, whichever is best for all
 * of them, if a gap that is longer costs @a missed beside; 0: none is. */
static double order_best_hold(ucs_predict_order_h order,
                              const order_buffer_t *buffer,
                              const ucs_predict_price_t *price, double missed)
{
    const ucs_predict_delays_t *gaps = &buffer->gaps;
    double least  = gaps->count * missed;
    double best   = 0;
    double served = 0;
    double cost;
    unsigned i;

    for (i = 0; i < gaps->count; ++i) {
        served += gaps->sorted[i] / price->rent_ns;
        cost    = served + (gaps->count - i - 1) *
                               (missed + (gaps->sorted[i] / price->rent_ns));
        if (cost < least) {
            least = cost;
            best  = gaps->sorted[i];
        }
    }
    return order->tuning.hold_longer * best;
}

/* Of a buffer that was not used before nothing is known but how those before it
 * fared */
static void order_choose_first(ucs_predict_order_h order,
                               order_buffer_t *buffer, order_label_t *label,
                               const ucs_predict_price_t *price)
{
    unsigned number;
    int is_rented;

    is_rented = ucs_predict_newcomers_add(&order->newcomers, buffer->start_ns,
                                          price->rent_ns,
                                          order->tuning.plan_credit,
                                          order->tuning.plan_decay_all,
                                          &number);
    buffer->newcomer    = number;
    label->judge.choice = is_rented ? UCS_PREDICT_PLAN_RENT :
                                      UCS_PREDICT_PLAN_DROP;
}

static void order_plan(ucs_predict_order_h order, order_buffer_t *buffer,
                       order_label_t *label, const ucs_predict_price_t *price,
                       int is_first)
{
    unsigned i;

    buffer->price      = *price;
    buffer->key_due_ns = 0;
    memset(buffer->bound_due_ns, 0, sizeof(buffer->bound_due_ns));
    buffer->row_ns  = order_best_hold(order, buffer, price,
                                      order->tuning.row_missed);
    buffer->hold_ns = order_best_hold(order, buffer, price, 1);
    ucs_predict_order_best_key(label);
    if (is_first) {
        order_choose_first(order, buffer, label, price);
    } else {
        ucs_predict_judge_choose(&label->judge, &order->tuning,
                                 &buffer->scores, &order->scores);
    }
    buffer->choice = order->params.only_rent ? UCS_PREDICT_PLAN_RENT :
                                               label->judge.choice;
    buffer->drops  = (buffer->choice != UCS_PREDICT_PLAN_DROP) ?
                             0 :
                             ucs_min(buffer->drops + 1, ORDER_DROPS);
    for (i = 0; i < ORDER_KEY_LAST; ++i) {
        label->keys[i].fired_ns = 0;
        if ((i >= ORDER_KEY_FIRST) && (label->keys[i].label.generation != 0)) {
            ucs_predict_order_key_link(order, label, i);
        }
    }
}

/* The gap before this use is over */
static void order_learn(ucs_predict_order_h order, order_buffer_t *buffer,
                        const ucs_predict_price_t *price, uint64_t now,
                        int is_ready)
{
    order_label_t *label = ucs_predict_lru_deref(&order->labels,
                                                 buffer->label);

    if (buffer->end_ns > buffer->start_ns) {
        ucs_predict_delays_add(&buffer->durations,
                               (float)(buffer->end_ns - buffer->start_ns));
    }
    if (label != NULL) {
        order_judge(order, buffer, label, price, now, is_ready);
        order_learn_again(order, buffer, label);
        ucs_predict_order_find_keys(order, buffer, label, now);
        ucs_predict_order_find_sounds(order, buffer, label, price, now);
        ucs_predict_order_keys_unlink(order, label);
    }
}

static void order_start(ucs_predict_order_h order, order_buffer_t *buffer,
                        const ucs_predict_use_t *use,
                        const ucs_predict_price_t *price, int is_ready)
{
    int is_first = (buffer->position == 0);
    order_label_t *label;
    order_event_t *event;

    if (!is_first) {
        order_learn(order, buffer, price, use->start_ns, is_ready);
    }

    ucs_predict_order_begin(order);
    label            = order_label_get(order, buffer, use->path);
    buffer->position = ++order->info.uses;
    buffer->sounds   = order->num_sounds;
    buffer->start_ns = use->start_ns;
    buffer->end_ns   = 0;
    buffer->label    = ucs_predict_lru_ref(&order->labels, label);
    order_plan(order, buffer, label, price, is_first);

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

void ucs_predict_order_begin(ucs_predict_order_h order)
{
    order->sounds_from = order->num_sounds;
    order->listens     = !order->params.only_rent;
}

int ucs_predict_order_listens(ucs_predict_order_h order)
{
    return order->listens;
}

/* What is not heard is not counted either: no key may count on across it */
static void order_listen_no_more(ucs_predict_order_h order)
{
    order_sound_t *sound;
    uint32_t i;

    order->listens = 0;
    for (i = 0; i < order->sounds.count; ++i) {
        sound = ucs_predict_lru_at(&order->sounds, i);
        ucs_predict_order_source_leave(order, &sound->source);
    }
}

void ucs_predict_order_hear(ucs_predict_order_h order, uint64_t what,
                            uint64_t time_ns)
{
    order_sound_t *sound;
    order_noise_t *noise;
    int is_new;

    if (!order->listens) {
        return;
    }
    sound = ucs_predict_lru_get(&order->sounds,
                                (what ^ (what >> 29)) * UCS_HASH_ROUND_1,
                                &is_new);
    if (is_new) {
        if (sound->source.count > 0) {
            ucs_predict_order_source_leave(order, &sound->source);
        }
        sound->source.count = 0;
        sound->source.heard = ORDER_NONE;
    }
    ucs_predict_order_source_announce(order, &sound->source, time_ns);

    noise          = &order->noises[order->num_sounds++ % ORDER_SOUND_RING];
    noise->sound   = ucs_predict_lru_ref(&order->sounds, sound);
    noise->count   = sound->source.count;
    noise->time_ns = time_ns;
    if (order->num_sounds - order->sounds_from > ORDER_SOUND_RING) {
        order_listen_no_more(order);
    }
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

/*
 * Figures
 */

void ucs_predict_order_info(ucs_predict_order_h order,
                            ucs_predict_order_info_t *info)
{
    *info         = order->info;
    info->buffers = order->buffers.count;
    info->labels  = order->labels.count;
}

size_t ucs_predict_order_memory(ucs_predict_order_h order)
{
    return sizeof(*order) +
           (order->params.max_buffers * sizeof(*order->changed)) +
           ucs_predict_lru_memory(&order->buffers) +
           ucs_predict_lru_memory(&order->labels) +
           ucs_predict_lru_memory(&order->sounds);
}

int ucs_predict_order_is_valid(ucs_predict_order_h order)
{
    uint32_t changed = 0, listed = 0, linked = 0;
    const order_buffer_t *buffer;
    const order_label_t *label;
    const order_sound_t *sound;
    uint32_t i, j;

    if (!ucs_predict_lru_is_valid(&order->buffers) ||
        !ucs_predict_lru_is_valid(&order->labels) ||
        !ucs_predict_lru_is_valid(&order->sounds)) {
        return 0;
    }
    for (i = 0; i < order->sounds.count; ++i) {
        sound = ucs_predict_lru_at(&order->sounds, i);
        if (!ucs_predict_order_keys_are_valid(order, &sound->source, &listed)) {
            return 0;
        }
    }
    for (i = 0; i < order->labels.count; ++i) {
        label = ucs_predict_lru_at(&order->labels, i);
        if (!ucs_predict_order_keys_are_valid(order, &label->source, &listed)) {
            return 0;
        }
        for (j = ORDER_KEY_FIRST; j < ORDER_KEY_LAST; ++j) {
            linked += label->keys[j].is_linked;
        }
    }
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
    return (changed == order->num_changed) && (listed == linked);
}

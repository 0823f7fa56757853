/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "order_int.h"
#include <ucs/predict/saturate.h>

#include <ucs/sys/math.h>

/*
 * A gap is over
 */

static void order_learn_again(ucs_predict_order_h order,
                              const order_buffer_t *buffer,
                              order_label_t *label)
{
    double between = (double)(order->uses - buffer->position) + 1;

    label->again    = (label->learned == 0) ? between :
                                              (label->again + between) / 2;
    label->learned += (label->learned < UINT32_MAX);
}

/* A ceiling would have taken away what was to be held, too */
static void order_charge_room(double cost[UCS_PREDICT_PLAN_LAST])
{
    cost[UCS_PREDICT_PLAN_RENT]  += (cost[UCS_PREDICT_PLAN_RENT] < 1);
    cost[UCS_PREDICT_PLAN_BURST] += (cost[UCS_PREDICT_PLAN_BURST] < 1);
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
        course.looks   = ucs_predict_order_looks(order, label, plan, price,
                                                 start, gap_ns);
        cost[plan]     = ucs_predict_course_cost(&course, price, gap_ns);
    }
    ucs_predict_newcomers_return(&order->newcomers, buffer->newcomer,
                                 buffer->start_ns, now,
                                 order->tuning.plan_decay_all);
    buffer->newcomer = 0;
    if (is_ready < 0) {
        order_charge_room(cost);
    }
    ucs_predict_judge_gap(&label->judge, cost,
                          (is_ready <= 0) && (cost[buffer->choice] < 1),
                          is_foretold, &order->tuning, &buffer->scores);
    ucs_predict_scores_gap(&order->scores, cost, is_foretold, &order->tuning);
    for (i = 0; i < ORDER_KEY_LAST; ++i) {
        if ((i < ORDER_KEY_FIRST) || (label->keys[i].label.generation != 0)) {
            ucs_predict_order_key_rate(order, buffer, label, i, price, gap_ns,
                                       start, now);
        }
    }
}

void ucs_predict_order_gap_end(ucs_predict_order_h order,
                               order_buffer_t *buffer,
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
        ucs_predict_order_find_keys(order, buffer, label, price, now);
        ucs_predict_order_find_sounds(order, buffer, label, price, now);
        ucs_predict_order_keys_unlink(order, label);
    }
}

/*
 * A new gap
 */

/* Hold longer than one of the latest gaps was, whichever is best for all of them, if a
 * gap that is longer costs @a missed beside; 0: none is. The next gap may be longer than
 * all that were bridged, as a delay may be shorter than all that were seen. By how much
 * nothing foretells, so that costs a whole missed use, about once in as many gaps as were
 * bridged; in those that are longer the margin is held in vain. */
static double order_best_hold(ucs_predict_order_h order,
                              const order_buffer_t *buffer,
                              const ucs_predict_price_t *price, double missed)
{
    const ucs_predict_delays_t *gaps = &buffer->gaps;
    double least     = gaps->count * missed;
    double served    = 0;
    unsigned bridged = 0;
    double cost, longest, range;
    unsigned i;

    for (i = 0; i < gaps->count; ++i) {
        served += gaps->sorted[i] / price->rent_ns;
        cost    = served + (gaps->count - i - 1) *
                               (missed + (gaps->sorted[i] / price->rent_ns));
        if (cost < least) {
            least   = cost;
            bridged = i + 1;
        }
    }
    if (bridged == 0) {
        return 0;
    }
    longest = gaps->sorted[bridged - 1];
    if (bridged == 1) {
        return longest / order->tuning.bound_least; /* no range is known */
    }
    range = 2 * (longest - gaps->sorted[(bridged - 1) / 2]);
    return longest + ucs_predict_order_margin(order, range,
                                              gaps->count - bridged,
                                              price->rent_ns);
}

/* A new buffer goes by those before it */
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

void ucs_predict_order_gap_begin(ucs_predict_order_h order,
                                 order_buffer_t *buffer, order_label_t *label,
                                 const ucs_predict_price_t *price,
                                 int is_first)
{
    unsigned i;

    buffer->price        = *price;
    buffer->key_due_ns   = 0;
    buffer->burst_due_ns = 0;
    buffer->row_ns  = order_best_hold(order, buffer, price,
                                      order->tuning.row_missed +
                                              ucs_predict_price_work(price));
    buffer->hold_ns = order_best_hold(order, buffer, price, 1);
    ucs_predict_order_best_key(order, label, price->rent_ns);
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

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "order_int.h"
#include <ucs/predict/saturate.h>

#include <ucs/sys/math.h>

#include <math.h>
#include <string.h>

/* Uses next to each other foretell much the same; farther ones are needed where many
 * come at once */
static const unsigned order_distances[] = {1,  2,  3,  4,  5,  6,  8,
                                           10, 12, 16, 20, 24, 32, 48, 64};

/* The next sound that is looked at for a key is so many times as long before a
 * use as the one before */
#define ORDER_SOUND_DISTANCE 1.5

/*
 * The list of keys that wait
 */

order_label_t *ucs_predict_order_key_owner(ucs_predict_order_h order,
                                           uint32_t number)
{
    return ucs_predict_lru_at(&order->labels, number / ORDER_KEY_LAST);
}

order_key_t *ucs_predict_order_key_at(ucs_predict_order_h order,
                                      uint32_t number)
{
    order_label_t *owner = ucs_predict_order_key_owner(order, number);

    return &owner->keys[number % ORDER_KEY_LAST];
}

order_source_t *ucs_predict_order_key_source(ucs_predict_order_h order,
                                             const order_key_t *key, unsigned i)
{
    order_label_t *label;
    order_sound_t *sound;

    if (i >= ORDER_KEY_SOUNDS) {
        sound = ucs_predict_lru_deref(&order->sounds, key->label);
        return (sound == NULL) ? NULL : &sound->source;
    }
    label = ucs_predict_lru_deref(&order->labels, key->label);
    return (label == NULL) ? NULL : &label->source;
}

void ucs_predict_order_key_link(ucs_predict_order_h order, order_label_t *owner,
                                unsigned i)
{
    order_key_t *key       = &owner->keys[i];
    order_source_t *source = ucs_predict_order_key_source(order, key, i);
    uint32_t number        = (ucs_predict_lru_index(&order->labels, owner) *
                       ORDER_KEY_LAST) + i;

    if (source == NULL) {
        key->label.generation = 0; /* it has been forgotten */
        return;
    }
    key->base      = source->count;
    key->is_linked = 1;
    key->prev      = ORDER_NONE;
    key->next      = source->heard;
    if (source->heard != ORDER_NONE) {
        ucs_predict_order_key_at(order, source->heard)->prev = number;
    }
    source->heard = number;
}

/* What a key waits for is known for as long as the key is linked */
static void order_key_unlink(ucs_predict_order_h order, order_label_t *owner,
                             unsigned i)
{
    order_key_t *key = &owner->keys[i];

    if (!key->is_linked) {
        return;
    }
    if (key->prev != ORDER_NONE) {
        ucs_predict_order_key_at(order, key->prev)->next = key->next;
    } else {
        ucs_predict_order_key_source(order, key, i)->heard = key->next;
    }
    if (key->next != ORDER_NONE) {
        ucs_predict_order_key_at(order, key->next)->prev = key->prev;
    }
    key->is_linked = 0;
}

void ucs_predict_order_keys_unlink(ucs_predict_order_h order,
                                   order_label_t *owner)
{
    unsigned i;

    for (i = ORDER_KEY_FIRST; i < ORDER_KEY_LAST; ++i) {
        order_key_unlink(order, owner, i);
    }
}

void ucs_predict_order_source_leave(ucs_predict_order_h order,
                                    order_source_t *source)
{
    order_key_t *key;

    while (source->heard != ORDER_NONE) {
        key            = ucs_predict_order_key_at(order, source->heard);
        source->heard  = key->next;
        key->is_linked = 0;
        if (key->next != ORDER_NONE) {
            ucs_predict_order_key_at(order, key->next)->prev = ORDER_NONE;
        }
    }
}

/*
 * What a key says
 */

/* Of the key in place @a i: only the buffer's own use has gaps in turn */
static unsigned order_key_shares(unsigned i)
{
    return ORDER_SHARES + ((i == ORDER_KEY_START) ? ORDER_TURNS : 0);
}

/* @return Which of the delays a share goes by: each so many-th */
static unsigned order_share_every(unsigned share)
{
    return (share < ORDER_SHARES) ? 1 : share - ORDER_SHARES + 2;
}

static float *order_share_cost(order_label_t *owner, unsigned i, unsigned share)
{
    return (share < ORDER_SHARES) ? &owner->keys[i].cost[share] :
                                    &owner->turn_cost[share - ORDER_SHARES];
}

/* The range of what was seen is taken to be twice the way from the edge to the middle */
static double order_range(ucs_predict_order_h order,
                          const ucs_predict_delays_t *delays)
{
    return ucs_max(2 * (ucs_predict_delays_at(delays, 0.5) -
                        ucs_predict_delays_at(delays, 0)),
                   order->tuning.range_least);
}

double ucs_predict_order_margin(ucs_predict_order_h order, double range,
                                unsigned count, double rent_ns)
{
    range = ucs_max(range, order->tuning.range_least);
    return ucs_max(sqrt(range * rent_ns / (count + 1)) - range, 0);
}

static double order_margin(ucs_predict_order_h order,
                           const ucs_predict_delays_t *delays, double rent_ns)
{
    double most = ucs_predict_delays_at(delays, 0) *
                  (1 - order->tuning.bound_least);

    return (delays->count == 1) ?
                   most :
                   ucs_min(ucs_predict_order_margin(
                                   order, order_range(order, delays),
                                   delays->count, rent_ns),
                           most);
}

static double order_least_delay(ucs_predict_order_h order,
                                const ucs_predict_delays_t *delays,
                                double rent_ns)
{
    return ucs_predict_delays_at(delays, 0) -
           order_margin(order, delays, rent_ns);
}

static double order_key_delay(ucs_predict_order_h order, const order_key_t *key,
                              unsigned share, double rent_ns)
{
    ucs_predict_delays_t like;

    if (share == ORDER_SHARE_LEAST) {
        return order_least_delay(order, &key->delays, rent_ns);
    }
    if (share == ORDER_SHARE_QUARTER) {
        return ucs_predict_delays_at(&key->delays, 0.25);
    }
    like = ucs_predict_delays_every(&key->delays, order_share_every(share));
    return order_least_delay(order, &like, rent_ns);
}

/* Sooner after the key than this the helper cannot have it registered */
double ucs_predict_order_key_wait(ucs_predict_order_h order,
                                  const order_key_t *key, unsigned share,
                                  const ucs_predict_price_t *price)
{
    return ucs_max(order_key_delay(order, key, share, price->rent_ns),
                   price->react_ns + price->register_ns);
}

void ucs_predict_order_key_watch(ucs_predict_order_h order,
                                 const order_label_t *label, double wait,
                                 const ucs_predict_price_t *price,
                                 order_watch_t *watch)
{
    const ucs_predict_delays_t *own = &label->keys[ORDER_KEY_START].delays;

    watch->from_ns  = ucs_max(order->tuning.bound_least *
                                      ucs_predict_delays_at(own, 0) -
                              wait, 0);
    watch->every_ns = ucs_max(wait - price->register_ns - price->react_ns,
                              price->react_ns);
    watch->until_ns = watch->from_ns +
                      watch->every_ns / ucs_max(price->look, ORDER_LOOK_LEAST);
}

/*
 * Learning: what the gap that is over says of its keys
 */

double ucs_predict_order_key_came(const order_key_t *key, uint64_t gap_start,
                                  double gap_ns)
{
    return (key->fired_ns != 0) ? (double)key->fired_ns - (double)gap_start :
                                  gap_ns;
}

double ucs_predict_order_watch_looks(const order_watch_t *watch, double came)
{
    return ucs_max(ucs_min(came, watch->until_ns) - watch->from_ns, 0) /
           watch->every_ns;
}

/* What a plan by the key comes to in the gap */
static void order_key_course(ucs_predict_order_h order,
                             const order_label_t *label, unsigned i,
                             unsigned share, const ucs_predict_price_t *price,
                             uint64_t gap_start, double gap_ns,
                             ucs_predict_course_t *course)
{
    const order_key_t *key = &label->keys[i];
    double came            = ucs_predict_order_key_came(key, gap_start, gap_ns);
    int is_heard           = (key->fired_ns != 0);
    order_watch_t watch;
    double wait;

    course->due_ns = -1;
    course->looks  = 0;
    if (key->delays.count < order_share_every(share)) {
        return;
    }
    wait = ucs_predict_order_key_wait(order, key, share, price);
    if (i >= ORDER_KEY_FIRST) { /* the gap does not begin with it */
        ucs_predict_order_key_watch(order, label, wait, price, &watch);
        course->looks = ucs_predict_order_watch_looks(&watch, came);
        is_heard     &= (came <= watch.until_ns); /* not after the last look */
    }
    if (is_heard) {
        course->due_ns = ucs_max(came + wait, 0);
    }
}

void ucs_predict_order_key_rate(ucs_predict_order_h order,
                                const order_buffer_t *buffer,
                                order_label_t *owner, unsigned i,
                                const ucs_predict_price_t *price, double gap_ns,
                                uint64_t gap_start, uint64_t now)
{
    double decay                = order->tuning.plan_decay;
    order_key_t *key            = &owner->keys[i];
    ucs_predict_course_t course = {.hold_ns = buffer->row_ns};
    ucs_predict_course_t burst  = {
            .hold_ns = ucs_predict_order_hold(buffer, price,
                                              UCS_PREDICT_PLAN_BURST)};
    unsigned share;
    float *cost;

    for (share = 0; share < order_key_shares(i); ++share) {
        order_key_course(order, owner, i, share, price, gap_start, gap_ns,
                         &course);
        if (share == ORDER_SHARE_LEAST) {
            burst.due_ns = course.due_ns;
            burst.looks  = course.looks;
        }
        cost  = order_share_cost(owner, i, share);
        *cost = (float)(*cost * decay +
                        ucs_predict_course_cost(&course, price, gap_ns));
    }
    key->burst_cost = (float)(key->burst_cost * decay +
                              ucs_predict_course_cost(&burst, price, gap_ns));
    key->weight = (float)(key->weight * decay + 1);
    key->seen   = (key->seen << 1) | (key->fired_ns != 0);
    if (key->fired_ns != 0) {
        ucs_predict_delays_add(&key->delays,
                               (float)ucs_predict_sat_sub(now, key->fired_ns));
    }
}

/* @return Which occurrence of the label since the buffer's latest use the one
 *         at @a position is; 0: too many to tell. */
static unsigned order_occurrence(const order_label_t *label,
                                 const order_buffer_t *buffer,
                                 uint64_t position)
{
    uint32_t known = ucs_min(label->source.count, UCS_PREDICT_OCCURRENCES);
    unsigned after = 0;
    uint32_t i, since;

    for (i = 0; i < known; ++i) {
        since  = label->positions[i] - (uint32_t)buffer->position;
        after += (since > 0) &&
                 (since <= (uint32_t)(position - buffer->position));
    }
    return (after == UCS_PREDICT_OCCURRENCES) ? 0 : after;
}

static int order_has_key(const order_label_t *owner, unsigned from,
                         unsigned until, ucs_predict_ref_t label,
                         uint32_t occurrence)
{
    unsigned i;

    for (i = from; i < until; ++i) {
        if ((owner->keys[i].occurrence == occurrence) &&
            (owner->keys[i].label.index == label.index) &&
            (owner->keys[i].label.generation == label.generation)) {
            return 1;
        }
    }
    return 0;
}

/* @return A key without a label, or the one that came least among those that
 *         did not come in the latest gap; 0 if all did. */
static unsigned order_key_free(const order_label_t *owner, unsigned from,
                               unsigned until)
{
    unsigned least = UCS_PREDICT_KEYS;
    unsigned found = 0;
    unsigned i, seen;

    for (i = from; i < until; ++i) {
        if (owner->keys[i].label.generation == 0) {
            return i;
        }
        seen = __builtin_popcount(owner->keys[i].seen);
        if (!(owner->keys[i].seen & 1) && (seen < least)) {
            least = seen;
            found = i;
        }
    }
    return found;
}

static void order_key_new(ucs_predict_order_h order, order_label_t *owner,
                          unsigned i, ucs_predict_ref_t label,
                          uint32_t occurrence, uint64_t delay)
{
    order_key_t *key;

    if (i == 0) {
        return;
    }
    key = &owner->keys[i];
    order_key_unlink(order, owner, i);
    memset(key, 0, sizeof(*key));
    key->label      = label;
    key->occurrence = occurrence;
    key->seen       = 1;
    ucs_predict_delays_add(&key->delays, (float)delay);
}

void ucs_predict_order_find_keys(ucs_predict_order_h order,
                                 const order_buffer_t *buffer,
                                 order_label_t *owner,
                                 const ucs_predict_price_t *price, uint64_t now)
{
    uint64_t uses    = order->uses;
    uint64_t between = uses - buffer->position;
    double least     = price->react_ns + price->register_ns;
    const order_event_t *event;
    order_label_t *label;
    uint32_t occurrence;
    unsigned i;

    for (i = 0; (i < ucs_static_array_size(order_distances)) &&
                (order_distances[i] <= between); ++i) {
        event = &order->ring[(uses + 1 - order_distances[i]) % ORDER_RING];
        label = ucs_predict_lru_deref(&order->labels, event->label);
        if ((label == NULL) || (event->start_ns > now) ||
            (now - event->start_ns < least)) {
            continue;
        }
        occurrence = order_occurrence(label, buffer,
                                      uses + 1 - order_distances[i]);
        if ((occurrence > 0) &&
            !order_has_key(owner, ORDER_KEY_FIRST, ORDER_KEY_SOUNDS,
                           event->label, occurrence)) {
            order_key_new(order, owner,
                          order_key_free(owner, ORDER_KEY_FIRST,
                                         ORDER_KEY_SOUNDS),
                          event->label, occurrence, now - event->start_ns);
        }
    }
}

static const order_noise_t *order_noise_at(ucs_predict_order_h order,
                                           uint64_t number)
{
    return &order->noises[number % ORDER_SOUND_RING];
}

/* @return Which occurrence of its sound a noise is since noise @a from */
static uint32_t order_noise_occurrence(ucs_predict_order_h order, uint64_t from,
                                       const order_noise_t *noise)
{
    const order_noise_t *first;

    do {
        first = order_noise_at(order, from++);
    } while ((first->sound.index != noise->sound.index) ||
             (first->sound.generation != noise->sound.generation));
    return noise->count - first->count + 1;
}

void ucs_predict_order_find_sounds(ucs_predict_order_h order,
                                   const order_buffer_t *buffer,
                                   order_label_t *owner,
                                   const ucs_predict_price_t *price,
                                   uint64_t now)
{
    uint64_t number = order->num_sounds;
    double least    = price->react_ns + price->register_ns;
    const order_noise_t *noise;
    uint32_t occurrence;
    unsigned i;

    if (number - buffer->sounds > ORDER_SOUND_RING) {
        return;
    }
    i = order_key_free(owner, ORDER_KEY_SOUNDS, ORDER_KEY_LAST);
    while ((i != 0) && (number-- > buffer->sounds)) {
        noise = order_noise_at(order, number);
        if ((noise->time_ns > now) || (now - noise->time_ns < least)) {
            continue;
        }
        least      = ORDER_SOUND_DISTANCE * (now - noise->time_ns);
        occurrence = order_noise_occurrence(order, buffer->sounds, noise);
        if ((ucs_predict_lru_deref(&order->sounds, noise->sound) != NULL) &&
            !order_has_key(owner, ORDER_KEY_SOUNDS, ORDER_KEY_LAST,
                           noise->sound, occurrence)) {
            order_key_new(order, owner, i, noise->sound, occurrence,
                          now - noise->time_ns);
            i = order_key_free(owner, ORDER_KEY_SOUNDS, ORDER_KEY_LAST);
        }
    }
}

/* @return Missed uses that are to be expected in the next gap beside what the key has
 *         cost so far. What has come n times of late fails the next time with the
 *         chance 1 / (n + 1); so a key that comes later, and saves some holding, has to
 *         have come often. The buffer's own use always comes: of it only a delay may be
 *         too short. To gaps in turn one is added, as it is to the quarter when it is
 *         judged: there is luck in noise, and they are chosen from more. */
static double order_key_doubt(ucs_predict_order_h order,
                              const order_label_t *label, unsigned i,
                              unsigned share, double rent_ns)
{
    const order_key_t *key = &label->keys[i];
    double came            = __builtin_popcount(key->seen);
    ucs_predict_delays_t like;
    double range, late;

    if (i >= ORDER_KEY_FIRST) {
        return 1 / ucs_max(came, 1); /* it was found the first time */
    }
    if (share == ORDER_SHARE_QUARTER) {
        return 1 / (came + 1);
    }
    like  = ucs_predict_delays_every(&key->delays, order_share_every(share));
    range = order_range(order, &like);
    late  = (like.count == 1) ?
                    1 : /* of one delay no range is known */
                    range / (range + order_margin(order, &like, rent_ns));
    return (late + (share >= ORDER_SHARES)) / (came + 1);
}

static void order_key_best_share(ucs_predict_order_h order,
                                 order_label_t *label, unsigned i,
                                 double rent_ns, float *least)
{
    const order_key_t *key = &label->keys[i];
    unsigned share;
    float cost;

    for (share = 0; (share < order_key_shares(i)) &&
                    (key->delays.count >= order_share_every(share)); ++share) {
        cost = (*order_share_cost(label, i, share) +
                (share == ORDER_SHARE_QUARTER)) / (key->weight + 1);
        if (cost >= *least) {
            continue; /* the doubt adds to it, and takes two powers */
        }
        cost = (float)(cost + order_key_doubt(order, label, i, share, rent_ns));
        if (cost < *least) {
            *least       = cost;
            label->key   = i;
            label->share = share;
        }
    }
}

void ucs_predict_order_best_key(ucs_predict_order_h order,
                                order_label_t *label, double rent_ns)
{
    ucs_predict_scores_t *scores = &label->judge.scores;
    float least                  = 2;
    float least_burst            = 2;
    const order_key_t *key;
    unsigned i;
    float cost;

    label->key       = ORDER_KEY_LAST;
    label->burst_key = ORDER_KEY_LAST;
    for (i = 0; i < ORDER_KEY_LAST; ++i) {
        key = &label->keys[i];
        if ((key->delays.count == 0) ||
            ((i >= ORDER_KEY_FIRST) && (key->label.generation == 0))) {
            continue;
        }
        order_key_best_share(order, label, i, rent_ns, &least);
        cost = (key->burst_cost + 1) / (key->weight + 1);
        if (cost < least_burst) {
            least_burst      = cost;
            label->burst_key = i;
        }
    }
    /* What worse keys have cost before it was found the plan will not cost again */
    scores->cost[UCS_PREDICT_PLAN_KEY] = ucs_min(
            scores->cost[UCS_PREDICT_PLAN_KEY], least * scores->foretold);
}

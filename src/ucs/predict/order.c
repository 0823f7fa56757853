/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "order.h"
#include "delays.h"
#include "lru.h"
#include "newcomers.h"
#include "saturate.h"

#include <ucs/sys/hash.h>
#include <ucs/sys/math.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ORDER_MAX  (1u << 20)

/* Latest uses; a power of two above the farthest that is looked at for keys */
#define ORDER_RING 128u

/* Uses that come next to each other say much the same of what follows; those
 * further away are needed where many come at once */
static const unsigned order_distances[] = {1,  2,  3,  4,  5,  6,  8,
                                           10, 12, 16, 20, 24, 32, 48, 64};

/* Latest sounds, a power of two; what was before these is not looked at */
#define ORDER_SOUND_RING 1024u

/* Keys of a buffer that are always there: its own latest use's start and end.
 * They belong to no label. Those of sounds have places of their own: there are
 * far more sounds than uses, and they would take all. */
enum {
    ORDER_KEY_START,
    ORDER_KEY_END,
    ORDER_KEY_FIRST,
    ORDER_KEY_SOUNDS = ORDER_KEY_FIRST + UCS_PREDICT_KEYS,
    ORDER_KEY_LAST   = ORDER_KEY_SOUNDS + UCS_PREDICT_SOUND_KEYS
};

#define ORDER_NONE UINT32_MAX

typedef struct order_key {
    ucs_predict_ref_t    label;      /* or sound, by the place of the key;
                                        generation 0: none */
    uint32_t             next;       /* key of the same label, by its number;
                                        ORDER_NONE: the last */
    uint32_t             prev;
    uint32_t             base;       /* occurrences of the label when the gap
                                        began */
    uint32_t             occurrence; /* since then, that is the key */
    uint64_t             fired_ns;   /* when it came; 0: not since then */
    uint32_t             seen;       /* came in the latest gaps, a bit each, the
                                        last one lowest */
    uint16_t             age;        /* gaps */
    uint16_t             is_linked;  /* it is in its label's list */
    float                cost[UCS_PREDICT_BOUNDS]; /* decayed, of a plan by
                                                      this key alone */
    float                weight;
    ucs_predict_delays_t delays;     /* until the use */
} order_key_t;

/* What keys wait for: a label or a sound */
typedef struct order_source {
    uint32_t count; /* occurrences */
    uint32_t heard; /* the first key that waits for it */
} order_source_t;

/* Something that the program does beside its uses, and which it does again */
typedef struct order_sound {
    ucs_predict_lru_node_t node;
    order_source_t         source;
} order_sound_t;

/* What is known of the gaps that follow a use of a buffer from a call site */
typedef struct order_label {
    ucs_predict_lru_node_t node;
    double                 again;   /* uses until the same buffer's next: the
                                       mean of the last and those before */
    uint32_t               learned; /* times that this was seen */
    order_source_t         source;
    uint32_t               positions[UCS_PREDICT_OCCURRENCES]; /* of the
                                                                  latest */
    ucs_predict_ref_t      buffer;
    ucs_predict_judge_t    judge;
    uint8_t                key;     /* which one the plan goes by */
    uint8_t                bound;   /* and by which part of its delays */
    order_key_t            keys[ORDER_KEY_LAST];
} order_label_t;

typedef struct order_buffer {
    ucs_predict_lru_node_t node;
    uint64_t               start_ns;   /* latest use, or row of uses */
    uint64_t               latest_ns;  /* start of the latest in the row */
    uint64_t               end_ns;     /* 0: under way */
    uint64_t               position;   /* of that use; 0: none yet */
    uint64_t               sounds;     /* until then */
    uint64_t               key_due_ns; /* by the plan of that name; 0: its key
                                          has not come */
    uint64_t               bound_due_ns[UCS_PREDICT_BOUNDS]; /* 0: nothing
                                                                tells */
    double                 row_ns;     /* it is held in any case */
    double                 hold_ns;    /* by the plan of that name */
    ucs_predict_price_t    price;
    ucs_predict_scores_t   scores;     /* from all call sites */
    ucs_predict_ref_t      label;      /* of the latest use */
    uint8_t                choice;     /* ucs_predict_plan_t */
    uint8_t                is_changed;
    uint8_t                newcomer;   /* number of newcomers.h */
    ucs_predict_delays_t   durations;
    ucs_predict_delays_t   gaps;       /* those in a row as well */
} order_buffer_t;

static_assert(sizeof(order_buffer_t) <= UCS_PREDICT_ORDER_BUFFER_BYTES,
              "counted as less");
static_assert(sizeof(order_label_t) <= UCS_PREDICT_ORDER_LABEL_BYTES,
              "counted as less");

typedef struct order_event {
    ucs_predict_ref_t label;
    uint64_t          start_ns;
} order_event_t;

typedef struct order_noise {
    ucs_predict_ref_t sound;
    uint32_t          count; /* which occurrence of the sound */
    uint64_t          time_ns;
} order_noise_t;

struct ucs_predict_order {
    ucs_predict_order_params_t params;
    ucs_predict_tuning_t       tuning;
    ucs_predict_lru_t          buffers;
    ucs_predict_lru_t          labels;
    uint32_t                   *changed;    /* indices of buffers */
    uint32_t                   num_changed;
    ucs_predict_scores_t       scores;      /* of all buffers */
    ucs_predict_newcomers_t    newcomers;
    ucs_predict_order_info_t   info;        /* position: uses */
    order_event_t              ring[ORDER_RING];
    ucs_predict_lru_t          sounds;
    uint64_t                   num_sounds;  /* heard so far */
    order_noise_t              noises[ORDER_SOUND_RING];
};

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
 * The keys that wait for a label are a list, by their numbers: that of the
 * label whose keys they are, and that of the key among them. Only keys of gaps
 * that are under way wait.
 */

static order_label_t *order_key_owner(ucs_predict_order_h order,
                                      uint32_t number)
{
    return ucs_predict_lru_at(&order->labels, number / ORDER_KEY_LAST);
}

static order_key_t *order_key_at(ucs_predict_order_h order, uint32_t number)
{
    return &order_key_owner(order, number)->keys[number % ORDER_KEY_LAST];
}

static order_source_t *order_label_source(order_label_t *label)
{
    return (label == NULL) ? NULL : &label->source;
}

static order_source_t *order_sound_source(order_sound_t *sound)
{
    return (sound == NULL) ? NULL : &sound->source;
}

/* @return What the key in place @a i waits for; NULL: it has been forgotten */
static order_source_t *order_key_source(ucs_predict_order_h order,
                                        const order_key_t *key, unsigned i)
{
    return (i < ORDER_KEY_SOUNDS) ?
                   order_label_source(
                           ucs_predict_lru_deref(&order->labels, key->label)) :
                   order_sound_source(
                           ucs_predict_lru_deref(&order->sounds, key->label));
}

static void order_key_link(ucs_predict_order_h order, order_label_t *owner,
                           unsigned i)
{
    order_key_t *key       = &owner->keys[i];
    order_source_t *source = order_key_source(order, key, i);
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
        order_key_at(order, source->heard)->prev = number;
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
        order_key_at(order, key->prev)->next = key->next;
    } else {
        order_key_source(order, key, i)->heard = key->next;
    }
    if (key->next != ORDER_NONE) {
        order_key_at(order, key->next)->prev = key->prev;
    }
    key->is_linked = 0;
}

static void order_keys_unlink(ucs_predict_order_h order, order_label_t *owner)
{
    unsigned i;

    for (i = ORDER_KEY_FIRST; i < ORDER_KEY_LAST; ++i) {
        order_key_unlink(order, owner, i);
    }
}

/*
 * Buffers and labels
 */

static void order_change(ucs_predict_order_h order, order_buffer_t *buffer)
{
    if (!buffer->is_changed) {
        buffer->is_changed = 1;
        order->changed[order->num_changed++] =
                ucs_predict_lru_index(&order->buffers, buffer);
    }
}

/* A buffer that is forgotten has nothing to tell any more */
static void order_unchange(ucs_predict_order_h order, uint32_t index)
{
    uint32_t i;

    for (i = 0; order->changed[i] != index; ++i) {
    }
    order->changed[i] = order->changed[--order->num_changed];
}

static uint64_t order_buffer_key(uintptr_t address, size_t length)
{
    return address ^ (length * UCS_HASH_ROUND_1);
}

static order_buffer_t *order_buffer_get(ucs_predict_order_h order,
                                        uintptr_t address, size_t length)
{
    order_buffer_t *buffer;
    order_label_t *label;
    int is_new;

    buffer = ucs_predict_lru_get(&order->buffers,
                                 order_buffer_key(address, length), &is_new);
    if (is_new) {
        if (buffer->is_changed) {
            order_unchange(order,
                           ucs_predict_lru_index(&order->buffers, buffer));
        }
        label = ucs_predict_lru_deref(&order->labels, buffer->label);
        if (label != NULL) {
            order_keys_unlink(order, label);
        }
        memset((char*)buffer + sizeof(buffer->node), 0,
               sizeof(*buffer) - sizeof(buffer->node));
    }
    return buffer;
}

/* A label or sound is forgotten: its generation is not renewed yet, or has just
 * been, so no key may look for it */
static void order_source_leave(ucs_predict_order_h order,
                               order_source_t *source)
{
    order_key_t *key;

    while (source->heard != ORDER_NONE) {
        key            = order_key_at(order, source->heard);
        source->heard  = key->next;
        key->is_linked = 0;
        if (key->next != ORDER_NONE) {
            order_key_at(order, key->next)->prev = ORDER_NONE;
        }
    }
}

/* A label is forgotten: nothing waits for it any more, nor it for others */
static void order_label_leave(ucs_predict_order_h order, order_label_t *label)
{
    order_source_leave(order, &label->source);
    order_keys_unlink(order, label);
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

/*
 * Dues
 */

/* The least delay is that of few; the next one may be somewhat less */
static double order_key_delay(ucs_predict_order_h order,
                              const order_key_t *key, unsigned bound)
{
    double delay = ucs_predict_delays_at(&key->delays,
                                         ucs_predict_bound_shares[bound]);

    return (bound == 0) ? delay * order->tuning.bound_least : delay;
}

/* Sooner after the key than this the helper cannot have it registered */
static double order_key_wait(ucs_predict_order_h order,
                             const order_key_t *key, unsigned bound,
                             const ucs_predict_price_t *price)
{
    return ucs_max(order_key_delay(order, key, bound),
                   price->react_ns + price->register_ns);
}

/* What came in each of the latest gaps bounds the next use from below; what
 * comes now and then does not */
static int order_key_is_steady(ucs_predict_order_h order,
                               const order_key_t *key)
{
    uint32_t gaps = ucs_min(key->age, (uint32_t)order->tuning.key_steady);
    uint32_t mask = (1u << gaps) - 1;

    return (key->delays.count > 0) && ((key->seen & mask) == mask);
}

static int order_follows(const order_buffer_t *buffer, int plan)
{
    return buffer->choice == plan;
}

/* The time in which a buffer can be deregistered and registered again */
static double order_turn(const ucs_predict_price_t *price)
{
    return price->react_ns + 2 * price->register_ns;
}

/* What is registered by now, for it was due, is not deregistered for a due that
 * is near */
static int order_puts_off(const order_buffer_t *buffer, uint64_t before,
                          uint64_t due, uint64_t now)
{
    const ucs_predict_price_t *price = &buffer->price;

    return (due > before) &&
           ((before == 0) || (before > now + (uint64_t)price->register_ns) ||
            (due > now + (uint64_t)order_turn(price)));
}

/* A key of the gap that a buffer is in has come at @a now */
static void order_fire(ucs_predict_order_h order, order_buffer_t *buffer,
                       order_label_t *label, unsigned i, uint64_t now)
{
    order_key_t *key = &label->keys[i];
    int is_changed   = 0;
    uint64_t due;
    unsigned bound;

    key->fired_ns = now;
    if (key->delays.count == 0) {
        return;
    }
    if (i == label->key) {
        buffer->key_due_ns = now + (uint64_t)order_key_wait(order, key,
                                                            label->bound,
                                                            &buffer->price);
        is_changed         = order_follows(buffer, UCS_PREDICT_PLAN_KEY);
    }
    if (order_key_is_steady(order, key)) {
        for (bound = 0; bound < UCS_PREDICT_BOUNDS; ++bound) {
            due = now + (uint64_t)order_key_delay(order, key, bound);
            if (order_puts_off(buffer, buffer->bound_due_ns[bound], due, now)) {
                buffer->bound_due_ns[bound] = due;
                is_changed |= order_follows(buffer,
                                            UCS_PREDICT_PLAN_FIRST + bound);
            }
        }
    }
    if (is_changed) {
        order_change(order, buffer);
    }
}

/* A label or sound has come once more */
static void order_source_announce(ucs_predict_order_h order,
                                  order_source_t *source, uint64_t now)
{
    order_label_t *owner;
    const order_key_t *key;
    uint32_t number;

    ++source->count;
    for (number = source->heard; number != ORDER_NONE; number = key->next) {
        key = order_key_at(order, number);
        if (source->count - key->base == key->occurrence) {
            owner = order_key_owner(order, number);
            order_fire(order,
                       ucs_predict_lru_at(&order->buffers,
                                          owner->buffer.index),
                       owner, number % ORDER_KEY_LAST, now);
        }
    }
}

static void order_announce(ucs_predict_order_h order, order_label_t *label,
                           uint64_t now)
{
    label->positions[label->source.count % UCS_PREDICT_OCCURRENCES] =
            (uint32_t)order->info.uses;
    order_source_announce(order, &label->source, now);
}

/*
 * Learning: what the gap that is over says of its keys
 */

/* What each plan by this key alone would have cost */
static void order_key_rate(ucs_predict_order_h order,
                           const order_buffer_t *buffer, order_key_t *key,
                           const ucs_predict_price_t *price, double gap_ns,
                           uint64_t gap_start, uint64_t now)
{
    double decay                = order->tuning.plan_decay;
    ucs_predict_course_t course = {.hold_ns = buffer->row_ns};
    unsigned bound;

    for (bound = 0; bound < UCS_PREDICT_BOUNDS; ++bound) {
        course.due_ns = -1;
        if ((key->fired_ns != 0) && (key->delays.count > 0)) {
            course.due_ns = (double)key->fired_ns - (double)gap_start +
                            order_key_wait(order, key, bound, price);
            course.due_ns = ucs_max(course.due_ns, 0);
        }
        key->cost[bound] = (float)(key->cost[bound] * decay +
                                   ucs_predict_course_cost(&course, price,
                                                           gap_ns));
    }
    key->weight = (float)(key->weight * decay + 1);
    key->seen   = (key->seen << 1) | (key->fired_ns != 0);
    key->age   += (key->age < 32);
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
    key->age        = 1;
    ucs_predict_delays_add(&key->delays, (float)delay);
}

/* Keys among the uses since the buffer's own latest one */
static void order_find_keys(ucs_predict_order_h order,
                            const order_buffer_t *buffer, order_label_t *owner,
                            uint64_t now)
{
    uint64_t uses    = order->info.uses;
    uint64_t between = uses - buffer->position;
    const order_event_t *event;
    order_label_t *label;
    uint32_t occurrence;
    unsigned i;

    for (i = 0; (i < ucs_static_array_size(order_distances)) &&
                (order_distances[i] <= between); ++i) {
        event = &order->ring[(uses + 1 - order_distances[i]) % ORDER_RING];
        label = ucs_predict_lru_deref(&order->labels, event->label);
        if ((label == NULL) || (event->start_ns > now)) {
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

/* Keys among the sounds since the buffer's own latest use: the latest after
 * which there was time to register, and earlier ones at growing distances in
 * time. If the use was so long ago that its sounds are not known any more, none
 * is found. */
static void order_find_sounds(ucs_predict_order_h order,
                              const order_buffer_t *buffer,
                              order_label_t *owner,
                              const ucs_predict_price_t *price, uint64_t now)
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
        least      = order->tuning.sound_distance * (now - noise->time_ns);
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
    ucs_predict_course_t course;
    uint64_t due;
    int plan, i;

    for (plan = 0; plan < UCS_PREDICT_PLAN_LAST; ++plan) {
        course.hold_ns = (plan == UCS_PREDICT_PLAN_RENT) ? price->rent_ns :
                         (plan == UCS_PREDICT_PLAN_HOLD) ? buffer->hold_ns :
                                                           buffer->row_ns;
        due            = (plan == UCS_PREDICT_PLAN_KEY) ? buffer->key_due_ns :
                         (plan >= UCS_PREDICT_PLAN_FIRST) ?
                                buffer->bound_due_ns[plan -
                                                     UCS_PREDICT_PLAN_FIRST] :
                                0;
        course.due_ns  = (due == 0) ? -1.0 :
                                      (double)ucs_predict_sat_sub(due, start);
        cost[plan]     = ucs_predict_course_cost(&course, price, gap_ns);
    }
    ucs_predict_newcomers_return(&order->newcomers, buffer->newcomer,
                                 buffer->start_ns, now,
                                 order->tuning.plan_decay_all);
    buffer->newcomer = 0;
    ++order->info.gaps[buffer->choice];
    ucs_predict_judge_gap(&label->judge, cost,
                          !is_ready && (cost[buffer->choice] < 1),
                          &order->tuning, &buffer->scores);
    ucs_predict_scores_gap(&order->scores, cost, &order->tuning);
    for (i = 0; i < ORDER_KEY_LAST; ++i) {
        if ((i < ORDER_KEY_FIRST) || (label->keys[i].label.generation != 0)) {
            order_key_rate(order, buffer, &label->keys[i], price, gap_ns,
                           start, now);
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

/* The key whose plan has cost least so far, a missed use being added to each */
static void order_best_key(order_label_t *label)
{
    double least = 2;
    const order_key_t *key;
    unsigned i, bound;
    double cost;

    label->key = ORDER_KEY_LAST;
    for (i = 0; i < ORDER_KEY_LAST; ++i) {
        key = &label->keys[i];
        if ((key->delays.count == 0) ||
            ((i >= ORDER_KEY_FIRST) && (key->label.generation == 0))) {
            continue;
        }
        for (bound = 0; bound < UCS_PREDICT_BOUNDS; ++bound) {
            cost = (key->cost[bound] + 1) / (key->weight + 1);
            if (cost < least) {
                least        = cost;
                label->key   = i;
                label->bound = bound;
            }
        }
    }
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
    order_best_key(label);
    if (is_first) {
        order_choose_first(order, buffer, label, price);
    } else {
        ucs_predict_judge_choose(&label->judge, &order->tuning,
                                 &buffer->scores, &order->scores);
    }
    buffer->choice = order->params.only_rent ? UCS_PREDICT_PLAN_RENT :
                                               label->judge.choice;
    for (i = 0; i < ORDER_KEY_LAST; ++i) {
        label->keys[i].fired_ns = 0;
        if ((i >= ORDER_KEY_FIRST) && (label->keys[i].label.generation != 0)) {
            order_key_link(order, label, i);
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
        order_find_keys(order, buffer, label, now);
        order_find_sounds(order, buffer, label, price, now);
        order_keys_unlink(order, label);
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
    order_fire(order, buffer, label, ORDER_KEY_START, use->start_ns);
    order_announce(order, label, use->start_ns);
}

/* Before it could be deregistered and registered again, or so soon that it is
 * held in any case */
static int order_is_in_row(const order_buffer_t *buffer,
                           const ucs_predict_price_t *price, uint64_t start_ns)
{
    double row = ucs_max(order_turn(price), buffer->row_ns);

    return start_ns < buffer->end_ns + (uint64_t)row;
}

static void order_end(ucs_predict_order_h order, order_buffer_t *buffer,
                      uint64_t end_ns)
{
    order_label_t *label = ucs_predict_lru_deref(&order->labels,
                                                 buffer->label);

    buffer->end_ns = ucs_max(end_ns, buffer->start_ns + 1);
    if (label != NULL) {
        order_fire(order, buffer, label, ORDER_KEY_END, buffer->end_ns);
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
    order_change(order, buffer);
    return ucs_predict_lru_ref(&order->buffers, buffer);
}

void ucs_predict_order_hear(ucs_predict_order_h order, uint64_t what,
                            uint64_t time_ns)
{
    order_sound_t *sound;
    order_noise_t *noise;
    int is_new;

    sound = ucs_predict_lru_get(&order->sounds,
                                (what ^ (what >> 29)) * UCS_HASH_ROUND_1,
                                &is_new);
    if (is_new) {
        if (sound->source.count > 0) {
            order_source_leave(order, &sound->source);
        }
        sound->source.count = 0;
        sound->source.heard = ORDER_NONE;
    }
    order_source_announce(order, &sound->source, time_ns);

    noise          = &order->noises[order->num_sounds++ % ORDER_SOUND_RING];
    noise->sound   = ucs_predict_lru_ref(&order->sounds, sound);
    noise->count   = sound->source.count;
    noise->time_ns = time_ns;
}

/*
 * Forecast
 */

/* The key of the plan has not come: when may it, and how long until it is
 * certain that it will not? */
static void order_forecast_watch(ucs_predict_order_h order,
                                 const order_buffer_t *buffer,
                                 const order_label_t *label,
                                 ucs_predict_forecast_t *forecast)
{
    const order_key_t *own = &label->keys[ORDER_KEY_START];
    const order_key_t *key = &label->keys[label->key];
    double wait            = order_key_wait(order, key, label->bound,
                                            &buffer->price);
    double least           = order_key_delay(order, own, 0);
    double most            = own->delays.sorted[own->delays.count - 1];

    forecast->watch_ns = buffer->start_ns +
                         (uint64_t)ucs_max(least - wait, 0);
    forecast->every_ns = (uint64_t)(wait - buffer->price.register_ns);
    forecast->until_ns = ucs_predict_sat_add(
            buffer->start_ns,
            ucs_predict_sat_ceil(most + buffer->price.rent_ns));
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
    forecast->expected_ns =
            buffer->bound_due_ns[UCS_PREDICT_PLAN_EARLY -
                                 UCS_PREDICT_PLAN_FIRST];
    forecast->hold_ns = (uint64_t)buffer->row_ns;
    if (plan == UCS_PREDICT_PLAN_RENT) {
        forecast->hold_ns = (uint64_t)buffer->price.rent_ns;
        forecast->is_kept = 1;
    } else if (plan == UCS_PREDICT_PLAN_HOLD) {
        forecast->hold_ns = (uint64_t)buffer->hold_ns;
        forecast->is_kept = (forecast->hold_ns > 0);
    } else if (plan == UCS_PREDICT_PLAN_KEY) {
        forecast->due_ns = buffer->key_due_ns;
        if ((forecast->due_ns == 0) && (label != NULL) &&
            (label->key != ORDER_KEY_LAST)) {
            order_forecast_watch(order, buffer, label, forecast);
        }
    } else if (plan >= UCS_PREDICT_PLAN_FIRST) {
        forecast->due_ns = buffer->bound_due_ns[plan - UCS_PREDICT_PLAN_FIRST];
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

int ucs_predict_order_expected(ucs_predict_order_h order, uintptr_t address,
                               size_t length,
                               ucs_predict_forecast_t *forecast)
{
    const order_buffer_t *buffer = ucs_predict_lru_find(
            &order->buffers, order_buffer_key(address, length));

    if (buffer == NULL) {
        return 0;
    }
    order_forecast(order, buffer, forecast);
    return 1;
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

/* Each key in the list of a label or sound waits for it */
static int order_keys_are_valid(ucs_predict_order_h order,
                                const order_source_t *source,
                                uint32_t *count_p)
{
    uint32_t prev = ORDER_NONE;
    uint32_t number;
    const order_key_t *key;

    for (number = source->heard; number != ORDER_NONE; number = key->next) {
        key = order_key_at(order, number);
        if ((key->prev != prev) || !key->is_linked ||
            (order_key_source(order, key, number % ORDER_KEY_LAST) !=
             source)) {
            return 0;
        }
        prev = number;
        ++*count_p;
    }
    return 1;
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

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "order.h"
#include "bound.h"
#include "lru.h"
#include "saturate.h"

#include <ucs/sys/hash.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

#define ORDER_MAX          (1u << 20)

/* Latest uses; a power of two above the farthest herald */
#define ORDER_RING         128u

/* Ends that wait for the starts before them */
#define ORDER_ENDS         128u

/* Uses that come next to each other say much the same of what follows; those
 * further away are needed where many come at once */
static const unsigned order_distances[] = {1,  2,  3,  4,  5,  6,  8,
                                           10, 12, 16, 20, 24, 32, 48, 64};

/* What is lacking after so few delays is looked up: a cube root takes longer
 * than all else that a bound takes */
#define ORDER_LACKS        128u

/* A buffer that was used after the label, before the label came again */
typedef struct order_follower {
    ucs_predict_bound_t from_start;
    ucs_predict_bound_t from_end;
} order_follower_t;

typedef struct order_label {
    ucs_predict_lru_node_t node;
    double                 again;   /* uses until the same buffer's next: the
                                       mean of the last and those before */
    uint64_t               learned; /* times that this was seen */
    uint64_t               taught;  /* the use that was learned from last */
    /* Generation 0: free. Looked through at each lesson, so together. */
    ucs_predict_ref_t      buffers[UCS_PREDICT_FOLLOWERS];
    order_follower_t       followers[UCS_PREDICT_FOLLOWERS];
} order_label_t;

typedef struct order_buffer {
    ucs_predict_lru_node_t node;    /* by address */
    uint64_t               start_ns;    /* latest use */
    uint64_t               end_ns;      /* 0: under way */
    uint64_t               position;    /* of that use */
    uint64_t               deadline_ns; /* latest of what was announced since */
    uint64_t               until_ns;
    double                 gap_ns;      /* decayed maximum, start to start */
    ucs_predict_ref_t      label;       /* of the latest use */
    ucs_predict_bound_t    duration;
    uint8_t                vain;        /* times given up since */
    uint8_t                is_changed;
    uint8_t                is_new;      /* used once */
    uint8_t                is_sure;     /* is that deadline */
    float                  caution;
} order_buffer_t;

typedef struct order_event {
    ucs_predict_ref_t label;
    uint64_t          start_ns;
    uint64_t          end_ns; /* 0: not known */
} order_event_t;

struct ucs_predict_order {
    ucs_predict_order_params_t params;
    ucs_predict_tuning_t       tuning;
    ucs_predict_lru_t          buffers;
    ucs_predict_lru_t          labels;
    uint32_t                   *changed;    /* indices of buffers */
    uint32_t                   num_changed;
    uint32_t                   num_ends;
    float                      cautions[2]; /* of all that were used less often
                                               than `sure`, or as often */
    ucs_predict_order_info_t   info;        /* position: uses */
    double                     lacks[ORDER_LACKS]; /* by count of delays */
    order_event_t              ends[ORDER_ENDS]; /* by end_ns */
    order_event_t              ring[ORDER_RING];
};

/*
 * Creation
 */

void ucs_predict_order_params_init(ucs_predict_order_params_t *params)
{
    params->max_buffers = 4096;
    params->max_labels  = 4096;
    params->miss_target = 0.01;
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
    uint32_t i;

    ucs_predict_order_params_init(&defaults);
    params = (params != NULL) ? params : &defaults;
    /* Also refuses a NaN */
    if (!order_is_bound_valid(params->max_buffers) ||
        !order_is_bound_valid(params->max_labels) ||
        !((params->miss_target > 0) && (params->miss_target < 1))) {
        return UCS_ERR_INVALID_PARAM;
    }

    order = calloc(1, sizeof(*order));
    if (order == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    order->params = *params;
    order->tuning = (params->tuning != NULL) ? *params->tuning :
                                               ucs_predict_tuning_default;
    for (i = 0; i < ORDER_LACKS; ++i) {
        order->lacks[i] = ucs_predict_bound_lack(params->miss_target, i);
    }
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
    *order_p = order;
    return UCS_OK;

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
    ucs_predict_lru_cleanup(&order->labels);
    ucs_predict_lru_cleanup(&order->buffers);
    free(order->changed);
    free(order);
}

/*
 * Buffers
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

static order_buffer_t *order_buffer_get(ucs_predict_order_h order,
                                      uintptr_t address)
{
    order_buffer_t *buffer;
    int is_new;

    buffer = ucs_predict_lru_get(&order->buffers, address, &is_new);
    if (is_new) {
        if (buffer->is_changed) {
            order_unchange(order,
                           ucs_predict_lru_index(&order->buffers, buffer));
        }
        memset((char*)buffer + sizeof(buffer->node), 0,
               sizeof(*buffer) - sizeof(buffer->node));
    }
    return buffer;
}

static order_label_t *order_label_get(ucs_predict_order_h order,
                                      const ucs_predict_use_t *use)
{
    uint64_t key = (use->path ^ (use->path >> 29)) * UCS_HASH_ROUND_1;
    order_label_t *label;
    int is_new;

    label = ucs_predict_lru_get(&order->labels, key ^ use->address, &is_new);
    if (is_new) {
        memset((char*)label + sizeof(label->node), 0,
               sizeof(*label) - sizeof(label->node));
    }
    return label;
}

/* The next use may take so long */
static uint64_t order_patience(ucs_predict_order_h order,
                               const order_buffer_t *buffer)
{
    return ucs_predict_sat_add(
            ucs_predict_sat_ceil(order->tuning.give_up * buffer->gap_ns),
            order->tuning.give_up_ns);
}

/*
 * Announcements
 */

/* @return The bound after @a since, or what is not below it if that is not
 *         later than @a least, so that it does not matter. */
static uint64_t order_bound(ucs_predict_order_h order, float caution,
                            const ucs_predict_bound_t *bound, uint64_t since,
                            uint64_t least)
{
    uint64_t time = since + (uint64_t)ucs_predict_bound_get(bound, 0, caution);
    double lack;

    if (time <= least) {
        return time;
    }
    lack = (bound->count < ORDER_LACKS) ?
                   order->lacks[bound->count] :
                   ucs_predict_bound_lack(order->params.miss_target,
                                          bound->count);
    return (lack > 0) ?
                   since + (uint64_t)ucs_predict_bound_get(bound, lack,
                                                           caution) :
                   time;
}

/* While an iteration is learned much is missed, which says nothing of later; so
 * those that were used often enough have a caution of their own */
static float *order_caution_of_all(ucs_predict_order_h order,
                                   const order_buffer_t *buffer)
{
    return &order->cautions[buffer->duration.count >= order->tuning.sure];
}

static float order_caution(ucs_predict_order_h order,
                           const order_buffer_t *buffer)
{
    return ucs_min(buffer->caution + *order_caution_of_all(order, buffer),
                   1.0f);
}

/* Not before the bound after the start, nor before that after the end.
 * @return What is not later than @a least if that is not, either. */
static uint64_t order_time(ucs_predict_order_h order, float caution,
                           const order_follower_t *follower,
                           const order_event_t *event, uint64_t least)
{
    uint64_t from_start, from_end = 0;

    if ((event->end_ns != 0) && (follower->from_end.count > 0)) {
        from_end = order_bound(order, caution, &follower->from_end,
                               event->end_ns, least);
        least    = ucs_max(least, from_end);
    }
    from_start = order_bound(order, caution, &follower->from_start,
                             event->start_ns, least);
    return ucs_max(from_start, from_end);
}

/* Given up, and now announced once more: is that to be believed? */
static int order_buffer_revive(ucs_predict_order_h order,
                               order_buffer_t *buffer,
                               const order_follower_t *follower, uint64_t now)
{
    if (now <= buffer->until_ns) {
        return 1;
    }
    /* A buffer with habits is not called by what came before it but once */
    if ((buffer->vain == order->tuning.vain) ||
        (!buffer->is_new && (follower->from_start.count == 1))) {
        return 0;
    }
    ++buffer->vain;
    if (buffer->is_new) {
        buffer->gap_ns = (double)(now - buffer->start_ns); /* at least */
    }
    buffer->until_ns    = ucs_predict_sat_add(now,
                                              order_patience(order, buffer));
    buffer->deadline_ns = 0;
    return 1;
}

static void order_announce(ucs_predict_order_h order,
                           const order_event_t *event)
{
    uint64_t now         = ucs_max(event->start_ns, event->end_ns);
    order_label_t *label = ucs_predict_lru_deref(&order->labels, event->label);
    order_buffer_t *buffer;
    uint64_t time;
    unsigned i;

    for (i = 0; (label != NULL) && (i < UCS_PREDICT_FOLLOWERS); ++i) {
        buffer = ucs_predict_lru_deref(&order->buffers, label->buffers[i]);
        /* What was used since has been announced for no later */
        if ((buffer == NULL) || (buffer->start_ns > event->start_ns) ||
            !order_buffer_revive(order, buffer, &label->followers[i], now)) {
            continue;
        }
        time = order_time(order, order_caution(order, buffer),
                          &label->followers[i], event, buffer->deadline_ns);
        if ((buffer->deadline_ns == 0) || (time > buffer->deadline_ns)) {
            buffer->deadline_ns = time;
            buffer->is_sure     = (label->followers[i].from_start.count >=
                                  order->tuning.sure);
            order_change(order, buffer);
        }
    }
}

/* Ends become known late; what they announce is known from then on, that is,
 * before all that starts later */
static void order_announce_ends(ucs_predict_order_h order, uint64_t now)
{
    unsigned count = 0;

    while ((count < order->num_ends) && (order->ends[count].end_ns <= now)) {
        order_announce(order, &order->ends[count++]);
    }
    if (count == 0) {
        return;
    }
    order->num_ends -= count;
    memmove(order->ends, order->ends + count,
            order->num_ends * sizeof(*order->ends));
}

static void order_end(ucs_predict_order_h order, order_buffer_t *buffer,
                      uint64_t end_ns)
{
    order_event_t *event = &order->ring[buffer->position % ORDER_RING];
    unsigned i;

    if (order->info.uses - buffer->position >= ORDER_RING) {
        event = NULL; /* long ago */
    }
    end_ns         = ucs_max(end_ns, buffer->start_ns + 1);
    buffer->end_ns = end_ns;
    ucs_predict_bound_update(&buffer->duration,
                             (double)(end_ns - buffer->start_ns),
                             &order->tuning);
    if (event == NULL) {
        return;
    }

    event->end_ns = end_ns;
    if (order->num_ends == ORDER_ENDS) {
        order_announce_ends(order, order->ends[0].end_ns);
    }
    for (i = order->num_ends; (i > 0) && (order->ends[i - 1].end_ns > end_ns);
         --i) {
        order->ends[i] = order->ends[i - 1];
    }
    order->ends[i] = *event;
    ++order->num_ends;
}

/*
 * Learning
 */

static int order_is_same(ucs_predict_ref_t a, ucs_predict_ref_t b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

/* @return The label's entry of the buffer, put where the one seen least was
 *         if need be; NULL if that is not to be had yet. */
static order_follower_t *order_follower_new(ucs_predict_order_h order,
                                            order_label_t *label,
                                            ucs_predict_ref_t buffer)
{
    order_follower_t *least = &label->followers[0];
    /* None is forgotten before */
    int is_full = (order->buffers.count == order->buffers.max);
    order_follower_t *follower;
    unsigned i;

    for (i = 0; i < UCS_PREDICT_FOLLOWERS; ++i) {
        follower = &label->followers[i];
        if (is_full && (ucs_predict_lru_deref(&order->buffers,
                                              label->buffers[i]) == NULL)) {
            follower->from_start.count = 0;
        }
        if (follower->from_start.count < least->from_start.count) {
            least = follower;
        }
    }

    if (least->from_start.count > order->tuning.established) {
        --least->from_start.count;
        return NULL;
    }
    memset(least, 0, sizeof(*least));
    label->buffers[least - label->followers] = buffer;
    return least;
}

static order_follower_t *order_follower_get(ucs_predict_order_h order,
                                            order_label_t *label,
                                            ucs_predict_ref_t buffer)
{
    unsigned i;

    for (i = 0; i < UCS_PREDICT_FOLLOWERS; ++i) {
        if (order_is_same(label->buffers[i], buffer)) {
            return &label->followers[i];
        }
    }
    return order_follower_new(order, label, buffer);
}

static void order_learn_from(ucs_predict_order_h order, order_label_t *label,
                             const order_event_t *event,
                             ucs_predict_ref_t buffer, uint64_t now)
{
    order_follower_t *follower;

    if (event->start_ns > now) {
        return;
    }
    follower = order_follower_get(order, label, buffer);
    if (follower == NULL) {
        return;
    }
    ucs_predict_bound_update(&follower->from_start,
                             (double)(now - event->start_ns), &order->tuning);
    if ((event->end_ns != 0) && (event->end_ns <= now)) {
        ucs_predict_bound_update(&follower->from_end,
                                 (double)(now - event->end_ns), &order->tuning);
    }
}

/* Each label is learned from once, where it stands closest. The buffer's own
 * latest use comes last, however long ago that was. */
static void order_learn(ucs_predict_order_h order, const order_buffer_t *buffer,
                        uint64_t now)
{
    ucs_predict_ref_t ref  = ucs_predict_lru_ref(&order->buffers, buffer);
    uint64_t uses          = order->info.uses;
    uint64_t between       = uses - buffer->position;
    order_label_t *label   = ucs_predict_lru_deref(&order->labels,
                                                   buffer->label);
    const order_event_t own = {
        .label    = buffer->label,
        .start_ns = buffer->start_ns,
        .end_ns   = buffer->end_ns
    };
    const order_event_t *event;
    order_label_t *herald;
    unsigned i;

    for (i = 0; (i < ucs_static_array_size(order_distances)) &&
                (order_distances[i] <= between); ++i) {
        event = &order->ring[(uses + 1 - order_distances[i]) % ORDER_RING];
        herald = ucs_predict_lru_deref(&order->labels, event->label);
        if ((herald != NULL) && (herald->taught != uses + 1)) {
            herald->taught = uses + 1;
            order_learn_from(order, herald, event, ref, now);
        }
    }
    if (label != NULL) {
        order_learn_from(order, label, &own, ref, now);
        label->again = (label->learned == 0) ?
                               between + 1.0 :
                               (label->again + between + 1.0) / 2;
        ++label->learned;
    }
}

/* Beyond what is typical in ever larger steps: a target of many misses may be
 * met far beyond it only, where equal steps would take for ever */
static void order_steer(float *caution, float step, float least)
{
    step    *= ucs_max(1.0f, -*caution);
    *caution = ucs_min(ucs_max(*caution + step, least), 1.0f);
}

/* What comes before its bound is a fault only if it was not ready */
static void order_judge(ucs_predict_order_h order, order_buffer_t *buffer,
                        uint64_t now, int is_ready)
{
    double target = order->params.miss_target;
    int is_early;
    float step;

    if ((buffer->deadline_ns == 0) || (now > buffer->until_ns)) {
        return;
    }
    is_early = !is_ready && (now < buffer->deadline_ns);
    ++order->info.followed;
    order->info.early += is_early;
    /* While it was learned more was missed; to be made up for */
    if (order->info.early > target * order->info.followed) {
        target /= 2;
    }
    step = is_early - (float)target;
    order_steer(&buffer->caution, (float)order->tuning.steer * step,
                -(float)order->tuning.steer_most *
                        (float)order->params.miss_target);
    /* Where they are many each says less of all */
    step       *= ucs_min((float)order->tuning.steer_all,
                          1.0f / (float)order->buffers.count);
    order_steer(order_caution_of_all(order, buffer), step, 0);
}

static void order_start(ucs_predict_order_h order, order_buffer_t *buffer,
                        const ucs_predict_use_t *use)
{
    order_label_t *label = order_label_get(order, use);
    order_event_t *event;
    double gap;

    if (buffer->position != 0) {
        gap           = (double)ucs_predict_sat_sub(use->start_ns,
                                                    buffer->start_ns);
        buffer->gap_ns = ucs_max(gap, buffer->gap_ns * order->tuning.gap_decay);
    }
    buffer->is_new      = (buffer->position == 0);
    buffer->position    = ++order->info.uses;
    buffer->start_ns    = use->start_ns;
    buffer->end_ns      = 0;
    buffer->deadline_ns = 0;
    buffer->vain        = 0;
    buffer->label       = ucs_predict_lru_ref(&order->labels, label);
    /* A new buffer may never come again; it is ready once it is announced */
    buffer->until_ns    = (buffer->gap_ns > 0) ?
                                 ucs_predict_sat_add(
                                         use->start_ns,
                                         order_patience(order, buffer)) :
                                 0;

    event           = &order->ring[buffer->position % ORDER_RING];
    event->label    = buffer->label;
    event->start_ns = use->start_ns;
    event->end_ns   = 0;
    order_announce(order, event);
}

ucs_predict_ref_t ucs_predict_order_record(ucs_predict_order_h order,
                                           const ucs_predict_use_t *use,
                                           uint64_t end_ns, int is_ready)
{
    order_buffer_t *buffer = order_buffer_get(order, use->address);

    if ((buffer->position == 0) || (buffer->start_ns != use->start_ns)) {
        order_announce_ends(order, use->start_ns);
        order_judge(order, buffer, use->start_ns, is_ready);
        order_learn(order, buffer, use->start_ns);
        order_start(order, buffer, use);
    }
    if ((end_ns != 0) && (buffer->end_ns == 0)) {
        order_end(order, buffer, end_ns);
    }
    order_change(order, buffer);
    return ucs_predict_lru_ref(&order->buffers, buffer);
}

/*
 * Forecast
 */

static void order_forecast(ucs_predict_order_h order,
                           const order_buffer_t *buffer,
                           ucs_predict_forecast_t *forecast)
{
    forecast->ref      = ucs_predict_lru_ref(&order->buffers, buffer);
    forecast->start_ns = buffer->deadline_ns;
    forecast->end_ns   = ucs_predict_sat_add(buffer->deadline_ns,
                                             (uint64_t)buffer->duration.floor);
    forecast->is_sure  = buffer->is_sure;
    forecast->until_ns = ucs_max(buffer->until_ns,
                                 ucs_predict_sat_add(buffer->deadline_ns,
                                                     order->tuning.give_up_ns));
}

unsigned ucs_predict_order_changed(ucs_predict_order_h order, uint64_t now,
                                   ucs_predict_forecast_t *forecast,
                                   unsigned max)
{
    unsigned count = 0;
    order_buffer_t *buffer;

    order_announce_ends(order, now);
    while ((count < max) && (order->num_changed > 0)) {
        buffer = ucs_predict_lru_at(&order->buffers,
                                   order->changed[--order->num_changed]);
        buffer->is_changed = 0;
        order_forecast(order, buffer, &forecast[count++]);
    }
    return count;
}

int ucs_predict_order_expected(ucs_predict_order_h order, uintptr_t address,
                               ucs_predict_forecast_t *forecast)
{
    order_buffer_t *buffer = ucs_predict_lru_find(&order->buffers, address);

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
           ucs_predict_lru_memory(&order->labels);
}

int ucs_predict_order_is_valid(ucs_predict_order_h order)
{
    const order_buffer_t *buffer;
    uint32_t i, changed = 0;

    if (!ucs_predict_lru_is_valid(&order->buffers) ||
        !ucs_predict_lru_is_valid(&order->labels)) {
        return 0;
    }
    for (i = 1; i < order->num_ends; ++i) {
        if (order->ends[i].end_ns < order->ends[i - 1].end_ns) {
            return 0;
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
    return changed == order->num_changed;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "order.h"
#include "bound.h"
#include "place.h"
#include "saturate.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* A use may overtake others, by this many places of its own kind, or where only
 * the buffer is the same, by fewer; what was overtaken may still come while the
 * cursor is no further than ORDER_LAG ahead */
#define ORDER_AHEAD         16
#define ORDER_AHEAD_ADDRESS 4
#define ORDER_LAG           8

/* After so many uses in their turn the alignment is trusted more than a look-up
 * of the latest few */
#define ORDER_STRAIGHT 4

/* What preceded a use is looked for among so many uses before it */
#define ORDER_NEAR 32

/* Generations of a moving buffer that are looked through */
#define ORDER_MOVES 8

/* Once two uses overlapped, the end of the first says nothing about the start
 * of the second, until so many did not */
#define ORDER_OVERLAP 64

/* An unforeseen use is answered by so many foreseen ones that find their buffer
 * held in any case */
#define ORDER_DOUBT     8
#define ORDER_DOUBT_MAX 48

/* More than one unforeseen use in nine: to be held whatever the forecast says */
#define ORDER_DOUBT_KEEP 24

/* Uses in a row that are looked at for whether they come in their turn, and the
 * share that need not, for those to count as foreseen that were named */
#define ORDER_DISORDER_STEP (1 / 64.f)
#define ORDER_DISORDER_MAX  0.25f

#define ORDER_CAUTION_STEP 0.25f
#define ORDER_CAUTION_MIN  -1.0f
#define ORDER_CAUTION_MAX  2.0f

/* The largest gap of a buffer decays by this share a use */
#define ORDER_GAP_DECAY 64
#define ORDER_GAP_SHARE 4

/* How long to hold moves up by this share at a use that came later */
#define ORDER_HOLD_STEP 0.2

/* Second uses of buffers after which that is taken for what is usual */
#define ORDER_HOLD_KNOWN 8

/* A buffer of so few uses is as doubtful as the others are */
#define ORDER_DOUBT_USES 8

/* What has run for less is not yet worth a statement about its duration */
#define ORDER_YOUNG_NS UINT64_C(1000000000)
#define ORDER_GRACE_NS UINT64_C(2000000)

/* What is expected is given up after so many times its median delay and the
 * longest gap of its buffer */
#define ORDER_PATIENCE 16

#define ORDER_SLOTS 8 /* of the look-up table, for each event */

/* What two uses must have in common */
typedef enum order_kind {
    ORDER_BOTH,
    ORDER_ADDRESS,
    ORDER_PATH
} order_kind_t;

/* Contexts in the order in which they are looked up */
static const struct {
    order_kind_t kind;
    unsigned     length;
} order_contexts[] = {{ORDER_BOTH, 4}, {ORDER_BOTH, 2},    {ORDER_ADDRESS, 3},
                      {ORDER_BOTH, 1}, {ORDER_ADDRESS, 1}, {ORDER_PATH, 3},
                      {ORDER_PATH, 1}};

#define ORDER_CONTEXTS \
    (sizeof(order_contexts) / sizeof(order_contexts[0]))

typedef struct order_event {
    ucs_predict_sig_t   path;
    uintptr_t           address;
    uint64_t            start;
    uint64_t            end;      /* 0: under way */
    uint64_t            match;    /* position of the event that it repeats */
    uint64_t            next;     /* ... of the latest that repeats it */
    uint64_t            again;    /* uses to the next one of its buffer */
    uint64_t            promise;  /* ns: latest forecast of its repetition */
    uint64_t            serial;   /* of that forecast */
    ucs_predict_bound_t after_start; /* since the start of the one before */
    ucs_predict_bound_t after_end;   /* since its end */
    ucs_predict_bound_t duration;
    uint64_t            blame;    /* came before its bound, for that event did
                                     (or itself); 0: it did not */
    float               caution;
    unsigned            overlap;
} order_event_t;

typedef struct order_slot {
    uint32_t tag;      /* high half of the hash */
    uint32_t position; /* low half */
} order_slot_t;

/*
 * Positions count from 1; position p is in events[p % max_events].
 * cursor <= newest; 0: nothing is known of what follows.
 * seen: bit j says that the event at cursor - j has been repeated.
 */
struct ucs_predict_order {
    ucs_predict_order_params_t params;
    ucs_predict_places_t       places;
    ucs_predict_order_info_t   info;
    uint64_t                   newest;
    uint64_t                   cursor;
    uint32_t                   seen;
    unsigned                   straight;
    uint64_t                   serial;  /* of forecasts */
    uint64_t                   reached; /* the latest went as far as this */
    int                        is_cut;  /* ... which was its horizon */
    uint64_t                   created; /* start of the first use */
    double                     hold_ns; /* after a use that nothing follows */
    double                     hold_new_ns; /* ... of a new buffer */
    uint64_t                   buffers; /* that were new */
    uint64_t                   reused;  /* and were used a second time */
    unsigned                   doubt;   /* as a buffer's, of all */
    float                      disorder; /* share of uses out of their turn */
    uint64_t                   slot_mask;
    order_slot_t               *slots;
    order_event_t              *events;
};

/*
 * Life
 */

void ucs_predict_order_params_init(ucs_predict_order_params_t *params)
{
    params->max_events  = 4096;
    params->max_places  = 4096;
    params->miss_target = 0.01;
}

static int order_params_are_valid(const ucs_predict_order_params_t *params)
{
    return (params->max_events >= 64) &&
           (params->max_events <= UCS_PREDICT_MAX_ENTRIES) &&
           ((params->max_events & (params->max_events - 1)) == 0) &&
           (params->max_places >= 1) &&
           (params->max_places <= UCS_PREDICT_MAX_ENTRIES) &&
           (params->miss_target > 0) && (params->miss_target < 1);
}

ucs_status_t
ucs_predict_order_create(const ucs_predict_order_params_t *params,
                         ucs_predict_order_h *order_p)
{
    ucs_predict_order_params_t defaults;
    ucs_predict_order_h order;
    ucs_status_t status;

    if (params == NULL) {
        ucs_predict_order_params_init(&defaults);
        params = &defaults;
    } else if (!order_params_are_valid(params)) {
        return UCS_ERR_INVALID_PARAM;
    }

    order = calloc(1, sizeof(*order));
    if (order == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    order->params    = *params;
    order->slot_mask = (uint64_t)params->max_events * ORDER_SLOTS - 1;
    order->events    = calloc(params->max_events, sizeof(*order->events));
    order->slots     = calloc(order->slot_mask + 1, sizeof(*order->slots));
    if ((order->events == NULL) || (order->slots == NULL)) {
        status = UCS_ERR_NO_MEMORY;
        goto err_free;
    }

    status = ucs_predict_places_init(&order->places, params->max_places);
    if (status != UCS_OK) {
        goto err_free;
    }

    *order_p = order;
    return UCS_OK;

err_free:
    free(order->slots);
    free(order->events);
    free(order);
    return status;
}

void ucs_predict_order_destroy(ucs_predict_order_h order)
{
    if (order == NULL) {
        return;
    }
    ucs_predict_places_cleanup(&order->places);
    free(order->slots);
    free(order->events);
    free(order);
}

/*
 * History
 */

static order_event_t *order_event(ucs_predict_order_h order, uint64_t position)
{
    return &order->events[position & (order->params.max_events - 1)];
}

/* Remembered, and what is looked at around it as well */
static int order_is_alive(ucs_predict_order_h order, uint64_t position)
{
    return (position > 0) && (position <= order->newest) &&
           (order->newest - position + ORDER_LAG + 2 <
            order->params.max_events);
}

static int order_is_seen(ucs_predict_order_h order, uint64_t position)
{
    return (position <= order->cursor) &&
           ((order->cursor - position >= 32) ||
            ((order->seen >> (order->cursor - position)) & 1));
}

static uint64_t order_mix(uint64_t hash, uint64_t value)
{
    hash ^= value + UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ (hash >> 32);
}

/* Hash of the newest events; 0 if there are too few */
static uint64_t order_hash(ucs_predict_order_h order, unsigned context)
{
    order_kind_t kind = order_contexts[context].kind;
    uint64_t hash     = context + 1;
    order_event_t *event;
    unsigned i;

    if (order->newest < order_contexts[context].length) {
        return 0;
    }
    for (i = 0; i < order_contexts[context].length; ++i) {
        event = order_event(order, order->newest - i);
        if (kind != ORDER_PATH) {
            hash = order_mix(hash, event->address);
        }
        if (kind != ORDER_ADDRESS) {
            hash = order_mix(hash, event->path);
        }
    }
    return hash;
}

/* Where the newest events in this context were before, and are now.
 * @return 0 if they were not. */
static uint64_t order_swap(ucs_predict_order_h order, unsigned context)
{
    uint64_t hash      = order_hash(order, context);
    order_slot_t *slot = &order->slots[hash & order->slot_mask];
    uint32_t tag       = hash >> 32;
    uint64_t position  = 0;

    if (hash == 0) {
        return 0;
    }
    if (slot->tag == tag) {
        /* The high half of the position is that of the newest, or one less */
        position = (order->newest & ~(uint64_t)UINT32_MAX) | slot->position;
        if (position > order->newest) {
            position = ucs_predict_sat_sub(position, UINT64_C(1) << 32);
        }
    }
    slot->tag      = tag;
    slot->position = order->newest;
    return order_is_alive(order, position) ? position : 0;
}

/*
 * Alignment
 */

static int order_is_same(const order_event_t *event,
                         const ucs_predict_use_t *use, order_kind_t kind)
{
    return ((kind == ORDER_PATH) || (event->address == use->address)) &&
           ((kind == ORDER_ADDRESS) || (event->path == use->path));
}

static uint64_t order_align_kind(ucs_predict_order_h order,
                                 const ucs_predict_use_t *use,
                                 order_kind_t kind)
{
    uint64_t first = ucs_max(order->cursor, ORDER_LAG) - ORDER_LAG + 1;
    uint64_t last  = order->cursor + ((kind == ORDER_BOTH) ?
                                              ORDER_AHEAD :
                                              ORDER_AHEAD_ADDRESS);
    uint64_t position;

    for (position = first; position < order->cursor; ++position) {
        if (!order_is_seen(order, position) &&
            order_is_same(order_event(order, position), use, kind)) {
            return position;
        }
    }
    last = ucs_min(last, order->newest);
    for (position = order->cursor + 2; position <= last; ++position) {
        if (order_is_same(order_event(order, position), use, kind)) {
            return position;
        }
    }
    return 0;
}

static int order_is_next(ucs_predict_order_h order,
                         const ucs_predict_use_t *use, order_kind_t kind)
{
    return (order->cursor < order->newest) &&
           order_is_same(order_event(order, order->cursor + 1), use, kind);
}

/* @return The position that this use repeats, 0 if it was not expected. */
static uint64_t order_align(ucs_predict_order_h order,
                            const ucs_predict_use_t *use)
{
    order_kind_t kind;
    uint64_t position;

    if (!order_is_alive(order, order->cursor)) {
        return 0;
    }
    for (kind = ORDER_BOTH; kind <= ORDER_ADDRESS; ++kind) {
        if (order_is_next(order, use, kind)) {
            return order->cursor + 1;
        }
        position = order_align_kind(order, use, kind);
        if (position != 0) {
            return position;
        }
    }
    return order_is_next(order, use, ORDER_PATH) ? order->cursor + 1 : 0;
}

static void order_move(ucs_predict_order_h order, uint64_t position)
{
    uint64_t distance;

    if (position <= order->cursor) {
        order->seen |= UINT32_C(1) << (order->cursor - position);
        return;
    }

    distance        = position - order->cursor;
    order->seen     = ((distance < 32) ? (order->seen << distance) : 0) | 1;
    order->straight = (distance == 1) ? order->straight + 1 : 0;
    order->cursor   = position;
}

/* Move the cursor to what the newest event repeats: @a aligned, or what the
 * look-up says. @return That position, 0 if it is the first of its kind. */
static uint64_t order_follow(ucs_predict_order_h order, uint64_t aligned)
{
    uint64_t found = 0;
    uint64_t position;
    unsigned i;

    for (i = 0; i < ORDER_CONTEXTS; ++i) {
        position = order_swap(order, i);
        if ((found == 0) && ((i == 0) || (aligned == 0))) {
            found = position;
        }
    }

    if (aligned != 0) {
        order_move(order, aligned);
        if ((found == 0) || (order->straight >= ORDER_STRAIGHT)) {
            return aligned;
        }
    }
    if (found != aligned) {
        order->cursor   = found;
        order->seen     = UINT32_MAX;
        order->straight = 0;
    }
    return found;
}

/* The buffer of the repetition of this event */
static uintptr_t order_buffer(ucs_predict_order_h order,
                              const order_event_t *event)
{
    uintptr_t address = event->address;
    uintptr_t later   = address;
    uintptr_t stride  = 0;
    unsigned i;

    for (i = 0; (i < ORDER_MOVES) && order_is_alive(order, event->match); ++i) {
        event = order_event(order, event->match);
        if (event->address == address) {
            return later; /* what followed it the last time */
        }
        if (i == 0) {
            stride = address - event->address;
        } else if ((i == 1) && (later - event->address != stride)) {
            stride = 0;
        }
        later = event->address;
    }
    return (i > 1) ? address + stride : address;
}

/*
 * Learning
 */

static void order_steer(ucs_predict_order_h order, order_event_t *event,
                        int early)
{
    event->caution += ORDER_CAUTION_STEP * (early - order->params.miss_target);
    event->caution  = ucs_min(event->caution, ORDER_CAUTION_MAX);
    event->caution  = ucs_max(event->caution, ORDER_CAUTION_MIN);
}

/* Was the bound kept that the latest forecast gave? Where the use before came
 * early too, this one was dragged along: the first of them takes the blame, so
 * that it becomes more cautious the more depends on it. */
static void order_feedback(ucs_predict_order_h order,
                           const order_event_t *repeated, order_event_t *event,
                           const order_event_t *before)
{
    int early = (event->start < repeated->promise);

    if (repeated->serial != order->serial) {
        return; /* the latest forecast did not name it */
    }
    if (early) {
        ++order->info.early;
        event->blame = ((before != NULL) && (before->start <= event->start) &&
                        order_is_alive(order, before->blame)) ?
                               before->blame :
                               order->newest;
        event = order_event(order, event->blame);
    }
    order_steer(order, event, early);
}

/* Nearly in its turn, and with the buffer that was named: among a dozen buffers
 * in random order each is found somewhere ahead of the cursor */
static int order_is_in_turn(ucs_predict_order_h order, uint64_t aligned,
                            const ucs_predict_place_t *place)
{
    const order_event_t *event = order_event(order, aligned);

    return (aligned != 0) &&
           (aligned <= order->cursor + ORDER_LAG) &&
           ((place->serial == order->serial) ||
            (aligned > order->reached)) &&
           (order_buffer(order, event) == place->address);
}

/* In its turn; or, where most are, out of it, but named for a time that has
 * come: receives of one exchange complete in any order */
static int order_is_foreseen(ucs_predict_order_h order, uint64_t aligned,
                             const ucs_predict_place_t *place,
                             uint64_t start_ns)
{
    int is_in_turn = order_is_in_turn(order, aligned, place);

    if (place->uses > 1) {
        order->disorder += ((float)!is_in_turn - order->disorder) *
                           ORDER_DISORDER_STEP;
    }
    return is_in_turn || ((order->disorder < ORDER_DISORDER_MAX) &&
                          (place->serial == order->serial) &&
                          (place->promise <= start_ns));
}

static void order_doubt(unsigned *doubt, int is_foreseen)
{
    if (is_foreseen) {
        *doubt -= (*doubt > 0);
    } else {
        *doubt = ucs_min(*doubt + ORDER_DOUBT, ORDER_DOUBT_MAX);
    }
}

static int order_is_doubtful(ucs_predict_order_h order,
                             const ucs_predict_place_t *place)
{
    return (place->doubt > ORDER_DOUBT_KEEP) ||
           ((place->uses < ORDER_DOUBT_USES) &&
            (order->doubt > ORDER_DOUBT_KEEP));
}

/* How long a buffer is held after a use is the same for all, as in an LRU
 * cache, and such that the target's share comes later */
static void order_steer_hold(ucs_predict_order_h order, double *hold_ns,
                             double gap)
{
    double target = order->params.miss_target;

    if (*hold_ns == 0) {
        *hold_ns = gap;
    } else if (gap > *hold_ns) {
        *hold_ns *= 1 + ORDER_HOLD_STEP;
    } else {
        *hold_ns *= 1 - ORDER_HOLD_STEP * target;
    }
}

static void order_learn_gap(ucs_predict_order_h order,
                            ucs_predict_place_t *place, double gap,
                            int is_foreseen)
{
    if (place->uses == 1) {
        ++order->reused;
        order_steer_hold(order, &order->hold_new_ns, gap);
    } else if ((place->doubt > 0) || !is_foreseen) {
        order_steer_hold(order, &order->hold_ns, gap);
    }
    place->gap_ns -= place->gap_ns / ORDER_GAP_DECAY;
    place->gap_ns  = ucs_max(place->gap_ns, gap);
}

static void order_learn_place(ucs_predict_order_h order,
                              ucs_predict_place_t *place,
                              const ucs_predict_use_t *use, uint64_t end_ns,
                              int is_foreseen)
{
    order_event_t *last = order_event(order, place->position);

    if (place->uses == 0) {
        ++order->buffers;
        place->doubt = 1;
    } else {
        order_learn_gap(order, place,
                        ucs_predict_sat_sub(use->start_ns, place->end_ns),
                        is_foreseen);
        if (order_is_alive(order, place->position)) {
            last->again = order->newest + 1 - place->position;
        }
    }
    if (place->uses > 1) {
        order_doubt(&place->doubt, is_foreseen);
        order_doubt(&order->doubt, is_foreseen);
    }
    ++place->uses;
    place->start_ns = use->start_ns;
    place->end_ns   = end_ns;
    place->position = order->newest + 1;
}

/* The event that came, this time, for the one before what is repeated */
static order_event_t *order_before(ucs_predict_order_h order, uint64_t match)
{
    uint64_t next;

    if ((match <= 1) || !order_is_alive(order, match - 1)) {
        return (order->newest > 1) ? order_event(order, order->newest - 1) :
                                     NULL;
    }
    next = order_event(order, match - 1)->next;
    return ((next != 0) && (next < order->newest) && (next + ORDER_NEAR > order->newest)) ?
                   order_event(order, next) :
                   NULL;
}

static void order_learn_delay(order_event_t *event, const order_event_t *before)
{
    if (before->start > event->start) {
        return; /* reported late: no order to learn from */
    }
    ucs_predict_bound_update(&event->after_start, event->start - before->start);
    if ((before->end == 0) || (before->end > event->start)) {
        event->overlap = ORDER_OVERLAP;
        return;
    }
    ucs_predict_bound_update(&event->after_end, event->start - before->end);
    event->overlap -= (event->overlap > 0);
}

static void order_learn(ucs_predict_order_h order, order_event_t *event,
                        uint64_t match, uint64_t aligned)
{
    order_event_t *repeated, *before;


    if (match != 0) {
        repeated           = order_event(order, match);
        repeated->next     = order->newest;
        event->match       = match;
        event->after_start = repeated->after_start;
        event->after_end   = repeated->after_end;
        event->duration    = repeated->duration;
        event->overlap     = repeated->overlap;
        event->caution     = repeated->caution;
    }
    before = order_before(order, match);
    if (aligned != 0) {
        order_feedback(order, order_event(order, aligned), event, before);
    }
    if (before != NULL) {
        order_learn_delay(event, before);
    }
    if (event->end > event->start) {
        ucs_predict_bound_update(&event->duration, event->end - event->start);
    }
}

/* The end of a use that was reported under way */
static void order_finish(ucs_predict_order_h order, ucs_predict_place_t *place,
                         uint64_t end_ns)
{
    order_event_t *event = order_event(order, place->position);

    if ((end_ns == 0) || (place->end_ns != 0)) {
        return;
    }
    place->end_ns = end_ns;
    if (order_is_alive(order, place->position)) {
        event->end = end_ns;
        ucs_predict_bound_update(&event->duration,
                                 ucs_predict_sat_sub(end_ns, event->start));
    }
}

ucs_predict_ref_t ucs_predict_order_record(ucs_predict_order_h order,
                                           const ucs_predict_use_t *use,
                                           uint64_t end_ns)
{
    ucs_predict_place_t *place = ucs_predict_places_get(&order->places,
                                                        use->address);
    order_event_t *event;
    uint64_t aligned, match;

    if ((place->uses > 0) && (place->start_ns == use->start_ns)) {
        order_finish(order, place, end_ns);
        return ucs_predict_places_ref(&order->places, place);
    }

    if (order->info.uses++ == 0) {
        order->created = use->start_ns;
    }
    aligned = order_align(order, use);
    if (aligned != 0) {
        ++order->info.followed;
    }
    order_learn_place(order, place, use, end_ns,
                      order_is_foreseen(order, aligned, place,
                                        use->start_ns));

    event = order_event(order, ++order->newest);
    memset(event, 0, sizeof(*event));
    event->path    = use->path;
    event->address = use->address;
    event->start   = use->start_ns;
    event->end     = end_ns;
    match = order_follow(order, aligned);
    order_learn(order, event, match, aligned);
    return ucs_predict_places_ref(&order->places, place);
}

/*
 * Forecast
 */

/* Where the chain of the uses that have come so far has got to */
typedef struct order_front {
    double start; /* ns; of the use before, or a bound of it */
    double end;
} order_front_t;

/* The front at an event that has come */
static void order_front_at(ucs_predict_order_h order, uint64_t position,
                           uint64_t now, order_front_t *front)
{
    const order_event_t *event = order_event(order,
                                             order_event(order,
                                                         position)->next);

    front->start = event->start;
    front->end   = event->end;
    if (event->end == 0) {
        front->end = event->start + ucs_predict_bound_get(&event->duration, 0);
        front->end = ucs_max(front->end, (double)now);
    }
}

static double order_bound(const order_event_t *event,
                          const order_front_t *front)
{
    double caution = event->caution;
    double delay   = ucs_predict_bound_get(&event->after_start, caution);
    double start   = front->start + ucs_max(delay, 0.0);
    double by_end;

    if ((event->overlap > 0) || (event->after_end.count == 0)) {
        return start;
    }
    by_end = front->end + ucs_predict_bound_get(&event->after_end, caution);
    return ucs_max(start, by_end);
}

static ucs_predict_place_t *order_place(ucs_predict_order_h order,
                                        const order_event_t *event)
{
    ucs_predict_place_t *place =
            ucs_predict_places_find(&order->places,
                                    order_buffer(order, event));

    if ((place == NULL) || (place->serial == order->serial)) {
        return NULL;
    }
    place->serial = order->serial;
    return place;
}

static uint64_t order_time(double time)
{
    return (time > 0) ? ucs_predict_sat_ceil(time) : 0;
}

static void order_name(ucs_predict_order_h order, ucs_predict_place_t *place,
                       const order_event_t *event, double start,
                       ucs_predict_forecast_t *forecast)
{
    double duration = ucs_predict_bound_get(&event->duration, 0);

    place->promise     = order_time(start);
    forecast->ref      = ucs_predict_places_ref(&order->places, place);
    forecast->start_ns = place->promise;
    forecast->end_ns   = order_time(start + ucs_max(duration, 0.0));
    forecast->until_ns = order_time(start + event->after_start.median +
                                    2 * place->gap_ns) + ORDER_GRACE_NS;
    forecast->keep     = order_is_doubtful(order, place);
}

/* Nothing has come in several times the delay of this use: the program has
 * ended, or does something else, and what follows would be put off for ever */
static int order_is_hopeless(ucs_predict_order_h order,
                             const order_event_t *event, uint64_t now)
{
    const ucs_predict_place_t *place =
            ucs_predict_places_find(&order->places, event->address);
    double gap   = (place != NULL) ? place->gap_ns : 0;
    double delay = ORDER_PATIENCE * (event->after_start.median + gap);

    return ucs_predict_sat_sub(now, order_event(order, order->newest)->start) >
           ucs_predict_sat_add(order_time(delay), ORDER_GRACE_NS);
}

unsigned ucs_predict_order_forecast(ucs_predict_order_h order, uint64_t now,
                                    uint64_t horizon,
                                    ucs_predict_forecast_t *forecast,
                                    unsigned max)
{
    uint64_t position = ucs_max(order->cursor, ORDER_LAG + 1) - ORDER_LAG;
    uint64_t last     = ucs_min(order->cursor + UCS_PREDICT_FORECAST_MAX,
                                order->newest);
    order_front_t front = {0};
    unsigned count      = 0;
    ucs_predict_place_t *place;
    order_event_t *event;
    double start;

    if (!order_is_alive(order, order->cursor)) {
        return 0;
    }

    ++order->serial;
    order->reached = last;
    order->is_cut  = 0;
    for (; (position <= last) && (count < max); ++position) {
        event = order_event(order, position);
        if (order_is_seen(order, position)) {
            if (order_is_alive(order, event->next)) {
                order_front_at(order, position, now, &front);
            }
            continue;
        }
        if (front.start == 0) {
            continue; /* nothing to measure from */
        }
        if (order_is_hopeless(order, event, now)) {
            if (position > order->cursor) {
                break;
            }
            continue;
        }

        start          = order_bound(event, &front);
        event->promise = order_time(start);
        event->serial  = order->serial;
        place          = order_place(order, event);
        if (place != NULL) {
            order_name(order, place, event, start, &forecast[count++]);
        }
        if ((count > 0) && (start > horizon) && (position > order->cursor)) {
            order->reached = position;
            order->is_cut  = 1;
            break; /* and so does all that follows */
        }
        /* What has not come yet holds up what follows */
        front.start = ucs_max(start, (double)now);
        front.end   = front.start + ucs_predict_bound_get(&event->duration, 0);
    }
    return count;
}

/* The event that the buffer's latest use repeats, if it is known after how many
 * uses the buffer was used again then; NULL */
static const order_event_t *order_repeated(ucs_predict_order_h order,
                                           const ucs_predict_place_t *place)
{
    uint64_t match;

    if (!order_is_alive(order, place->position)) {
        return NULL;
    }
    match = order_event(order, place->position)->match;
    return (order_is_alive(order, match) &&
            (order_event(order, match)->again != 0)) ?
                   order_event(order, match) :
                   NULL;
}

/* As long as the program has run and a second, if all buffers have been used
 * again so far; once it is known how soon they are, no longer than that */
static double order_hold_new(ucs_predict_order_h order,
                             const ucs_predict_place_t *place)
{
    double age  = ucs_predict_sat_sub(place->end_ns, order->created);
    double hold = (age + ORDER_YOUNG_NS) * (order->reused + 1) /
                  (order->buffers + 1);

    return (order->reused < ORDER_HOLD_KNOWN) ?
                   hold : ucs_min(hold, order->hold_new_ns);
}

uint64_t ucs_predict_order_hold(ucs_predict_order_h order,
                                ucs_predict_ref_t ref)
{
    ucs_predict_place_t *place = ucs_predict_places_deref(&order->places, ref);
    double hold;

    if ((place == NULL) || (place->doubt == 0) || (place->end_ns == 0)) {
        return 0;
    }
    if (order->is_cut && !order_is_doubtful(order, place) &&
        (order_repeated(order, place) != NULL)) {
        return 0; /* it would be named, beyond the horizon */
    }
    if (place->uses == 1) {
        hold = order_hold_new(order, place);
    } else if (order_is_doubtful(order, place)) {
        hold = order->hold_ns;
    } else {
        hold = ucs_min(place->gap_ns * ORDER_GAP_SHARE, order->hold_ns);
    }
    return ucs_predict_sat_add(place->end_ns, order_time(hold));
}

uint64_t ucs_predict_order_next(ucs_predict_order_h order,
                                ucs_predict_ref_t ref)
{
    ucs_predict_place_t *place = ucs_predict_places_deref(&order->places, ref);
    const order_event_t *repeated;

    repeated = (place != NULL) ? order_repeated(order, place) : NULL;
    if ((repeated == NULL) || !order_is_alive(order, repeated->match)) {
        return 0; /* twice is no habit */
    }
    return place->position + repeated->again;
}

/*
 * Figures
 */

void ucs_predict_order_info(ucs_predict_order_h order,
                            ucs_predict_order_info_t *info)
{
    *info        = order->info;
    info->places = order->places.count;
}

size_t ucs_predict_order_memory(ucs_predict_order_h order)
{
    return sizeof(*order) +
           (order->params.max_events * sizeof(*order->events)) +
           ((order->slot_mask + 1) * sizeof(*order->slots)) +
           ucs_predict_places_memory(&order->places);
}

static int order_event_is_valid(ucs_predict_order_h order, uint64_t position)
{
    const order_event_t *event = order_event(order, position);

    return (event->match < position) &&
           ((event->next == 0) || (event->next > position)) &&
           (event->next <= order->newest) &&
           ((event->end == 0) || (event->end >= event->start));
}

int ucs_predict_order_is_valid(ucs_predict_order_h order)
{
    uint64_t position;

    for (position = order->newest; order_is_alive(order, position);
         --position) {
        if (!order_event_is_valid(order, position)) {
            return 0;
        }
    }
    return (order->cursor <= order->newest) &&
           (order->info.early <= order->info.followed) &&
           (order->info.followed <= order->info.uses) &&
           ucs_predict_places_is_valid(&order->places);
}

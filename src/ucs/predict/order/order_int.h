/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_ORDER_INT_H
#define UCS_PREDICT_ORDER_INT_H

#include "order.h"
#include <ucs/predict/delays.h>
#include <ucs/predict/lru.h>
#include <ucs/predict/newcomers.h>

#include <ucs/sys/hash.h>

#include <stdint.h>

/*
 * What the files of the order's predictor share; nobody else includes it. A
 * predictor belongs to one thread, times are in ns, and indices are those of
 * the tables.
 *
 *   order.c         buffers, labels, uses
 *   order_gap.c     a gap ends: what each plan would have cost; the next begins
 *   order_keys.c    what comes before a use, and how long before
 *   order_due.c     by when a buffer is wanted, as what it goes by comes
 *   order_sounds.c  what else the program does
 */

/* Latest uses; a power of two above the farthest that is looked at for keys */
#define ORDER_RING 128u

/* Latest sounds, a power of two; what was before these is not looked at */
#define ORDER_SOUND_RING 1024u

/* The start and the end of a buffer's own latest use are always keys, of no label. Keys
 * of sounds have places of their own: there are far more sounds than uses. */
enum {
    ORDER_KEY_START,
    ORDER_KEY_END,
    ORDER_KEY_FIRST,
    ORDER_KEY_SOUNDS = ORDER_KEY_FIRST + UCS_PREDICT_KEYS,
    ORDER_KEY_LAST   = ORDER_KEY_SOUNDS + UCS_PREDICT_SOUND_KEYS
};

#define ORDER_NONE UINT32_MAX

/* By which part of the delays after a key a plan goes: by the least, by the least but a
 * quarter, or, after a buffer's own use, by each second to eighth of them: where several
 * loops use it gaps differ in turn */
enum {
    ORDER_SHARE_LEAST,
    ORDER_SHARE_QUARTER,
    ORDER_SHARES
};

#define ORDER_TURNS 7

/* Plans in a row to do without a buffer, after which the thread that ends its next use
 * drops it: of gaps that alternate one would be missed otherwise */
#define ORDER_DROPS 2

/* A look costs so many missed uses at least, where a watch is to end */
#define ORDER_LOOK_LEAST 1e-9

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
    int                  is_linked;  /* it is in its label's list */
    float                cost[ORDER_SHARES]; /* decayed, of a plan by this key
                                                alone, and by which part of its
                                                delays */
    float                weight;
    float                burst_cost; /* likewise, of a plan for bursts that goes by
                                        the least */
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
    uint8_t                burst_key; /* and the plan for bursts */
    uint8_t                share;   /* and by which part of its delays:
                                       ORDER_SHARES and beyond, of those in
                                       turn */
    float                  turn_cost[ORDER_TURNS]; /* as a key's */
    order_key_t            keys[ORDER_KEY_LAST];
} order_label_t;

typedef struct order_buffer {
    ucs_predict_lru_node_t node;
    uint64_t               start_ns;   /* latest use, or row of uses */
    uint64_t               latest_ns;  /* start of the latest in the row */
    uint64_t               end_ns;     /* 0: under way */
    uint64_t               position;   /* of that use; 0: none yet */
    uint64_t               sounds;     /* until then */
    uint64_t               key_due_ns; /* by the plan that goes by one key; 0: it
                                          has not come */
    uint64_t               burst_due_ns; /* likewise, by the plan for bursts */
    double                 row_ns;     /* it is held in any case */
    double                 hold_ns;    /* by the plan for bursts */
    ucs_predict_price_t    price;
    ucs_predict_scores_t   scores;     /* from all call sites */
    ucs_predict_ref_t      label;      /* of the latest use */
    uint8_t                choice;     /* ucs_predict_plan_t */
    uint8_t                is_changed;
    uint8_t                newcomer;   /* number of newcomers.h */
    uint8_t                drops;      /* plans in a row to do without it, two
                                          at most */
    ucs_predict_delays_t   durations;
    ucs_predict_delays_t   gaps;       /* those in a row as well */
} order_buffer_t;

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
    uint32_t                   num_changed;
    ucs_predict_scores_t       scores;      /* of all buffers */
    ucs_predict_newcomers_t    newcomers;
    uint64_t                   uses;        /* recorded; those in a row are one */
    order_event_t              ring[ORDER_RING];
    ucs_predict_lru_t          sounds;
    uint64_t                   num_sounds;  /* heard so far */
    uint64_t                   sounds_from; /* heard when a gap last began */
    int                        listens;     /* to sounds */
    order_noise_t              noises[ORDER_SOUND_RING];
    uint32_t                   changed[];   /* indices of buffers */
};

/** By what a buffer is known: its address and its length, together. */
static inline uint64_t ucs_predict_order_buffer_key(uintptr_t address,
                                                    size_t length)
{
    return address ^ (length * UCS_HASH_ROUND_1);
}

/** @return The time in which a buffer can be deregistered and registered again,
 *          ns. */
static inline double ucs_predict_order_turn(const ucs_predict_price_t *price)
{
    return price->react_ns + 2 * price->register_ns;
}

/** @return Nonzero if the thread that ends the buffer's next use is to
 *          deregister it. What is to be held for a moment it cannot. */
static inline int ucs_predict_order_drops(const order_buffer_t *buffer)
{
    return (buffer->drops == ORDER_DROPS) && (buffer->row_ns == 0) &&
           ucs_predict_price_drops(&buffer->price);
}

/*
 * Gaps (order_gap.c)
 */

/**
 * The gap of a buffer that a use has had before is over: learn what each plan
 * would have cost in it, and after what the use came.
 *
 * @param is_ready  As of @ref ucs_predict_order_record.
 */
void ucs_predict_order_gap_end(ucs_predict_order_h order,
                               order_buffer_t *buffer,
                               const ucs_predict_price_t *price, uint64_t now,
                               int is_ready);

/**
 * The gap after a use begins: choose its plan.
 *
 * @param label     Of this use.
 * @param is_first  Nonzero if the buffer has had no use before.
 */
void ucs_predict_order_gap_begin(ucs_predict_order_h order,
                                 order_buffer_t *buffer, order_label_t *label,
                                 const ucs_predict_price_t *price,
                                 int is_first);

/*
 * Keys (order_keys.c). Those that wait for a label or sound are a list, by
 * their numbers: that of the label whose keys they are, and that of the key
 * among them. Only keys of gaps that are under way wait.
 */

/** @return The label that has the key of a number. */
order_label_t *ucs_predict_order_key_owner(ucs_predict_order_h order,
                                           uint32_t number);

/** @return The key of a number. */
order_key_t *ucs_predict_order_key_at(ucs_predict_order_h order,
                                      uint32_t number);

/** @return What the key in place @a i waits for; NULL: it has been forgotten. */
order_source_t *ucs_predict_order_key_source(ucs_predict_order_h order,
                                             const order_key_t *key,
                                             unsigned i);

/** A gap begins: the key in place @a i waits for its label or sound, or is none
 *  any more if that has been forgotten. */
void ucs_predict_order_key_link(ucs_predict_order_h order, order_label_t *owner,
                                unsigned i);

/** A gap is over: none of the keys waits any more. */
void ucs_predict_order_keys_unlink(ucs_predict_order_h order,
                                   order_label_t *owner);

/** A label or sound is forgotten. Its generation is not renewed yet, or has
 *  just been, so no key looks for it. */
void ucs_predict_order_source_leave(ucs_predict_order_h order,
                                    order_source_t *source);

/**
 * How far beyond the edge of what was seen may the next one lie? Of @a count it lies
 * further than a margin with the chance
 *
 *     1 / (count + 1) * range / (range + margin)
 *
 * It falls slowly with the margin: however alike they are, the job may change its pace.
 * When its other ranks stop missing uses, say, all comes sooner than ever before. A
 * margin costs its share of the rent time; with that chance of a missed use the sum is
 * least where
 *
 *     margin = sqrt(range * rent / (count + 1)) - range
 *
 * @param [in] range    Of those that were seen, ns.
 * @param [in] rent_ns  Holding for so long costs as much as what is missed beyond.
 *
 * @return ns.
 */
double ucs_predict_order_margin(ucs_predict_order_h order, double range,
                                unsigned count, double rent_ns);

/** @return How long after a key that has delays the use comes, ns, by a share of them
 *          that has any; not sooner than the helper can have it registered. */
double ucs_predict_order_key_wait(ucs_predict_order_h order,
                                  const order_key_t *key, unsigned share,
                                  const ucs_predict_price_t *price);

/** When the helper looks for a key; ns after the gap has begun. */
typedef struct order_watch {
    double from_ns;  /**< for the first time: sooner it has nothing to say */
    double every_ns; /**< and so long after that: what it finds can still be registered
                          in time */
    double until_ns; /**< it stops when its looks have cost a missed use */
} order_watch_t;

/** @param [in]  wait   So long after the key the use comes, ns.
 *  @param [out] watch  When it is looked for it. */
void ucs_predict_order_key_watch(ucs_predict_order_h order,
                                 const order_label_t *label, double wait,
                                 const ucs_predict_price_t *price,
                                 order_watch_t *watch);

/** @return When a key came in the gap from @a gap_start, ns after that; if it did not, its
 *          end, @a gap_ns. */
double ucs_predict_order_key_came(const order_key_t *key, uint64_t gap_start,
                                  double gap_ns);

/** @return How often it is looked for a key that comes @a came ns after the gap has
 *          begun. */
double ucs_predict_order_watch_looks(const order_watch_t *watch, double came);

/** What each plan by the key in place @a i alone would have cost in the gap from
 *  @a gap_start to @a now, which is @a gap_ns long. */
void ucs_predict_order_key_rate(ucs_predict_order_h order,
                                const order_buffer_t *buffer,
                                order_label_t *owner, unsigned i,
                                const ucs_predict_price_t *price, double gap_ns,
                                uint64_t gap_start, uint64_t now);

/** New keys among the uses since the buffer's own latest one, after which there
 *  was time to register. */
void ucs_predict_order_find_keys(ucs_predict_order_h order,
                                 const order_buffer_t *buffer,
                                 order_label_t *owner,
                                 const ucs_predict_price_t *price,
                                 uint64_t now);

/** New keys among the sounds since the buffer's own latest use: the latest
 *  after which there was time to register, and earlier ones at growing distances
 *  in time. If the use was so long ago that its sounds are not known any more,
 *  none is found. */
void ucs_predict_order_find_sounds(ucs_predict_order_h order,
                                   const order_buffer_t *buffer,
                                   order_label_t *owner,
                                   const ucs_predict_price_t *price,
                                   uint64_t now);

/** Let the plan that goes by one key go by the key and the part of its delays of which
 *  the least cost is expected, by what they have cost so far and how much is known of
 *  them; by ORDER_KEY_LAST if that is two missed uses or more.
 *  The plan for bursts goes by a key of its own, that tells what is beyond them. */
void ucs_predict_order_best_key(ucs_predict_order_h order,
                                order_label_t *label, double rent_ns);

/*
 * Dues (order_due.c)
 */

/** The key in place @a i of a buffer's present gap has come at @a now. */
void ucs_predict_order_fire(ucs_predict_order_h order, order_buffer_t *buffer,
                            order_label_t *label, unsigned i, uint64_t now);

/** A label or sound has come once more: what waits for this occurrence has
 *  come. */
void ucs_predict_order_source_announce(ucs_predict_order_h order,
                                       order_source_t *source, uint64_t now);

/** @return How often the helper has looked for the key of a plan in the gap from
 *          @a gap_start, which was @a gap_ns long. */
double ucs_predict_order_looks(ucs_predict_order_h order,
                               const order_label_t *label, int plan,
                               const ucs_predict_price_t *price,
                               uint64_t gap_start, double gap_ns);

/** @return For how long a plan holds a buffer after its latest use, ns. */
double ucs_predict_order_hold(const order_buffer_t *buffer,
                              const ucs_predict_price_t *price, int plan);

/** @return By when a plan has it registered again, as far as is known by now;
 *          0: nothing is. */
uint64_t ucs_predict_order_due(const order_buffer_t *buffer, int plan);

/** A buffer has something to tell (@ref ucs_predict_order_changed). */
void ucs_predict_order_change(ucs_predict_order_h order,
                              order_buffer_t *buffer);

#endif

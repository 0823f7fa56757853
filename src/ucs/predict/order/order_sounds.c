/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "order_int.h"

/*
 * What the program does between uses, as far as anything is made of it: no more
 * sounds of a gap than are looked at for keys
 */

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

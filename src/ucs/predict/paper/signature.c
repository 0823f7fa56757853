/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "signature.h"

#include <ucs/sys/hash.h>

#include <string.h>

/* Different seeds, so that a communication and a context that consist of the
 * same numbers still have different hashes. */
#define PREDICT_SEED_COMM    UINT64_C(0xd1b54a32d192ed03)
#define PREDICT_SEED_CONTEXT UINT64_C(0xaef17502108ef2d9)

/* Addresses share most of their bits and differ in a few low ones: each has to
 * reach the bits by which a table chooses its bucket. The state is mixed before
 * the value comes in, which makes the order count. */
static uint64_t predict_absorb(uint64_t state, uint64_t value)
{
    return ucs_hash_mix((state * UCS_HASH_FACTOR) ^
                        ucs_hash_mix(value + UCS_HASH_FACTOR));
}

static uint64_t predict_nonzero(uint64_t hash)
{
    return (hash != 0) ? hash : 1;
}

uint64_t ucs_predict_comm(unsigned type, uintptr_t address)
{
    uint64_t hash = predict_absorb(PREDICT_SEED_COMM, type);

    return predict_nonzero(predict_absorb(hash, address));
}

void ucs_predict_window_push(ucs_predict_window_t *w, uint64_t comm)
{
    if (comm == 0) {
        return;
    }

    memmove(&w->comm[1], &w->comm[0],
            (UCS_PREDICT_WINDOW_MAX - 1) * sizeof(w->comm[0]));
    w->comm[0] = comm;
}

ucs_predict_sig_t ucs_predict_signature(ucs_predict_sig_t path,
                                        uintptr_t address,
                                        const ucs_predict_window_t *window,
                                        unsigned window_length)
{
    uint64_t hash = predict_absorb(PREDICT_SEED_CONTEXT, path);
    unsigned i;

    hash = predict_absorb(hash, address);
    for (i = 0; (i < window_length) && (i < UCS_PREDICT_WINDOW_MAX); ++i) {
        hash = predict_absorb(hash, window->comm[i]);
    }

    return predict_nonzero(hash);
}

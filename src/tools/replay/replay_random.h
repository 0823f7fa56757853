/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPLAY_RANDOM_H_
#define UCX_HELPER_TOOL_REPLAY_RANDOM_H_

#include <ucs/sys/hash.h>

#include <math.h>
#include <stdint.h>

/**
 * @file replay_random.h
 *
 * Random numbers that are the same for the same seed, everywhere.
 */

#define REPLAY_2_PI 6.283185307179586

/** @return A hash of both, never 0. */
static inline uint64_t replay_hash(uint64_t a, uint64_t b)
{
    uint64_t hash = (a * UCS_HASH_FACTOR) ^
                    (b * UCS_HASH_FACTOR_2);

    hash = (hash ^ (hash >> 29)) * UCS_HASH_ROUND_1;
    return (hash ^ (hash >> 32)) | 1;
}

/** splitmix64 */
static inline uint64_t replay_random(uint64_t *state)
{
    return ucs_hash_random(state);
}

/** @return A number in (0, 1]. */
static inline double replay_random_uniform(uint64_t *state)
{
    return ((replay_random(state) >> 11) + 1) * 0x1p-53;
}

/** @return A number of the normal distribution, mean 0, deviation 1. */
static inline double replay_random_normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(replay_random_uniform(state)));

    return radius * cos(REPLAY_2_PI * replay_random_uniform(state));
}

#endif

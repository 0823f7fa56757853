/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_HASH_H_
#define UCS_HASH_H_

#include <stdint.h>

/*
 * Hashes of integers. They must not change: signatures are compared between
 * processes and recordings, and the ledger's key with a shell's.
 */

/** Odd factors that spread the low bits of a number upwards: the golden ratio,
 *  and two primes of xxHash for what is summed with it. */
#define UCS_HASH_FACTOR   UINT64_C(0x9e3779b97f4a7c15)
#define UCS_HASH_FACTOR_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define UCS_HASH_FACTOR_3 UINT64_C(0x165667b19e3779f9)

/** Factors of the two rounds of @ref ucs_hash_mix, for hashes of one round. */
#define UCS_HASH_ROUND_1  UINT64_C(0xbf58476d1ce4e5b9)
#define UCS_HASH_ROUND_2  UINT64_C(0x94d049bb133111eb)

/** @return A hash of which each bit depends on each bit of @a x: the finalizer
 *          of SplitMix64 (Steele, Lea, Flood, OOPSLA'14). */
static inline uint64_t ucs_hash_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UCS_HASH_ROUND_1;
    x = (x ^ (x >> 27)) * UCS_HASH_ROUND_2;
    return x ^ (x >> 31);
}

/** @return The next number of SplitMix64, whose state is any number. */
static inline uint64_t ucs_hash_random(uint64_t *state)
{
    return ucs_hash_mix(*state += UCS_HASH_FACTOR);
}

/** @return A hash of a text: FNV-1a, which a shell can compute as well. */
static inline uint64_t ucs_hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *text != '\0'; ++text) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

#endif

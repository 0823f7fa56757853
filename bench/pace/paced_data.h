/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_PACED_DATA_H_
#define BENCH_PACED_DATA_H_

#include <stddef.h>
#include <stdint.h>

/**
 * @file paced_data.h
 *
 * A rank's buffers, and what is in them. Patterns speak of modelled addresses
 * (sim_buffer()); each buffer has memory of its own for as far as the pattern
 * reaches into it. A message carries a stamp in its first and its last word, a
 * function of sender, receiver, tag and count, so that one that arrives in
 * part, late, or from an old registration is seen.
 */

typedef struct paced_buffer {
    uint64_t bytes;    /**< As far as the pattern reaches */
    int      is_brief; /**< Given back before the end */
    char     *address; /**< NULL: not mapped */
} paced_buffer_t;

typedef struct paced_data {
    paced_buffer_t *buffers;
    uint64_t       count;
    uint64_t       next_address; /**< Of what is mapped next, not used yet */
} paced_data_t;

/** Take down that the pattern reaches @a bytes far from @a address. */
void paced_data_reach(paced_data_t *data, uint64_t address, uint64_t bytes);

/** Take down that the buffer at @a address is given back before the end. */
void paced_data_brief(paced_data_t *data, uint64_t address);

/** Map all other buffers, and touch all of their pages. */
void paced_data_map(paced_data_t *data);

/** @return Memory of a modelled address; a brief buffer is mapped, and all of
 *          it touched, if it is not yet. */
void *paced_data_get(paced_data_t *data, uint64_t address);

/** Unmap the buffer at a modelled address. */
void paced_data_unmap(paced_data_t *data, uint64_t address);

/** A stamp of a message, the @a count th of its sender, receiver and tag. */
uint64_t paced_stamp(uint32_t sender, uint32_t receiver, uint32_t tag,
                     uint64_t count);

/** Put @a stamp into the first and, complemented, the last word of a message;
 *  one of under two words has none. */
void paced_stamp_put(void *message, uint64_t bytes, uint64_t stamp);

/** @return Nonzero if both words are those that @ref paced_stamp_put wrote. */
int paced_stamp_is(const void *message, uint64_t bytes, uint64_t stamp);

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_FIREHOSE_TUNING_H_
#define UCP_FIREHOSE_TUNING_H_

/**
 * @file firehose_tuning.h
 *
 * The constants that steer, one row each: unit, why this value, and what half
 * and double do. None has been measured on a NIC yet.
 */

/** Times that a bucket is pinned anew because its memory changed meanwhile.
 *  Half: an access fails that races with four unmappings of neighbours.
 *  Double: such an access takes longer to fail. */
#define UCP_FIREHOSE_PIN_TRIES 8

/** Moves in one message: the paper's several moves a message, few enough that a
 *  request fits 4,096 bytes twice. Half: twice the messages of a long transfer
 *  that misses. Double: the first bytes of such a transfer leave later. */
#define UCP_FIREHOSE_MAX_MOVES 64

/** Pieces of one transfer that are under way at a time: two messages' moves, so
 *  that one is being answered while the other's pieces move data. Half: a long
 *  transfer that misses waits for each answer. Double: one transfer may hold
 *  twice as many firehoses, which others want. */
#define UCP_FIREHOSE_WINDOW 128

/** Firehoses of one peer that an initiator keeps a table for, at most: 64 GiB
 *  of pages, a bound against what a peer may claim. Half and double: so much
 *  less or more address space (40 bytes each, touched when used). */
#define UCP_FIREHOSE_MAX_PER_NODE (1u << 24)

/** Part of M that MAXVICTIM is by default: the paper leaves it open; an eighth
 *  keeps what moves to and fro without adding much to M. Half: more pins where
 *  the set moves. Double: more memory. */
#define UCP_FIREHOSE_VICTIM_PART 8

/** Least default MAXVICTIM in buckets: local transfers draw on it, and one
 *  piece needs one bucket. Half: fewer transfers at once where M is small.
 *  Double: more memory there. */
#define UCP_FIREHOSE_VICTIM_LEAST 64

/** Pins between two looks at how many of them were of buckets that had been
 *  evicted lately (adaptive MAXVICTIM). Half: follows sooner, and chance
 *  more often. Double: later. */
#define UCP_FIREHOSE_ADAPT_PINS 64

/** Least part of pins, as one in so many, that must have been of buckets
 *  evicted lately for MAXVICTIM to grow by an eighth. Half: grows only where
 *  half as many are in vain. Double: grows for little. */
#define UCP_FIREHOSE_ADAPT_PART 8

/** Misses in a row by the same distance until the next one is foreseen: two
 *  distances that agree, a coincidence among random addresses in one of as many
 *  cases as there are buckets. Half: each pair of misses is a stride. Double:
 *  short runs gain nothing. */
#define UCP_FIREHOSE_PREFETCH_RUN 2

/** Buckets fetched ahead of a stride, with the miss in one message. Half: half
 *  of the misses that prefetch saves stay. Double: twice as many firehoses are
 *  moved in vain where a run ends. */
#define UCP_FIREHOSE_PREFETCH_DEPTH 8

/** Microseconds that the progress thread sleeps after nothing has happened.
 *  Half: twice the processor time of an idle program. Double: a
 *  peer's miss waits twice as long. */
#define UCP_FIREHOSE_IDLE_US 50

#endif

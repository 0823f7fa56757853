/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_FIREHOSE_TUNING_H_
#define UCP_FIREHOSE_TUNING_H_

/*
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

/** Firehoses (and victims, where one is to go) that are passed over because they
 *  were used since they came to the head of their list: hits leave a mark only,
 *  which costs no more than the line that they read anyway. Half: what is in use
 *  goes more often where nearly all is. Double: a miss looks at more of them. */
#define UCP_FIREHOSE_SECOND_CHANCES 16

/** Bytes from which on a table lies in large pages where the kernel lends them:
 *  two of them. Half: two megabytes are touched where less than one is used.
 *  Double: lookups in what is just smaller take up to twice as long. */
#define UCP_FIREHOSE_HUGE_TABLE (4u << 20)

/** Milliseconds that an unmapping waits for peers at most, with
 *  UCX_FIREHOSE_FLAG_STRICT: an answer takes a few microseconds of a peer that
 *  runs, and once in 152 more than 100 ms where 18 threads wanted two cores.
 *  Half: a peer on a crowded machine is missed more often. Double: an unmapping that nobody can answer,
 *  because its caller holds what the answer needs, takes twice as long. */
#define UCP_FIREHOSE_UNMAP_WAIT_MS 1000

/** Milliseconds after a memory event in which its range is not pinned, with
 *  UCX_FIREHOSE_FLAG_STRICT, unless memory is mapped there anew: the thread
 *  that unmaps has to come from the event into the kernel. Half: it must not be
 *  kept from that for two turns of the scheduler. Double: a peer that reaches
 *  for memory that madvise() has emptied waits twice as long. */
#define UCP_FIREHOSE_UNMAPPING_MS 20

/** Microseconds that a thread sleeps, with UCX_FIREHOSE_FLAG_THREAD, after nothing has happened.
 *  Half: twice the processor time of an idle program. Double: a
 *  peer's miss waits twice as long. */
#define UCP_FIREHOSE_IDLE_US 50

#endif

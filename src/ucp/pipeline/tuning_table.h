/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_PIPELINE_TUNING_TABLE_H_
#define UCP_PIPELINE_TUNING_TABLE_H_

/*
 * Defaults of the options and the constants that steer, each with what half
 * and double do, by the sweep of bench/paper_b.
 */

/** Bytes. Half: messages of 8 KiB wait for an acknowledgement. Double: more is
 *  kept, copied, for messages that nobody waits for yet. */
#define UCP_PIPELINE_EAGER (16 * 1024)

/** Bytes of a longer message that go with its header. Half: nothing changes.
 *  Double: the answer, for which the link waits, is later by two copies. */
#define UCP_PIPELINE_FIRST 1024

/** Bytes copied at most until the first fragment moves, where that is derived
 *  (as many as a fragment has). Half: with dear registrations the link is idle
 *  at the start. Double: a processor copies while it could register. */
#define UCP_PIPELINE_RDMA_OFFSET_MAX (512 * 1024)

/** RDMA offsets, as they are derived, of a message that is copied as a whole, or
 *  registered as a whole once its buffer has come often enough. Half: 1.5 MiB and
 *  2 MiB from new buffers take 1.5 times as long at costs of today, and are 3 %
 *  behind leave pinned after one reuse. Double: b_eff of today has an eighth less at
 *  8 MiB, as copies keep both processors busy. */
#define UCP_PIPELINE_WHOLE 4

/** Bytes, between which a fragment is derived. Half of the least: pieces by the
 *  hundred. Double of the most: more of a message does not overlap. */
#define UCP_PIPELINE_FRAGMENT_MIN (64 * 1024)
#define UCP_PIPELINE_FRAGMENT_MAX (4 * 1024 * 1024)

/** Bytes of the message that a fragment is derived for. Half: fragments shorter
 *  by a third. Double: longer by as much. */
#define UCP_PIPELINE_TUNE_LENGTH (8.0 * 1024 * 1024)

/** Nanoseconds of a byte that moves, as far as the fragment goes: more than those of
 *  a link of today, so that the last fragment is not too long. Half: fragments are
 *  twice as long at the costs of 2006, and 2 % slower. Double: half as long at those
 *  of today, and 15 % slower. */
#define UCP_PIPELINE_MOVE_NS 0.35

/** Nanoseconds of a processor for a piece beside its registration: three
 *  messages, a write and a flush. Half and double: as of a base cost. */
#define UCP_PIPELINE_PIECE_NS 2500.0

/** Registrations of each length at the start, of which the fastest counts. Half:
 *  a first touch may be taken for the cost. Double: a longer start. */
#define UCP_PIPELINE_PROBES 4

/** Buffers whose copies are added up; of more the one that was copied into least
 *  recently is forgotten. Half: of 33 that are used in turn none is ever registered.
 *  Double: twice as much to look through for each copy, some 30 ns. */
#define UCP_PIPELINE_SEEN 64

/** Classes of messages by the bits of their length: all that there are. */
#define UCP_PIPELINE_LENGTHS 64

/** Share of what a copied message takes that one takes that is read, until one of
 *  that length was. Half: the first ones are registered earlier. Double: none ever
 *  is. */
#define UCP_PIPELINE_READ_GUESS 0.5

/** What a byte of a message takes is the least that was seen, and grows by one of so
 *  many parts of the difference with each that takes longer. Half: one that others
 *  slowed counts more. Double: a link that became slower is seen later. */
#define UCP_PIPELINE_SAMPLES 16

/** What all memory that is kept is worth, as a share of time: the default, and
 *  that of UCX_MD_HELPER_MAX_SLOWDOWN. Half: unused memory stays twice
 *  as long. Double: half as long. */
#define UCP_PIPELINE_MAX_SLOWDOWN 0.005

/** Messages' registrations that keeping new buffers may have cost beyond dropping
 *  them, and what that account keeps for each that is settled. Credit half: new
 *  buffers are dropped one message earlier. Double: two later. Decay half (of what
 *  is missing to 1): twice as many have to come back until new ones are kept
 *  again. Double: half as many. */
#define UCP_PIPELINE_NEW_CREDIT 2.0
#define UCP_PIPELINE_NEW_DECAY  0.9

/** Nanoseconds between looks for what is not worth its rent. Half: the list is
 *  walked twice as often. Double: such memory stays a little longer. */
#define UCP_PIPELINE_LOOK_NS 1000000

/** Fragments of a message registered at a time. Half: a quarter less bandwidth
 *  where fragments are short. Double: twice the memory, no more overlap. */
#define UCP_PIPELINE_DEPTH 8

/** Fragments that are kept, under way beyond the depth, so that the link does
 *  not wait for each to be asked for. Half: it waits twice for 32 MiB in fragments
 *  of 64 KiB. Double: longer lists. */
#define UCP_PIPELINE_AHEAD 256

/** Fragments of a message that are being written or read at a time. Of b_eff's rings
 *  in docs/paper_b.md at the costs of 2006, when all were written: half: nothing
 *  changes. Double: a tenth less, as answers to others travel behind what was given
 *  to the link. */
#define UCP_PIPELINE_MOVES 4

/** Bytes kept, mode cache. Half and double: as the user's memory allows. */
#define UCP_PIPELINE_CACHE_BYTES (256ul * 1024 * 1024)

/** Bytes of a message with copied data. Half: twice the messages. Double: not
 *  possible, a wire's payload is no longer. */
#define UCP_PIPELINE_COPY (32 * 1024)

/** Such messages of a piece, and the bytes of one at least. Half: 64 KiB take a
 *  quarter longer, as less of it overlaps. Double: messages by the dozen. */
#define UCP_PIPELINE_COPY_PARTS 8
#define UCP_PIPELINE_COPY_MIN (4 * 1024)

/** Messages of a copied piece under way. Half: the link may run dry. Double: a
 *  control message waits behind more. */
#define UCP_PIPELINE_COPIES 4

/** Entries of the cache, searched one by one. Half: less is reused where
 *  fragments are small. Double: a search of twice the length. */
#define UCP_PIPELINE_CACHE_ENTRIES 1024

#endif

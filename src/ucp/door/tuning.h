/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_DOOR_TUNING_H_
#define UCP_DOOR_TUNING_H_

/*
 * The constants of the door, each with its unit, the reason, and what half and
 * double of it do. All sizes of tables are powers of two.
 */

/** Threads that are heard at a time. A job has a thread or a few a rank; memory
 *  is touched only for those that speak. Half: of a job with more than 32
 *  communicating threads some are not heard. Double: as much address space
 *  again, 2.6 MB, and a drain looks at twice as many heads once they were all
 *  in use. */
#define UCP_DOOR_RINGS 64u

/** Operations that wait in a thread's ring. The helper looks each 20 ms or as
 *  ranks wait: 50,000 operations a second, what LU makes, fill it just then.
 *  Half: faster programs lose half as early. Double: 40 KB more of the cache
 *  are written round and round. */
#define UCP_DOOR_RING_LENGTH 1024u

/** Receives that are known by their request at a time. Half: of programs with more
 *  than 512 posted receives the ends of some are told at once. Double: 16 KB
 *  more. */
#define UCP_DOOR_REQUESTS 1024u

/** Bytes of the shortest receive whose end is followed: what is shorter than a
 *  page nobody registers ahead, and a short message is not to pay for two
 *  operations. Half, double: as many more, or fewer, are followed in vain. */
#define UCP_DOOR_FOLLOW_MIN 4096u

/** Neighbours at which a place in that table is looked for. Half: places are
 *  refused in a table that is half full. Double: a free of a request that is
 *  not in the table looks at two more cache lines. */
#define UCP_DOOR_PROBES 8u

/** Empty calls of progress in a row, a power of two, after which and after each
 *  as many again the door looks at the clock, which takes some 20 ns; an empty
 *  call takes 3 (shared memory) to 100 ns. Half: short waits pay twice as much
 *  for looks. Double: idle steps begin up to two microseconds later. */
#define UCP_DOOR_IDLE_CALLS 16u

/** How much longer than the first step of a wait takes, which hears what the program
 *  did, a thread has waited before it takes one if there was nothing to be done for
 *  it in the latest such wait: the wait is longer by a sixteenth then. A quarter: it
 *  falls into the end of waits of 5 to 10 us, and messages of 64 KB take 8 % longer.
 *  Half and double: the program is heard in waits of 10 us, of 40 us and more. */
#define UCP_DOOR_FIRST_SHARE 16u

/** Waits in which a first step is put off so until one takes it as early as any:
 *  else nothing would be found in those that are too short for it. As many the
 *  first time, and twice as many each time that nothing comes of it, so all of
 *  these tries together cost little, and what a program does otherwise than before
 *  is found within twice as many waits as it did the same. Half and double: 1 % of
 *  the first hundred messages of 16 to 64 KB. */
#define UCP_DOOR_FIRST_TRIES 8u

/** At most. Half: 1 % of messages of 16 KB. Double: more than a step learns from,
 *  256 uses, may wait for it; from four times as many on receives were heard of
 *  before the uses of those before them, and taken for unused. */
#define UCP_DOOR_FIRST_TRIES_MAX 64u

/** How much longer than an idle step takes that finds nothing a thread has
 *  waited before it takes one: a wait is at worst by one part in so many longer.
 *  Half: an 8-byte message between two ranks that take turns may meet a step in
 *  each wait (a step takes 0.3 us, the wait on a NIC 2 us). Double: the helper's
 *  work begins some 3 us later in waits of 25 us and more. */
#define UCP_DOOR_IDLE_SHARE 8u

#endif

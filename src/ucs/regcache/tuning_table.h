/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The constants of the registration cache, one row each; see tuning.h. No
 * guard: read once for each thing that is made of the rows.
 *
 * UCS_TUNING(type, name, default, unit, why, effect)
 *
 * The effect of half and double is what bench/ablate printed for the recordings
 * in test/data/traces on 2026-11-22: for each policy the largest change in any,
 * without a ceiling or under half of what leave-pinned holds, in points of uses
 * on time and in percent of leave-pinned's byte-seconds. What changes nothing
 * there bounds what no recording shows: losses, refusals, memory.
 */

/* Sizes */
UCS_TUNING(uint64_t, dq_length, 1024, "uses",
           "in the queue to the helper, a power of two; more are lost, and "
           "their regions swept",
           "nothing in the recordings")
UCS_TUNING(uint64_t, max_contexts, 4096, "contexts",
           "that the predictor remembers, and buffers",
           "nothing in the recordings")
UCS_TUNING(uint64_t, small_max, 1024, "regions",
           "below min_size that stay registered",
           "nothing in the recordings")

/* What the lower domain takes before that is measured: on the dear side of the
 * NICs of fifteen years (Goglin 2009, table 1), so that the first predictions
 * err towards registering early */
UCS_TUNING(double, reg_page_ns, 250, "ns",
           "a registration, each page",
           "half: predict -0.17 -0.38; double: predict +0.32 -1.09")
UCS_TUNING(double, reg_ns, 20000, "ns",
           "a registration",
           "half: predict +0.32 +0.47; double: predict +0.32 -1.10")
UCS_TUNING(double, dereg_page_ns, 100, "ns",
           "a deregistration, each page",
           "half: predict +3.85 +0.52; double: predict +0.32 -1.09")
UCS_TUNING(double, dereg_ns, 10000, "ns",
           "a deregistration",
           "half: predict +0.16 -0.23; double: predict +0.32 -1.09")

/* Under the index lock */
UCS_TUNING(uint64_t, lot, 256, "regions",
           "looked at before the index lock is let go: some ten "
           "microseconds, as long as what is done under it for a use takes "
           "at worst",
           "nothing in the recordings")
UCS_TUNING(uint64_t, lot_rest_ns, 100000, "ns",
           "between two lots, of a sweep or of what was unmapped: ten times "
           "what one takes, so that the lock is free for nine parts of ten; "
           "and fork() comes in, which waits for the end of a step",
           "nothing in the recordings")
UCS_TUNING(uint64_t, reclaim_max, 64, "regions",
           "of unmapped memory that may wait for the helper; with more a use "
           "that registers deregisters them, for it pays for a system call "
           "anyway",
           "nothing in the recordings")
UCS_TUNING(uint64_t, reclaim_max_bytes, 16ul << 20, "bytes",
           "likewise: a helper that is not let run must not hold what the "
           "application has given back",
           "nothing in the recordings")

UCS_TUNING(uint64_t, stretch, 4, "times",
           "as long as a use that a dormant region serves",
           "half: paper +2.58 -4.13, predict -7.44 -11.83; double: predict "
           "+0.12 +0.49")

/* The helper's step */
UCS_TUNING(uint64_t, batches, 4, "batches",
           "of uses learned from in one step; where uses come faster the "
           "helper learns from a sample, so that it does not fight the hits "
           "for cache lines",
           "nothing in the recordings")
UCS_TUNING(uint64_t, stray_ns, 5000000, "ns",
           "idle after which a region whose last use may have been lost "
           "goes; it is looked for after twice that, also when a helper "
           "resumes",
           "nothing in the recordings")
UCS_TUNING(uint64_t, refused_max, 10, "doublings",
           "of the uses without a registration in advance that follow a "
           "refusal",
           "nothing in the recordings")
UCS_TUNING(uint64_t, backoff_min_ns, 1000000, "ns",
           "without registrations in advance after one failed",
           "nothing in the recordings")

UCS_TUNING(uint64_t, away_max_ns, 1000000000, "ns",
           "for which the helper makes no registration in advance after many "
           "failed, and between two looks where there is no use, at most",
           "nothing in the recordings")
UCS_TUNING(uint64_t, slice_ns, 5000000, "ns",
           "a time slice of the system: bounds how late the helper counts "
           "as, and how much earlier it registers for that",
           "nothing in the recordings")

/* Terms of the paper's t_p that are not measured one by one: upper bounds */
UCS_TUNING(uint64_t, hash_ns, 500, "ns",
           "a look-up in the call-site table",
           "half: paper -0.63 +1.33, predict +0.48 +1.57; double: paper "
           "-2.05 +0.65, predict +0.97 -0.88")
UCS_TUNING(uint64_t, cache_ns, 500, "ns",
           "a look-up in the cache",
           "half: paper -0.63 +1.33, predict +0.48 +1.57; double: paper "
           "-2.05 +0.65, predict +0.97 -0.88")
UCS_TUNING(double, item_ns, 5, "ns",
           "a step along a queue",
           "half: paper -0.63 +1.22, predict +0.32 -1.05; double: paper "
           "-1.17 +0.65, predict -0.23 -0.69")
UCS_TUNING(uint64_t, lateness_ns, 100000, "ns",
           "of the helper's wake-up before it has been measured",
           "half: paper +2.58 -0.07, predict +3.85 +1.71; double: paper "
           "-3.00 -0.18, predict +1.92 +1.71")

/* When the helper looks for the end of a use */
UCS_TUNING(uint64_t, patrol_ns, 100000000, "ns",
           "between two looks in any case while anything is registered, for "
           "uses may have been lost: twice as long each time that there was "
           "none; and until what is in use for longer than it would be "
           "waited for is looked at again",
           "half: paper +0.31 +0.20, predict -12.50 +1.06; double: predict "
           "-6.25 -0.01")
UCS_TUNING(uint64_t, poll_min_ns, 250000, "ns",
           "least time after which an end that did not come is looked for "
           "again",
           "half: paper -4.03 -1.80, predict +3.85 +2.89; double: paper "
           "-4.52 +1.91, predict -12.50 +4.17")
UCS_TUNING(uint64_t, poll_max_ns, 5000000, "ns",
           "likewise the greatest",
           "half: paper +2.19 -1.37, predict +9.62 -1.66; double: paper "
           "+3.06 +1.15, predict +3.85 +2.47")
UCS_TUNING(uint64_t, poll_gap, 128, "parts",
           "of the time between two uses for which a late one may be held at "
           "leisure",
           "half: predict +0.48 +3.70; double: predict +0.32 -2.54")

/* The policy paper */
UCS_TUNING(uint64_t, paper_poll_share, 4, "parts",
           "of its lateness after one of which an end is looked for again",
           "half: paper -5.16 +1.65; double: paper +3.55 +1.46")

/* The policy predict */
UCS_TUNING(uint64_t, order_poll_share, 2, "parts",
           "likewise; one look serves all that wait together",
           "half: predict +9.62 -8.96; double: predict -6.25 +3.68")
UCS_TUNING(uint64_t, order_poll_rest_ns, 100000, "ns",
           "between two looks at least",
           "half: predict +0.97 +0.83; double: predict +2.50 +2.24")
UCS_TUNING(uint64_t, order_poll_wait_ns, 2500000, "ns",
           "that what is not late yet waits for what is",
           "half: predict +0.32 -1.86; double: predict -0.32 +1.36")
UCS_TUNING(uint64_t, order_poll_spread, 8, "times",
           "the shortest interval that the longest counts as at most: the "
           "most late is likely to be the next",
           "half: predict -0.96 +5.23; double: predict -0.96 +1.19")
UCS_TUNING(uint64_t, order_poll_bytes, 1 << 20, "bytes",
           "less are looked for less often",
           "half: predict -0.21 -1.28; double: predict -2.88 -4.22")
UCS_TUNING(uint64_t, share_bytes, 1 << 20, "bytes",
           "that would be left pinned, for each of which the helper may take "
           "its share of a core, and once more",
           "nothing in the recordings")
UCS_TUNING(uint64_t, credit_ns, 100000000, "ns",
           "that it may be ahead, or behind, in taking that share",
           "nothing in the recordings")
UCS_TUNING(uint64_t, far, 4, "registrations",
           "for which there must be time before a region is deregistered",
           "half: predict +0.65 +4.62; double: predict +1.29 +3.49")
UCS_TUNING(uint64_t, far_again, 32, "registrations",
           "likewise of what was registered for a use that is put off, for "
           "it may be put off again and again",
           "half: predict +0.65 +3.32; double: predict +1.13 +1.75")
UCS_TUNING(uint64_t, far_max, 256, "registrations",
           "likewise if little is known",
           "half: predict +2.50 +3.72; double: predict +6.25 -2.04")
UCS_TUNING(uint64_t, lead_min_ns, 200000, "ns",
           "before its time that a buffer is to be registered at most, once "
           "a use found it late; twice as much each time",
           "half: predict -0.32 +1.37; double: predict +0.10 +0.74")
UCS_TUNING(double, lead_decay, 0.35, "of the target",
           "by which the lead falls at each use that found its buffer ready, "
           "so that in balance half the target's share of uses does not",
           "half: predict -0.26 +0.73; double: predict -0.26 +0.61")

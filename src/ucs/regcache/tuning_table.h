/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The constants of the registration cache, one row each; see tuning.h. No
 * guard: read once for each thing that is made of the rows.
 *
 * UCS_TUNING(type, name, default, unit, why, effect)
 *
 * The effect is what bench/ablate printed for the recordings in
 * test/data/traces on 2026-11-22: by how many percent J changes under each
 * policy if the constant is halved or doubled (of one near 1, what it differs
 * by from 1), at a NIC's modelled costs: mean, and the most in any recording in
 * brackets. A policy that is not named changes by less than 1 % in all of them.
 * A few percent in one recording is noise: half a microsecond more for a
 * look-up (hash_ns) makes as much. What changes nothing there bounds what no
 * recording shows: losses, refusals, memory.
 */

/* Sizes */
UCS_TUNING(uint64_t, dq_length, 1024, "uses",
           "in the queue to the helper, a power of two; more are lost, and "
           "their regions swept",
           "half: predict 0 (+2), paper 0 (-1); double: predict 0 (+1), paper "
           "0 (-3)")
UCS_TUNING(uint64_t, max_contexts, 4096, "contexts",
           "that the predictor remembers, and buffers",
           "below 1 %")
UCS_TUNING(uint64_t, small_max, 1024, "regions",
           "below min_size that stay registered",
           "below 1 %")

/* What the lower domain takes before that is measured: on the dear side of the
 * NICs of fifteen years (Goglin 2009, table 1), so that the first predictions
 * err towards registering early */
UCS_TUNING(double, reg_page_ns, 250, "ns",
           "a registration, each page",
           "double: predict 0 (-8)")
UCS_TUNING(double, reg_ns, 20000, "ns",
           "a registration",
           "half: predict 0 (-8)")
UCS_TUNING(double, dereg_page_ns, 100, "ns",
           "a deregistration, each page",
           "double: predict -1 (-8)")
UCS_TUNING(double, dereg_ns, 10000, "ns",
           "a deregistration",
           "half: predict 0 (-8); double: predict 0 (-5)")

/* Under the index lock */
UCS_TUNING(uint64_t, lot, 256, "regions",
           "looked at before the index lock is let go: some ten "
           "microseconds, as long as what is done under it for a use takes "
           "at worst",
           "below 1 %")
UCS_TUNING(uint64_t, lot_rest_ns, 100000, "ns",
           "between two lots, of a sweep or of what was unmapped: ten times "
           "what one takes, so that the lock is free for nine parts of ten; "
           "and fork() comes in, which waits for the end of a step",
           "below 1 %")
UCS_TUNING(uint64_t, reclaim_max, 64, "regions",
           "of unmapped memory that may wait for the helper; with more a use "
           "that registers deregisters them, for it pays for a system call "
           "anyway",
           "below 1 %")
UCS_TUNING(uint64_t, reclaim_max_bytes, 16ul << 20, "bytes",
           "likewise: a helper that is not let run must not hold what the "
           "application has given back",
           "below 1 %")

UCS_TUNING(uint64_t, later_bytes, 64ul << 20, "bytes",
           "from which a region that may not outlive its use is deregistered "
           "by the helper, for the thread that ends the use would wait some "
           "milliseconds",
           "no recording has such regions")

UCS_TUNING(uint64_t, cover_max, 2ul << 30, "bytes",
           "of a registration that neighbours share: some NICs are slower in "
           "registrations above 4 GiB, and twice as many of half a million "
           "pages are nothing",
           "no recording has such neighbours")
UCS_TUNING(uint64_t, cover_scatter, 64, "times",
           "what the program has asked for of a mapping, in any order: that much "
           "of it is registered for that at most. So at least one byte in 64 was "
           "asked for, and 1,265 pieces cost some 18 registrations",
           "no recording has such neighbours; simulated, 1,265 and 65,536 "
           "pieces: half: 32 and 1,374 registrations for 18 and 687; double: 16 "
           "and 359")
UCS_TUNING(uint64_t, cover_failures, 8, "covers",
           "that may be refused by the lower domain before none is asked for "
           "any more: each costs a use a registration in vain",
           "no recording has such neighbours")

UCS_TUNING(uint64_t, stretch, 2, "times",
           "as long as a use that a dormant region serves",
           "half: predict +7 (+127), rent +6 (+127), paper +1 (+10); double: "
           "predict 0 (-14), rent 0 (+22), paper +1 (+10)")

/* The helper's step */
UCS_TUNING(uint64_t, batches, 4, "batches",
           "of uses learned from in one step; where uses come faster the "
           "helper learns from a sample, so that it does not fight the hits "
           "for cache lines",
           "below 1 %")
UCS_TUNING(uint64_t, stray_ns, 5000000, "ns",
           "idle after which a region whose last use may have been lost "
           "goes; it is looked for after twice that, also when a helper "
           "resumes",
           "below 1 %")
UCS_TUNING(uint64_t, refused_max, 10, "doublings",
           "of the uses without a registration in advance that follow a "
           "refusal",
           "below 1 %")
UCS_TUNING(uint64_t, backoff_min_ns, 1000000, "ns",
           "without registrations in advance after one failed",
           "below 1 %")

UCS_TUNING(uint64_t, away_max_ns, 1000000000, "ns",
           "for which the helper makes no registration in advance after many "
           "failed, and between two looks where there is no use, at most",
           "below 1 %")
UCS_TUNING(uint64_t, slice_ns, 5000000, "ns",
           "a time slice of the system: bounds how late the helper counts "
           "as, and how much earlier it registers for that",
           "below 1 %")

/* Terms of the paper's t_p that are not measured one by one: upper bounds */
UCS_TUNING(uint64_t, hash_ns, 500, "ns",
           "a look-up in the call-site table",
           "half: predict 0 (-3), paper 0 (-2); double: predict 0 (+5), paper "
           "0 (+3)")
UCS_TUNING(uint64_t, cache_ns, 500, "ns",
           "a look-up in the cache",
           "half: predict 0 (-3), paper 0 (-2); double: predict 0 (+5), paper "
           "0 (+3)")
UCS_TUNING(double, item_ns, 5, "ns",
           "a step along a queue",
           "half: predict 0 (+2), paper 0 (-2); double: predict 0 (+2), paper "
           "0 (+2)")
UCS_TUNING(uint64_t, lateness_ns, 100000, "ns",
           "of the helper's wake-up before it has been measured",
           "half: predict 0 (-7), paper 0 (+4); double: predict 0 (+3), paper "
           "0 (-2)")

/* When the helper looks for the end of a use */
UCS_TUNING(uint64_t, patrol_ns, 100000000, "ns",
           "between two looks in any case while anything is registered, for "
           "uses may have been lost: twice as long each time that there was "
           "none; and until what is in use for longer than it would be "
           "waited for is looked at again",
           "double: predict +1 (+34), rent +1 (+31)")

UCS_TUNING(uint64_t, leisure_ns, 20000000, "ns",
           "in which the helper hears of a use of a new buffer, which is "
           "rented for longer",
           "half: predict +1 (+34), rent +1 (+31), paper 0 (-3); double: "
           "predict 0 (-3), rent 0 (+1), paper 0 (+7)")

/* Prices, the policies predict and rent; looks of paper as well */
UCS_TUNING(double, miss_weight, 1, "times",
           "what a use spends registering that it costs the job",
           "half: predict +12 (+57), rent +12 (+90); double: predict +7 (+56), "
           "rent +5 (+43)")
UCS_TUNING(double, step_ns, 10000, "ns",
           "of the processor that a step of the helper takes",
           "half: predict 0 (+4), paper 0 (+6); double: predict 0 (-7), paper "
           "0 (-3)")
UCS_TUNING(double, look_ns, 100, "ns",
           "of a rank's time that a look for the end of a use is worth, though "
           "it takes none: a hundredth of the step",
           "half: predict 0 (-3), paper 0 (+5); double: predict 0 (-6), paper "
           "0 (-3)")
UCS_TUNING(double, learn_rest_ns, 1e6, "ns",
           "that the helper rests before it looks for uses only to learn from "
           "them: it does not fight hits for cache lines",
           "below 1 %")
UCS_TUNING(double, look_rest, 10, "steps",
           "that the helper rests between two looks for an end at least, however "
           "dear memory is",
           "below 1 %")
UCS_TUNING(double, soft_weight, 5, "times",
           "what a use is known to have lost for want of room under the soft "
           "ceiling that it counts: its partner waits as well, and plans that "
           "fail for it are followed less",
           "half: predict +1 (+7), rent +1 (+11); double: predict 0 (-6), rent "
           "0 (-4)")
UCS_TUNING(double, soft_horizon_ns, 6e11, "ns",
           "of run time that room is paid for in any case, ten minutes: what is "
           "lost while uses are learned says little of the job that is to come, "
           "and a peak is for ever",
           "of ten minutes of each recording: half: predict -2 (-14)")
UCS_TUNING(double, soft_least, 32768, "bytes",
           "of room in any case: a small part of what the helper's own tables "
           "take, which a program of so few buffers cannot save by it",
           "half: predict 0 (-1), and messages of 32 KB register 30 times; "
           "double: predict +1 (+17), and the peak of an amg 4 points higher")

/* What the program says (announce/announce.h), and steps while it waits */
UCS_TUNING(uint64_t, idle_work_ns, 5000, "ns",
           "that the lower domain's calls of an idle step take at most: what is "
           "dearer is the helper's; a rendezvous message takes about as long",
           "not measured")
UCS_TUNING(uint64_t, wake_ns, 20000, "ns",
           "from which on a registration at the post is worth to wake the helper "
           "for: the system call takes the rank some 2 us, and the helper comes "
           "5 to 50 us later",
           "not measured: recordings hold no wake-ups")

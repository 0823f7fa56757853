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
 * look-up makes as much.
 */

UCS_TUNING(uint64_t, lot, 256, "regions",
           "looked at before the index lock is let go: some ten "
           "microseconds, as long as what is done under it for a use takes "
           "at worst",
           "below 1 %")

/* One registration for several uses (cover/) */
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
UCS_TUNING(uint64_t, stretch, 2, "times",
           "as long as a use that a dormant region serves",
           "half: predict +7 (+127), rent +6 (+127), paper +1 (+10); double: "
           "predict 0 (-14), rent 0 (+22), paper +1 (+10)")

/* When the helper comes */
UCS_TUNING(uint64_t, lateness_ns, 100000, "ns",
           "of the helper's wake-up before it has been measured",
           "half: predict 0 (-7), paper 0 (+4); double: predict 0 (+3), paper "
           "0 (-2)")
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
UCS_TUNING(double, step_ns, 10000, "ns",
           "of the processor that a step of the helper takes",
           "half: predict 0 (+4), paper 0 (+6); double: predict 0 (-7), paper "
           "0 (-3)")

/* The soft ceiling (register/soft.c) */
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

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
/*
 * The constants of the registration cache, one row each; see tuning.h. No
 * guard: read once for each thing that is made of the rows.
 *
 * UCS_TUNING(type, name, default, unit, why, effect)
 *
 * The effect is by how many percent J changes under predict if the constant is
 * halved or doubled (of one near 1, what it differs by from 1), at a NIC's modelled
 * costs, over ten minutes of six recordings (amg, bt.W.mpich, ft.A, is.W, lu.W, mg.W;
 * 2026-11-27): mean, and the most in any of them in brackets. bench/ablate does the
 * same for any. A few percent in one recording is noise.
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
UCS_TUNING(uint64_t, stretch, 3, "times",
           "as long as a use that a dormant region serves: lengths that vary have one "
           "history so, and faces of a grid's levels, a fourth of each other, keep "
           "their own",
           "1, exact ones alone: -16.4 (-80.4), but messages of random length are "
           "foretold never; 2: mg.A +275, random lengths +55; double: +5.1 (+30.7) "
           "(2026-12-01)")

/* Windows ahead of walks (cover/walk.c) */
UCS_TUNING(double, walk_share, 1.0 / 24, "of what would be left pinned",
           "that a window has at most: one that is held all the time costs the "
           "same share of the price of all memory",
           "no walks in these; the march, a minute: half: -62, and 10 % more "
           "registrations; double: +47, and 5 % fewer")
UCS_TUNING(double, walk_bytes, 1 << 20, "bytes",
           "that it may have in any case, less than the helper's own tables "
           "take: a walk through new memory begins with few",
           "likewise: 0; 0")

/* When the helper comes */
UCS_TUNING(uint64_t, patrol_ns, 100000000, "ns",
           "between two looks in any case while anything is registered, for "
           "uses may have been lost: twice as long each time that there was "
           "none; and until what is in use for longer than it would be "
           "waited for is looked at again",
           "half: +0.4 (+2.2); double: 0 (+0.3)")
UCS_TUNING(uint64_t, leisure_ns, 20000000, "ns",
           "in which the helper hears of a use of a new buffer, which is "
           "rented for longer; of one that is held for longer anyway it hears later",
           "half: +0.2 (+1.3); double: +0.4 (+2.1)")
UCS_TUNING(double, step_ns, 10000, "ns",
           "of the processor that a step of the helper takes",
           "half: -0.2 (-0.4); double: +0.5 (+0.9)")

UCS_TUNING(double, look_ns, 1000, "ns",
           "of run time that a look of the helper costs the job: a rank that becomes "
           "ready while the helper has a core may be put on another's, and the two "
           "share it for milliseconds. Two ranks on two cores lost 4 us a look (MG), "
           "ranks that are bound nothing; a tenth of a step",
           "half: 0 (+10.3); double: +4.7 (+20) (2026-11-30); looks not counted in J")

/* The soft ceiling (register/soft.c) */
UCS_TUNING(double, soft_weight, 5, "times",
           "what a use is known to have lost for want of room under the soft "
           "ceiling that it counts: its partner waits as well, and plans that "
           "fail for it are followed less",
           "half: +4.8 (+28.7); double: 0 (-0.2) (2026-11-29)")
UCS_TUNING(double, soft_horizon_ns, 6e11, "ns",
           "of run time that room is paid for in any case, ten minutes: what is "
           "lost while uses are learned says little of the job that is to come, "
           "and a peak is for ever",
           "below 1 % (2026-11-29)")
UCS_TUNING(uint64_t, soft_learned, 2, "uses",
           "of a buffer that lose for want of room and count as learning: further "
           "ones would be lost again and again",
           "below 1 % (2026-11-29); were all of them learning: +0.6 (+2.3) over 25 "
           "recordings")
UCS_TUNING(double, soft_least, 32768, "bytes",
           "of room in any case: a small part of what the helper's own tables "
           "take, which a program of so few buffers cannot save by it",
           "half: +0.9 (+4.1), and messages of 32 KB register 30 times; "
           "double: -0.7 (-2.5)")

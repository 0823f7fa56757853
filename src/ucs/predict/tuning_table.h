/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
/*
 * The constants of prediction, one row each; see tuning.h. No guard: read once
 * for each thing that is made of the rows.
 *
 * UCS_TUNING(type, name, default, unit, why, effect)
 *
 * The effect is by how many percent J changes under predict if the constant is
 * halved or doubled (of one near 1, what it differs by from 1), at a NIC's modelled
 * costs, over ten minutes of six recordings (amg, bt.W.mpich, ft.A, is.W, lu.W, mg.W;
 * 2026-11-27): mean, and the most in any of them in brackets. bench/ablate does the
 * same for any. A few percent in one recording is noise.
 */

/* Walks through memory (walk.h) */
UCS_TUNING(uint64_t, walk_least, 8, "steps",
           "from which on a walk is expected to go on: buffers that are used "
           "again and again lie in rows as well, mostly shorter ones, and are "
           "foretold one by one",
           "no walks in these; the march, a minute: half: +36; double: -12")
UCS_TUNING(double, walk_rent, 0.0625, "missed steps",
           "that holding a step in a window may cost beside",
           "likewise: half: -20; double: -20, which is noise")

/* Order of communications and plans, the policy predict (order.h, plans.h) */
UCS_TUNING(double, plan_decay, 0.9, "a gap",
           "with which the costs of a buffer's plans fade",
           "half: -1.6 (-3.9); double: +7.0 (+17.5)")
UCS_TUNING(double, plan_decay_all, 0.98, "a gap",
           "likewise those of all buffers, which a new one goes by",
           "half: +0.5 (+3.1); double: +0.4 (+2.5)")
UCS_TUNING(double, plan_allowance, 0.125, "of renting",
           "that what is followed may cost more in the long run",
           "half: +0.3 (+1.7); double: 0 (0)")
UCS_TUNING(double, plan_credit, 2, "missed uses",
           "that a buffer's plans may cost more than renting beside that",
           "half: +2.0 (+7.7); double: +0.4 (+2.4)")
UCS_TUNING(double, bound_least, 0.95, "of the least delay",
           "that the next one is taken to be at least; and of the next gap, that "
           "the only one that was bridged is taken to be",
           "below 1 % (2026-11-29)")
UCS_TUNING(double, range_least, 1000, "ns",
           "that delays are taken to differ by, however alike those are that were "
           "seen: it is divided by",
           "below 1 %")
UCS_TUNING(double, row_missed, 0.03, "missed uses",
           "that a gap costs which is foretold well: shorter ones are bridged "
           "by holding where that is cheaper",
           "half: 0 (-0.2); double: +3.7 (+22.0)")

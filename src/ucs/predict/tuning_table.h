/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The constants of prediction, one row each; see tuning.h. No guard: read once
 * for each thing that is made of the rows.
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


/* Order of communications and plans, the policy predict (order.h, plans.h) */
UCS_TUNING(double, plan_decay, 0.9, "a gap",
           "with which the costs of a buffer's plans fade",
           "half: predict -1 (-6); double: predict +2 (+9)")
UCS_TUNING(double, plan_decay_all, 0.98, "a gap",
           "likewise those of all buffers, which a new one goes by",
           "half: predict 0 (-3); double: predict 0 (-4)")
UCS_TUNING(double, plan_allowance, 0.125, "of renting",
           "that what is followed may cost more in the long run",
           "half: predict 0 (+1); double: predict 0 (-2)")
UCS_TUNING(double, plan_credit, 2, "missed uses",
           "that a buffer's plans may cost more than renting beside that",
           "half: predict +1 (+5); double: predict 0 (-4)")
UCS_TUNING(double, bound_least, 0.95, "of the least delay",
           "that the next one is taken to be at least",
           "half: predict 0 (+6); double: predict 0 (+9)")
UCS_TUNING(double, hold_longer, 1.05, "times",
           "as long as the longest gap that is to be bridged",
           "half: predict 0 (-3); double: predict 0 (-4)")
UCS_TUNING(double, row_missed, 0.03, "missed uses",
           "that a gap costs which is foretold well: shorter ones are bridged "
           "by holding where that is cheaper",
           "half: predict -1 (-14); double: predict +4 (+51)")

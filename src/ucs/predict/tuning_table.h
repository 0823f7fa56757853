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
 * look-up (hash_ns) makes as much. What changes nothing there bounds what no
 * recording shows: losses, refusals, memory.
 */

/* What a registration takes (cost.h) */
UCS_TUNING(double, cost_horizon, 256, "samples",
           "time constant with which older samples fade",
           "half: predict 0 (+1); double: predict 0 (+1)")
UCS_TUNING(double, cost_clip, 2, "times",
           "a sample counts as at most so many times the estimate, or so "
           "small a part of it: bounds the harm of a preempted call",
           "below 1 %")
UCS_TUNING(double, cost_spread, 0.3, "",
           "spread of the sizes from which on samples determine the slope, "
           "whose relative error is then 1.8 times a sample's",
           "below 1 %")

/* Contexts of paper (callsite.h, by its rules) */
UCS_TUNING(uint64_t, window, 2, "communications",
           "before a use, in its signature; Li et al. 2011, section 4.2",
           "half: paper -1 (-9); double: paper +2 (+21)")
UCS_TUNING(double, slack_share, 0.25, "periods",
           "after its deadline that a use is waited for",
           "half: paper +1 (+16); double: paper -4 (-41)")
UCS_TUNING(uint64_t, slack_min_ns, 2000000, "ns",
           "least slack",
           "half: paper 0 (+8); double: paper -1 (-15)")
UCS_TUNING(uint64_t, slack_max_ns, 1000000000, "ns",
           "greatest slack",
           "below 1 %")
UCS_TUNING(uint64_t, confidence_initial, 2, "uses",
           "in vain until a period that was just learned is forgotten",
           "half: paper 0 (+6); double: paper +1 (+12)")
UCS_TUNING(uint64_t, confidence_max, 4, "uses",
           "in vain until any period is forgotten",
           "half: paper 0 (+13); double: paper +1 (+14)")
UCS_TUNING(uint64_t, margin_min_part, 48, "parts",
           "of a period: the least margin before a deadline (rule 6)",
           "below 1 %")
UCS_TUNING(uint64_t, margin_max_part, 8, "parts",
           "of a period: the greatest margin",
           "half: paper +1 (+20); double: paper 0 (-14)")
UCS_TUNING(uint64_t, deviation_part, 32, "parts",
           "of a period: its deviation before that is known",
           "half: paper -1 (-40); double: paper +1 (+9)")
UCS_TUNING(uint64_t, deviation_weight, 4, "uses",
           "over which the deviation is smoothed",
           "half: paper 0 (-4); double: paper 0 (+3)")

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
UCS_TUNING(uint64_t, key_steady, 6, "gaps",
           "in each of which a key came, so that it bounds the next use",
           "half: predict 0 (-4); double: predict 0 (-6)")
UCS_TUNING(double, row_missed, 0.03, "missed uses",
           "that a gap costs which is foretold well: shorter ones are bridged "
           "by holding where that is cheaper",
           "half: predict -1 (-14); double: predict +4 (+51)")
UCS_TUNING(double, sound_distance, 1.5, "times",
           "as long before a use as the one before, that the next sound is "
           "looked at for a key",
           "not measured")

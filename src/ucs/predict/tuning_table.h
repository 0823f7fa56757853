/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The constants of prediction, one row each; see tuning.h. No guard: read once
 * for each thing that is made of the rows.
 *
 * UCS_TUNING(type, name, default, unit, why, effect)
 *
 * The effect of half and double is what bench/ablate printed for the recordings
 * in test/data/traces on 2026-11-22: for each policy the largest change in any,
 * without a ceiling or under half of what leave-pinned holds, in points of uses
 * on time and in percent of leave-pinned's byte-seconds. What changes nothing
 * there bounds what no recording shows: losses, refusals, memory.
 */

/* What a registration takes (cost.h) */
UCS_TUNING(double, cost_horizon, 256, "samples",
           "time constant with which older samples fade",
           "half: predict +0.32 -0.31; double: predict +0.32 +0.39")
UCS_TUNING(double, cost_clip, 2, "times",
           "a sample counts as at most so many times the estimate, or so "
           "small a part of it: bounds the harm of a preempted call",
           "half: paper -3.00 +0.15, predict +9.62 +1.73; double: predict "
           "+3.85 +0.60")
UCS_TUNING(double, cost_spread, 0.3, "",
           "spread of the sizes from which on samples determine the slope, "
           "whose relative error is then 1.8 times a sample's",
           "half: predict +0.32 +0.09; double: predict +0.32 +0.42")

/* A lower bound of the next delay (bound.h) */
UCS_TUNING(double, bound_memory, 1000, "delays",
           "in which the floor rises by two thirds of what it lacks",
           "half: predict +5.77 -1.42; double: predict -1.92 +1.54")
UCS_TUNING(double, bound_recent, 16, "delays",
           "likewise for what is typical",
           "half: predict +9.62 -4.46; double: predict +7.69 +12.76")

/* Contexts of paper (callsite.h, by its rules) */
UCS_TUNING(uint64_t, window, 2, "communications",
           "before a use, in its signature; Li et al. 2011, section 4.2",
           "half: paper -7.94 -8.41; double: paper -13.46 +8.19")
UCS_TUNING(double, slack_share, 0.25, "periods",
           "after its deadline that a use is waited for",
           "half: paper -17.00 -7.86; double: paper +25.00 +10.07")
UCS_TUNING(uint64_t, slack_min_ns, 2000000, "ns",
           "least slack",
           "half: paper -8.11 -6.84; double: paper +7.51 +8.57")
UCS_TUNING(uint64_t, slack_max_ns, 1000000000, "ns",
           "greatest slack",
           "half: paper +1.27 +0.01")
UCS_TUNING(uint64_t, confidence_initial, 2, "uses",
           "in vain until a period that was just learned is forgotten",
           "half: paper -5.77 -1.60; double: paper +4.19 +2.82")
UCS_TUNING(uint64_t, confidence_max, 4, "uses",
           "in vain until any period is forgotten",
           "half: paper -5.35 -3.13; double: paper -3.83 +2.27")
UCS_TUNING(uint64_t, margin_min_part, 48, "parts",
           "of a period: the least margin before a deadline (rule 6)",
           "half: paper -0.84 -0.84")
UCS_TUNING(uint64_t, margin_max_part, 8, "parts",
           "of a period: the greatest margin",
           "half: paper +10.02 +7.69; double: paper -9.62 -4.57")
UCS_TUNING(uint64_t, deviation_part, 32, "parts",
           "of a period: its deviation before that is known",
           "half: paper +3.85 +3.17; double: paper -6.25 +1.51")
UCS_TUNING(uint64_t, deviation_weight, 4, "uses",
           "over which the deviation is smoothed",
           "half: paper -1.80 -1.16; double: paper -2.22 +1.47")

/* Order of communications, the policy predict (order.h) */
UCS_TUNING(double, steer_most, 100, "targets",
           "by which bounds are raised at most: from further it is a long "
           "way back when the program changes",
           "half: predict +0.13 +4.90")
UCS_TUNING(double, steer, 0.2, "of the bound",
           "a buffer's caution rises so much at a use that came too soon",
           "half: predict +9.62 +11.03; double: predict +2.50 +9.06")
UCS_TUNING(double, steer_all, 0.02, "of that step",
           "that all buffers share at most",
           "half: predict +1.61 -2.34; double: predict +2.50 +2.42")
UCS_TUNING(uint64_t, sure, 16, "uses",
           "after which a buffer is steered with the settled ones",
           "half: predict +1.29 +8.39; double: predict -1.92 +2.64")
UCS_TUNING(double, give_up, 4, "gaps",
           "of the longest recent ones after which a buffer is given up",
           "half: predict -12.50 -10.64; double: predict -1.25 +11.07")
UCS_TUNING(uint64_t, give_up_ns, 1000000, "ns",
           "that it is awaited longer",
           "half: predict +2.50 +2.90; double: predict +2.50 +2.24")
UCS_TUNING(uint64_t, vain, 2, "times",
           "given up until it is announced no more before its next use",
           "half: predict -0.12 -0.50")
UCS_TUNING(double, gap_decay, 15.0 / 16, "a use",
           "with which the longest recent gap fades",
           "half: predict -7.45 -11.93; double: predict +2.50 +15.63")
UCS_TUNING(uint64_t, established, 4, "sights",
           "from which on a follower keeps its entry against a newcomer",
           "nothing in the recordings")

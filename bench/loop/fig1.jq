# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Runs (one object each, see bench_gather in lib.sh) to a summary: medians, and
# ratios within each pair. Sums and maxima are over both ranks.
include "stats";

# What one run says of itself
def figures:
    .ranks as $r
    | {
        pair, mpi, policy, size: .fig1.size, reuse: .fig1.reuse,
        asleep: .fig1.asleep,
        messages: (.fig1.iterations * .fig1.buffers),
        buffers: .fig1.buffers,
        time_us: .fig1.sender.median_us,
        p90_us: .fig1.sender.p90_us,
        # The loop computes until a time, which hides what the helper took of it;
        # while ranks sleep that is nobody's
        run_seconds: (.fig1.asleep as $asleep | [.fig1.sender, .fig1.receiver]
                      | map(. as $rank | .elapsed_seconds +
                            ([$r[] | select(.pid == $rank.pid)
                              | if $asleep then 0 else .helper_cpu_seconds end]
                             | add // 0)) | max),
        cpu_share: ([.fig1.sender, .fig1.receiver]
                    | map(.cpu_share) | min),
        vmpin_average: ([.fig1.sender, .fig1.receiver]
                        | map(.vmpin_average_bytes) | add)
      }
    + if ($r | length) == 2 then {
        peak: ($r | map(.pinned_peak_bytes) | max),
        byte_seconds: ($r | map(.pinned_byte_seconds) | add),
        average: ($r | map(.pinned_byte_seconds / .elapsed_seconds) | add),
        later: ($r | map(.uses - .cold) | add),
        on_time: ($r | map(.on_time) | add),
        kept: ($r | map(.soon_byte_seconds) | add),
        not_given_up: ($r | map(.late_byte_seconds) | add),
        lost: ($r | map(.lost_seconds) | add),
        lost_late: ($r | map(.lost_late_seconds + .lost_waited_seconds) | add)
      } else {} end;

def medians($keys):
    . as $runs | reduce $keys[] as $k ({}; .[$k] = ($runs | map(.[$k] // empty) | median));

# Median over the pairs of the ratio inside each pair
def pair_ratio($runs; $policy; $base; $key):
    [$runs | group_by(.pair)[]
     | (map(select(.policy == $policy))[0]) as $a
     | (map(select(.policy == $base))[0]) as $b
     | ratio($a[$key]; $b[$key]) | values] | median;

def row($runs; $policy):
    ($runs | map(select(.policy == $policy))) as $own
    | {mpi: $own[0].mpi, size: $own[0].size, reuse: $own[0].reuse,
       asleep: $own[0].asleep,
       messages: $own[0].messages, buffers: $own[0].buffers, policy: $policy}
    + ($own | medians(["time_us", "p90_us", "run_seconds", "cpu_share", "peak",
                       "average", "byte_seconds", "vmpin_average", "later",
                       "on_time", "kept", "not_given_up", "lost", "lost_late"]))
    + {time_ratio: pair_ratio($runs; $policy; "leave_pinned"; "time_us"),
       time_ratio_on_demand: pair_ratio($runs; $policy; "on_demand"; "time_us"),
       run_ratio: pair_ratio($runs; $policy; "leave_pinned"; "run_seconds"),
       peak_ratio: pair_ratio($runs; $policy; "leave_pinned"; "peak"),
       average_ratio: pair_ratio($runs; $policy; "leave_pinned"; "average")};

map(figures)
| {bench: "fig1", pairs: (map(.pair) | max),
   rows: [group_by([.mpi, (.reuse | not), (.asleep | not), .size])[]
          | . as $runs
          | [.[].policy] | unique
          | sort_by({leave_pinned: 0, on_demand: 1, predict: 2, paper: 3, rent: 4,
                     lru: 5}[.])[]
          | row($runs; .)]}

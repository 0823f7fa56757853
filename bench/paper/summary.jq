# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# $runs (one object a job, see bench_job in ../lib.sh) and $extra (one object a
# step of another kind) to the summary, from which all else is made. Memory is
# the mean over the ranks of a job, in bytes; time in seconds.
include "stats";

def per_rank(f): map(f | values) | mean;

# What one run says of itself
def figures:
    .ranks as $reports
    | (.paced.rank // [.fig1.sender, .fig1.receiver]) as $ranks
    | {section, case, x, mpi, pair, policy, num_ranks,
       time: (.paced.seconds // (.fig1.sender.median_us * 1e-6)),
       # Ranks that share processors get their share at most; those that sleep say
       # nothing of it
       is_busy: (.paced.compute != "asleep" and ($ranks | map(.cpu_share) | min)
                 < 0.95 * ([1, .cpus / .num_ranks] | min)),
       vmpin_peak: ($ranks | per_rank(.vmpin_peak_bytes)),
       vmpin_average: ($ranks | per_rank(.vmpin_average_bytes))}
    + if ($reports | length) == .num_ranks then {
       peak: ($reports | per_rank(.pinned_peak_bytes)),
       average: ($reports | per_rank(.pinned_byte_seconds / .elapsed_seconds)),
       byte_seconds: ($reports | per_rank(.pinned_byte_seconds)),
       # Against what this very run would have left pinned in the end
       leave_pinned: ($reports | per_rank(.leave_pinned_peak_bytes)),
       held: ratio($reports | map(.pinned_byte_seconds) | add;
                   $reports | map(.leave_pinned_peak_bytes * .elapsed_seconds)
                   | add),
       max_slowdown: ($reports[0].max_slowdown // 0.005),
       limit_peak: ($reports | per_rank(.in_use_peak_bytes)),
       limit_byte_seconds: ($reports | per_rank(.in_use_byte_seconds)),
       uses: ($reports | map(.uses) | add),
       warm: ($reports | map(.uses - .cold) | add),
       on_time: ($reports | map(.on_time) | add),
       helper_cpu: ($reports
                    | map(.helper_cpu_seconds / .elapsed_seconds) | max),
       modelled: ($reports | map(.modelled_cost // empty) | first // null)
      } else {} end;

# Of one pair, a policy's figure against leave pinned's
def in_pairs($all; $policy; a; b):
    [$all | group_by(.pair)[]
     | (map(select(.policy == $policy))[0]) as $own
     | (map(select(.policy == "leave_pinned"))[0]) as $base
     | select($own != null and $base != null)
     | ratio($own | a; $base | b)]
    | interval;

def row($all; $policy):
    ($all | map(select(.policy == $policy))) as $own
    | ($own[0] | {section, case, x, mpi, num_ranks, policy})
    + ([("time", "peak", "average", "byte_seconds", "leave_pinned", "held",
         "limit_peak", "vmpin_peak", "vmpin_average", "uses", "helper_cpu")
        as $k
        | {($k): ($own | map(.[$k] | values) | median)}] | add)
    + {pairs: ($own | length),
       on_time: ratio($own | map(.on_time | values) | add;
                      $own | map(.warm | values) | add),
       modelled: ($own[0].modelled),
       is_busy: ($all | map(select(.policy == $policy or
                                   .policy == "leave_pinned")) | any(.is_busy)),
       time_ratio: in_pairs($all; $policy; .time; .time),
       peak_ratio: in_pairs($all; $policy; .peak; .peak),
       average_ratio: in_pairs($all; $policy; .average; .average),
       byte_seconds_ratio: in_pairs($all; $policy; .byte_seconds;
                                    .byte_seconds),
       vmpin_peak_ratio: in_pairs($all; $policy; .vmpin_peak; .vmpin_peak),
       vmpin_average_ratio: in_pairs($all; $policy; .vmpin_average;
                                     .vmpin_average),
       limit_peak_ratio: in_pairs($all; $policy; .limit_peak; .peak),
       limit_byte_seconds_ratio: in_pairs($all; $policy; .limit_byte_seconds;
                                          .byte_seconds)}
    # What of J can be measured from outside: what the run took longer, and what
    # it held. Of the medians; of each pair it would add up the noise.
    | .j = (if .held == null or .time_ratio == null then null
            else ([.time_ratio.median - 1, 0] | max)
                 + $own[0].max_slowdown * .held end);

# Six digits: more are noise, and make a baseline twice as long
def six_digits:
    walk(if type == "number" and . != 0 and . != floor then
             pow(10; 5 - (fabs | log10 | floor)) as $scale
             | (. * $scale | round) / $scale
         else . end);

{bench: "paper_a", version: 1, level: $level, main: $main, pairs: $pairs,
 sections: ($sections | split("\n")), seconds: $seconds, failed: $failed,
 machine: $machine,
 rows: [$runs | map(figures) | group_by([.section, .case, .mpi])[]
        | . as $all | [.[].policy] | unique[] | row($all; .) | six_digits],
 extra: $extra}

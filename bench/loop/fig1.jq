# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Runs (one object each, see bench_gather in lib.sh) to a summary: medians,
# ratios within each pair, and the goals. Sums and maxima are over both ranks.

def median:
    sort | length as $n
    | if $n == 0 then null
      elif $n % 2 == 1 then .[($n - 1) / 2]
      else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;

def ratio($a; $b):
    if $a == null or $b == null or $b == 0 then null else $a / $b end;

def pages: ((. + 4095) / 4096 | floor) * 4096;

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
        vmpin_peak: ([.fig1.sender, .fig1.receiver]
                     | map(.vmpin_peak_bytes) | max),
        vmpin_pools: ([.fig1.sender, .fig1.receiver]
                      | map(.vmpin_baseline_bytes) | max),
        vmpin_average: ([.fig1.sender, .fig1.receiver]
                        | map(.vmpin_average_bytes) | add)
      }
    + if ($r | length) == 2 then {
        peak: ($r | map(.pinned_peak_bytes) | max),
        byte_seconds: ($r | map(.pinned_byte_seconds) | add),
        limit: ($r | map(.in_use_byte_seconds) | add),
        leave_pinned: ($r | map(.leave_pinned_byte_seconds) | add),
        average: ($r | map(.pinned_byte_seconds / .elapsed_seconds) | add),
        later: ($r | map(.uses - .cold) | add),
        on_time: ($r | map(.on_time) | add),
        late: ($r | map(.late) | add),
        kept: ($r | map(.soon_byte_seconds) | add),
        not_given_up: ($r | map(.late_byte_seconds) | add),
        lost: ($r | map(.lost_seconds) | add),
        lost_late: ($r | map(.lost_late_seconds + .lost_waited_seconds) | add),
        missed: ($r | map(.missed) | add),
        wasted: ($r | map(.wasted) | add),
        modelled: ($r | map(.modelled_cost // empty) | first // null)
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
                       "average", "byte_seconds", "limit", "leave_pinned",
                       "vmpin_peak", "vmpin_pools", "vmpin_average", "later",
                       "on_time", "late", "missed", "wasted", "kept",
                       "not_given_up", "lost", "lost_late"]))
    + {time_ratio: pair_ratio($runs; $policy; "leave_pinned"; "time_us"),
       time_ratio_on_demand: pair_ratio($runs; $policy; "on_demand"; "time_us"),
       run_ratio: pair_ratio($runs; $policy; "leave_pinned"; "run_seconds"),
       peak_ratio: pair_ratio($runs; $policy; "leave_pinned"; "peak"),
       average_ratio: pair_ratio($runs; $policy; "leave_pinned"; "average")};

def goal($name; $figure; $sign; $bound; $source):
    {goal: $name, figure: $figure, sign: $sign, bound: $bound, source: $source,
     ok: (if $figure == null or $bound == null then false
          elif $sign == "<=" then $figure <= $bound
          else $figure >= $bound end)};

# Where others took a part of the processors, a time says nothing either way
def unless_busy($p; $lp):
    if ([$p.cpu_share, $lp.cpu_share] | min) < 0.95
    then . + {ok: false, busy: true} else . end;

def reuse_goals($p; $lp):
    goal("peak, bytes"; $p.peak; "<=";
         (if $lp.peak then $lp.peak / 3 + ($p.size | pages) else null end);
         "a third of leave pinned plus one message"),
    goal("byte-seconds"; $p.byte_seconds; "<=";
         (if $p.limit then 2 * $p.limit + 0.05 * $p.leave_pinned else null end);
         "twice the limit plus 5 % of leave pinned"),
    goal("later uses on time"; ratio($p.on_time; $p.later); ">="; 0.95;
         "95 %"),
    (goal("time / leave pinned"; $p.time_ratio; "<=";
         (if $p.size >= 1048576 then 1.05 else 1.1402 end);
         "figure of the paper, section " +
         (if $p.size >= 1048576 then "6.1" else "4.3" end))
        | unless_busy($p; $lp)),
    goal("|VmPin - reported| of leave pinned, bytes";
         (if $lp.peak then ($lp.vmpin_peak - $lp.peak) | fabs else null end);
         "<="; $lp.vmpin_pools; "pools of UCX at the start");

def no_reuse_goals($p; $lp):
    if $p.messages >= 999 then
        goal("leave pinned peak / peak"; ratio($lp.peak; $p.peak); ">="; 10;
             "1,000 messages")
    else empty end;

def goals($rows):
    ($rows | map(select(.policy == ("predict", "paper")))
     | sort_by(.policy != "predict")[0]) as $p
    | ($rows | map(select(.policy == "leave_pinned"))[0]) as $lp
    | if $p == null or $lp == null then empty
      else (if $p.reuse then reuse_goals($p; $lp) else no_reuse_goals($p; $lp) end)
           | {mpi: $p.mpi, size: $p.size, reuse: $p.reuse, asleep: $p.asleep,
              policy: $p.policy} + . end;

map(figures)
| [group_by([.mpi, (.reuse | not), (.asleep | not), .size])[]
   | . as $runs
   | [[.[].policy] | unique | sort_by({leave_pinned: 0, on_demand: 1,
                                       predict: 2, paper: 3, rent: 4, lru: 5}[.])[]
      | row($runs; .)]] as $groups
| {bench: "fig1", pairs: (map(.pair) | max), rows: ($groups | add),
   goals: [$groups[] | goals(.)]}

# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# `figures` of a summary: the paper's, ours for each MPI, the goal, whether it is
# met. A module. Figures of the paper: Li et al., CF'11.
include "stats";

def codes: ["ft1d", "cg", "mg", "is", "bt", "sp", "lu"];

def mpis: .machine.mpis[];

# Rows of a section, of the policy that the figures speak of
def own($section; $mpi):
    .main as $main
    | [.rows[] | select(.section == $section and .mpi == $mpi and
                        .policy == $main)];

def own($section; $case; $mpi): own($section; $mpi) | map(select(.case == $case));

# A figure of each MPI: {mpi, v} and perhaps low, high, pairs, is_busy; f is
# asked with {mpi}
def each_mpi(f): [mpis | {mpi: .} | . + ([f][0] // {})];

def holds($op; $bound): if $op == "<=" then . <= $bound else . >= $bound end;

# Nothing is said of seven codes where fewer ran
def of_all_codes:
    select([.[] | select(.case | IN(codes[])) | select(.peak_ratio != null)]
           | length == (codes | length));

# The worst of both MPIs decides. Noise: the median misses the bound and the
# interval reaches it; or others took the processors, which says nothing either
# way.
def verdict($op; $bound):
    map(select(.v != null))
    | if length == 0 or $bound == null then null
      elif any(.[]; .is_busy) then "noise"
      elif all(.[]; .v | holds($op; $bound)) then "yes"
      elif all(.[]; (.v | holds($op; $bound)) or
               ((if $op == "<=" then .low else .high end) as $best
                | $best != null and ($best | holds($op; $bound))))
      then "noise"
      else "no" end;

def figure($where; $what; $paper; $goal; $op; $bound; $unit; ours):
    [ours] as $ours
    | {$where, $what, $paper, $goal, $unit, ours: $ours[0],
       met: ($ours[0] | verdict($op; $bound))};

# A figure that is another program's JSON
def other($section): [.extra[] | select(.section == $section) | .result];

def spread($key): .[0] | select(. != null) | select(.[$key] != null)
    | {v: .[$key].median, low: .[$key].low, high: .[$key].high,
       pairs: .[$key].pairs}
    + (if $key == "time_ratio" then {is_busy} else {} end);

# --- The kernels: Fig. 11 and Table 2 ----------------------------------------

def kernel_means:
    . as $s
    | figure("Fig. 11, abstract"; "peak, mean of the seven codes"; "−23.62 %";
        "−38 % or better"; "<="; -0.38; "change";
        each_mpi(. as $m | $s | own("paced"; $m.mpi) | of_all_codes
                 | map(select(.case | IN(codes[])) | .peak_ratio.median)
                 | {v: (mean | values - 1)})),
      figure("Fig. 12, abstract"; "peak, best code"; "−49.39 %"; ""; "<="; null;
        "change";
        each_mpi(. as $m | $s | own("paced"; $m.mpi)
                 | map(.peak_ratio.median | values)
                 | {v: (min | values - 1)})),
      figure("section 6.2"; "pinned bytes over time, mean of the seven codes";
        "less"; "10x less"; "<="; 0.1; "share";
        each_mpi(. as $m | $s | own("paced"; $m.mpi) | of_all_codes
                 | map(select(.case | IN(codes[]))
                       | .byte_seconds_ratio.median | values)
                 | {v: mean}));

def kernel_times($section; $what; $paper; $paper_worst):
    . as $s
    | figure("Table 2"; "time\($what), median of the codes"; $paper;
        "1.00 at most"; "<="; 1; "ratio";
        each_mpi(. as $m | $s | own($section; $m.mpi)
                 | map(select(.time_ratio != null)) | select(length > 0)
                 | {v: (map(.time_ratio.median) | median),
                    low: (map(.time_ratio.low) | median),
                    high: (map(.time_ratio.high) | median),
                    pairs: .[0].time_ratio.pairs, is_busy: any(.is_busy)})),
      figure("Table 2"; "time\($what), worst code"; $paper_worst; "1.01 at most"; "<=";
        1.01; "ratio";
        each_mpi(. as $m | $s | own($section; $m.mpi)
                 | map(select(.time_ratio != null))
                 | max_by(.time_ratio.median) | [.] | spread("time_ratio")));

def kernel_peaks:
    . as $s
    | {ft1d: "−31.0 %", cg: "0 %", bt: "−16.13 %", lu: "−18.43 %",
       sp: "−8.68 %"} as $paper
    | (codes + ["ft2d"])[] as $code
    | figure("Fig. 11"; "peak, \($code)"; $paper[$code] // "–";
        "limit + 5 points"; "<="; 0.05; "limit";
        each_mpi(. as $m | $s | own("paced"; $code; $m.mpi) | .[0]
                 | select(.peak_ratio != null)
                 | {v: (.peak_ratio.median - .limit_peak_ratio.median),
                    peak: (.peak_ratio.median - 1),
                    limit: (.limit_peak_ratio.median - 1)}));

# --- The loop of Fig. 1 ---------------------------------------------------------

def loop_figures:
    . as $s
    | figure("Fig. 2"; "time of on demand, 5 MB"; "+25.83 %"; ""; "<="; null;
        "change";
        each_mpi(. as $m | [$s.rows[] | select(.section == "fig2" and
                     .mpi == $m.mpi and .policy == "on_demand")]
                 | spread("time_ratio") | .v -= 1 | .low -= 1 | .high -= 1)),
      figure("Fig. 2"; "time of the helper, 5 MB"; "–"; "1.00 at most"; "<="; 1;
        "ratio";
        each_mpi(. as $m | $s | own("fig2"; $m.mpi) | spread("time_ratio"))),
      (([$s.rows[] | select(.section == "reuse" and .x >= 1048576) | .case]
        | unique)[] as $size
       | figure("Fig. 9 (b)"; "time with reuse, \($size)"; "under 1.05";
           "1.01 at most"; "<="; 1.01; "ratio";
           each_mpi(. as $m | $s | own("reuse"; $size; $m.mpi)
                    | spread("time_ratio")))),
      figure("Fig. 9 (a)"; "peak with reuse, largest message"; "−24.75 %"; "";
        "<="; null; "change";
        each_mpi(. as $m | $s | own("reuse"; $m.mpi) | max_by(.x)
                 | select(.peak_ratio != null) | {v: (.peak_ratio.median - 1)})),
      figure("Fig. 10 (a)"; "no reuse: leave pinned's peak against ours";
        "4.62x"; "10x"; ">="; 10; "times";
        each_mpi(. as $m | $s | own("no_reuse"; $m.mpi)
                 | map(select(.peak_ratio != null) | 1 / .peak_ratio.median)
                 | {v: min})),
      figure("Fig. 10 (b)"; "no reuse: time, worst size"; "comparable"; "";
        "<="; null; "ratio";
        each_mpi(. as $m | $s | own("no_reuse"; $m.mpi)
                 | map(select(.time_ratio != null))
                 | max_by(.time_ratio.median) | [.] | spread("time_ratio")));

# --- The rest --------------------------------------------------------------------

# What a use costs more than in UCX's own cache, as a share of a message's time:
# far below what a difference of two timed loops could show
def overhead_figures:
    . as $s | (other("overhead") | .[0][0]) as $hit
    | ({"17k": ["14.02 %", 0.01], "1m": ["4.58 %", 0.001],
        "4m": ["1.22 %", 0.001], "5m": [null, 0.001]} | to_entries[]) as $e
    | select($e.value[0] != null or
             ([$s.rows[] | select(.section == "reuse" and .case == $e.key)]
              | length > 0 and
              ([$s.rows[] | select(.section == "reuse" and .case == "4m")]
               | length == 0)))
    | figure("section 4.3"; "main thread's added work, \($e.key)";
        $e.value[0] // "–"; "\($e.value[1] * 100) %"; "<="; $e.value[1];
        "computed";
        each_mpi(. as $m | [$s.rows[] | select(.section == "reuse" and
                     .case == $e.key and .mpi == $m.mpi and
                     .policy == "leave_pinned")][0]
                 | {v: ratio($hit | values
                             | (.helper.median_ns - .rcache.median_ns) * 1e-9;
                             .time), is_busy}));

def aggregation_figures:
    . as $s
    | (["2x2", "−49.39 %", "0.9863"], ["2x4", "−41.70 %", "0.9930"]) as $t
    | figure("Fig. 12"; "peak of FT, four tasks, \($t[0])"; $t[1]; ""; "<=";
        null; "change";
        each_mpi(. as $m | $s | own("aggregation"; $t[0]; $m.mpi) | .[0]
                 | select(.peak_ratio != null) | {v: (.peak_ratio.median - 1)})),
      figure("Table 3"; "time of FT, four tasks, \($t[0])"; $t[2];
        "1.00 at most"; "<="; 1; "ratio";
        each_mpi(. as $m | $s | own("aggregation"; $t[0]; $m.mpi)
                 | spread("time_ratio")));

def limit_figures:
    . as $s | (other("limit") | map(.[]) | map(select(.case != null))) as $all
    | ($all | map(.case) | unique[]) as $case
    | ($all | map(select(.case == $case))) as $own
    | {where: "Fig. 3, 11 (f)", what: "under a limit: \($own[0].title)",
       paper: "completes; leave pinned does not",
       goal: "the same, at full speed", unit: "text",
       ours: ($own | map({mpi, text: .said})),
       met: (if all($own[]; .ok) then "yes" else "no" end)};

def idle_figures:
    . as $s
    | figure("section 5"; "helper's processor time, gaps of 1 s"; "–";
        "1 % of a core"; "<="; 0.01; "share";
        each_mpi(. as $m | $s | own("idle"; $m.mpi)[0] // {}
                 | {v: .helper_cpu})),
      figure("section 5"; "helper's processor time, worst code"; "–";
        "1 % of a core"; "<="; 0.01; "share";
        each_mpi(. as $m | $s | own("kernels"; $m.mpi)
                 | map(.helper_cpu | values) | {v: max}));

def figures:
    kernel_means, kernel_times("paced"; ""; "0.9967"; "1.0027"), kernel_peaks,
    kernel_times("kernels"; ", jobs of a second"; "–"; "–"), loop_figures, limit_figures,
    overhead_figures, aggregation_figures, idle_figures;

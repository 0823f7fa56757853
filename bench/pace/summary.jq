# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The summary of bench/paced from its runs; a ratio is taken within its round.

include "pace";
include "stats";

def sum(f): map(f) | add // 0;

# One run, of all ranks together
def figures:
    {policy, round, others, time: .paced.seconds,
     message: (.paced.rank | sum(.message_seconds)),
     bytes: (.ranks | sum(.pinned_byte_seconds / .elapsed_seconds)),
     memory: (.ranks | sum(.leave_pinned_byte_seconds) as $leave
              | sum(.pinned_byte_seconds) | over($leave)),
     peak_bytes: (.ranks | sum(.pinned_peak_bytes)),
     peak: (.ranks | sum(.leave_pinned_peak_bytes) as $leave
            | sum(.pinned_peak_bytes) | over($leave)),
     in_use: (.ranks | sum(.in_use_byte_seconds / .elapsed_seconds)),
     why: (.ranks | why),
     vmpin: (.paced.rank | sum(.vmpin_average_bytes)),
     uses: (.ranks | sum(.uses)), on_time: (.ranks | sum(.on_time)),
     late: (.ranks | sum(.late)), missed: (.ranks | sum(.missed)),
     cold: (.ranks | sum(.cold)), wasted: (.ranks | sum(.wasted)),
     lost: (.ranks | sum(.lost_seconds)),
     j: (.ranks | map(.price_j) | add / length),
     helper_cpu: (.ranks | sum(.helper_cpu_seconds)),
     verified: .paced.verified};

# Bytes over time, most at once and uses on time, as a replay foretells
def played($rows; $name):
    ($rows | map(select(.policy == $name))[0]) as $row
    | if $row == null then null else
        {memory: ($row.leave_pinned_byte_seconds as $leave
                  | $row.pinned_byte_seconds | over($leave)),
         peak: ($row.leave_pinned_peak_bytes as $leave
                | $row.pinned_peak_bytes | over($leave)),
         on_time: (($row.uses - $row.cold) as $warm
                   | $row.on_time | over($warm)),
         late: $row.late, missed: $row.missed, uses: $row.uses,
         cold: $row.cold, wasted: $row.wasted, lost: $row.lost_seconds,
         j: $row.price_j, once: $row.once, why: ([$row] | why),
         options: $row.options} end;

# The same of a replay of the recording, and of ten minutes like it
def foretold($rows; $name):
    ($rows | map(select(.options | test("--repeat"))) | played(.; $name)) as $on
    | $rows | map(select(.options | test("--repeat") | not))
    | played(.; $name)
    | if . == null then null
      else . + {long: ($on | if . == null then null else
          {memory, peak, on_time, j, once} end)} end;

# One code under one policy: medians over the rounds
def row($runs; $policy):
    ($runs | map(select(.count == "full") | figures)) as $all
    | ($all | map(select(.policy == $policy))) as $own
    | ($own | map(.round as $round | . as $run
        | ($all | map(select(.policy == "leave_pinned" and
                             .round == $round))[0]) as $leave
        | if $leave == null then empty else
          {time: ($run.time | over($leave.time)),
           message: ($run.message | over($leave.message)),
           vmpin: ($run.vmpin | over($leave.vmpin))} end)) as $ratios
    | ($runs | map(select(.count != "full" and .policy == $policy)
                   | figures)[0]) as $learning
    | {code: $runs[0].paced.code, mpi: $runs[0].mpi, cost: $runs[0].cost,
       num_ranks: $runs[0].num_ranks, $policy, rounds: ($own | length),
       iterations: $runs[0].paced.iterations,
       seconds: ($own | map(.time) | median),
       message_seconds: ($own | map(.message / $runs[0].num_ranks) | median),
       time: ($ratios | map(.time) | median),
       message: ($ratios | map(.message) | median),
       memory: ($own | map(.memory) | median),
       peak: ($own | map(.peak) | median),
       vmpin: ($ratios | map(.vmpin) | median),
       bytes: ($own | map(.bytes) | median),
       peak_bytes: ($own | map(.peak_bytes) | median),
       in_use_bytes: ($own | map(.in_use) | median),
       on_time: ($own | map((.uses - .cold) as $warm | .on_time | over($warm))
                 | median),
       on_time_after: (if $learning == null then null else
           ($own | map((.uses - $learning.uses) as $later
               | [.on_time - $learning.on_time, $later] | min
               | over($later)) | median) end),
       uses: ($own | map(.uses) | median), late: ($own | map(.late) | median),
       missed: ($own | map(.missed) | median),
       cold: ($own | map(.cold) | median),
       wasted: ($own | map(.wasted) | median),
       lost: ($own | map(.lost) | median), j: ($own | map(.j) | median),
       helper_cpu: ($own | map(.helper_cpu) | median),
       others: ($own | map(.others) | median),
       why: ($own | map(.why) | {
           held: (. as $all | reasons
                  | map({(.): (. as $key | $all | map(.held[$key]) | median)})
                  | add),
           lost: (. as $all | causes
                  | map({(.): (. as $key | $all | map(.lost[$key]) | median)})
                  | add)}),
       verified: ($own | all(.verified))};

. as $runs
| {bench: "paced", version: 1, date: $date, cpus: $cpus, class: $class,
   compute: $compute, bind: $bind, load: $load, ranks: $ranks, rounds: $rounds,
   seconds: $seconds, failed: $failed, took: $took,
   rows: [$runs | group_by([.mpi, .cost]) | .[]
       | . as $group
       | reduce .[].paced.code as $code ([]; . + ([$code] - .))
       | .[] as $code
       | ($group | map(select(.paced.code == $code))) as $of_code
       | ($replays | map(select(.code == $code and .mpi == $of_code[0].mpi and
                                .cost == $of_code[0].cost))) as $foretold
       | ("leave_pinned", "on_demand", "rent", "paper", "predict", "lru")
         as $policy
       | select($of_code | any(.policy == $policy and .count == "full"))
       | row($of_code; $policy)
       | .replay = (if $policy == "lru" then null
                    else foretold($foretold; $policy) end)]}

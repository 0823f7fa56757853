# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# What the summary and the tables of bench/paced share.

include "stats";

# A quotient, or null
def over($divisor):
    if . == null or ($divisor // 0) == 0 then null else . / $divisor end;

# Reasons for which memory is held, and causes of time that is lost, as of a
# report: NAME_byte_seconds and lost_NAME_seconds
def reasons: ["in_use", "soon", "ahead", "unknown", "late", "other"];
def causes: ["first", "unforetold", "late", "room", "waited", "released"];

# Of reports, or of one row of a replay: each reason's share of what leave
# pinned would hold, and each cause's seconds; null where one does not tell
def why:
    . as $all
    | (map(.leave_pinned_byte_seconds) | add) as $leave
    | {held: (reasons | map({(.): ("\(.)_byte_seconds" as $key
           | $all | map(.[$key])
           | if any(. == null) then null else add | over($leave) end)}) | add),
       lost: (causes | map({(.): ("lost_\(.)_seconds" as $key
           | $all | map(.[$key])
           | if any(. == null) then null else add end)}) | add)};

# Where others took more of the processors than that, times mean little
def busy_share: 0.05;

# goals: of each code under the default policy, what must be seen where
# computation sleeps and nothing runs beside it; {code, mpi, cost, goal, value,
# bound, met}
def goals:
    . as $summary
    | [.rows[] | select(.policy == "on_demand")] as $on_demand
    | .rows[] | select(.policy == "predict") as $row
    | $row.code as $code | $row.mpi as $mpi | $row.cost as $cost
    | ($on_demand | map(select(.code == $code and .mpi == $mpi and
                               .cost == $cost))[0]) as $least
    | (if $summary.load == "none" and $summary.compute == "asleep" then
         {goal: "memory against replay", value: $row.memory,
          bound: ($row.replay.memory // null | if . == null then null
                                          else . * 1.3 end)},
         {goal: "run time", value: $row.time, bound: 1.003},
         {goal: "time in messages", value: $row.message, bound: 1.05}
       else {goal: "run time", value: $row.time, bound: 1.01} end),
      {goal: "peak", value: $row.peak,
       bound: ($least.peak | if . == null then null else . + 0.05 end)},
      {goal: "on time after three iterations", value: $row.on_time_after,
       bound: 0.97, is_least: true}
    | select(.value != null and .bound != null)
    | {code: $code, mpi: $mpi, cost: $cost} + .
      + {met: (if .is_least then .value >= .bound else .value <= .bound end)};

# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The tables of bench/paced, from its summary.

include "pace";

def fixed($digits):
    if . == null then "–" else
      ($digits | if . == 0 then 1 else pow(10; .) end) as $unit
      | (. * $unit | round) as $n
      | if $digits == 0 then "\($n)" else
          "\(if $n < 0 then "-" else "" end)\($n | fabs / $unit | floor)." +
          (($n | fabs) % $unit + $unit | tostring | .[1:]) end
    end;

def percent: if . == null then "–" else . * 100 | fixed(1) + " %" end;

def line:
    "| \(.code) | \(.num_ranks) | `\(.policy)` | \(.time | fixed(3)) | " +
    "\(.message | fixed(2)) | \(.memory | percent) | \(.peak | percent) | " +
    "\(.on_time | percent) | \(.on_time_after | percent) | " +
    "\(.replay.memory | percent) | \(.replay.peak | percent) | " +
    "\(.replay.on_time | percent) | " +
    "\(.replay.long.memory | percent) | \(.replay.long.peak | percent) | " +
    "\(.replay.long.on_time | percent) |";

def costs:
    if . == "nic" then
      "MODELLED cost of a NIC (20 µs + 250 ns a page, a third to deregister)"
    else "the software NIC's own cost" end;

def mean: if length == 0 then null else add / length end;

def table($mpi; $cost):
    "", "\($mpi), \($cost | costs):", "",
    ("| code | ranks | policy | run time | messages | memory | peak | on time " +
     "| after three | replay: memory | peak | on time | " +
     "ten minutes: memory | peak | on time |"),
    "|" + " --- |" * 15,
    (.rows[] | select(.mpi == $mpi and .cost == $cost) | line),
    ([.rows[] | select(.mpi == $mpi and .cost == $cost)]
     | group_by(.policy)[]
     | {code: "mean", num_ranks: "–", policy: .[0].policy,
        time: (map(.time) | mean), message: (map(.message) | mean),
        memory: (map(.memory) | mean), peak: (map(.peak) | mean),
        on_time: (map(.on_time // empty) | mean),
        on_time_after: (map(.on_time_after // empty) | mean),
        replay: {memory: (map(.replay.memory // empty) | mean),
                 peak: (map(.replay.peak // empty) | mean),
                 on_time: (map(.replay.on_time // empty) | mean),
                 long: {memory: (map(.replay.long.memory // empty) | mean),
                        peak: (map(.replay.long.peak // empty) | mean),
                        on_time: (map(.replay.long.on_time // empty)
                                  | mean)}}} | line);

# One cell: as it was seen, and as it was foretold
def both(show): (.[0] | show) + " / " + (.[1] | show);

# Why the default holds what it holds, and what the time was lost for
def reasons_of($mpi; $cost):
    [.rows[] | select(.mpi == $mpi and .cost == $cost and
                      .policy == "predict" and .replay != null)] as $rows
    | if $rows == [] then empty else
        "", "`predict`, \($mpi), \($cost | costs): memory by reason, percent of " +
        "leave pinned, and lost milliseconds by cause, here / by replay", "",
        "| code | \(reasons | join(" | ")) | lost: \(causes | join(" | ")) |",
        "|" + " --- |" * ((reasons + causes | length) + 1),
        ($rows[] | . as $row | "| \(.code) | " +
         (reasons | map(. as $key
             | [$row.why.held[$key], $row.replay.why.held[$key]]
             | both(if . == null then "–" else . * 100 | fixed(1) end))
          | join(" | ")) + " | " +
         (causes | map(. as $key
             | [$row.why.lost[$key], $row.replay.why.lost[$key]]
             | both(if . == null then "–" else . * 1000 | fixed(0) end))
          | join(" | ")) + " |")
      end;

def missed_goals:
    [goals] as $goals
    | "", "Goals of the default policy: \($goals | map(select(.met)) | length)" +
      " of \($goals | length) met",
      ($goals[] | select(.met | not)
       | "missed: \(.code) \(.mpi) \(.cost): \(.goal) \(.value | fixed(3)), " +
         "\(if .is_least then "at least" else "at most" end) " +
         "\(.bound | fixed(3))");

"Class \(.class), computation \(.compute), load \(.load), \(.rounds) rounds of " +
"\(.seconds) s, \(.cpus) processors, \(.date); ratios are to leave pinned",
(. as $summary | [.rows[] | [.mpi, .cost]] | unique | .[] as [$mpi, $cost]
 | $summary | table($mpi; $cost), reasons_of($mpi; $cost)),
missed_goals,
(.rows | map(select(.others > busy_share)) | length) as $busy
| if . == null then empty
  elif $busy > 0 then
    "", "In \($busy) of \(.rows | length) rows other programs took more than " +
    "\(busy_share | percent) of the processors: their times mean little"
  else empty end,
(.rows[] | select(.verified | not) | "WRONG DATA: \(.code) \(.policy)")

# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The tables of bench/paced, from its summary.

include "pace";
include "stats";
include "format";

def percent: if . == null then "–" else . * 100 | fixed(1) + " %" end;

def cells:
    [.code, .num_ranks, "`\(.policy)`", (.time | fixed(3)), (.message | fixed(2)),
     ((.memory, .peak, .on_time, .on_time_after, .replay.memory, .replay.peak,
       .replay.on_time, .replay.long.memory, .replay.long.peak,
       .replay.long.on_time) | percent)];

def costs:
    if . == "nic" then
      "MODELLED cost of a NIC (20 µs + 250 ns a page, a third to deregister)"
    else "the software NIC's own cost" end;

# Means of all figures of some rows
def means:
    def of(f): map(f | values) | mean;
    {code: "mean", num_ranks: "–", policy: .[0].policy, time: of(.time),
     message: of(.message), memory: of(.memory), peak: of(.peak),
     on_time: of(.on_time), on_time_after: of(.on_time_after),
     replay: {memory: of(.replay.memory), peak: of(.replay.peak),
              on_time: of(.replay.on_time),
              long: {memory: of(.replay.long.memory), peak: of(.replay.long.peak),
                     on_time: of(.replay.long.on_time)}}};

def rows_of($mpi; $cost):
    [.rows[] | select(.mpi == $mpi and .cost == $cost)] as $rows
    | "", "\($mpi), \($cost | costs):", "",
      table(["code", "ranks", "policy", "run time", "messages", "memory", "peak",
             "on time", "after three", "replay: memory", "peak", "on time",
             "ten minutes: memory", "peak", "on time"];
          ($rows[] | cells), ($rows | group_by(.policy)[] | means | cells));

# One cell: as it was seen, and as it was foretold
def both(show): (.[0] | show) + " / " + (.[1] | show);

# Why the default holds what it holds, and what the time was lost for
def reasons_of($mpi; $cost):
    [.rows[] | select(.mpi == $mpi and .cost == $cost and
                      .policy == "predict" and .replay != null)] as $rows
    | if $rows == [] then empty else
        "", "`predict`, \($mpi), \($cost | costs): memory by reason, percent of " +
        "leave pinned, and lost milliseconds by cause, here / by replay", "",
        table(["code"] + reasons + (causes | map("lost: " + .));
            $rows[] | . as $row | [.code]
            + (reasons | map(. as $key
                | [$row.why.held[$key], $row.replay.why.held[$key]]
                | both(if . == null then "–" else . * 100 | fixed(1) end)))
            + (causes | map(. as $key
                | [$row.why.lost[$key], $row.replay.why.lost[$key]]
                | both(if . == null then "–" else . * 1000 | fixed(0) end))))
      end;

def missed_goals:
    [goals] as $goals
    | "", "Goals of the default policy: \($goals | map(select(.met)) | length)" +
      " of \($goals | length) met",
      ($goals[] | select(.met | not)
       | "missed: \(.code) \(.mpi) \(.cost): \(.goal) \(.value | fixed(3)), " +
         "\(if .is_least then "at least" else "at most" end) " +
         "\(.bound | fixed(3))");

"Class \(.class), computation \(.compute), bound to: \(.bind // "none"), load \(.load), " +
"\(.rounds) rounds of \(.seconds) s, \(.cpus) processors, \(.date); ratios are to leave pinned",
(. as $summary | [.rows[] | [.mpi, .cost]] | unique | .[] as [$mpi, $cost]
 | $summary | rows_of($mpi; $cost), reasons_of($mpi; $cost)),
missed_goals,
(.rows | map(select(.others > busy_share)) | length) as $busy
| if . == null then empty
  elif $busy > 0 then
    "", "In \($busy) of \(.rows | length) rows other programs took more than " +
    "\(busy_share | percent) of the processors: their times mean little"
  else empty end,
(.rows[] | select(.verified | not) | "WRONG DATA: \(.code) \(.policy)")

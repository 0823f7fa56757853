# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Rows of bench/paper_b_live to its tables: {system, mpi, round, size, fresh, us},
# each system's bandwidth over leave pinned's of the same round, MPI and size; and
# {hpcc: {system, round, rings, random, pingpong}}, 10^9 bytes a second.

include "stats";

def text: . * 100 | round / 100 | tostring;
def spread: interval
    | if . == null then "–"
      else "\(.median | text) (\(.low | text)–\(.high | text))" end;
def systems: reduce .[] as $row ([]; if index($row.system) then .
                                     else . + [$row.system] end);

def pingpong($rounds; $cost):
    . as $rows
    | ([$rows[].size] | unique) as $sizes
    | ([$rows[].mpi] | unique) as $mpis
    | systems as $systems
    | def us($mpi; $size; $fresh; $system; $round):
          first($rows[] | select(.mpi == $mpi and .size == $size and
                                 .fresh == $fresh and .system == $system and
                                 .round == $round) | .us);
      def lines($mpi):
          $systems[] as $system
          | "| \($system) | "
            + ([(true, false) as $fresh | $sizes[] as $size
                | [range(1; $rounds + 1) as $round
                   | us($mpi; $size; $fresh; "leave pinned"; $round)
                     / us($mpi; $size; $fresh; $system; $round)]
                | if $system == "leave pinned" then "1" else spread end]
               | join(" | ")) + " |";
      "Bandwidth of a ping-pong by that of *leave pinned* in the same round; medians "
      + "of \($rounds) rounds in turn, with 95 % intervals (smallest and largest where "
      + "rounds are fewer than six); software NIC"
      + (if $cost == "" then ""
         else ", a registration \($cost) dearer (**modelled**)" end)
      + ". New: mapped and touched just before, no reuse.",
      ($mpis[] as $mpi
       | "",
         "| \($mpi) | "
         + ([("new", "same") as $kind | $sizes[]
             | "\($kind), \(. / 1048576) MiB"] | join(" | ")) + " |",
         "| --- |" + ($sizes | map(" ---: | ---: |") | join("")),
         lines($mpi));

def hpcc:
    . as $rows
    | "hpcc\u0027s own figures with Open MPI, two processes, messages of 2,000,000 bytes, "
      + "10^9 bytes a second of each; medians, with intervals as above:",
      "",
      "| hpcc | rings | random rings | ping-pong |",
      "| --- | ---: | ---: | ---: |",
      (systems[] as $system
       | [$rows[] | select(.system == $system)]
       | "| \($system) | \(map(.rings) | spread) | \(map(.random) | spread) | "
         + "\(map(.pingpong) | spread) |");

[.[] | select(.hpcc == null)] as $rows
| [.[].hpcc | values] as $hpcc
| ($rows | select(length > 0) | pingpong($rounds; $cost)),
  (if ($rows | length) > 0 and ($hpcc | length) > 0 then "" else empty end),
  ($hpcc | select(length > 0) | hpcc)

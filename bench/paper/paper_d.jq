# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Summary of bench/paper_d: the tables of docs/paper_d.md.
include "format";

def round1: if . == null then "–" else . * 10 | round / 10 end;
def percent: if . == null then "not run"
             else . * 1000 | round / 10 | "\(.) %" end;
def ways: if . then "just mapped" else "again" end;
def size: if . >= 1048576 then "\(. / 1048576) MiB" else "\(. / 1024) KiB" end;

. as $all
| def of($section; $pattern; $size; $fresh; $loaded; $policy):
      [$all.rows[] | select(.section == $section and .pattern == $pattern and
          .size == $size and .fresh == $fresh and .loaded == $loaded and
          .policy == $policy)][0].median_us;
  # MB/s of a message there and one back
  def rate($size; $us): if $us == null then null else 2 * $size / $us end;
  def gain($before; $after):
      if $before == null or $after == null then null
      else ($before - $after) / $before end;
  def over($ways; $key):
      if $ways[1][$key] == null or $ways[2][$key] == null then null
      else $ways[2][$key] / $ways[1][$key] - 1 end;
  def paper: {sendrecv: ["8.4 %", "5.5 %"], allgatherv: ["7.5 %", "6.8 %"],
              bcast: ["4.4 %", "2 %"], reduce: ["7.6 %", "0.2 %"],
              allreduce: ["2.2 %", "-0.6 %"],
              reduce_scatter: ["7.9 %", "-0.8 %"],
              exchange: ["-1.4 %", "-2.7 %"]};

  "Two ranks of \($all.mpi) on \($all.cpus) processors, software NIC, "
  + "\($all.date), medians of \($all.rounds) rounds in turns.",
  "",
  "A pin and its unpin took "
  + (if $all.pins == null then "an unknown time"
     else "\($all.pins.base_us | round1) µs and \($all.pins.page_ns | round1) ns a page" end)
  + " (paper: 4.2 µs and 720 ns on an Opteron 265, 1.3 µs and 150 ns on a Xeon E5460).",
  "",
  "| ping-pong, MB/s | buffers | leave pinned | overlap | on demand | overlap over on demand | with unmapping timed |",
  "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
  ([false, true][] as $fresh
   | ([$all.rows[] | select(.section == "sizes") | .size] | unique[]
      | select(. / 65536 | log2 | . % 2 == 0)) as $size
   | def of_size($policy): [$all.rows[] | select(.section == "sizes" and
         .pattern == "pingpong" and .size == $size and .fresh == $fresh and
         (.loaded | not) and .policy == $policy)][0];
     [of_size("leave_pinned", "overlap", "on_demand")] as $ways
   | [($size | size), ($fresh | ways),
      ($ways[] | rate($size; .median_us) | round1),
      (over($ways; "median_us") | percent),
      (if $fresh then over($ways; "whole_us") | percent else "" end)] | line),
  "",
  "A receive is posted, the program is elsewhere for 1 ms with its core free, and then sends and waits; 1 MiB, µs beside that.",
  "",
  "| buffers | leave pinned | overlap | on demand |",
  "| --- | ---: | ---: | ---: |",
  ([false, true][] as $fresh
   | [($fresh | ways), (("leave_pinned", "overlap", "on_demand") as $policy
      | of("communications"; "posted"; 1048576; $fresh; false; $policy)
      | round1)] | line),
  "",
  "Time saved over pinning on demand (table 2), 1 MiB:",
  "",
  "| | cache, paper | overlap, paper | leave pinned | overlap | just mapped: leave pinned | overlap |",
  "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
  (("sendrecv", "allgatherv", "bcast", "reduce", "allreduce",
    "reduce_scatter", "exchange") as $name
   | def saved($fresh; $policy):
         gain(of("communications"; $name; 1048576; $fresh; false; "on_demand");
              of("communications"; $name; 1048576; $fresh; false; $policy))
         | percent;
     [$name, paper[$name][0], paper[$name][1], saved(false; "leave_pinned"),
      saved(false; "overlap"), saved(true; "leave_pinned"),
      saved(true; "overlap")] | line),
  ($all.is // [] | map({key: .policy, value: .}) | from_entries) as $is
  | if $is.on_demand == null then empty
    else ["IS (paper: class C on 4, here \($is.on_demand.class) on 2)",
          "4.2 %", "1.9 %",
          (gain($is.on_demand.seconds; $is.leave_pinned.seconds) | percent),
          (gain($is.on_demand.seconds; $is.overlap.seconds) | percent),
          "", ""] | line end,
  "",
  "| a process spins on the helper's core, ping-pong 1 MiB | buffers | idle, MB/s | loaded, MB/s | left |",
  "| --- | --- | ---: | ---: | ---: |",
  (["paper, overlap", "", "1000", "50", "5 %"] | line),
  (("overlap", "leave_pinned") as $policy | [false, true][] as $fresh
   | rate(1048576; of("loaded"; "pingpong"; 1048576; $fresh; false; $policy))
     as $idle
   | rate(1048576; of("loaded"; "pingpong"; 1048576; $fresh; true; $policy))
     as $busy
   | [$policy, ($fresh | ways), ($idle | round1), ($busy | round1),
      (if $idle == null or $busy == null then null else $busy / $idle end
       | percent)] | line),
  "",
  ($all.counts[] | select(.policy == "overlap")
   | "Under overlap \(.announced) receives were posted in all runs: "
     + "\(.announced_on_time) uses found their buffer pinned for that, "
     + "\(.announced_late) waited for the rest, and \(.repinned) registrations "
     + "were of a buffer given up before.")

# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The summary of bench/predict as Markdown

include "format";

def percent: if . == null then "-" else "\(. * 1000 | round | . / 10) %" end;
def times: if . == null then "-" else "\(. * 100 | round | . / 100)" end;
def fine: if . == null then "-" else "\(. * 100000 | round | . / 1000) %" end;

# Memory and time of each policy, and their price
def prices($set):
    ["predict", "rent", "paper", "on_demand", "lru", "leave_pinned"] as $order
    | .knob as $knob | .baseline as $baseline | .repeat as $repeat
    | .costs[$set]
    | .recordings as $recordings
    | ($order | map(. as $p | select($recordings[0].policies[$p]))) as $policies
    | "## Memory, time and J, costs: \(.title)", "",
      "Each recording's steady part is played on: \($repeat).",
      "Held over time / peak / on time / time lost / J. Memory: of what leave pinned comes",
      "to; on time: of warm uses;",
      "lost: of the run, without what first uses cost, with deregistrations and waits;",
      "J: lost and \($knob * 1e5 | round | . / 1e3) % of held. lru: at the ceiling from 10 to 90 % of least J.",
      "before: `predict` at \($baseline).", "",
      (.summary.policies as $means
       | def cell: if . == null then "-" else
             "\(.held | percent) / \(.peak | percent) / \(.on_time | percent) / " +
             "\(.lost | fine) / **\(.j | fine)**" +
             (if .at then " at \(.at)" else "" end) end;
         table(["recording"] + $policies + ["before"];
             ($recordings[] | . as $r
              | [.recording] + ($policies | map($r.policies[.] | cell))
                + [$r.before | cell]),
             ["mean"] + ($policies | map($means[.] | cell)) + ["-"]));

def learned($set):
    .knob as $knob | .costs[$set]
    | "### What it took to learn, costs: \(.title)", "",
      "Time that uses of `predict` lost, but first ones, until the steady part of the",
      "recording began for the second time; what it lost in as many seconds from there",
      "on; and J from there on.", "",
      table(["recording", "seconds", "lost, ms", "later, ms", "J, all", "J, later"];
          .recordings[] | .recording as $name | .policies.predict
          | select(.once) | .later as $later
          | [$name, (.once.seconds * 100 | round | . / 100),
             (.once.lost_seconds * 1e6 | round | . / 1e3),
             ($later.lost * .once.seconds * 1e6 | round | . / 1e3),
             (.j | fine), ($later.lost + $knob * $later.held | fine)]);

def price_ratios($set):
    .costs[$set]
    | "### J of predict, divided by others, costs: \(.title)", "",
      table(["recording", "least of the others", "by it",
             "by predict before", "peak above on demand's, points"];
          (.recordings[] | [.recording, "\(.least.policy), \(.least.j | fine)",
           (.to_least | times), (.to_before | times),
           (.peak_over_on_demand | if . == null then "-"
            else . * 1000 | round | . / 10 end)]),
          (.summary | ("mean", "median", "most") as $what
           | [$what, "", (.to_least[$what] | times),
              (.to_before[$what] | times), ""])),
      (.summary | "At most the least of the others and a tenth: \(.near_least) of \(.of)."),
      "";

(.costs | keys[]) as $set | prices($set), learned($set), price_ratios($set)

# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The summary of bench/predict as Markdown

def percent: if . == null then "-" else "\(. * 1000 | round | . / 10) %" end;
def times: if . == null then "-" else "\(. * 100 | round | . / 100)" end;
def row: "| " + join(" | ") + " |";
def head: row, (map("---") | row);
def fine: if . == null then "-" else "\(. * 100000 | round | . / 1000) %" end;

# Memory and time of each policy, and their price
def prices($set):
    ["predict", "rent", "paper", "on_demand", "lru", "leave_pinned",
     "(keep or drop)"] as $order
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
      "(keep or drop): the offline optimum of each range, without prefetch; pages that",
      "ranges share count for each. before: `predict` at \($baseline).", "",
      (["recording"] + $policies + ["before"] | head),
      ($recordings[] | . as $r | [.recording]
       + ($policies | map($r.policies[.]
          | "\(.held | percent) / \(.peak | percent) / \(.on_time | percent) / \(.lost | fine) / **\(.j | fine)**"
            + (if .at then " at \(.at)" else "" end)))
       + [if $r.before then $r.before | "\(.held | percent) / \(.peak | percent) / \(.lost | fine) / **\(.j | fine)**" else "-" end]
       | row),
      (.summary.policies as $means
       | ["mean"] + ($policies | map($means[.]
          | "\(.held | percent) / \(.peak | percent) / \(.on_time | percent) / \(.lost | fine) / **\(.j | fine)**"))
         + ["-"] | row),
      "";

def learned($set):
    .knob as $knob | .costs[$set]
    | "### What it took to learn, costs: \(.title)", "",
      "Time that uses of `predict` lost, but first ones, until the steady part of the",
      "recording began for the second time; what it lost in as many seconds from there",
      "on; and J from there on.", "",
      (["recording", "seconds", "lost, ms", "later, ms", "J, all", "J, later"]
       | head),
      (.recordings[] | .recording as $name | .policies.predict
       | select(.once) | .later as $later
       | [$name, (.once.seconds * 100 | round | . / 100 | tostring),
          (.once.lost_seconds * 1e6 | round | . / 1e3 | tostring),
          ($later.lost * .once.seconds * 1e6 | round | . / 1e3 | tostring),
          (.j | fine), ($later.lost + $knob * $later.held | fine)] | row),
      "";

def price_ratios($set):
    .costs[$set]
    | "### J of predict, divided by others, costs: \(.title)", "",
      (["recording", "least of the others", "by it", "by (keep or drop)",
        "by predict before", "rent by (keep or drop)",
        "peak above on demand's, points"] | head),
      (.recordings[] | [.recording, "\(.least.policy), \(.least.j | fine)",
        (.to_least | times), (.to_offline | times), (.to_before | times),
        (.rent_to_offline | times),
        (.peak_over_on_demand | if . == null then "-"
         else "\(. * 1000 | round | . / 10)" end)] | row),
      (.summary | ("mean", "median", "most") as $what
       | [$what, "", (.to_least[$what] | times), (.to_offline[$what] | times),
          (.to_before[$what] | times), (.rent_to_offline[$what] | times),
          ""] | row),
      "",
      (.summary | "At most the least of the others and a tenth: \(.near_least) of \(.of)."),
      "";

def live:
    "## Live", "",
    "Medians in seconds, predict to leave_pinned in pairs that begin in turn, and the",
    "middle 95 % of that ratio if the pairs are drawn anew. processor: the ranks' share",
    "of one while they computed (median); below 95 % other programs were at work, and",
    "the figures say nothing." +
    (if .pin_cost then " MODELLED cost of a registration: \(.pin_cost)."
     else "" end), "",
    (["what", "pairs", "leave_pinned", "predict", "ratio", "interval",
      "processor"] | head),
    (.live[] | [.what, "\(.pairs)", "\(.leave_pinned * 1e6 | round | . / 1e6)",
                "\(.predict * 1e6 | round | . / 1e6)",
                "\(.ratio * 1e4 | round | . / 1e4)",
                (.interval | map(. * 1e4 | round | . / 1e4 | tostring)
                 | join(" to ")), (.cpu_share | percent)] | row),
    "";

(.prices | select(.costs != {})
 | (.costs | keys[]) as $set
 | prices($set), learned($set), price_ratios($set)),
(if .live == [] then empty else live end)

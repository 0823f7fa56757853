# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Points of bench/pipeline_model, slurped: the tables of docs/paper_b.md.

include "format";

def round1: if . == null then "–" else . * 10 | round / 10 end;
def percent: . * 1000 | round / 10 | if . >= 0 then "+\(.) %" else "\(.) %" end;
def systems: ["leave_pinned", "copy", "pipeline", "caching", "helper"];
def names: {leave_pinned: "leave pinned", copy: "copy in/out",
            pipeline: "pipeline", caching: "caching pipeline (default)",
            helper: "the helper, plain UCP messages"};
def head: line, (map(if . == "" or . == "system" then "---" else "---:" end)
               | line);

# Reuses from which on leave pinned is faster, or null
def behind($a; $b):
    [$a[] as $x | $b[] | select(.reuses == $x.reuses and .mbps > $x.mbps)
     | .reuses] | min;

. as $all | [.[].costs] | unique[] as $costs
| [$all[] | select(.costs == $costs)] as $points
| def of($what; $system):
      [$points[] | select(.what == $what and .system == $system)];
  def at($system; $reuses):
      of("reuse"; $system) | map(select(.reuses == $reuses))[0].mbps // null;
  "## Costs of \($costs), modelled", "",
  (if of("reuse"; "caching") != [] then
     (["goal", "paper", "here", "met"] | head),
     (at("leave_pinned"; 0) as $base |
      (["pipeline over leave pinned, no reuse", "+67 %",
        (at("pipeline"; 0) / $base - 1 | percent),
        (if at("pipeline"; 0) / $base >= 1.67 then "yes" else "no" end)] | line),
      (["caching pipeline over leave pinned, no reuse", "–",
        (at("caching"; 0) / $base - 1 | percent),
        (if at("caching"; 0) / $base >= 1.67 then "yes" else "no" end)] | line)),
     (behind(of("reuse"; "pipeline"); of("reuse"; "leave_pinned")) as $n |
      ["reuses until leave pinned draws level with the pipeline", "40–50",
       ($n // "none to 100" | tostring), "–"] | line),
     (behind(of("reuse"; "caching"); of("reuse"; "leave_pinned")) as $n |
      ["the same with the default", "–", ($n // "none to 100" | tostring),
       (if $n == null then "yes" else "no" end)] | line),
     (if of("short"; "caching") != [] then
        behind(of("short"; "caching"); of("short"; "leave_pinned")) as $n |
        ["the same with 64 KiB", "–", ($n // "none to 100" | tostring),
         (if $n == null then "yes" else "no" end)] | line
      else empty end),
     (if of("new"; "caching") != [] then
        of("new"; "caching")[0].mbps / of("new"; "pipeline")[0].mbps |
        ["the default by the pipeline, 8 MiB, new memory each time", "–",
         (. * 1000 | round / 1000 | tostring),
         (if . >= 0.95 then "yes" else "no" end)] | line
      else empty end),
     ""
   else empty end),
  (if of("beff"; "caching") != [] then
     "10^6 bytes a second: 8 MiB by reuses, with MiB registered at most; 64 KiB " +
     "by reuses; b_eff of eight nodes together:", "",
     (["system", "8 MiB: 0", "1", "20", "100", "MiB", "64 KiB: 0", "1", "5",
       "100", "b_eff", "at 8 MiB"] | head),
     (systems[] as $s |
      [names[$s], ((0, 1, 20, 100) as $n | at($s; $n) | round1),
       (of("reuse"; $s)[0].peak / 1048576 | round1),
       ((0, 1, 5, 100) as $n | of("short"; $s)
        | map(select(.reuses == $n))[0].mbps | round1),
       (of("beff"; $s)[0] | (.beff | round), (.lmax_all | round))] | line), ""
   else empty end)

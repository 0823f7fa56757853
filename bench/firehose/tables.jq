# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The tables of a summary of bench/paper_c, for docs/firehose.md
include "format";

def section($name): [.rows[] | select(.section == $name)];
def hit_share: .hits / ([.hits + .misses + (.joined // 0), 1] | max) * 100;
def waited: if . == 1 then "each" else "one in \(.)" end;
. as $all
| "Measured \(.date) over \(.transports), \(.cpus) processors"
+ (if .level == "" then "" else ", \(.level) form" end)
+ "; a registration takes \(.pin_ns_modelled / 1000) us more than it does, "
+ "**modelled**, where UCP is used.", "",
(section("overhead") | if length > 0 then
    "Processor time of an 8-byte put that hits, by turns with `ucp_put_nbx()` alone, "
    + "ns (medians of 301 turns of 200 puts each; three runs):", "",
    table(["transport", "with firehose", "`ucp_put_nbx()`", "difference"];
        group_by(.wire)[] | [.[0].wire,
            (map(.extra[0] | fixed(0)) | join(", ")),
            (map(.extra[1] | fixed(0)) | join(", ")),
            (map(.extra[0] - .extra[1] | fixed(0)) | join(", "))])
 else empty end),
(section("programs") | if length > 0 then
    "The paper's programs, the same puts by each way; each put waited for, or one in "
    + "61 while the others stay under way:", "",
    table(["program", "waited for", "way", "run time, s", "hits", "pins"];
        .[] | [.program, (.sample | waited), .way, (.seconds | fixed(2)),
            (if .way == "firehose" then (hit_share | fixed(2)) + " %" else "-" end),
            (.pins | tostring)])
 else empty end),
(section("hits") | if length > 0 then
    "Hit rates of longer runs (the paper: 99.8 % of 1.5 M puts of Cannon, 99.98 % of "
    + "2.1 M of bitonic sort):", "",
    table(["program", "waited for", "puts", "hits"];
        .[] | [.program, (.sample | waited), (.puts | tostring),
            (hit_share | fixed(3)) + " %"])
 else empty end),
(section("random") | if length > 0 then
    "Random 8-byte puts, M = 4 MiB and MAXVICTIM = 1 MiB (rendezvous has no bound):",
    "",
    table(["working set / M", "firehose: hits", "time a put, us",
           "rendezvous, us", "rendezvous with unpin, us"];
        group_by(.working_set)[]
        | (map({key: .way, value: .}) | from_entries) as $w
        | $w.firehose as $f
        | def each: .seconds / .puts * 1e6 * .nodes | fixed(1);
          [($f.working_set / $f.lent | tostring),
           ($f | hit_share | fixed(1)) + " %", ($f | each),
           ($w.rendezvous | each), ($w["rendezvous-unpin"] | each)])
 else empty end)

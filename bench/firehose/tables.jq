# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The tables of a summary of bench/paper_c, in Markdown: all, or with $is_page
# those of docs/firehose.md
def fixed(digits):
    (. * pow(10; digits) | round) as $n
    | if digits == 0 then ($n | tostring)
      else ($n | fabs | tostring | until(length > digits; "0" + .)) as $s
          | (if $n < 0 then "-" else "" end)
            + $s[:($s | length) - digits] + "." + $s[($s | length) - digits:]
      end;
def section($name): [.rows[] | select(.section == $name)];
def share: .hits / ([.hits + .misses + (.joined // 0), 1] | max) * 100;
def line(cells): "| " + (cells | join(" | ")) + " |";
# Rows have their cells in an array; the columns of ON_PAGE are those of the page
def table(on_page; heads; rows):
    def shown: if $is_page then [.[on_page[]]] else . end;
    if (rows | length) == 0 then empty
    else (heads | shown | line(.), line(map("---"))),
         (rows[] | shown | line(.)), "" end;
def table(heads; rows): table(heads | keys; heads; rows);
def whole: if $is_page then [] else . end;
def waited: if . == 1 then "each" else "one in \(.)" end;
. as $all
| "Measured \(.date) over \(.transports), \(.cpus) processors, \(.level) form; a "
+ "registration takes \(.pin_ns_modelled / 1000) us more than it does, **modelled**, "
+ "where UCP is used.", "",
(section("cost") | whole | if length > 0 then
    "Processor time of a hit, over a wire that does nothing:", "",
    table(["buckets pinned", "hit, 64 of them in use, ns",
           "hit, all in use by turns, ns", "miss, both ends, ns"];
        [.[0].rows[] | ([(.buckets | tostring), (.hit_few_ns | fixed(0)),
            (.hit_all_ns | fixed(0)), (.miss_ns | fixed(0))])])
 else empty end),
(section("overhead") | if length > 0 then
    "Processor time of an 8-byte put that hits, by turns with `ucp_put_nbx()` alone, "
    + "ns (medians of 301 turns of 200 puts each; three runs):", "",
    table(["transport", "with firehose", "`ucp_put_nbx()`", "difference"];
        [group_by(.wire)[] | ([.[0].wire,
            (map(.extra[0] | fixed(0)) | join(", ")),
            (map(.extra[1] | fixed(0)) | join(", ")),
            (map(.extra[0] - .extra[1] | fixed(0)) | join(", "))])])
 else empty end),
(section("programs") | if length > 0 then
    "The paper's programs, the same puts by each way; each put waited for, or one in "
    + "61 while the others stay under way:", "",
    table([0, 1, 2, 4, 7, 8]; ["program", "waited for", "way", "puts", "run time, s",
           "hit or put, us", "miss, us", "hits", "pins", "unpins"];
        [.[] | ([.program, (.sample | waited), .way, (.puts | tostring),
            (.seconds | fixed(2)), (.hit_us | fixed(0)),
            (if .miss_samples > 0 then (.miss_us | fixed(0)) else "-" end),
            (if .way == "firehose" then (share | fixed(2)) + " %" else "-" end),
            (.pins | tostring), (.unpins | tostring)])])
 else empty end),
(section("hits") | if length > 0 then
    "Hit rates of longer runs (the paper: 99.8 % of 1.5 M puts of Cannon, 99.98 % of "
    + "2.1 M of bitonic sort):", "",
    table([0, 1, 2, 3]; ["program", "waited for", "puts", "hits", "firehoses moved",
           "puts that waited for one", "run time, s", "time a put, us"];
        [.[] | ([.program, (.sample | waited), (.puts | tostring),
            (share | fixed(3)) + " %", (.misses | tostring),
            (.joined | tostring), (.seconds | fixed(1)),
            (.seconds / .puts * 1e6 * .nodes | fixed(2))])])
 else empty end),
(section("random") | if length > 0 then
    "Random 8-byte puts, M = 4 MiB and MAXVICTIM = 1 MiB (rendezvous has no bound):",
    "",
    table(["working set / M", "firehose: hits", "time a put, us",
           "rendezvous, us", "rendezvous with unpin, us"];
        group_by(.working_set)
        | map((map({key: .way, value: .}) | from_entries) as $w
            | $w.firehose as $f
            | def each: .seconds / .puts * 1e6 * .nodes | fixed(1);
              ([($f.working_set / $f.lent | tostring),
                ($f | share | fixed(1)) + " %", ($f | each),
                ($w.rendezvous | each), ($w["rendezvous-unpin"] | each)])))
 else empty end),
(section("processes") | whole | if length > 0 then
    "Bitonic sort by processes:", "",
    table(["processes", "puts", "hits", "time a put, us"];
        [.[] | ([(.nodes | tostring), (.puts | tostring),
            (share | fixed(2)) + " %",
            (.seconds / .puts * 1e6 * .nodes | fixed(2))])])
 else empty end),
(section("price") | whole | if length > 0 then
    "How long victims are kept (virtual network, 4 nodes; phases with and without "
    + "reuse; **modelled**). J is what pinning takes as a share of run time, and "
    + "0.5 % times the share of M + MAXVICTIM that is pinned over time:", "",
    table([0, 1, 4, 5]; ["seconds", "victims kept", "pins", "pinning / run time",
           "held", "J"];
        [.[] | ([(.modelled_ms / 1000 | fixed(0)),
            (if .flags == 0 then "all" else "by price" end),
            (.pins | tostring), (.pin_share * 100 | fixed(2)) + " %",
            (.held_share * 100 | fixed(1)) + " %",
            ((.pin_share + 0.005 * .held_share) * 100 | fixed(2)) + " %"])])
 else empty end),
(section("nodes") | if length > 0 then
    "By nodes, in the virtual network, M = 64 MiB of each (times **modelled**):", "",
    table([0, 1, 2, 4, 6]; ["nodes", "F", "random: hits", "ms", "Cannon: hits", "ms",
           "bitonic: hits", "ms"];
        group_by(.nodes)
        | map((map({key: .pattern, value: .}) | from_entries) as $w
            | ([($w.random.nodes | tostring),
                ($w.random | .lent / 4096 / (.nodes - 1) | floor | tostring)]
              + ([$w.random, $w.cannon, $w.bitonic]
                 | map((share | fixed(1)) + " %", (.modelled_ms | fixed(2)))))))
 else empty end)

# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The summary as the README's tables.
include "figures";
include "format";

def one($unit):
    if .text != null then .text
    elif .v == null then "–"
    elif $unit == "limit" then "\(.peak | change) (limit \(.limit | change))"
    elif $unit == "change" then .v | change
    elif $unit == "share" or $unit == "computed" then .v | share
    elif $unit == "times" then "\(.v | short)x"
    elif $unit == "ratio" then
        (if .low == null then (.v * 10000 | round) / 10000 | tostring
         else {median: .v, low, high, pairs} | span end) +
        (if .is_busy then " (busy)" else "" end)
    else .v | short end;

# Once where both MPIs say the same
def ours:
    .unit as $unit
    | if .ours | all(.[]; .v == null and .text == null) then "not run"
      else [.ours[] | {mpi, text: one($unit)}]
      | if map(.text) | unique | length == 1 then .[0].text
        else map("\(.mpi | mpi_name): \(.text)") | join("; ") end
      end;

def met: {yes: "yes", no: "**no**", noise: "hidden by noise"}[. // ""] // "";

def machine:
    "\(.machine.cpus) processors (\(.machine.cpu)), \(.machine.kernel), " +
    "\(.machine.date); \(.pairs) pairs, policy `\(.main)`, " +
    "`bench/paper_a\(if .level == "default" then "" else " --" + .level end)`, " +
    "\(.seconds / 60 | round) minutes" +
    (if .machine.modelled_pin_cost != null then
     "; registrations carry a **modelled** cost of " +
     "\(.machine.modelled_pin_cost)" else "" end) + ".";

# The kernels: a row a code
def kernel_table($mpi):
    . as $s
    | [.rows[] | select(.section == "kernels" and .mpi == $mpi)] as $rows
    | if ($rows | length) == 0 then empty
      else
        "", "\($mpi | mpi_name): time, and peak and bytes over time of leave " +
        "pinned; median [interval]", "",
        "| code | leave pinned holds | limit | peak | bytes over time " +
        "(limit) | time | time on demand | time, `lru` at our peak | " +
        "on time | `lru`'s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        (($rows | map(.case) | unique[]) as $case
         | ($rows | map(select(.case == $case) | {(.policy): .}) | add) as $p
         | $p[$s.main] as $own | select($own != null)
         | "| \($case) | \($p.leave_pinned.peak | bytes) " +
           "| \($own.limit_peak_ratio.median | share) " +
           "| \($own.peak_ratio.median | share) " +
           "| \($own.byte_seconds_ratio.median | share) " +
           "(\($own.limit_byte_seconds_ratio.median | share)) " +
           "| \($own.time_ratio | span) | \($p.on_demand.time_ratio | span) " +
           "| \($p.lru.time_ratio | span) | \($own.on_time | share) " +
           "| \($p.lru.on_time | share) |")
      end;

def price_title:
    (if startswith("kernels") then "Kernels" else "Programs" end) +
    (if endswith("_nic") then ", with a NIC's cost of registration (modelled)"
     else "" end);

# All that J is made of. Buffers below a megabyte say nothing about memory.
def price_table($section):
    [.rows[] | select(.section == $section and .held != null)] as $rows
    | if ($rows | length) == 0 then empty
      else
        "", "\($section | price_title): run time against leave pinned, " +
        "median [interval]; bytes over time and peak as a share of leave " +
        "pinned\u0027s; J = what the run took longer + max slowdown · bytes " +
        "over time / (all that is left pinned in the end · run time)", "",
        "| code | MPI | policy | leave pinned holds | time | bytes over time " +
        "| peak | helper, of a core | J | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ($rows | sort_by([.case, .mpi, .policy])[]
         | "| \(.case) | \(.mpi | mpi_name) | `\(.policy)` " +
           "| \(.leave_pinned | bytes) | \(.time_ratio | span) " +
           "| \(.byte_seconds_ratio.median | share) " +
           "| \(.peak_ratio.median | share) " +
           "| \(.helper_cpu | share) | \(.j | share) " +
           "| \([if .leave_pinned < 1048576 then "speed only" else empty end,
                 if .is_busy then "busy" else empty end] | join(", ")) |")
      end;

"Measured on \(machine)",
(if .failed > 0 then "", "**\(.failed) runs failed.**" else empty end), "",
"| paper | what | paper | ours | goal | met |",
"| --- | --- | --- | --- | --- | --- |",
(figures | "| \(.where) | \(.what) | \(.paper) | \(ours) | \(.goal) | " +
           "\(.met | met) |"),
(.machine.mpis[] as $mpi | kernel_table($mpi)),
(price_table("kernels", "kernels_nic", "programs", "programs_nic")),
(if $curves == "" then empty else
 "", "Memory against time of each recorded code, a curve over the price of memory under " +
 "`predict`; replayed, so all costs are modelled, and what a wait does to other " +
 "ranks is not in it (`bench/predict --docs` draws it again):", "",
 "![memory against time of each code](\($curves))", "",
 "Beside what a user has otherwise (UCX's and libfabric's caches, an LRU of the " +
 "same bytes, on demand, ODP): [comparison.md](comparison.md)." end)

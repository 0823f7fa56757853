# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The first tables of paper_a.md, or with $page those of docs/results.md: without
# figures that other pages have of longer runs, and a row for each code.
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

# In the order of the MPIs, once where all say the same
def ours:
    .unit as $unit
    | if .ours | all(.[]; .v == null and .text == null) then "not run"
      else [.ours[] | one($unit)]
      | if unique | length == 1 then .[0] else join("; ") end
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

def price_title:
    (if startswith("kernels") then "Kernels" else "Programs" end) +
    (if endswith("_nic") then ", with a NIC's cost of registration (modelled)"
     else "" end);

# All that J is made of. Buffers below a megabyte say nothing about memory.
def price_table($section):
    [.rows[] | select(.section == $section and .held != null)] as $rows
    | if ($rows | length) == 0 then empty
      else
        "", "\($section | price_title):", "",
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

def price_cells:
    "\(.time_ratio | span)\(if .is_busy then " busy" else "" end); " +
    "\(.byte_seconds_ratio.median | share), \(.peak_ratio.median | share)";

# A row for each code and MPI
def price_rows:
    .main as $main
    | ("kernels", "kernels_nic", "programs", "programs_nic") as $section
    | [.rows[] | select(.section == $section and .held != null)]
    | group_by([.case, .mpi])[] | map({(.policy): .}) | add
    | select(.[$main] and .on_demand)
    | "| \(.[$main].case)\(if $section | endswith("_nic") then " (NIC)" else "" end)" +
      ", \(.[$main].mpi | mpi_name) | \(.leave_pinned.leave_pinned | bytes) " +
      "| \(.[$main] | price_cells) | \(.on_demand | price_cells) |";

# The pipeline, the simulator and CPU policies have their own tables
def elsewhere: IN("Table 1", "Fig. 8", "Fig. 9", "Fig. 10", "Fig. 13", "Fig. 14",
                  "Table 4");

"Measured on \(machine)",
(if .failed > 0 then "", "**\(.failed) runs failed.**" else empty end), "",
"| paper | what | paper | ours (\([.machine.mpis[] | mpi_name] | join("; "))) | goal " +
"| met |",
"| --- | --- | --- | --- | --- | --- |",
(figures | select($page == "" or (.where | elsewhere | not))
 | "| \(.where) | \(.what) | \(.paper) | \(ours) | \(.goal) | " +
   "\(.met | met) |"),
(if $page == "" then
 "", "What a code pays: run time against leave pinned, median [interval]; bytes over " +
 "time and peak as a share of leave pinned's; J = what the run took longer + max " +
 "slowdown · bytes over time / (all that is left pinned in the end · run time).",
 price_table("kernels", "kernels_nic", "programs", "programs_nic")
 else
 "", "Run time against leave pinned, median [interval]; memory (bytes over time) and " +
 "peak as a share of leave pinned's. (NIC): with a NIC's **modelled** cost.", "",
 "| code, MPI | left pinned | `\(.main)`: time; memory, peak " +
 "| `on_demand`: time; memory, peak |",
 "| --- | --- | --- | --- |", price_rows end),
(if $curves == "" then empty else
 "", "Memory against time of each recorded code as the price of memory changes, " +
 "under `predict`; replayed, so **modelled** (`bench/predict --docs` draws it):", "",
 "![memory against time of each code](\($curves))" end)

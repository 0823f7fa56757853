# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The tables of docs/results.md: the paper's figures, and a row for each code.
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

def price_cells:
    "\(.time_ratio | span)\(if .is_busy then " busy" else "" end); " +
    "\(.byte_seconds_ratio.median | share), \(.peak_ratio.median | share)";

# A row for each code and MPI
def price_rows:
    .main as $main
    | ("paced", "kernels") as $section
    | [.rows[] | select(.section == $section and .held != null)]
    | group_by([.case, .mpi])[] | map({(.policy): .}) | add
    | select(.[$main])
    | "| \(.[$main].case)\(if $section == "paced" then " (paced, NIC)" else "" end)" +
      ", \(.[$main].mpi | mpi_name) | \(.leave_pinned.leave_pinned | bytes) " +
      "| \(.[$main] | price_cells) " +
      "| \(if .on_demand then .on_demand | price_cells else "–" end) |";

"Measured on \(machine)",
(if .failed > 0 then "", "**\(.failed) runs failed.**" else empty end), "",
"| paper | what | paper | ours (\([.machine.mpis[] | mpi_name] | join("; "))) | goal " +
"| met |",
"| --- | --- | --- | --- | --- | --- |",
(figures
 | "| \(.where) | \(.what) | \(.paper) | \(ours) | \(.goal) | " +
   "\(.met | met) |"),
"", "Run time against leave pinned, median [interval]; memory (bytes over time) and " +
"peak as a share of leave pinned's. (NIC): with a NIC's **modelled** cost.", "",
"| code, MPI | left pinned | `\(.main)`: time; memory, peak " +
"| `on_demand`: time; memory, peak |",
"| --- | --- | --- | --- |", price_rows

# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Rows of bench/paper_b_live, {system, mpi, size, fresh, us}, to its table: each
# system's bandwidth over leave pinned's of the same MPI and size, medians.

def median: sort | .[(length - 1) / 2 | floor];
def text: . * 100 | round / 100 | tostring;

. as $rows
| ([$rows[].size] | unique) as $sizes
| ([$rows[].mpi] | unique) as $mpis
| (reduce $rows[] as $row ([]; if index($row.system) then .
                               else . + [$row.system] end)) as $systems
| def us($mpi; $size; $fresh; $system):
      [$rows[] | select(.mpi == $mpi and .size == $size and .fresh == $fresh
                        and .system == $system) | .us] | median;
  def lines($mpi):
      $systems[] as $system
      | "| \($system) | "
        + ([(true, false) as $fresh | $sizes[] as $size
            | us($mpi; $size; $fresh; "leave pinned")
              / us($mpi; $size; $fresh; $system) | text] | join(" | ")) + " |";
  "Bandwidth of a ping-pong by that of *leave pinned*, medians of \($rounds) rounds in "
  + "turn; software NIC"
  + (if $cost == "" then "" else ", a registration \($cost) dearer (**modelled**)" end)
  + ". New: mapped and touched just before, no reuse.",
  ($mpis[] as $mpi
   | "",
     "| \($mpi) | "
     + ([("new", "same") as $kind | $sizes[]
         | "\($kind), \(. / 1048576) MiB"] | join(" | ")) + " |",
     "| --- |" + ($sizes | map(" ---: | ---: |") | join("")),
     lines($mpi))

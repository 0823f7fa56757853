# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The summary of bench/fig1 as a table: medians; peak is the larger of both ranks,
# average their sum; ratios are to leave pinned, but where it says otherwise.
include "format";

"| MPI, loop | bytes | policy | message | p90 | ratio | on demand's | run | peak "
+ "| average | ratio | on time |",
"|" + " --- |" * 12,
(.rows[]
 | "| \(.mpi | mpi_name), \(if .reuse then "reuse" else "no reuse" end)"
   + "\(if .asleep then ", asleep" else "" end) | \(.size) | `\(.policy)` "
   + "| \(.time_us * 1e-6 | seconds) | \(.p90_us * 1e-6 | seconds) "
   + "| \(.time_ratio | short) | \(.time_ratio_on_demand | short) "
   + "| \(.run_ratio | short) | \(.peak | bytes) | \(.average | bytes) "
   + "| \(.average_ratio | share) "
   + "| \(if (.later // 0) == 0 then null else .on_time / .later end | share) |")

# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Every section's rows, all policies, as Markdown.
include "stats";
include "format";

def order: {bounce: 0, on_demand: 1, leave_pinned: 2, paper: 3, predict: 4,
            rent: 5, lru: 6, pipeline: 7, caching: 8}[.];

def section_table($section; $mpi):
    [.rows[] | select(.section == $section and .mpi == $mpi)]
    | if length == 0 then empty
      else
        "", "### \($section), \($mpi | mpi_name)", "",
        "| case | policy | time | of leave pinned | peak | of leave pinned | " +
        "average | bytes over time of leave pinned | `VmPin` peak | " +
        "`VmPin` average of leave pinned | on time | helper | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | " +
        "--- | --- |",
        (sort_by([.x, .case, (.policy | order)])[]
         | "| \(.case) | `\(.policy)` | \(.time | seconds) " +
           "| \(.time_ratio | span) | \(.peak | bytes) " +
           "| \(.peak_ratio.median | share) | \(.average | bytes) " +
           "| \(.byte_seconds_ratio.median | share) | \(.vmpin_peak | bytes) " +
           "| \(.vmpin_average_ratio.median | share) | \(.on_time | share) " +
           "| \(.helper_cpu | share) " +
           "| \(if .is_busy then "busy" else "" end)" +
           "\(if .modelled then " modelled" else "" end) |")
      end;

"", "## All sections", "",
"Memory is the mean over a job's ranks. `bounce` is UCX without registrations: " +
"every message is copied through shared memory, so its report has no memory; " +
"`VmPin` is the kernel's word. `lru` is capped at the peak of `\(.main)` in " +
"the same pair. *busy*: other programs took more than 5 % of the ranks' " +
"processor time, so times say little.",
(.sections[] as $section | .machine.mpis[] as $mpi
 | section_table($section; $mpi)),
(.sections[] as $section | .extra[] | select(.section == $section)
 | select(.section != "curves")
 | "", "### \(.section)", "", "```json", (.result[] | tojson), "```")

# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# A summary of bench/paced against a baseline of the same settings. Times are
# compared where other programs left the processors alone.

include "pace";

def key: "\(.code) \(.mpi) \(.cost) \(.policy)";

($before[0].rows | map({(key): .}) | add // {}) as $old
| ($now[0] | {class, compute, load, ranks}) as $settings
| if ($before[0] | {class, compute, load, ranks}) != $settings then
    "the baseline was taken with other settings"
  else
    [$now[0].rows[] | . as $row | $old[key] as $was | select($was != null)
     | ("memory", "peak",
        (select(($row.others <= busy_share) and ($was.others <= busy_share))
         | "time")) as $figure
     | select($was[$figure] != null and $row[$figure] != null)
     | {name: "\($row | key) \($figure)", was: $was[$figure],
        is: $row[$figure],
        worse: ($row[$figure] > $was[$figure] * (1 + $tolerance))}]
    | (.[] | select(.worse) | "WORSE \(.name): \(.is), was \(.was)"),
      "\(length) figures compared, \(map(select(.worse)) | length) worse"
  end

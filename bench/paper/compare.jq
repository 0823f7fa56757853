# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Ratios to leave pinned in $now against those in $before, where both have them.
# One is worse when even the lower end of its interval lies above the upper end
# that it had, with $tolerance of that and half a point to spare. Where there were
# too few pairs for 95 %, by as much more as the wider of both intervals is wide.
# What depends on time is not compared where others had the processors.

def doubt: if .coverage >= 0.95 then 0 else .high - .low end;

def key: [.section, .case, .mpi, .policy] | join(" ");

($before[0].rows | map({(key): .}) | add // {}) as $old
| (if $before[0].machine.modelled_pin_cost != $now[0].machine.modelled_pin_cost
   then "Baseline: another modelled cost of registrations" else
   [$now[0].rows[] | . as $row | $old[key] as $was
    | select($was != null and .policy != "leave_pinned")
    | ("time_ratio", "peak_ratio", "average_ratio",
       "vmpin_average_ratio") as $k
    | select($was[$k] != null and $row[$k] != null and
             $was[$k].pairs > 1 and $row[$k].pairs > 1)
    | select($k == "peak_ratio" or (($row.is_busy or $was.is_busy) | not))
    | {row: ($row | key), ratio: $k, was: $was[$k], now: $row[$k]}
    | .worse = (.now.low > .was.high * (1 + $tolerance) + 0.005 +
                ([.now, .was | doubt] | max))]
   | map(select(.worse)) as $worse
   | ($worse[] | "WORSE \(.row) \(.ratio): " +
      "\(.was.median) (up to \(.was.high)) -> " +
      "\(.now.median) (from \(.now.low))"),
     "Baseline: \(length) ratios compared, \($worse | length) worse"
   end)

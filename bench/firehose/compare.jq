# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Hit rates of one summary of bench/paper_c against another: they are counted, and
# do not depend on the machine as times do
def share: .hits / ([.hits + .misses + (.joined // 0), 1] | max) * 100;
def rates: [.[0].rows[] | select(.hits != null and (.way // "firehose") == "firehose")
    | {key: ("\(.section) \(.program // .pattern) \(.nodes) \(.working_set) "
             + "\(.flags) \(.sample // 61)"),
       value: share}] | from_entries;
($before | rates) as $old | ($now | rates) as $new
| [$old | keys[] | select($new[.] != null)
    | {name: ., old: $old[.], new: $new[.]}] as $rows
| ($rows[] | select(.new < .old - 2) | "worse: \(.name): \(.old) % was, \(.new) % is"),
  "Baseline: \($rows | length) hit rates, \([$rows[] | select(.new < .old - 2)] | length) worse"

# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# $runs: what replay said of each recording, one object a set of costs and what
# was asked for; $baseline: what predict did once, as --save-baseline wrote it;
# $knob: what all memory is worth; $repeat: how long each was played. To what each
# policy held and lost, and J, and what of it before the steady part recurred.

include "stats";

# Time lost without what uses cost that nobody could have registered before,
# and memory as a share of all that leave pinned comes to, for all of the run
def price:
    ([.elapsed_seconds, 1e-9] | max) as $elapsed
    | ([.leave_pinned_peak_bytes, 1] | max) as $leave
    | (.lost_seconds - .lost_first_seconds) as $lost
    | (.pinned_byte_seconds / $leave / $elapsed) as $held
    # With what is kept for each registration, at the same price
    | (.region_bytes // 0) as $each
    | ($leave + $each * (.leave_pinned_regions_peak // 0)) as $all
    | ((.pinned_byte_seconds + $each * (.region_seconds // 0))
       / $all / $elapsed) as $priced
    | ($lost / $elapsed) as $lost
    | {$held, $priced, peak: (.pinned_peak_bytes / $leave),
       on_time: ratio(.on_time; .uses - .cold), $lost,
       j: ($lost + $knob * $priced)}
      + if .once == null then {} else
        {once: (.once | {
             seconds: .elapsed_seconds,
             lost_seconds: (.lost_seconds - .lost_first_seconds)}),
         later: (([$elapsed - .once.elapsed_seconds, 1e-9] | max) as $rest
             | {lost: ((.lost_seconds - .lost_first_seconds - .once.lost_seconds
                        + .once.lost_first_seconds) / $rest),
                held: ((.pinned_byte_seconds - .once.pinned_byte_seconds)
                       / $leave / $rest)})} end;

# The policies of one recording, and points over ceilings and knobs
def recording($set; $name):
    [$runs[] | select(.costs == $set) | .what as $what | .at as $at
     | {$what, $at, policy}
       + (.traces[] | select(.trace == $name) | price)] as $rows
    | ([$rows[] | select(.what == "lru")] | min_by(.j)) as $lru
    | ($rows | map(select(.what == "policy" and .policy != "lru")
                   | {key: .policy, value: {held, priced, peak, on_time, lost, j, once,
                                            later}})
       | from_entries)
      + {lru: ($lru | {held, priced, peak, on_time, lost, j, at})}
      | . as $policies
      | ($baseline[0].costs[$set][$name] // null) as $before
      | ([to_entries[] | select(.key != "predict")
          | {key, j: .value.j}]
         + (if $before then [{key: "predict before", j: $before.j}] else [] end)
         | min_by(.j)) as $least
      | {
          recording: $name,
          $policies,
          before: $before,
          least: {policy: $least.key, j: $least.j},
          to_least: ratio($policies.predict.j; $least.j),
          to_before: ratio($policies.predict.j; $before.j),
          peak_over_on_demand: (if $policies.on_demand then
              $policies.predict.peak - $policies.on_demand.peak else null end),
          knobs: [$rows[] | select(.what == "knob") | {at, held, lost}],
          ceilings: [$rows[] | select(.what == "lru") | {at, held, lost, j}]
        };

def counted(f): map(f | values) as $all
    | {mean: ($all | mean), median: ($all | median), most: ($all | max),
       of: ($all | length)};

{
    knob: $knob,
    repeat: $repeat,
    baseline: ($baseline[0].commit // null),
    costs: ([$runs[] | .costs] | unique | map(. as $set | {
        key: $set,
        value: ({
            title: ($runs | map(select(.costs == $set)) | .[0].title),
            recordings: ([$runs[] | select(.costs == $set) | .traces[].trace]
                         | unique | map(recording($set; .)))
        } | .recordings as $codes
          | . + {summary: {
              to_least: ($codes | counted(.to_least)),
              to_before: ($codes | counted(.to_before)),
              near_least: ([$codes[] | select(.to_least <= 1.1)] | length),
              of: ($codes | length),
              policies: ([$codes[].policies | keys[]] | unique | map(. as $p | {
                  key: $p,
                  value: ([$codes[].policies[$p]] | {
                      held: (map(.held | values) | mean), peak: (map(.peak | values) | mean),
                      on_time: (map(.on_time | values) | mean),
                      lost: (map(.lost | values) | mean), j: (map(.j | values) | mean)})
              }) | from_entries)
          }})
    }) | from_entries)
}

# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# $runs: what replay said of each run (plain, ceilings, speed) and policy;
# $prices: what predict-price.jq made; $live: one object a live run. To one
# summary.

def median:
    sort | length as $n
    | if $n == 0 then null
      elif $n % 2 == 1 then .[($n - 1) / 2]
      else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;

def share($a; $b): if $b == 0 then null else $a / $b end;

# Figures of one policy on one trace
def figures:
    (.uses - .cold) as $warm
    | {
        warm: $warm,
        on_time: share(.on_time; $warm),
        late: .late,
        wasted: share(.wasted; .uses),
        x_limit: share(.pinned_byte_seconds; .in_use_byte_seconds),
        x_bound: share(.pinned_byte_seconds; .bound_byte_seconds),
        bound_met,
        peak: share(.pinned_peak_bytes; .leave_pinned_peak_bytes),
        lru_same: share(.lru_same_on_time; $warm),
        opt_same: share(.opt_same_on_time; $warm)
      }
    + (if .predict_same_on_time == null then {} else
       {predict_same: share(.predict_same_on_time; $warm)} end);

# {trace: {policy: figures}} of one run
def by_trace($run):
    reduce ($runs[] | select(.run == $run)) as $row ({};
        reduce $row.traces[] as $t (.;
            .[$t.trace][$row.policy] = ($t | figures)));

# Pairs are drawn anew, with replacement, by a generator of our own, so that the
# same runs give the same interval: its middle 95 %
def next: (. * 1103515245 + 12345) % 2147483648;
def interval($pairs):
    ($pairs | length) as $n
    | [foreach range(1000) as $i ({seed: 1};
           . as $state
           | reduce range($n) as $k ({seed: $state.seed, drawn: []};
                 .seed |= next
                 | .drawn += [$pairs[(.seed / 65536 | floor) % $n]]);
           (.drawn | map(.[1]) | median) / (.drawn | map(.[0]) | median))]
    | sort | [.[25], .[974]];

def live:
    group_by(.what)
    | map({
          what: .[0].what,
          cpu_share: (map(.cpu | select(. != null)) | median),
          pairs: (group_by(.pair) | map(
              (map(select(.policy == "leave_pinned").value)[0]) as $a
              | (map(select(.policy == "predict").value)[0]) as $b
              | select($a != null and $b != null) | [$a, $b]))
      } | select(.pairs | length > 0)
      | {
          what,
          cpu_share,
          pairs: (.pairs | length),
          leave_pinned: (.pairs | map(.[0]) | median),
          predict: (.pairs | map(.[1]) | median),
          interval: interval(.pairs)
      } | . + {ratio: (.predict / .leave_pinned)});

by_trace("plain") as $plain
| by_trace("equal") as $equal
| (["75", "50", "25"] | map({key: ., value: by_trace(.)}) | from_entries)
    as $ceilings
| {
    bench: "predict",
    prices: $prices[0],
    policies: ([$runs[] | select(.run == "plain") | .policy]),
    traces: ($plain | to_entries | map(.key as $name | {
        trace: $name,
        is_random: ($name | startswith("random.")),
        plain: .value,
        equal: ($equal[$name] | map_values({on_time, predict_same})),
        ceilings: ($ceilings | map_values(.[$name]))
    })),
    events_per_second: ([$runs[] | select(.run == "speed" and
                                          .events_per_second)
        | {key: .policy, value: .events_per_second}] | from_entries),
    pin_cost: (if $pin_cost == "" then null else $pin_cost end),
    live: ($live | live)
}

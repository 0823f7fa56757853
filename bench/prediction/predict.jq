# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# $prices: what predict-price.jq made; $live: one object a live run. To one
# summary.

def median:
    sort | length as $n
    | if $n == 0 then null
      elif $n % 2 == 1 then .[($n - 1) / 2]
      else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;

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

{
    bench: "predict",
    prices: $prices[0],
    pin_cost: (if $pin_cost == "" then null else $pin_cost end),
    live: ($live | live)
}

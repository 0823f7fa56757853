# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Order statistics; a module for the others here.

def median:
    map(values) | sort | length as $n
    | if $n == 0 then null
      elif $n % 2 == 1 then .[($n - 1) / 2]
      else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;

def mean: if length == 0 then null else add / length end;

def ratio($a; $b):
    if $a == null or $b == null or $b == 0 then null else $a / $b end;

# Largest k for which k - 1 or fewer of n fair coins fall heads with a chance of
# at most 2.5 %; 0 for less than six
def cut($n):
    [foreach range(0; $n) as $i ({term: pow(0.5; $n), sum: 0};
        .sum += .term | .term *= ($n - $i) / ($i + 1);
        if .sum <= 0.025 then $i + 1 else empty end)]
    | max // 0;

# Median and an interval that holds the true one with a chance of `coverage`
# whatever the distribution: between two order statistics, the outermost where
# there are too few for 95 %
def interval:
    map(values) | sort | length as $n
    | if $n == 0 then null
      else (if cut($n) == 0 then 1 else cut($n) end) as $k
      | {median: median, low: .[$k - 1], high: .[$n - $k], pairs: $n,
         coverage: (1 - 2 * ([foreach range(0; $k) as $i
                             ({term: pow(0.5; $n), sum: 0};
                              .sum += .term | .term *= ($n - $i) / ($i + 1);
                              .sum)] | last)
                    | if . < 0 then 0 else . end)}
      end;

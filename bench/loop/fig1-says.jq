# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# What the rows of a summary (fig1.jq) come to, in words: for each loop that
# reuses its buffers, the helper beside on demand, and what to do where it does
# not pay. Run times within half a per cent are the same.

def percent: . * 1000 | round / 10 | "\(.) %";
def times: . * 1000 | round / 1000;
def share($part; $whole): if ($whole // 0) > 0 then $part / $whole else 0 end;

def verdict($p; $od):
    ($od.run_ratio - $p.run_ratio) as $gain
    | ([$p.cpu_share, $od.cpu_share] | min) as $left
    | if $left < 0.95 then
          "Other programs took up to \(1 - $left | percent) of the ranks\u0027 " +
          "processor time: the run times tell little."
      elif $gain >= 0.005 then
          "Predicting pays: on demand holds less, but takes longer."
      elif $gain <= -0.005 then
          "On demand is faster here: use UCX_MD_HELPER_POLICY=on_demand."
      elif $od.average_ratio < $p.average_ratio - 0.005 then
          "On demand holds less in the same run time, though a message takes " +
          "\($od.time_ratio | times) times as long (helper " +
          "\($p.time_ratio | times)): where messages are as rare as here, use " +
          "UCX_MD_HELPER_POLICY=on_demand."
      else
          "Neither on demand nor leave pinned does better."
      end;

# Is the helper short of a processor, or the price too low to give memory up?
def advice($p):
    if share($p.not_given_up; $p.byte_seconds) > 0.2 or
       ($p.run_ratio > 1.005 and share($p.lost_late; $p.lost) > 0.3) then
        "The helper came too late for " +
        "\(share($p.not_given_up; $p.byte_seconds) | percent) of what it held " +
        "and \(share($p.lost_late; $p.lost) | percent) of the time lost: leave " +
        "it a processor, or hold with UCX_MD_HELPER_POLICY=rent."
    elif $p.average_ratio > 0.5 and
         share($p.kept; $p.byte_seconds) > 0.5 then
        "It kept most of that, for registering again costs more at this price: " +
        "a higher UCX_MD_HELPER_MAX_SLOWDOWN holds less."
    else empty end;

[.rows[] | select(.reuse)] | group_by([.mpi, .size, (.asleep | not)])[]
| (map({(.policy): .}) | add) as $by
| $by.predict as $p | $by.on_demand as $od
| select($p.run_ratio != null and $od.run_ratio != null and
         $p.average_ratio != null and $od.average_ratio != null)
| [ "\($p.mpi), \($p.size) bytes, computation " +
    (if $p.asleep then "asleep" else "busy" end) +
    ": the helper held \($p.average_ratio | percent) of what leave pinned holds " +
    "in \($p.run_ratio | times) times its run time, on demand " +
    "\($od.average_ratio | percent) in \($od.run_ratio | times) times.",
    verdict($p; $od), advice($p) ] | join(" ")

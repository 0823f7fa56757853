# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Numbers as text; a module.

# Four digits at most
def short:
    if . == null then "–"
    elif . == 0 then "0"
    else (fabs | log10 | floor) as $size
    | (if $size >= 3 then 0 else 3 - $size end) as $digits
    | pow(10; $digits) as $scale | (. * $scale | round) / $scale | tostring
    end;

# So many digits behind the point
def fixed($digits):
    if . == null then "–" else
      pow(10; $digits) as $unit
      | (. * $unit | round) as $n
      | (if $n < 0 then "-" else "" end)
        + if $digits == 0 then "\($n | fabs)" else
            "\($n | fabs / $unit | floor)." +
            (($n | fabs) % $unit + $unit | tostring | .[1:]) end
    end;

def signed: if . == null then "–"
    elif . < 0 then "−" + (-. | tostring) else "+" + tostring end;

def points: (. * 1000 | round) / 10;

def change: if . == null then "–" else (points | signed) + " %" end;

def share:
    if . == null then "–"
    elif fabs < 0.01 then (. * 100 | short) + " %"
    else (points | tostring) + " %" end;

def thousandths: (. * 1000 | round) / 1000 | tostring;

def bytes:
    if . == null then "–"
    elif . >= 10485760 then "\(. / 1048576 | round) MB"
    else "\(. / 1024 | round) KB" end;

def seconds:
    if . == null then "–"
    elif . >= 1 then "\(short) s"
    elif . >= 1e-3 then "\(. * 1e3 | short) ms"
    else "\(. * 1e6 | short) µs" end;

# A line of a table
def line: "| " + (map(tostring) | join(" | ")) + " |";

def mpi_name: {openmpi: "Open MPI", mpich: "MPICH"}[.] // .;

# Median and interval of a ratio
def span:
    if . == null then "–"
    elif .pairs == 1 then .median | thousandths
    else "\(.median | thousandths) [\(.low | thousandths), " +
         "\(.high | thousandths)]" end;

# A table, of an array a row; nothing where there is no row
def table($heads; rows):
    [rows] | if length == 0 then empty
             else ($heads | line, (map("---") | line)), (.[] | line), "" end;

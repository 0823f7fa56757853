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

def mpi_name: {openmpi: "Open MPI", mpich: "MPICH"}[.] // .;

# Median and interval of a ratio
def span:
    if . == null then "–"
    elif .pairs == 1 then .median | thousandths
    else "\(.median | thousandths) [\(.low | thousandths), " +
         "\(.high | thousandths)]" end;

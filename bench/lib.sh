# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Shared by the benchmark drivers and ../quickstart; sourced by bash. Finds the
# build, runs one job over the software NIC and gathers its figures.

bench_die() {
    echo "${0##*/}: $*" >&2
    exit 2
}

bench_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$bench_top/test/ledger.sh"
source "$bench_top/test/options.sh"

# bench_jq ARGUMENTS...: with what the programs in jq share
bench_jq() {
    jq -L "$bench_top/bench" -L "$bench_top/bench/paper" -L "$bench_top/bench/pace" "$@"
}

# bench_among NAME VALUE... -- ALLOWED...: each value is one of those
bench_among() {
    local name=$1 values=() value
    shift
    while [ "$1" != -- ]; do
        values+=("$1")
        shift
    done
    shift
    [ ${#values[@]} -gt 0 ] || bench_die "$name: nothing is given"
    for value in "${values[@]}"; do
        [[ " $* " = *" $value "* ]] ||
            bench_die "$name: '$value' is not one of $*"
    done
}

# bench_counts VALUE...: each is a whole number from 1 on
bench_counts() {
    local value
    for value in "$@"; do
        [[ $value =~ ^[1-9][0-9]*$ ]] || bench_die "'$value' is not a count"
    done
}

# bench_bytes SIZE: with a suffix k or m
bench_bytes() {
    [[ $1 =~ ^[1-9][0-9]*[kmKM]?$ ]] || bench_die "'$1' is not a size"
    numfmt --from=iec "${1^^}"
}

# bench_draw FILE WIDTH,HEIGHT: gnuplot's commands from stdin, as FILE.svg and .png
bench_draw() {
    local terminal commands
    command -v gnuplot > /dev/null || { echo "no plot: no gnuplot" >&2; return; }
    commands=$(cat)
    for terminal in svg pngcairo; do
        gnuplot <<END || return 1
set terminal $terminal size $2 noenhanced
set output "$1.${terminal/pngcairo/png}"
$commands
END
    done
    echo "Plot: $1.svg, $1.png" >&2
}

# Which build: $BENCH_BUILD, else ./build, else the tree itself. (UCX warns of a
# variable with its own prefix that it does not know.)
bench_find_build() {
    local dir
    for dir in "${BENCH_BUILD:-}" "$bench_top/build" "$bench_top" "$PWD"
    do
        if [ -n "$dir" ] && [ -x "$dir/src/tools/ucx-helper" ]; then
            (cd "$dir" && pwd)
            return
        fi
    done
    bench_die "no build found: build first, or set BENCH_BUILD"
}

bench_need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" > /dev/null || bench_die "needs $tool"
    done
}

# MPIs that can be run: a launcher and a program built for it
bench_mpis() {
    local mpi
    for mpi in openmpi mpich; do
        if command -v "mpirun.$mpi" > /dev/null &&
           [ -x "$bench_build/bench/mpi/fig1.$mpi" ]; then
            echo "$mpi"
        fi
    done
}

# bench_select_mpis openmpi|mpich|all: the list to run, or the end
bench_select_mpis() {
    local found
    found=$(bench_mpis)
    case $1 in
    all) ;;
    openmpi|mpich)
        found=$(grep -x "$1" <<< "$found") ||
            bench_die "$1: no mpirun.$1, or no $bench_build/bench/mpi/fig1.$1"
        ;;
    *) bench_die "bad value '$1' of --mpi: openmpi, mpich or all" ;;
    esac
    [ -n "$found" ] || bench_die "neither Open MPI nor MPICH can be run"
    echo "$found"
}

# Settings that both MPIs and UCX need to meet the helper on one machine
bench_environment() {
    if [ "$(id -u)" = 0 ]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
    # Open MPI takes UCX for InfiniBand only, unless told otherwise
    export OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any
    export OMPI_MCA_pml_ucx_devices=any OMPI_MCA_btl=^openib,ofi
    export OMPI_MCA_osc=^ucx
    # All sizes above the helper's threshold take the path that registers
    export UCX_RNDV_THRESH=${UCX_RNDV_THRESH:-16384}
}

# bench_launcher MPI [RANKS]: sets bench_mpirun. bench_bind (none): what each rank is
# bound to.
bench_launcher() {
    case $1 in
    openmpi) bench_mpirun=(mpirun.openmpi --oversubscribe) ;;
    mpich)   bench_mpirun=(mpirun.mpich) ;;
    esac
    bench_mpirun+=(--bind-to "${bench_bind:-none}" -n "${2:-2}")
}

# bench_prefix POLICY DIR OPTIONS...: sets bench_command, what a launcher is
# started by. Policy bounce has neither the helper nor any registration: every
# message is copied through UCX's shared buffers.
bench_prefix() {
    local policy=$1 dir=$2
    shift 2
    if [ "$policy" = bounce ]; then
        bench_command=(env UCX_TLS="${UCX_TLS:-posix,sysv,self}"
                       UCX_RNDV_THRESH=inf)
    else
        bench_command=("${bench_helper[@]}" run --software-nic
                       --policy "$policy" --report "json:$dir/%p.json" "$@" --)
    fi
}

# bench_job OUT MPI RANKS POLICY HELPER-OPTIONS -- PROGRAM ARGUMENTS
# One job over the software NIC; the program is one of $bench_build/bench, less
# its suffix, and prints one JSON line. Appends one object to the file OUT:
# {mpi, policy, num_ranks, fig1|overlap|paced: the program's, ranks: [their reports]}
bench_job() {
    local out=$1 mpi=$2 num_ranks=$3 policy=$4 dir program status=0
    local options=()
    shift 4
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    program=$2
    shift 2

    dir=$(mktemp -d "${TMPDIR:-/tmp}/ucx-helper-bench.XXXXXX")
    bench_launcher "$mpi" "$num_ranks"
    bench_prefix "$policy" "$dir" "${options[@]}"
    ledger_take bench
    timeout "${BENCH_TIMEOUT:-300}" "${bench_command[@]}" \
        "${bench_mpirun[@]}" "$bench_build/bench/$program.$mpi" "$@" \
        > "$dir/stdout" 2> "$dir/stderr" || status=$?
    ledger_remove
    bench_gather "$dir" "$mpi" "$num_ranks" "$policy" >> "$out" ||
        status=${status/#0/1}
    if [ "$status" != 0 ]; then
        echo "failed ($status): $mpi $policy ${options[*]} -- $program $*" >&2
        tail -n 20 "$dir/stdout" "$dir/stderr" >&2
    fi
    rm -rf "$dir"
    return "$status"
}

# bench_run OUT MPI POLICY HELPER-OPTIONS -- FIG1-OPTIONS
bench_run() {
    local out=$1 mpi=$2 policy=$3 options=()
    shift 3
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    bench_job "$out" "$mpi" 2 "$policy" "${options[@]}" -- mpi/fig1 "$@"
}

bench_gather() {
    local dir=$1 line pid reports=()
    line=$(grep '^{"bench":"\(fig1\|overlap\|paced\)"' "$dir/stdout") || return 1
    for pid in $(jq '(.rank // [.sender, .receiver])[].pid' <<< "$line"); do
        if [ -s "$dir/$pid.json" ]; then
            reports+=("$dir/$pid.json")
        fi
    done
    # /dev/null: without a file jq would read stdin
    jq -c -s --arg mpi "$2" --argjson num_ranks "$3" --arg policy "$4" \
        --argjson line "$line" '
        {$mpi, $policy, $num_ranks, ($line.bench): $line, ranks: .}' \
        /dev/null "${reports[@]}"
}

# bench_init: after the options are known
bench_init() {
    bench_need jq awk timeout
    bench_build=$(bench_find_build) || exit 2
    bench_helper=("$bench_build/src/tools/ucx-helper")
    bench_environment
}

# bench_update FILE NAME TABLES: put the file TABLES between FILE's lines
# <!-- NAME --> and <!-- end of NAME -->; in place, so that whose the file is does
# not change
bench_update() {
    local new
    grep -qx "<!-- $2 -->" "$1" && grep -qx "<!-- end of $2 -->" "$1" ||
        bench_die "$1 lacks the lines <!-- $2 --> and <!-- end of $2 -->"
    new=$(mktemp) || exit 2
    awk -v tables="$3" -v name="$2" '
        $0 == "<!-- end of " name " -->" { is_old = 0 }
        !is_old { print }
        $0 == "<!-- " name " -->" {
            is_old = 1
            while ((getline line < tables) > 0) print line
        }' "$1" > "$new" && cat "$new" > "$1"
    rm -f "$new"
}

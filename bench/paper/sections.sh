# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The sections of ../paper_a; sourced by it. plan_SECTION prints the steps, one a
# line: section, case, kind, and what the kind needs, all between tabs. step_KIND
# does one, and leaves paper_said.

paper_list() {
    cat <<END
fig2          Fig. 2: registration strategies at 5 MB, memory and time
limit         Fig. 3, 11 (f): completion under a limit (bench/under_limit)
overhead      section 4.3: what a use costs the main thread
reuse         Fig. 9: buffers reused, by message size
no_reuse      Fig. 10: fresh buffers, by message size
paced         Fig. 11, Table 2: FT, CG, MG, IS, BT, SP, LU; a NIC's cost, MODELLED
kernels       the same codes as jobs of a second: time
aggregation   Fig. 12, Table 3: four tasks on a node
idle          the helper thread's processor time with little to do
END
}

paper_select() {
    local known
    known=$(paper_list | cut -d ' ' -f 1)
    if [ -z "$1" ]; then
        echo "$known"
        return
    fi
    # shellcheck disable=SC2086 # words are meant to split
    bench_among --only ${1//,/ } -- $known
    tr , '\n' <<< "$1"
}

# Everything that --quick, --full and neither differ in
paper_settings() {
    local one
    case $1 in
    quick)
        default_pairs=2 sizes="17k 1m 5m" iterations=15 compute=10 paced_seconds=8
        fresh_sizes="17k 1m" messages=300 fresh_compute=2 blocks=200
        code_policies="on_demand leave_pinned $main"
        paced_policies="leave_pinned $main" ;;
    full)
        default_pairs=7 sizes="17k 64k 256k 1m 4m 5m 16m" iterations=100
        compute=20 paced_seconds=60 fresh_sizes="17k 256k 1m 4m" messages=1000 fresh_compute=5
        blocks=1000 paced_policies="on_demand leave_pinned $main" ;;
    default)
        default_pairs=5 sizes="17k 64k 256k 1m 4m 5m" iterations=50 compute=20
        paced_seconds=20 fresh_sizes="17k 256k 1m" messages=1000 fresh_compute=5 blocks=300
        paced_policies="on_demand leave_pinned $main" ;;
    esac
    bench_among --class "${class:-A}" -- A B C
    kernels=${kernels:-ft1d,ft2d,cg,mg,is,bt,sp,lu}
    # shellcheck disable=SC2086 # words are meant to split
    bench_among --kernels ${kernels//,/ } -- ft1d ft2d cg mg is bt sp lu
    all_policies="bounce on_demand leave_pinned paper predict lru"
    if [ "$main" = paper ]; then # lru gets the main policy's peak: after it
        all_policies="bounce on_demand leave_pinned predict paper lru"
    fi
    code_policies=${code_policies:-$all_policies}
    for one in ${also//,/ }; do
        bench_among --also "$one" -- bounce on_demand paper predict lru rent
        [[ " $code_policies " = *" $one "* ]] || code_policies+=" $one"
        [[ " $paced_policies " = *" $one "* ]] || paced_policies+=" $one"
    done
}

# What a registration costs more than pinning does, in a section
paper_cost() {
    case $1 in
    paced) echo --pin-cost 20us,250ns ;;
    *) echo ${pin_cost:+--pin-cost "$pin_cost"} ;;
    esac
}

# kernel_ranks NAME: bt and sp are for squares, ft2d is a grid
kernel_ranks() {
    case $1 in
    ft2d|bt|sp) echo 4 ;;
    *)          echo 2 ;;
    esac
}

# kernel_job NAME: ranks, program and arguments. An iteration of class A takes 16 (CG)
# to 600 ms (MG) on two ranks. As many iterations as take some seconds: of class A,
# --quick and by default, and of B.
kernel_job() {
    local letter=${class:-A} count ranks
    ranks=$(kernel_ranks "$1")
    case $1 in
    ft*) set -- "$1" 6 20 6 ;;
    cg)  set -- "$1" 45 150 20 ;;
    mg)  set -- "$1" 6 16 16 ;;
    is)  set -- "$1" 30 100 20 ;;
    bt)  set -- "$1" 12 40 12 ;;
    sp)  set -- "$1" 30 100 30 ;;
    lu)  set -- "$1" 20 60 25 ;;
    esac
    case $level in
    quick) count=$2 ;;
    full)  count=$4 letter=${class:-B} ;;
    *)     count=$3 ;;
    esac
    printf '%s\tpace/paced %s --class %s --iterations %s --compute busy\n' \
        $ranks "${1/#ft1d/ft}" "$letter" "$count"
}

# plan_jobs SECTION CASE X RANKS POLICIES PROGRAM ARGUMENTS: all MPIs, all pairs,
# policies in turn within a pair
plan_jobs() {
    local section=$1 case=$2 x=$3 ranks=$4 policies=$5 m pair policy
    shift 5
    for m in $mpis; do
        for pair in $(seq "$pairs"); do
            for policy in $policies; do
                printf '%s\t' "$section" "$case" job "$m" "$ranks" "$pair" \
                    "$policy" "$x"
                echo "$*"
            done
        done
    done
}

# plan_loop SECTION CASE X POLICIES SIZE ITERATIONS COMPUTE MORE...
plan_loop() {
    plan_jobs "$1" "$2" "$3" 2 "$4" mpi/fig1 --size "$(bench_bytes "$5")" \
        --iterations "$6" --compute-ms "$7" "${@:8}"
}

plan_fig2() {
    plan_loop fig2 5m 5242880 "$all_policies" 5m "$iterations" "$compute"
}

plan_reuse() {
    local size
    for size in $sizes; do
        plan_loop reuse "$size" "$(bench_bytes "$size")" "$all_policies" "$size" \
            "$iterations" "$compute"
    done
}

# Fresh memory of 1 GB a rank at most
plan_no_reuse() {
    local size bytes count
    for size in $fresh_sizes; do
        bytes=$(bench_bytes "$size")
        count=$((messages * bytes > 1 << 30 ? (1 << 30) / bytes : messages))
        plan_loop no_reuse "$size" "$bytes" \
            "bounce on_demand leave_pinned paper predict" "$size" \
            $(((count + 2) / 3)) "$fresh_compute" --no-reuse
    done
}

plan_idle() { plan_loop idle 1s null "$main" 4m 3 1000; }

# The sizes of class C, computation asleep: bench/paced's programs
plan_paced() {
    local kernel
    for kernel in ${kernels//,/ }; do
        plan_jobs paced "$kernel" null "$(kernel_ranks "$kernel")" \
            "$paced_policies" pace/paced "${kernel/#ft1d/ft}" \
            --seconds "${seconds:-$paced_seconds}"
    done
}

plan_kernels() {
    local kernel ranks program
    for kernel in ${kernels//,/ }; do
        IFS=$'\t' read -r ranks program < <(kernel_job "$kernel")
        plan_jobs kernels "$kernel" null "$ranks" "$code_policies" "$program"
    done
}

# The paper's two tests differ in how tasks are grouped; on one node, in how
# FT's grid is laid over its four tasks
plan_aggregation() {
    local ranks program columns=2 grid
    for grid in ft2d ft1d; do
        IFS=$'\t' read -r ranks program < <(kernel_job "$grid")
        plan_jobs aggregation "2x$columns" "$columns" 4 "leave_pinned $main" \
            "$program"
        columns=4
    done
}

plan_overhead() {
    printf 'overhead\tall\tprogram\t%s\n' "$bench_build/bench/hit_path \
--policy $main --blocks $blocks --rounds 0"
}

plan_limit() {
    printf 'limit\tall\tprogram\t%s\n' "$bench_top/bench/under_limit --policy $main \
--mpi $mpi"
}

paper_machine() {
    jq -n -c --arg kernel "$(uname -sr)" --argjson cpus "$(nproc)" \
        --arg cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo |
                     head -n 1)" \
        --arg mpis "$mpis" --arg date "$(date -u +%F)" --arg cost "$pin_cost" '
        {$kernel, $cpus, $cpu, mpis: ($mpis | split("\n")), $date,
         modelled_pin_cost: (if $cost == "" then null else $cost end)}'
}

# SECTION CASE MPI RANKS PAIR POLICY X COMMAND
step_job() {
    local options=() policy=$6 status=0
    if [ "$6" = lru ] && [ "${main_peak:-0}" != 0 ]; then
        options=(--max-pinned "$main_peak")
    fi
    # shellcheck disable=SC2046,SC2086 # words are meant to split
    bench_job "$out/run.json" "$3" "$4" "$policy" $(paper_cost "$1") \
        "${options[@]}" -- $8 || status=$?
    [ $status = 0 ] || return 1
    jq -c --arg section "$1" --arg case "$2" --argjson pair "$5" \
        --argjson x "$7" --argjson cpus "$(nproc)" --arg policy "$6" \
        '{$section, $case, $x, $pair, $cpus} + . + {$policy}' "$out/run.json" \
        >> "$out/runs.jsonl" || return 1
    if [ "$6" = "$main" ]; then
        main_peak=$(jq '[.ranks[].pinned_peak_bytes] | max // 0' \
            "$out/run.json")
    fi
    paper_said=$(jq -r '.paced as $code |
        (if $code then "\($code.seconds) s" +
             (if $code.verified then "" else ", NOT VERIFIED" end)
         else "\(.fig1.sender.median_us) us" end) + ", peak " +
        (($code.rank // [.fig1.sender, .fig1.receiver])
         | map(.vmpin_peak_bytes) | "\(add / length / 1024 | floor) KB")' \
        "$out/run.json")
    jq -e '.paced.verified // (.fig1.sender.errors + .fig1.receiver.errors == 0)' \
        "$out/run.json" > /dev/null
}

# SECTION CASE COMMAND: each line of its output that is JSON
step_program() {
    # shellcheck disable=SC2086 # words are meant to split
    timeout "${BENCH_TIMEOUT:-1800}" $3 > "$out/program.out" 2> "$out/program.err"
    jq -c -s --arg section "$1" '{$section, case: "all", result: .}' \
        "$out/program.out" >> "$out/extra.jsonl" 2> /dev/null &&
        [ -s "$out/program.out" ] || { tail -n 5 "$out/program.err" >&2
                                       return 1; }
    paper_said="done"
}

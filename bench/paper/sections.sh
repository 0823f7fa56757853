# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The sections of ../paper_a; sourced by it. plan_SECTION prints the steps, one
# a line: weight (seconds, about), section, case, and what the step needs, all
# between tabs. paper_step does one.

paper_list() {
    cat <<END
fig2          Fig. 2: registration strategies at 5 MB, memory and time
limit         Fig. 3, 11 (f): completion under a limit (bench/under_limit)
overhead      section 4.3: what a use costs the main thread
distribution  Fig. 8, Table 1: helpers on idle cores (bench/cpu_policy)
reuse         Fig. 9: buffers reused, by message size
pipeline      Fig. 9, 10: the same loops with the RDMA pipeline, memory
no_reuse      Fig. 10: fresh buffers, by message size
buffers       the same loop, by the number of buffers
compute       the same loop, by the time of computation
irregular     computation that varies, and a code whose work varies
kernels       Fig. 11, Table 2: FT, CG, MG, IS, BT, SP, LU
kernels_nic   some of them with a NIC's cost of registration, MODELLED
programs      programs of Debian's packages (with --programs)
programs_nic  the same with a NIC's cost of registration, MODELLED
aggregation   Fig. 12, Table 3: four tasks on a node
scaling       Fig. 13, 14, Table 4: FT on 16 to 64 nodes, simulated (bench/sim)
idle          the helper thread's processor time with little to do
curves        registered memory over time, for the plots of Fig. 2, 9, 10, 11
END
}

paper_select() {
    local section known
    known=$(paper_list | cut -d ' ' -f 1)
    if [ -z "$1" ]; then
        grep -v '^programs' <<< "$known"
        return
    fi
    for section in ${1//,/ }; do
        grep -x "$section" <<< "$known" ||
            bench_die "unknown section '$section' (see --list)"
    done
}

# Everything that --quick, --full and neither differ in
paper_settings() {
    local sets=0
    case $1 in
    quick)
        default_pairs=2 sizes="17k 1m 5m" iterations=15 compute=10
        fresh_sizes="17k 1m" messages=300 fresh_compute=2
        buffer_counts="1 3 10" compute_times="1 20"
        hit_options="--blocks 200 --rounds 0"
        code_policies="on_demand leave_pinned $main" nic_mpis=1
        nic_kernels="ft1d mg is sp" nic_policies="leave_pinned $main" ;;
    full)
        default_pairs=7 sizes="17k 64k 256k 1m 4m 5m 16m" iterations=100
        compute=20 fresh_sizes="17k 256k 1m 4m" messages=1000 fresh_compute=5
        buffer_counts="1 2 3 5 10 30" compute_times="0 1 5 20 100 1000"
        hit_options="--blocks 1000 --rounds 0"
        nic_kernels="ft1d ft2d cg mg is bt sp lu"
        nic_policies="on_demand leave_pinned $main" ;;
    default)
        default_pairs=5 sizes="17k 64k 256k 1m 4m 5m" iterations=50 compute=20
        fresh_sizes="17k 256k 1m" messages=1000 fresh_compute=5
        buffer_counts="1 3 5 10" compute_times="1 5 20 100"
        hit_options="--blocks 300 --rounds 0"
        nic_kernels="ft1d cg mg is sp lu"
        nic_policies="on_demand leave_pinned $main" ;;
    esac
    [ -z "$class" ] || [[ $class =~ ^[SWABC]$ ]] ||
        bench_die "bad value '$class' of --class: S, W, A, B or C"
    kernels=${kernels:-ft1d,ft2d,cg,mg,is,bt,sp,lu}
    for sets in ${kernels//,/ }; do
        kernel_job "$sets" > /dev/null ||
            bench_die "unknown kernel '$sets' of --kernels"
    done
    all_policies="bounce on_demand leave_pinned paper predict lru"
    if [ "$main" = paper ]; then # lru gets the main policy's peak: after it
        all_policies="bounce on_demand leave_pinned predict paper lru"
    fi
    code_policies=${code_policies:-$all_policies}
    for sets in ${also//,/ }; do
        [[ $sets =~ ^(bounce|on_demand|paper|predict|lru|rent)$ ]] ||
            bench_die "unknown policy '$sets' of --also"
        code_policies=$(paper_also "$code_policies" "$sets")
        nic_policies=$(paper_also "$nic_policies" "$sets")
    done
    if [ "${programs:-all}" = all ]; then
        programs=$(cd "$bench_top/bench/programs" && ls | grep -v '[.]')
    fi
    for sets in ${programs//,/ }; do
        [ -x "$bench_top/bench/programs/$sets" ] ||
            bench_die "unknown program '$sets' of --programs"
    done
}

# paper_also LIST POLICY: the list with the policy, which it may have already
paper_also() {
    case " $1 " in
    *" $2 "*) echo "$1" ;;
    *) echo "$1 $2" ;;
    esac
}

# What a registration costs more than pinning does, in a section
nic_cost=20us,250ns
paper_cost() {
    case $1 in
    *_nic) echo --pin-cost "$nic_cost" ;;
    *) echo "${pin_cost[@]}" ;;
    esac
}

# kernel_job NAME: weight, ranks, program and arguments. Squares for BT and SP.
# An iteration of class A takes 10 (CG) to 400 ms (FT) on two ranks; what a code
# of smaller classes holds for microseconds says nothing about memory. As many
# iterations as take some seconds.
kernel_job() {
    local weight ranks program arguments
    case $1 in
    ft1d) set -- 2 ft "A" "A --iterations 20" "B --iterations 6" ;;
    ft2d) set -- 4 ft "A --columns 2" "A --columns 2 --iterations 20" \
              "B --columns 2 --iterations 6" ;;
    cg)   set -- 2 cg "A --iterations 45" "A --iterations 150" \
              "B --iterations 20" ;;
    mg)   set -- 2 mg "A --iterations 8" "A --iterations 24" "B" ;;
    is)   set -- 2 is "A --iterations 30" "A --iterations 100" \
              "B --iterations 20" ;;
    bt)   set -- 4 bt "A --iterations 12" "A --iterations 40" \
              "B --iterations 12" ;;
    sp)   set -- 4 sp "A --iterations 30" "A --iterations 100" \
              "B --iterations 30" ;;
    lu)   set -- 2 lu "A --iterations 20" "A --iterations 60" \
              "B --iterations 25" ;;
    amg)  set -- 2 amg "A --iterations 25" "A" "A" ;;
    *) return 1 ;;
    esac
    ranks=$1 program=kernels/$2
    case $level in
    quick) weight=2.5 arguments=$3 ;;
    full)  weight=15 arguments=$5 ;;
    *)     weight=8 arguments=$4 ;;
    esac
    [ -z "$class" ] || weight=1 arguments="$class${arguments:1}"
    printf '%s\t%s\t%s %s --json\n' "$weight" "$ranks" "$program" "$arguments"
}

# plan_jobs SECTION CASE X WEIGHT RANKS POLICIES PROGRAM ARGUMENTS: all MPIs,
# all pairs, policies in turn within a pair
plan_jobs() {
    local section=$1 case=$2 x=$3 weight=$4 ranks=$5 policies=$6 m pair policy
    local these=${plan_mpis:-$mpis}
    shift 6
    for m in $these; do
        for pair in $(seq "$pairs"); do
            for policy in $policies; do
                printf '%s\t%s\t%s\tjob\t%s\t%s\t%s\t%s\t%s\t%s\n' "$weight" \
                    "$section" "$case" "$m" "$ranks" "$pair" "$policy" "$x" "$*"
            done
        done
    done
}

to_bytes() {
    awk -v text="$1" 'BEGIN {
        unit = tolower(substr(text, length(text)))
        print text * (unit == "k" ? 1024 : unit == "m" ? 1048576 : 1)
    }'
}

# Seconds of a Fig. 1 loop with the start of its job
loop_weight() {
    awk -v n="$1" -v ms="$2" 'BEGIN { print 0.5 + n * ms / 1000 }'
}

# plan_loop SECTION CASE X POLICIES SIZE ITERATIONS BUFFERS COMPUTE MORE...
plan_loop() {
    local section=$1 case=$2 x=$3 policies=$4 bytes
    local iterations=$6 buffers=$7 compute=$8
    bytes=$(to_bytes "$5")
    shift 8
    plan_jobs "$section" "$case" "$x" \
        "$(loop_weight $((iterations * buffers)) "$compute")" 2 "$policies" \
        mpi/fig1 --size "$bytes" --iterations "$iterations" \
        --buffers "$buffers" --compute-ms "$compute" "$@"
}

plan_fig2() {
    plan_loop fig2 5m 5242880 "$all_policies" 5m "$iterations" 3 "$compute"
}

plan_reuse() {
    local size
    for size in $sizes; do
        plan_loop reuse "$size" "$(to_bytes "$size")" "$all_policies" "$size" \
            "$iterations" 3 "$compute"
    done
}

# Fresh memory of 1 GB a rank at most
plan_no_reuse() {
    local size bytes count
    for size in $fresh_sizes; do
        bytes=$(to_bytes "$size")
        count=$((messages * bytes > 1 << 30 ? (1 << 30) / bytes : messages))
        plan_loop no_reuse "$size" "$bytes" \
            "bounce on_demand leave_pinned paper predict" "$size" \
            $(((count + 2) / 3)) 3 "$fresh_compute" --no-reuse
    done
}

# Of 1 MB, with buffers that are reused and with fresh ones. What the pipeline
# holds, nothing else keeps: its fragments go through the helper's domain on demand
plan_pipeline() {
    local policies="leave_pinned $main pipeline caching"
    plan_loop pipeline reuse 1 "$policies" 1m "$iterations" 3 "$compute"
    plan_loop pipeline fresh 0 "$policies" 1m \
        $((messages > 1000 ? 333 : (messages + 2) / 3)) 3 "$fresh_compute" \
        --no-reuse
}

some_policies="leave_pinned paper predict"

plan_buffers() {
    local count
    for count in $buffer_counts; do
        plan_loop buffers "$count" "$count" "$some_policies" 1m \
            $(((iterations * 3 + count - 1) / count)) "$count" "$compute"
    done
}

# Computation of a second is for ten iterations at most
plan_compute() {
    local time most
    for time in $compute_times; do
        most=$((time > 100 ? 10 : iterations))
        plan_loop compute "${time}ms" "$time" "$some_policies" 1m \
            $((most < iterations ? most : iterations)) 3 "$time"
    done
}

plan_irregular() {
    local weight ranks program
    plan_loop irregular jitter 0.5 "$all_policies" 1m "$iterations" 3 \
        "$compute" --jitter 0.5
    IFS=$'\t' read -r weight ranks program < <(kernel_job amg)
    plan_jobs irregular amg null "$weight" "$ranks" "$all_policies" "$program"
}

# plan_codes SECTION KERNELS POLICIES
plan_codes() {
    local kernel weight ranks program
    for kernel in $2; do
        IFS=$'\t' read -r weight ranks program < <(kernel_job "$kernel")
        plan_jobs "$1" "$kernel" null "$weight" "$ranks" "$3" "$program"
    done
}

plan_kernels() { plan_codes kernels "${kernels//,/ }" "$code_policies"; }

# Of the kernels that were asked for, those of $nic_kernels
plan_kernels_nic() {
    local these
    these=$(grep -xE "${nic_kernels// /|}" <<< "${kernels//,/$'\n'}") ||
        return 0
    plan_mpis=$(head -n "${nic_mpis:-2}" <<< "$mpis") \
        plan_codes kernels_nic "$these" "$nic_policies"
}

# Debian's packages are linked with Open MPI
plan_real() {
    local program weight=60
    [ "$level" != quick ] || weight=15
    grep -qx openmpi <<< "$mpis" || return 0
    for program in ${programs//,/ }; do
        for pair in $(seq "$pairs"); do
            for policy in $nic_policies; do
                printf '%s\t%s\t%s\treal\topenmpi\t2\t%s\t%s\n' "$weight" \
                    "$1" "$program" "$pair" "$policy"
            done
        done
    done
}

plan_programs() { plan_real programs; }

plan_programs_nic() { plan_real programs_nic; }

# The paper's two tests differ in how tasks are grouped; on one node, in how
# FT's grid is laid over its four tasks
plan_aggregation() {
    local weight ranks program columns
    IFS=$'\t' read -r weight ranks program < <(kernel_job ft1d)
    for columns in 2 4; do
        plan_jobs aggregation "2x$columns" "$columns" "$weight" 4 \
            "leave_pinned $main" "$program" --columns "$columns"
    done
}

plan_curves() {
    local kernel weight ranks program policy mode options
    for mode in reuse no-reuse; do
        for policy in on_demand leave_pinned "$main"; do
            printf '2\tcurves\t%s\tcurve\t%s\t2\t%s\t%s\n' "$mode" \
                "$(head -n 1 <<< "$mpis")" "$policy" \
                "mpi/fig1 --$mode --size 4194304 --iterations 10 \
--compute-ms 50 --sample 0.5"
        done
    done
    for kernel in ${kernels//,/ }; do
        IFS=$'\t' read -r weight ranks program < <(kernel_job "$kernel")
        for policy in leave_pinned "$main"; do
            printf '%s\tcurves\t%s\tcurve\t%s\t%s\t%s\t%s\n' "$weight" \
                "$kernel" "$(head -n 1 <<< "$mpis")" "$ranks" "$policy" \
                "$program"
        done
    done
}

# plan_program SECTION WEIGHT PROGRAM ARGUMENTS: something else of bench/ that
# prints JSON. Not there yet: the figure says so.
plan_program() {
    local section=$1 weight=$2 program=$3
    shift 3
    if [ -x "$program" ]; then
        printf '%s\t%s\tall\tprogram\t%s\n' "$weight" "$section" "$program $*"
    fi
}

plan_overhead() {
    plan_program overhead 10 "$bench_build/bench/hit_path" \
        --policy "$main" --json "$hit_options"
}

plan_limit() { plan_program limit 20 "$bench_top/bench/under_limit" --json \
                   --policy "$main" --mpi "$mpi"; }
plan_idle()  { plan_program idle 30 "$bench_top/bench/cpu_idle" --json \
                   --policy "$main" --mpi "$mpi" --iterations 3; }

# MPICH's ranks spin where they share a core, for which --quick has no time
plan_distribution() {
    local m size=() weight=20 these=$mpis
    if [ "$level" = quick ]; then
        size=(--quick) weight=16
        these=$(grep -x openmpi <<< "$mpis") || these=$mpis
    fi
    for m in $these; do
        plan_program distribution $((pairs * weight)) \
            "$bench_top/bench/cpu_policy" "${size[@]}" --json --mpi "$m" \
            --policy "$main" --rounds "$pairs"
    done
}

# The production engine in simulated ranks; class and iterations as sim-scaling
plan_scaling() {
    local scaling size="--class D --iterations 25"
    [ "$level" != quick ] || size="--class B --iterations 8"
    for scaling in strong weak; do
        plan_program scaling 20 "$bench_build/bench/sim" --pattern ft \
            --ranks 16,32,64 --base 32 --scaling $scaling $size --quiet \
            --policy "leave_pinned,$main" --json
    done
}

paper_machine() {
    jq -n -c --arg kernel "$(uname -sr)" --argjson cpus "$(nproc)" \
        --arg cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo |
                     head -n 1)" \
        --arg mpis "$(tr '\n' ' ' <<< "$mpis")" --arg date "$(date -u +%F)" \
        --arg load "$(cut -d ' ' -f 1 /proc/loadavg)" \
        --arg cost "${pin_cost[1]:-}" '
        {$kernel, $cpus, $cpu, mpis: ($mpis | split(" ") | map(select(. != ""))),
         $date, load_at_the_end: ($load | tonumber),
         modelled_pin_cost: (if $cost == "" then null else $cost end)}'
}

# --- Doing them --------------------------------------------------------------

# paper_step SECTION CASE REST; leaves paper_said
paper_step() {
    local fields
    IFS=$'\t' read -r -a fields <<< "$3"
    rm -f "$out/run.json"
    "step_${fields[0]}" "$1" "$2" "${fields[@]:1}"
}

# SECTION CASE MPI RANKS PAIR POLICY X COMMAND
step_job() {
    local IFS=$' \t\n' options=() policy=$6 status=0
    case $6 in
    pipeline) export HELPER_MD_PIPELINE_MODE=pipeline ;;
    caching) export HELPER_MD_PIPELINE_MODE=cache ;;
    esac
    if [ -n "${HELPER_MD_PIPELINE_MODE:-}" ]; then
        options=(--pipeline) policy=on_demand
    fi
    if [ "$6" = lru ] && [ "${main_peak:-0}" != 0 ]; then
        options=(--max-pinned "$main_peak")
    fi
    # shellcheck disable=SC2086 # words are meant to split
    bench_job "$out/run.json" "$3" "$4" "$policy" $(paper_cost "$1") \
        "${options[@]}" -- $8 || status=$?
    unset HELPER_MD_PIPELINE_MODE
    [ $status = 0 ] || return 1
    jq -c --arg section "$1" --arg case "$2" --argjson pair "$5" \
        --argjson x "$7" --argjson cpus "$(nproc)" --arg policy "$6" \
        '{$section, $case, $x, $pair, $cpus} + . + {$policy}' "$out/run.json" \
        >> "$out/runs.jsonl" || return 1
    if [ "$6" = "$main" ]; then
        main_peak=$(jq '[.ranks[].pinned_peak_bytes] | max // 0' \
            "$out/run.json")
    fi
    paper_said=$(jq -r '
        (if .nas then "\(.nas.seconds) s" +
             (if .nas.verified then "" else ", NOT VERIFIED" end)
         else "\(.fig1.sender.median_us) us" end) + ", peak " +
        ((.nas.rank // [.fig1.sender, .fig1.receiver])
         | map(.vmpin_peak_bytes) | "\(add / length / 1024 | floor) KB")' \
        "$out/run.json")
    jq -e '.nas.verified // (.fig1.sender.errors + .fig1.receiver.errors == 0)' \
        "$out/run.json" > /dev/null
}

# SECTION PROGRAM MPI RANKS PAIR POLICY. One that is not installed is left out.
step_real() {
    local IFS=$' \t\n' status=0
    # shellcheck disable=SC2046 # words are meant to split
    bench_program "$out/run.json" "$2" "$level" "$4" "$6" \
        $(paper_cost "$1") || status=$?
    if [ $status = 77 ]; then
        paper_said="skipped: $bench_said"
        return
    fi
    [ $status = 0 ] || return 1
    jq -c --arg section "$1" --argjson pair "$5" --argjson cpus "$(nproc)" \
        '{$section, case: .program.name, x: null, $pair, $cpus} + .' \
        "$out/run.json" >> "$out/runs.jsonl" || return 1
    paper_said=$(jq -r '"\(.program.seconds) s, peak " +
        "\(.ranks | map(.pinned_peak_bytes) | add / length / 1024 | floor) KB"
        ' "$out/run.json")
}

# SECTION CASE MPI RANKS POLICY COMMAND. Sampled often, so not timed. Rank 0's.
step_curve() {
    local IFS=$' \t\n' trace=$out/curves/$2.$5
    # shellcheck disable=SC2086
    bench_job "$out/run.json" "$3" "$4" "$5" "${pin_cost[@]}" -- $6 \
        --trace "$trace" || return 1
    # As many points as a plot has room for: in each of 300 spans the largest
    awk '{ time[NR] = $1; bytes[NR] = $2 } END {
        span = (time[NR] - time[1]) / 300
        for (i = 1; i <= NR; ++i) {
            if (bytes[i] > most) most = bytes[i]
            if (time[i] >= next_time || i == NR) {
                printf "%.4f %d\n", time[i], most
                next_time = time[i] + span
                most = 0
            }
        }
    }' "$trace.0" > "$trace.points"
    jq -c -R -s --arg case "$2" --arg policy "$5" --arg mpi "$3" '
        {section: "curves", $case, $mpi, $policy,
         points: (split("\n") | map(select(. != "") | split(" ") |
                                    map(tonumber)))}' "$trace.points" \
        >> "$out/extra.jsonl" || return 1
    paper_said="$(wc -l < "$trace.points") points"
    rm -f "$trace".*
}

# SECTION CASE COMMAND: each line of its output that is JSON
step_program() {
    local IFS=$' \t\n'
    # shellcheck disable=SC2086
    timeout "${BENCH_TIMEOUT:-1800}" $3 > "$out/program.out" 2> "$out/program.err"
    jq -c -s --arg section "$1" '{$section, case: "all", result: .}' \
        "$out/program.out" >> "$out/extra.jsonl" 2> /dev/null &&
        [ -s "$out/program.out" ] || { tail -n 5 "$out/program.err" >&2
                                       return 1; }
    paper_said="done"
    rm -f "$out/program.out" "$out/program.err"
}

#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# What the native runner and the guest's tests share; to be sourced by bash.
# Expects BUILDDIR.

HELPER_STUB=$BUILDDIR/src/uct/door/.libs/libucx_helper.so
MPI_PROGRAMS=$BUILDDIR/test/mpi

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Open MPI takes UCX for shared memory only when told so, and its other
# transports must not catch the messages
export OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any
# Open MPI warns of a fork, which UCX allows
export OMPI_MCA_mpi_warn_on_fork=0
export OMPI_MCA_osc=^ucx OMPI_MCA_btl=^openib,ofi OMPI_MCA_plm=isolated

helper_is_built() {
    [ -e "$HELPER_STUB" ]
}

# Or the caller's skip()
helper_preload() {
    helper_is_built || skip "the helper is not built"
    export LD_PRELOAD=$HELPER_STUB
}

# ucx_version: of the UCX that a job would load; 1.13 has another word for it
ucx_version() {
    env -u LD_PRELOAD ucx_info -v 2> /dev/null |
        sed -n 's/^# \(Library version: \|Version \)\([0-9.]*\).*/\2/p' |
        head -n 1
}

has_mpi() {
    command -v "mpirun.$1" > /dev/null
}

# need MPI PROGRAM, or the caller's skip()
need() {
    has_mpi "$1" || skip "no mpirun.$1"
    [ -x "$MPI_PROGRAMS/$2.$1" ] || skip "$2.$1 is not built"
}

# mpi_launcher openmpi|mpich: words
mpi_launcher() {
    case $1 in
    openmpi) echo "mpirun.openmpi --oversubscribe" ;;
    mpich)   echo mpirun.mpich ;;
    esac
}

# mpi_run openmpi|mpich ARGUMENTS-OF-MPIRUN...
mpi_run() {
    local launcher
    launcher=$(mpi_launcher "$1")
    shift
    # shellcheck disable=SC2086 # words are meant to split
    $launcher "$@"
}

# mpi_run_for SECONDS openmpi|mpich ARGUMENTS-OF-MPIRUN...: then it is ended
mpi_run_for() {
    local seconds=$1 launcher
    launcher=$(mpi_launcher "$2")
    shift 2
    # shellcheck disable=SC2086
    timeout -k 2 "$seconds" $launcher "$@"
}

# notices COMMAND...: it fails, as a checker does that finds the flipped bit; one that
# cannot fail proves nothing
notices() {
    ! "$@" || { echo "a flipped bit was not noticed"; return 1; }
}

# json_get FILE KEY: a plain value of a flat object. In an emulated guest each program
# that is started takes a tenth of a second, and a report has many keys.
json_get() {
    local value="\"$2\": *\"?([^,}\"[:cntrl:]]*)"
    if [[ $(< "$1") =~ $value ]]; then
        echo "${BASH_REMATCH[1]}"
    fi
}

# report_check FILE POLICY: keys are there, and the counts add up
report_check() {
    local file=$1 key text
    text=$(< "$file")
    for key in policy ucx_version lower_domain elapsed_seconds \
               pinned_peak_bytes pinned_byte_seconds leave_pinned_bytes \
               leave_pinned_byte_seconds in_use_byte_seconds uses on_time late \
               missed cold wasted evicted invalidated helper_cpu_seconds \
               lost_seconds lost_waited_seconds max_slowdown \
               price_j soft_ceiling_bytes soft_ceiling_raises \
               register_model deregister_model; do
        if [[ $text != *"\"$key\""* ]]; then
            echo "report $file lacks $key"
            return 1
        fi
    done
    [ "$(json_get "$file" policy)" = "$2" ] ||
        { echo "report $file: not policy $2"; return 1; }
    awk -v uses="$(json_get "$file" uses)" \
        -v on_time="$(json_get "$file" on_time)" \
        -v late="$(json_get "$file" late)" \
        -v missed="$(json_get "$file" missed)" \
        -v cold="$(json_get "$file" cold)" \
        -v peak="$(json_get "$file" pinned_peak_bytes)" 'BEGIN {
            printf "report: %d uses = %d on time + %d late + %d missed " \
                   "+ %d cold; peak %d bytes\n", \
                   uses, on_time, late, missed, cold, peak
            exit !(uses > 0 && peak > 0 &&
                   uses == on_time + late + missed + cold)
        }' || { echo "report $file: the counts do not add up"; return 1; }
    awk -v lost="$(json_get "$file" lost_seconds)" \
        -v late="$(json_get "$file" lost_waited_seconds)" \
        -v price="$(json_get "$file" price_j)" \
        'BEGIN { exit !(late <= lost && price > 0) }' ||
        { echo "report $file: the prices do not add up"; return 1; }
}

# reports_of_two POLICY FILE...: both ranks wrote theirs
reports_of_two() {
    local policy=$1 file
    shift
    [ $# -eq 2 ] || { echo "$# reports of 2"; return 1; }
    for file in "$@"; do
        report_check "$file" "$policy" || return 1
    done
}

# loop_run MPI ROUNDS COMPUTE_MS [OPTION...]: the loop of Fig. 1 with three buffers of
# 1 MB, the data verified; leaves fig1.out and its line of JSON, fig1.json
loop_run() {
    mpi_run "$1" -n 2 "$BUILDDIR/bench/mpi/fig1.$1" --size 1048576 --reuse \
        --iterations "$2" --compute-ms "$3" "${@:4}" > fig1.out ||
        { cat fig1.out; return 1; }
    grep '^{' fig1.out > fig1.json &&
        jq -e '.sender.errors == 0 and .receiver.errors == 0' fig1.json
}

# case_fig1 MPI POLICY: that loop under a policy, by the runner's helper_on() and
# reports_check()
case_fig1() {
    need "$1" ../../bench/mpi/fig1
    helper_on "$2"
    loop_run "$1" 40 5 && reports_check "$2" &&
        loop_check 40 "$2" report.*.json
}

case_count() { case_fig1 "$1" on_demand; }

# loop_held LEAST MOST: by the kernel's word, of what that loop leaves pinned it has held
# such a share over time
loop_held() {
    jq -e --argjson least "$1" --argjson most "$2" '
        ((.sender, .receiver).vmpin_average_bytes / (.buffers * .size)) as $share
        | "VmPin: \($share) of what is left pinned",
          ($share | . >= $least and . <= $most)' fig1.json | tee held.out
    ! grep -qx false held.out
}

# loop_on_time LEAST FILE...: such a share of the uses but the first found their buffers
loop_on_time() {
    jq -e -s --argjson least "$1" \
        'all(.on_time >= $least * (.uses - .cold))' "${@:2}" > /dev/null
}

# loop_check ROUNDS POLICY FILE...: what each rank reports of that loop
loop_check() {
    local rounds=$1 policy=$2 file
    shift 2
    for file in "$@"; do
        if [ "$policy" = on_demand ]; then
            loop_counts "$file" "$rounds" || return 1
        else
            loop_memory "$file" "$rounds" "$policy" || return 1
        fi
    done
}

# loop_counts FILE ROUNDS: one registration and one deregistration a message at the
# lower domain. A few of either may be announced, or left for the end.
loop_counts() {
    jq -c '{uses, registered: .register_model.samples,
            deregistered: .deregister_model.samples}' "$1"
    jq -e --argjson messages $((3 * $2)) '
        def near: . >= $messages - 4 and . <= $messages + 4;
        (.uses | near) and .uses >= $messages and .on_time <= 4 and
        (.register_model.samples | near) and
        (.deregister_model.samples | near)' "$1" > /dev/null
}

# loop_memory FILE ROUNDS POLICY: less memory than leave pinned in the same run,
# and with leave pinned its hits; the time is told, not judged
loop_memory() {
    jq -c '{on_time, uses, share:
            (.pinned_byte_seconds / .leave_pinned_byte_seconds)}' "$1"
    if [ "$3" = leave_pinned ]; then
        jq -e ".on_time >= $((3 * $2 - 7))" "$1"
    else
        jq -e '.pinned_byte_seconds < .leave_pinned_byte_seconds' "$1"
    fi > /dev/null
}

# hpcc verifies HPL, PTRANS, the random accesses and the FFT itself
hpcc_check() {
    local out=hpccoutf.txt
    grep -q '^End of HPC Challenge tests' $out ||
        { echo "not to the end"; return 1; }
    grep -q '^Success=1$' $out || { echo "no Success=1"; return 1; }
    grep -i 'FAILED$\|Failed\!' $out && return 1
    grep 'Errors=' $out | grep -v '=0$' && return 1
    grep 'tests completed and failed' $out | grep -v ' 0 tests' && return 1
    [ "$(grep -c '[1-9][0-9]* tests completed and passed' $out)" -eq 2 ] ||
        { echo "HPL and PTRANS did not both pass"; return 1; }
    awk -F= '/^MPIFFT_maxErr=/ { found = ($2 < 1e-12) } END { exit !found }' \
        $out || { echo "FFT error too large"; return 1; }
}

# perftest TEST ARGUMENTS...: server and client, each a process of its own.
# For an ucx_perftest without MPI: one with MPI calls MPI_Init whenever its
# standard input is no terminal.
perftest() {
    local test=$1 port=$((13400 + RANDOM % 2000)) server rc
    shift
    ucx_perftest -p "$port" < /dev/null > perftest.server.out 2>&1 &
    server=$!
    perftest_wait_port "$port" "$server" ||
        { cat perftest.server.out; echo "no server"; return 1; }
    timeout 60 ucx_perftest 127.0.0.1 -p "$port" -t "$test" "$@" \
        < /dev/null 2>&1 | tee perftest.client.out
    rc=${PIPESTATUS[0]}
    [ "$rc" -eq 0 ] || kill "$server" 2>/dev/null
    wait "$server" || { echo "the server failed"; rc=1; }
    cat perftest.server.out
    grep -q '^Final:' perftest.client.out || { echo "no result"; rc=1; }
    return "$rc"
}

# perftest_job TEST ARGUMENTS...: also of an ucx_perftest that is linked with Open
# MPI, as Debian 13's is: two ranks are server and client
perftest_job() {
    if ldd "$(command -v ucx_perftest)" | grep libmpi > /dev/null; then
        mpi_run openmpi -n 2 ucx_perftest -t "$@"
    else
        perftest "$@"
    fi
}

# Until the server listens; asking it by connecting would use it up
perftest_wait_port() {
    local port tries
    port=$(printf ':%04X 00000000:0000 0A' "$1")
    for tries in $(seq 300); do
        ! grep -q "$port" /proc/net/tcp || return 0
        kill -0 "$2" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}

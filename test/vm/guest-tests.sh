#!/bin/bash
#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Tests that run inside the guest, over rc_verbs on a Soft-RoCE device.
#   --list      their names
#   --list-long those that are run by name only, as some take a quarter of an hour
#   --run NAME  run one; exit code 77 means skipped
#   --env       for `source`: only set the environment
# Expects SRCDIR, BUILDDIR and OUTDIR (a folder that outlives the guest).
set -uo pipefail

# tests: a name, and what it runs, a line
tests() {
    local mpi what
    echo rdma test_rdma
    for mpi in openmpi mpich; do
        echo "verify-$mpi test_verify $mpi"
    done
    echo gaps-openmpi-direct test_gaps openmpi direct
    echo gaps-mpich-cached test_gaps mpich cached
    for mpi in openmpi mpich; do
        for what in verify large gaps churn disturb fork; do
            echo "helper-$what-$mpi test_helper $what $mpi"
        done
        echo "helper-count-$mpi test_loop helper-count-$mpi $mpi on_demand"
        echo "helper-overlap-$mpi test_helper overlap $mpi"
    done
    for mpi in openmpi mpich; do
        echo "pipeline-$mpi test_pipeline $mpi"
        echo "nas-$mpi test_nas $mpi"
    done
    for mpi in openmpi mpich; do
        echo "helper-rails-$mpi test_rails $mpi"
    done
    echo helper-peer-kill test_peer kill
    echo helper-peer-close test_peer close
    echo helper-off test_helper_off
    echo helper-oracle test_oracle
    echo helper-storm test_storm
    echo tool-doctor test_tool_doctor
    echo tool-try test_tool_try
    echo memory-events test_memory_events
    for what in random unmap strict race; do
        echo "firehose-$what test_firehose $what"
    done
    echo pipeline-example test_pipeline_example
    for what in tag_bw put_bw get; do
        echo "perftest-$what test_perftest $what"
        echo "helper-perftest-$what test_helper_perftest $what"
    done
}

# 10^4 messages for each MPI: with VM_TEST_TIMEOUT=1800. What is measured, which
# says something on a host that has nothing else to do only; the loop of Fig. 1, in
# which predict saves a few percent on an emulated processor, and none on a bad day.
# And plugins, which need a UCX that has them (--ucx of ./run).
long_tests() {
    local mpi what
    for mpi in openmpi mpich; do
        echo "helper-soak-$mpi test_helper soak $mpi"
    done
    for mpi in openmpi mpich; do
        for what in predict leave_pinned; do
            echo "helper-fig1-$mpi-$what test_loop helper-fig1-$mpi-$what $mpi $what"
        done
        echo "helper-plugin-$mpi test_plugin plugin $mpi"
        echo "helper-modules-$mpi test_plugin modules $mpi"
    done
    echo helper-plugin-perftest test_plugin plugin perftest
}

names() { cut -d ' ' -f 1; }

case ${1:-} in
--list)      tests | names; exit 0 ;;
--list-long) long_tests | names; exit 0 ;;
esac

source "$SRCDIR/test/mpi/env.sh"
# UD makes the connections of RC; it does not come up over an IPv4 GID here,
# so the link-local one is chosen
export UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=rxe0:1
export UCX_IB_GID_INDEX=0
# Messages from 32 KB on shall be registered, not copied
export UCX_RNDV_THRESH=16384

# UCX 1.18 with MPICH over a Soft-RoCE device aborts at a peer's end, or hangs in
# MPI_Finalize(), in a few of a hundred runs, without any helper
running_ucx=$(ucx_version)
may_run_again() {
    [[ $running_ucx == 1.18.* ]]
}

skip() {
    echo "SKIP: $*"
    exit 77
}

# Plugins are known from 1.22 on
has_plugins() {
    printf '%s\n' 1.22 "$running_ucx" | sort -V -C
}

helper_on() {
    helper_preload
    export UCX_MD_HELPER=y
    export UCX_MD_HELPER_REPORT=json:$OUTDIR/$1.report.%p.json
}

# door_check NAME: what the program called was heard, by both ranks
door_check() {
    local file heard
    for file in "$OUTDIR/$1".report.*.json; do
        heard=$(json_get "$file" heard)
        echo "report: heard $heard"
        [ "$heard" -gt 0 ] || return 1
    done
}

# posts_check NAME: receives were posted that are registered at their post
posts_check() {
    local file announced
    for file in "$OUTDIR/$1".report.*.json; do
        announced=$(json_get "$file" announced)
        echo "report: $announced receives posted," \
             "$(json_get "$file" announced_on_time) registered by their use," \
             "$(json_get "$file" announced_late) being registered"
        [ "$announced" -gt 0 ] || return 1
    done
}

# reports_check NAME: both ranks wrote theirs
reports_check() {
    reports_of_two "${UCX_MD_HELPER_POLICY:-predict}" \
        "$OUTDIR/$1".report.*.json
}

test_rdma() {
    rdma link show
    rdma resource show
    rdma link show rxe0/1 | grep 'state ACTIVE.*LINK_UP' > /dev/null || return 1
    # UCX opens the device and the transport
    ucx_info -d | sed -n '/Memory domain: rxe0/,/^$/p' | head -n 30
    ucx_info -d | grep 'Transport: rc_verbs' > /dev/null
}

test_verify() {
    need "$1" verify
    mpi_run "$1" -n 2 "$MPI_PROGRAMS/verify.$1" --iterations 1 --max-size 1m
}

# Long messages by the pipeline, and what MPI promises about them; then with the
# helper below, and kept fragments.
test_pipeline() {
    local layer=$BUILDDIR/src/mpi/pipeline/.libs/libucx_pipeline_mpi.so
    need "$1" verify
    need "$1" semantics
    export LD_PRELOAD=$layer HELPER_MD_PIPELINE_VERBOSE=y
    mpi_run "$1" -n 2 "$MPI_PROGRAMS/semantics.$1" | tee "$OUTDIR/semantics.$1"
    [ "${PIPESTATUS[0]}" -eq 0 ] || return 1
    helper_on "pipeline-$1"
    export LD_PRELOAD=$layer:$HELPER_STUB HELPER_MD_PIPELINE_MODE=cache
    mpi_run "$1" -n 2 "$MPI_PROGRAMS/verify.$1" --iterations 1 --max-size 1m \
        2>&1 | tee "$OUTDIR/pipeline.$1"
    [ "${PIPESTATUS[0]}" -eq 0 ] && reports_check "pipeline-$1" &&
        [ "$(grep -o ' bytes written' "$OUTDIR/pipeline.$1" | wc -l)" -eq 2 ] &&
        ! grep ' 0 registrations' "$OUTDIR/pipeline.$1"
}

# Without the helper UCX's own cache is told from none
test_gaps() {
    need "$1" ../../bench/mpi/fig1
    command -v jq > /dev/null || skip "no jq"
    case $2 in
    direct)
        export UCX_IB_REG_METHODS=direct
        loop_run "$1" 4 200 --asleep && loop_held 0 0.4 ;;
    cached)
        loop_run "$1" 4 200 --asleep && loop_held 0.7 1.2 ;;
    esac
}

# predicts MPI GAP: what is given up in a gap is there again before the use
predicts() {
    loop_run "$1" 8 "$2" --asleep && loop_held 0 0.5 &&
        loop_on_time 0.5 "$OUTDIR/helper-gaps-$1".*.json
}

# Messages through the registered pages, memory that comes and goes between
churn() {
    local mpi=$1
    shift
    need "$mpi" churn
    mpi_run "$mpi" -n 2 "$MPI_PROGRAMS/churn.$mpi" --min-size 17k \
        --max-size 64k "$@"
}

# What three rounds of 160 MB, or 30 forks, take on a busy host is near the limit of
# a job that may be run again
rounds=3
! may_run_again || rounds=1

test_helper() {
    local what=$1 mpi=$2
    helper_on "helper-$what-$mpi"
    case $what in
    verify)
        need "$mpi" verify
        mpi_run "$mpi" -n 2 "$MPI_PROGRAMS/verify.$mpi" \
            --iterations "$rounds" --max-size 1m --gap-ms 5 \
            --thread ucx-helper && door_check "helper-verify-$mpi" ||
            return 1 ;;
    overlap)
        need "$mpi" verify
        export UCX_MD_HELPER_POLICY=overlap
        mpi_run "$mpi" -n 2 "$MPI_PROGRAMS/verify.$mpi" \
            --iterations "$rounds" --max-size 1m --gap-ms 5 \
            --thread ucx-helper && posts_check "helper-overlap-$mpi" ||
            return 1 ;;
    large)
        need "$mpi" verify
        mpi_run "$mpi" -n 2 "$MPI_PROGRAMS/verify.$mpi" --iterations 1 \
            --min-size 8m --kinds rotate,map || return 1 ;;
    gaps)
        need "$mpi" ../../bench/mpi/fig1
        command -v jq > /dev/null || skip "no jq"
        # Long gaps beside those of a host that is busy with other things. A
        # few gaps of a slow guest: what predict knows of them is too little
        export UCX_MD_HELPER_POLICY=paper
        predicts "$mpi" 400 || { rm -f "$OUTDIR/helper-gaps-$mpi".*.json
                                 predicts "$mpi" 1500; } || return 1 ;;
    churn)
        churn "$mpi" --messages 250 || return 1 ;;
    soak)
        churn "$mpi" --messages 5000 || return 1 ;;
    disturb)
        need "$mpi" disturb
        mpi_run "$mpi" -n 2 "$MPI_PROGRAMS/disturb.$mpi" --rounds 10 ||
            return 1 ;;
    fork)
        churn "$mpi" --messages $((20 * rounds)) --fork-every 4 --fork-idle ||
            return 1 ;;
    esac
    reports_check "helper-$what-$mpi"
}

# rails_run MPI NAME DEVICES RAILS ARGUMENTS...: verified messages over so many of the
# eight devices, which UCX opens all of; leaves NAME.out
rails_run() {
    local mpi=$1 out=$OUTDIR/rails-$1-$2.out devices i
    devices=rxe0:1
    for ((i = 1; i < $3; ++i)); do
        devices+=,rxe$i:1
    done
    export UCX_NET_DEVICES=$devices UCX_MAX_RNDV_RAILS=$4
    export UCX_MD_HELPER_REPORT=json:$OUTDIR/rails-$mpi-$2.%p.json
    shift 4
    mpi_run "$mpi" -n 2 "$MPI_PROGRAMS/verify.$mpi" --iterations 1 \
        --max-size 256k --memory "$@" 2>&1 | tee "$out"
    [ "${PIPESTATUS[0]}" -eq 0 ]
}

# rails_sum MPI NAME KEY: of both ranks' reports
rails_sum() {
    local file sum=0
    for file in "$OUTDIR/rails-$1-$2".*.json; do
        sum=$((sum + $(json_get "$file" "$3")))
    done
    echo "$sum"
}

rails_memory() { sed -n 's/^verify: \([0-9]*\) KB a rank$/\1/p' "$OUTDIR/rails-$1-$2.out"; }

# Eight devices: one helper; what goes over one of them is registered with that one; data
# by two is right. The helper takes some 60 KB for each device that nothing goes over.
test_rails() {
    local mpi=$1 name key
    need "$mpi" verify
    helper_is_built || skip "the helper is not built"
    rdma link show rxe7/1 | grep 'state ACTIVE.*LINK_UP' > /dev/null || return 1
    for name in one eight; do
        rails_run "$mpi" "stock-$name" "$([ $name = one ] && echo 1 || echo 8)" 1 ||
            return 1
    done
    helper_on "rails-$mpi"
    rails_run "$mpi" one 1 1 --thread ucx-helper &&
        rails_run "$mpi" eight 8 1 --thread ucx-helper &&
        rails_run "$mpi" two-rails 8 2 --thread ucx-helper || return 1
    for name in one eight two-rails; do
        for key in uses registrations; do
            echo "$name: $key $(rails_sum "$mpi" "$name" "$key")"
        done
        reports_of_two predict "$OUTDIR/rails-$mpi-$name".*.json || return 1
    done
    awk -v s1="$(rails_memory "$mpi" stock-one)" -v h1="$(rails_memory "$mpi" one)" \
        -v s8="$(rails_memory "$mpi" stock-eight)" -v h8="$(rails_memory "$mpi" eight)" \
        'BEGIN { printf "KB of the helper: one device %d, eight %d\n", h1 - s1, h8 - s8
                 # Two runs of the same differ by some hundred KB
                 least = h1 > s1 ? h1 - s1 : 0
                 exit !(h8 - s8 <= least + 7 * 100) }' || return 1
    [ "$(rails_sum "$mpi" eight uses)" -eq "$(rails_sum "$mpi" one uses)" ] &&
        [ "$(rails_sum "$mpi" two-rails uses)" -gt "$(rails_sum "$mpi" one uses)" ]
}

# test_loop NAME MPI POLICY: the loop of Fig. 1, with gaps that are long beside the
# delays of an emulated processor
test_loop() {
    need "$2" ../../bench/mpi/fig1
    command -v jq > /dev/null || skip "no jq"
    helper_on "$1"
    export UCX_MD_HELPER_POLICY=$3
    loop_run "$2" 10 50 && reports_check "$1" &&
        loop_check 10 "$3" "$OUTDIR/$1".report.*.json
}

# The plugin door with UCX's own IB module, which 1.22 and later have: by the path
# for plugins, or as a user who puts them into UCX's module folder
test_plugin() {
    local way=$1 mpi=$2 name=helper-$1-$2 plugins modules
    plugins=$BUILDDIR/src/uct/door/.libs
    has_plugins || skip "UCX $running_ucx knows no plugins"
    helper_on "$name"
    unset LD_PRELOAD
    export UCX_MD_HELPER_POLICY=on_demand UCX_RCACHE_ENABLE=n
    export HELPER_MD_MODULE_PATH=$plugins
    if [ "$way" = plugin ]; then
        export UCX_PLUGIN_PATH=$plugins
    else
        modules=$(mktemp -d) &&
            ln -s "$OTHER_UCX"/lib/ucx/* "$plugins"/libuct_ib_helper.so.0 \
                "$plugins"/libuct_pin.so.0 "$modules" || return 1
        export UCX_MODULE_DIR=$modules
    fi
    if [ "$mpi" = perftest ]; then
        test_perftest tag_bw
    else
        need "$mpi" verify
        mpi_run "$mpi" -n 2 "$MPI_PROGRAMS/verify.$mpi" --iterations 1 \
            --max-size 1m
    fi && reports_check "$name"
}

# Random programs that pull memory away, beside the events of this UCX and kernel
test_oracle() {
    local oracle=$BUILDDIR/test/oracle/oracle
    [ -x "$oracle" ] || skip "the oracle is not built"
    helper_preload
    "$oracle" --seconds 60
}

# nas_run MPI CODE: what arrives is verified. A report holds both what the helper pinned
# and what would have been left pinned.
nas_run() {
    local mpi=$1 kernel=$2 dir=$OUTDIR/nas-$1/$2 file
    mkdir -p "$dir"
    export UCX_MD_HELPER_REPORT=json:$dir/%p.json
    mpi_run "$mpi" -n 2 "$BUILDDIR/bench/pace/paced.$mpi" "$kernel" --class A \
        --iterations 4 --compute busy > "$dir/stdout" || { cat "$dir/stdout"; return 1; }
    for file in "$dir"/*.json; do
        report_check "$file" paper || return 1
    done
    grep '^{' "$dir/stdout" > "$dir/line" || return 1
    jq -c -s --slurpfile line "$dir/line" --arg kernel "$kernel" '
        def mean(f): map(f) | add / length;
        {$kernel, verified: $line[0].verified, seconds: $line[0].seconds,
         reports: length,
         left_peak: mean(.leave_pinned_peak_bytes),
         peak: mean(.pinned_peak_bytes),
         left_average: mean(.leave_pinned_byte_seconds / .elapsed_seconds),
         average: mean(.pinned_byte_seconds / .elapsed_seconds),
         in_use_peak: mean(.in_use_peak_bytes),
         vmpin_peak: ($line[0].rank | mean(.vmpin_peak_bytes)),
         uses: (map(.uses) | add), on_time: (map(.on_time) | add)}' \
        "$dir"/*.json >> "$OUTDIR/nas-$mpi/rows"
}

# Codes over the device: every result verified; what the helper held beside what
# is left pinned: no more at once, but for the two pages that neighbours of a few
# KB share, and less over time.
test_nas() {
    local mpi=$1
    need "$mpi" ../../bench/pace/paced
    command -v jq > /dev/null || skip "no jq"
    helper_on "nas-$mpi"
    export UCX_MD_HELPER_POLICY=paper
    rm -rf "$OUTDIR/nas-$mpi"
    nas_run "$mpi" ft && nas_run "$mpi" lu && nas_run "$mpi" cg || return 1
    cat "$OUTDIR/nas-$mpi/rows"
    jq -e -s 'length == 3 and all(.verified and .reports == 2 and .uses > 0 and
        .peak <= .left_peak + 8192 and .average < .left_average)' \
        "$OUTDIR/nas-$mpi/rows"
}

# A peer that is killed, an endpoint that is closed by force, both within a
# message. UCX 1.13 invalidates for mlx5 only; over rc_verbs its peer mode moves
# large messages without remote access, so that nothing is left to be accessed
# late, and that is what is looked at. A dead peer is to be noticed soon.
test_peer() {
    helper_on "helper-peer-$1"
    [ -x "$MPI_PROGRAMS/peer" ] || skip "peer is not built"
    UCX_RC_TIMEOUT=200ms UCX_RC_RETRY_COUNT=3 UCX_UD_TIMEOUT=10s \
        UCX_KEEPALIVE_INTERVAL=2s timeout 110 "$MPI_PROGRAMS/peer" --what "$1"
}

# storm_run ARM ARGUMENTS...: a row of the service that maps many pieces of one
# range, which a second process reads through their keys
storm_run() {
    local arm=$1 line pid report
    shift
    rm -f "$OUTDIR"/storm.*.json
    line=$(UCX_LOG_LEVEL=fatal timeout 200 "$BUILDDIR/bench/storm_service" \
               --bytes 64m --reads 8 "$@") ||
        { echo "storm_service failed ($arm): $line"; return 1; }
    pid=$(jq .pid <<< "$line") || return 1
    report=$OUTDIR/storm.$pid.json
    [ -e "$report" ] || report=/dev/null # stock
    jq -c --arg arm "$arm" --slurpfile report "$report" '
        {$arm, asked, made: ($report[0].registrations // .asked), errors,
         gaps_refused, map_seconds, unmap_seconds, asked_bytes,
         pinned: (.pinned_bytes_during - .pinned_bytes_before),
         mappings: [.mappings_before, .mappings_during, .mappings_after]}' \
        <<< "$line" | tee -a "$OUTDIR/storm.rows"
}

# A remote key grants what the program has mapped and no more, but with covers
# for all, which the user asks for. The pages that a device pins are counted by
# the kernel.
test_storm() {
    [ -x "$BUILDDIR/bench/storm_service" ] || skip "storm_service is not built"
    command -v jq > /dev/null || skip "no jq"
    rm -f "$OUTDIR"/storm.*
    storm_run stock-gaps --pieces 256 --gaps &&
        storm_run stock --pieces 1265 || return 1
    helper_on storm
    export UCX_MD_HELPER_REPORT=json:$OUTDIR/storm.%p.json
    export UCX_MD_HELPER_POLICY=leave_pinned
    UCX_MD_HELPER_COALESCE=local storm_run local-gaps --pieces 256 --gaps &&
        UCX_MD_HELPER_COALESCE=remote storm_run remote-gaps --pieces 256 \
            --gaps &&
        UCX_MD_HELPER_COALESCE=remote storm_run remote --pieces 1265 &&
        UCX_MD_HELPER_COALESCE=remote storm_run remote-random --pieces 1265 \
            --order random || return 1
    jq -e -s '
        def row($arm): .[] | select(.arm == $arm);
        length == 6 and all(.errors == 0) and
        (row("stock-gaps") | .gaps_refused == 8) and
        (row("local-gaps") | .gaps_refused == 8 and .made == .asked and
         .pinned == .asked_bytes) and
        (row("remote-gaps") | .gaps_refused < 8 and .pinned > .asked_bytes) and
        (row("remote") | .made * 50 < .asked) and
        (row("remote-random") | .made * 20 < .asked)' "$OUTDIR/storm.rows"
}

# Preloaded and not asked for: no thread, not a word, UCX's own cache at work
test_helper_off() {
    need openmpi verify
    helper_preload
    mpi_run openmpi -n 2 "$MPI_PROGRAMS/verify.openmpi" --iterations 1 \
        --max-size 64k --no-thread ucx-helper 2>&1 | tee off.out
    [ "${PIPESTATUS[0]}" -eq 0 ] && ! grep -i helper off.out || return 1
    need openmpi ../../bench/mpi/fig1
    loop_run openmpi 4 200 --asleep && loop_held 0.7 1.2
}

# The kernel's events and its answers about mappings, on a kernel of the release
test_memory_events() {
    [ -x "$BUILDDIR/test/gtest/gtest" ] || skip "the unit tests are not built"
    # Their domains have the layout of the UCX that they were built with
    [[ $running_ucx == 1.13.* ]] || skip "the unit tests are those of UCX 1.13"
    "$BUILDDIR/test/gtest/gtest" --gtest_brief=1 \
        --gtest_filter='test_monitor*:*test_range*'
}

# Two processes and one-sided transfers by firehose over the device, data verified,
# with memory that is unmapped and replaced at the target
test_firehose() {
    local program=$BUILDDIR/test/firehose/.libs/nodes
    [ -x "$program" ] || skip "the programs of test/firehose are not built"
    export LD_LIBRARY_PATH=$BUILDDIR/src/ucp/firehose/.libs
    case $1 in
    random)  "$program" random 2 128 ;;
    unmap)   "$program" unmap 2 128 ;;
    # A control first: it takes an access by an old key for what it is
    strict)  ! "$program" strict 2 128 || { echo "no hit without the flag"
                                            return 1; }
             "$program" strict 2 128 strict ;;
    race)    "$program" race 2 128 strict thread ;;
    esac
}

# The example of libucx_pipeline: 8 MB in pieces, first and last byte looked at
test_pipeline_example() {
    local dir=$BUILDDIR/src/ucp/pipeline/.libs
    local program=$BUILDDIR/test/pipeline/.libs/pipeline_example
    [ -x "$program" ] || skip "pipeline_example is not built"
    LD_LIBRARY_PATH=$dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
        timeout -k 2 120 "$program"
}

# ucx-helper doctor names the device, what registering takes there, and the IB domain's
# own cache, where it has one and the user insists on it
test_tool_doctor() {
    "$BUILDDIR/src/tools/ucx-helper" doctor mpirun.mpich | tee doctor.out
    [ "${PIPESTATUS[0]}" -eq 0 ] || return 1
    grep -q '^ok  .*helper: rxe0: helper with policy predict' doctor.out &&
        grep -q '^ok  .*registering: rxe0: [0-9.]* [um]s + [0-9.]* ns a page' doctor.out ||
        return 1
    ! command -v ibv_devinfo > /dev/null ||
        grep -q '^ok  .*device: rxe0: PORT_ACTIVE, max_mr [1-9]' doctor.out || return 1
    printf '%s\n' "$running_ucx" 1.16 | sort -V -C || return 0
    UCX_IB_REG_METHODS=rcache "$BUILDDIR/src/tools/ucx-helper" doctor mpirun.mpich |
        tee cache.out
    grep -A 1 '^stops the helper  cache: rxe0: ' cache.out |
        grep -q -- '-> unset UCX_IB_REG_METHODS'
}

# Eight buffers that rest: what a trial sees of them over the device. What it advises is
# read, not judged.
test_tool_try() {
    need mpich ../../bench/mpi/fig1
    command -v jq > /dev/null || skip "no jq"
    "$BUILDDIR/src/tools/ucx-helper" try --json -- mpirun.mpich -n 2 \
        "$MPI_PROGRAMS/../../bench/mpi/fig1.mpich" --asleep --buffers 8 --size 1m \
        --iterations 4 --compute-ms 150 --sample 0 > try.out || return 1
    jq -c '{advice, costs_measured, recordings_replayed,
            runs: [.runs[] | [.policy, .lower_domain, .elapsed_seconds,
                              .pinned_byte_seconds / .leave_pinned_byte_seconds]]}' try.out
    jq -e '.costs_measured and (.runs | length >= 1 and length <= 4) and
           all(.runs[]; .lower_domain == "rxe0" and .uses > 0) and
           all(.runs[] | select(.policy != "leave_pinned");
               .pinned_byte_seconds < 0.5 * .leave_pinned_byte_seconds)' try.out > /dev/null
}

# A job that ends as UCX 1.18 is known to is run again, twice at the most, and the
# log says so. Any other failure is one.
mpi_run_once=$(declare -f mpi_run)
eval "${mpi_run_once/mpi_run/mpi_run_once}"
mpi_run() {
    local try job rc
    if ! may_run_again; then
        mpi_run_once "$@"
        return
    fi
    job=$(mktemp) || return 1
    for try in 1 2 3; do
        mpi_run_for "${VM_JOB_TIMEOUT:-150}" "$@" > "$job" 2>&1
        rc=$?
        cat "$job"
        if ! grep -q 'LAST_WQE_REACHED\|cb_id == UCS_CALLBACKQ_ID_NULL' \
               "$job" &&
           { [ $rc -ne 124 ] || ! grep -q ', OK$' "$job"; }; then
            break
        fi
        echo "guest: run $try ended as UCX 1.18 is known to (exit code $rc)"
        rm -f "$OUTDIR"/*.report.*.json
    done
    rm -f "$job"
    return $rc
}

test_perftest() {
    local name=$1
    [ "$name" = tag_bw ] || name=ucp_$name
    perftest_job "$name" -s 1048576 -n 30 -w 3
}

test_helper_perftest() {
    helper_on "helper-perftest-$1"
    test_perftest "$1" && reports_check "helper-perftest-$1"
}

run_test() {
    local command
    command=$( (tests; long_tests) | sed -n "s/^$1 //p")
    [ -n "$command" ] || { echo "no test $1"; return 1; }
    $command
}

case ${1:-} in
--run) run_test "${2:?}" ;;
--env) ;;
*)     echo "usage: guest-tests.sh --list | --list-long | --run NAME" >&2
       exit 1 ;;
esac

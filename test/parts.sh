#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The parts of ./runtests: when each runs, what it does, which tests it has. To be
# sourced by bash; expects top, build and jobs.

# name; seconds that it may take; when it runs: always, or in the slices of these numbers;
# how many of two processors it keeps busy: what takes one has another beside
# it; +: it watches what a busy machine disturbs, so what fails is looked at again, alone;
# what it is
parts="
build      900 always 2 - configure and build with warnings as errors; the rooms
gtest      600 always 2 + unit tests
tsan      1200 always 1 + unit tests of the rooms with threads, under ThreadSanitizer
vm        1200 always 1 + what only a verbs device shows, in a guest with Soft-RoCE
asan      1200 always 1 + those of the other rooms, under AddressSanitizer and UBSan
docs       120 always 1 - man pages, documents and mutants name what is there
schedules  600 always 1 - the cache in simulated schedules, with faults
attack    1200 always 1 + programs that do to their memory what they may
tools     1200 always 1 + tests of ucx-helper
firehose   600 always 2 - programs of several processes over firehose
pipeline   600 always 2 - the pipeline over UCP, and MPI programs' long messages by it
door       300 always 2 - the door before UCP: what programs call is heard, and the same
verify     900 always 2 - jobs of both MPIs, registrations compared after each use
aside      300 always 2 - jobs that the helper stays out of are as without it
oracle     300 always 2 - random programs that pull memory away
mpi        900 1      2 + the other jobs of both MPIs over the software NIC
pipehpcc   300 1      2 - hpcc, which verifies its results, with the pipeline
verifymore 900 2      2 - the other jobs whose registrations are compared
mpimore    900 3      2 + those of verify without the comparison
life       600 2      2 + ends and interruptions of a process that has a helper
asanall   1200 4      2 + all unit tests under AddressSanitizer and UBSan
mpiasan    600 3      2 - MPI jobs, the helper under AddressSanitizer and UBSan
tsanall   1200 5      2 + all unit tests that start threads, under ThreadSanitizer
model      600 6      2 - models of lock-free code, checked exhaustively
dist       900 7      2 - each test file by itself, make distcheck, the tarball is whole
package   1800 8      2 - packages: recipes checked, built, installed and run
protocols 1500 9      2 - what UCX does with the helper and without, side by side
figures    300 9      2 - a hit beside this UCX's own cache, the time of a loop's messages
ground13  1500 10     2 - the same files beside the UCX and the MPIs of Debian 13
testing   1500 11     2 - the same files beside the UCX and the MPIs of Debian testing
vm1       1500 12     2 + more of both MPIs in the guest
vm2       1500 13     2 + more in the guest: firehose, the pipeline, the oracle
vm3       1500 14     2 + the rest in the guest: forks, overlap, codes
guest13a  1500 6      2 + jobs in a guest of Debian 13 with its own kernel
guest13b  1500 7      2 + more of them: memory that changes, the oracle
guest13c  1500 8      2 + the rest of them: forks, ucx_perftest
moreseeds  600 3      2 - schedules and random programs by the ten minutes
fuzz       300 9      2 - option strings and report files under libFuzzer
bench      300 2      2 - the benchmark that makes the tables, on one small code
suites     600 11     2 - MPICH's own tests and mpi4py's, from Debian's sources
ucxtests   600 10     2 - UCX's own tests, of registration and of shared memory
abi        300 10     1 - the layouts of UCX that we know against its sources
mutants    900 1,2,3,4,5,12,13,14 2 - a share of the guards taken away: their tests must fail
"

# What is compiled; what the part has found so far in the code that it tests (not in
# the tests themselves), by this repository's history to 2026-11-27. Parts without a
# row compile nothing and were not told to have found anything.
about="
build     | sources, programs, unit tests | not counted: what does not compile, arrows between rooms
gtest     | - | not counted: most of what is one room's
tsan      | its rooms and their tests, instrumented | 3: a region's pages read outside the lock (twice), one label for all call sites
asan      | its rooms and their tests, instrumented | 2: notes of forked children leaked, a buffer below the wake page was not kept
vm        | - | 1: an idle rank that was not woken (helper-peer-close)
docs      | - | 13 mutants that had lost their text
schedules | the cache again, over simulated memory | 13: what is never given up, marks of an ended life, threads that go on for ever
attack    | - | 5 by hand, of which it is made: EFAULT of mremap, mappings split or too many
firehose  | - | 1: messages of three processes numbered twice
oracle    | the program | 4: fork and malloc's arenas in a deadlock, arrays that kernel events refused, covers given to peers
life      | the program | none told
asanall   | the tree and all unit tests, instrumented | as asan
mpiasan   | the tree, instrumented | none told
tsanall   | the tree and all unit tests, instrumented | as tsan
model     | a verifier a case, by spin | none told: written with the code, each guard's absence is seen
dist      | everything, from the tarball | 1: a file that the tarball lacked
package   | everything, as Debian does | 1: packages to build with that nobody had asked for
ground13  | the oracle | 1: the descriptor of liburing 2.9's ring
testing   | the oracle | none told
vm2       | - | as vm
moreseeds | - | as schedules and oracle
fuzz      | its targets, by clang | 1: a refused send that a close did not give up
suites    | the tests' own programs | none told
ucxtests  | UCX's tests | none told
abi       | small programs | none told
mutants   | a tree of its own, and what each changes | not counted: tests that passed without a guard
"

# list_parts: a line each
list_parts() { sed '/^$/d' <<< "$parts"; }

# parts_of SLICE
parts_of() {
    list_parts | awk -v slice="$1" \
        '"," $3 "," ~ "," slice "," { list = list " " $1 } END { print substr(list, 2) }'
}

# Those that stand on the build in ./build
needs_build() {
    case $1 in
    docs|model|mutants) return 1 ;;
    esac
}

is_part() { grep -q "^$1 " <<< "$parts"; }

# about PART
about() {
    awk -F ' *[|] *' -v part="$1" '$1 == part { said = $2 "; " $3 }
        END { print (said == "") ? "-; none told" : said }' <<< "$about"
}

# --- Packages -----------------------------------------------------------------

build_packages="autoconf automake libtool make ccache gcc g++ binutils pkg-config
xz-utils libucx-dev liburing-dev libjansson-dev zlib1g-dev
libibverbs-dev libgtest-dev openmpi-bin libopenmpi-dev mpich libmpich-dev"
always_packages="mandoc ucx-utils gnuplot-nox jq strace procps util-linux perl python3
python3-mpi4py python3-numpy qemu-system-x86 busybox-static kmod cpio iproute2
rdma-core ibverbs-providers ibverbs-utils libjemalloc2 libtcmalloc-minimal4
libmimalloc2.0"
more_packages="hpcc spin clang-14 libclang-rt-14-dev mmdebstrap debhelper
lintian buildah rpm rpmlint"

# packages_of PART...
packages_of() {
    local part
    echo $build_packages $always_packages
    for part in "$@"; do
        ! grep -q "^$part .* always " <<< "$parts" || continue
        echo $more_packages
        break
    done
}

# --- What a part does; runs in a process of its own, under a time limit ---------

# inside_PART runs it, list_PART prints the names of its tests where they are known
# beforehand. Those that can be told which tests alone take their names as arguments.

# as_regex NAME...
as_regex() { local IFS='|'; echo "^($*)\$"; }

# words TEXT: a line each
words() { tr -s ' \n' '\n\n' <<< "$1"; }

# as_list NAME...
as_list() { local IFS=${separator:?}; echo "$*"; }

# verdict NAME COMMAND...: PASS or FAIL by its exit code
verdict() {
    local name=$1
    shift
    if "$@"; then
        echo "PASS $name"
    else
        echo "FAIL $name"
        return 1
    fi
}

# configure_tree DIR OPTIONS...
configure_tree() {
    local dir=$1
    shift
    mkdir -p "$dir" && cd "$dir" || return 1
    tree_configure "$top" "$dir" "$@" || { tail -n 30 config.log; return 1; }
}

list_build() { echo build; "$top/test/rooms" --list; }
inside_build() {
    if [ ! -e "$top/configure" ] ||
       [ "$top/configure.ac" -nt "$top/configure" ]; then
        "$top/autogen.sh" || return 1
    fi
    configure_tree "$build" --enable-werror --prefix="$build/install" \
        CFLAGS="$tree_flags" CXXFLAGS="$test_flags" &&
        make -j"$jobs" tests &&
        echo "PASS build" && "$top/test/rooms" --builddir "$build"
}

# gtest_filter NAME...
gtest_filter() { separator=: as_list "${@:-*}"; }

inside_gtest() {
    cd "$build/test/gtest" && make -j"$jobs" gtest &&
        GTEST_FILTER=$(gtest_filter "$@") both_halves gtest sharded ./gtest
}

# both_halves PART COMMAND: as two processes, for most of its time one processor is
# busy. Which half a process is, HALF says: 0 or 1.
both_halves() {
    local second=$build/logs/$1.second.out status=0
    HALF=1 "${@:2}" > "$second" 2>&1 &
    HALF=0 "${@:2}" || status=1
    wait $! || status=1
    cat "$second"
    return $status
}

# sharded COMMAND: one half of the unit tests
sharded() { GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=$HALF "$@"; }

# --- Sanitizers

# The code in which threads meet, and the rest: each room's unit tests are compiled
# again under the sanitizer that has most to say of it. UCM's hooks and ThreadSanitizer
# exclude each other, so of uct_ib it could run the lesser half.
rooms_of_threads="ucs_sys ucs_node ucs_regcache uct_sm ucp_door"
other_rooms="bench tools ucs_datastruct ucs_predict ucs_trace ucp_firehose
ucp_pipeline ucp_wire uct_door uct_ib"

# Suites of unit tests that take long and start no thread (`strace -f -e clone3` shows
# it): ThreadSanitizer has nothing to say of them
one_thread="test_sim.* sizes/predict_callsite_model.* test_pipeline_ring.* test_cover.*
test_firehose_random.* test_rent.* test_replay.* test_trace.* test_regcache_floor.*
test_extents.* test_pipeline.* modes/test_pipeline_random.* test_regcache_order.*
test_ahead.* test_own_memory.blocks_are_zeroed_apart_and_aligned
test_limits.user_too_many_registers_by_itself"

# build_sanitized DIR OPTION [ROOM...]: unit tests, of these rooms or all, and what
# they need, no more
build_sanitized() {
    local dir=$1 option=$2
    shift 2
    configure_tree "$dir" "$option" --enable-werror --enable-debug \
        CFLAGS="-O1 -g1" CXXFLAGS="$test_flags" --with-openmpi-cc=no \
        --with-mpich-cc=no && make -j"$jobs" -C "$dir/src" || return 1
    if [ $# -gt 0 ]; then
        make -j"$jobs" -C "$dir/test/gtest" some ROOMS="$*"
    else
        make -j"$jobs" -C "$dir/test/gtest" gtest
    fi
}

asan_options() {
    export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
    export UBSAN_OPTIONS=print_stacktrace=1
}

# UCM's default hooks patch code and crash under ThreadSanitizer; its runtime
# also wants the address space less random than recent kernels make it. The scout of a
# domain that has closed is not waited for, which it takes for a leak at the end
tsan_options() {
    export UCX_MEM_MMAP_HOOK_MODE=reloc
    export TSAN_OPTIONS=second_deadlock_stack=1:report_thread_leaks=0
}

inside_asan() {
    # shellcheck disable=SC2086 # words are meant to split
    build_sanitized "$build/asan" --enable-asan $other_rooms &&
        cd "$build/asan/test/gtest" && asan_options &&
        GTEST_FILTER=$(gtest_filter "$@") ./some
}

inside_asanall() {
    build_sanitized "$build/asan" --enable-asan &&
        cd "$build/asan/test/gtest" && asan_options &&
        GTEST_FILTER=$(gtest_filter "$@") both_halves asanall sharded ./gtest
}

# tsan_filter NAME...
tsan_filter() { echo "$(gtest_filter "$@")-$(tr -s ' \n' : <<< "$one_thread")"; }

inside_tsan() {
    # shellcheck disable=SC2086 # words are meant to split
    build_sanitized "$build/tsan" --enable-tsan $rooms_of_threads &&
        cd "$build/tsan/test/gtest" && tsan_options &&
        GTEST_FILTER=$(tsan_filter "$@") setarch "$(uname -m)" -R ./some
}

inside_tsanall() {
    build_sanitized "$build/tsan" --enable-tsan &&
        cd "$build/tsan/test/gtest" && tsan_options &&
        GTEST_FILTER=$(tsan_filter "$@") \
            both_halves tsanall sharded setarch "$(uname -m)" -R ./gtest
}

# A job of which only the helper is instrumented
list_mpiasan() { seq 6; }
inside_mpiasan() {
    configure_tree "$build/asan" --enable-asan --enable-werror --enable-debug \
        CFLAGS="-O1 -g1" CXXFLAGS="$test_flags" --with-openmpi-cc=no \
        --with-mpich-cc=no && make -j"$jobs" -C "$build/asan/src" &&
        "$top/test/mpi/run" --builddir "$build" --asan "$build/asan"
}

# --- Programs of random steps

# random_programs NAME OPTION WITHOUT WITH: those of test/NAME, without covers and with,
# so many or for so long as OPTION says
random_programs() {
    local seed program=$build/test/$1/$1 status=0
    make -j"$jobs" -C "${program%/*}" "$1" || return 1
    seed=$(tree_seed "$top")
    echo "HELPER_MD_SEED=$seed makes the same $1"
    verdict "$1" "$program" "$2" "$3" --seed "$seed" || status=1
    verdict "$1.covers" "$program" "$2" "$4" --covers --seed "$seed" || status=1
    return $status
}
schedules() { random_programs schedules --count "$@"; }
oracle()    { random_programs oracle --seconds "$@"; }

# Other ones for each commit and day; 10^7 are run by hand where the cache has changed
list_schedules()     { printf '%s\n' schedules schedules.covers; }
inside_schedules()   { schedules 100000 25000; }

list_oracle()   { printf '%s\n' oracle oracle.covers; }
inside_oracle() { oracle "${ORACLE_SECONDS:-40}" 15; }

# What finds one fault in a hundred thousand programs, for longer. The seeds follow
# each other: these begin where others would be.
list_moreseeds() { list_schedules; list_oracle; }
inside_moreseeds() {
    local status=0
    HELPER_MD_SEED=$(($(tree_seed "$top") + 1000000))
    export HELPER_MD_SEED
    schedules 200000 50000 || status=1
    oracle 100 40 || status=1
    return $status
}

# --- Documents, the tool

list_docs() {
    (cd "$top/docs/man" && ls -- *.[1-9])
    printf '%s\n' docs mutants
}
inside_docs() {
    local page status=0
    for page in "$top"/docs/man/*.[1-9]; do
        verdict "${page##*/}" mandoc -T lint -W warning "$page" || status=1
    done
    verdict docs "$top/docs/check" || status=1
    verdict mutants "$top/test/mutation/run" --check || status=1
    return $status
}

inside_tools() {
    local status=0
    "$top/test/tools/run" --builddir "$build" || status=1
    "$top/test/tools/try" --builddir "$build" || status=1
    "$top/test/tools/sim" --builddir "$build" || status=1
    return $status
}

# --- Programs and MPI jobs

# Short forms; without a count life does 10^4 and more
life_counts="
init 500
fork 1000
patch 100
signals 20000
unmaps 100000
uses 100000000
changes 3
"
list_life() { sed '/^$/d' <<< "$life_counts"; }
inside_life() {
    local what count status=0
    make -j"$jobs" -C "$build/test/life" life || return 1
    while read -r what count; do
        verdict "life.$what" "$build/test/life/life" --what "$what" \
            --count "$count" || status=1
    done < <(list_life)
    return $status
}

# only NAME...: the option of those scripts that take a regular expression
only() { [ $# -eq 0 ] || echo "--only $(as_regex "$@")"; }

list_attack() { "$top/test/attack/run" --list; }
# shellcheck disable=SC2046 # words are meant to split
inside_attack() { "$top/test/attack/run" --builddir "$build" $(only "$@"); }

list_firehose()   { "$top/test/firehose/run" --list; }
inside_firehose() { "$top/test/firehose/run" --builddir "$build"; }

list_pipeline() { "$top/test/pipeline/run" --list; }
# shellcheck disable=SC2046 # words are meant to split
inside_pipeline() { "$top/test/pipeline/run" --builddir "$build" $(only "$@"); }
list_pipehpcc()   { echo hpcc; }
inside_pipehpcc() { inside_pipeline hpcc; }

list_door()   { "$top/test/door/run" --list; }
inside_door() { "$top/test/door/run" --builddir "$build"; }

list_bench()   { "$top/test/bench/run" --list; }
inside_bench() { "$top/test/bench/run" --builddir "$build"; }

# Each kind of job and each policy with one of the MPIs, predict with both; the part
# verifymore has the others
verify_jobs="stale.openmpi stale.mpich default.openmpi default.mpich
disturb.openmpi.control disturb.openmpi.raw disturb.openmpi.predict
disturb.openmpi.leave_pinned disturb.mpich.predict disturb.mpich.paper
disturb.mpich.on_demand
verify.openmpi.predict verify.openmpi.leave_pinned verify.openmpi.overlap
verify.mpich.predict verify.mpich.paper verify.mpich.on_demand verify.mpich.lru
verify.mpich.rent
count.openmpi fig1.openmpi.leave_pinned fig1.mpich.predict
ceiling.openmpi.predict ceiling.mpich.lru
churn.openmpi.single churn.openmpi.fork churn.openmpi.control churn.mpich.random
churn.mpich.threads alloc.openmpi.jemalloc alloc.openmpi.tcmalloc
alloc.mpich.mimalloc alloc.mpich.glibc node.openmpi.predict node.mpich.leave_pinned
trace.openmpi.predict trace.mpich.paper
python.openmpi.predict python.openmpi.kept python.openmpi.threads perftest.tag_bw"

# verified JOB...
verified() {
    "$top/test/mpi/run" --builddir "$build" --verify --only "$(as_regex "$@")"
}

list_verify()     { words "$verify_jobs"; }
list_verifymore() {
    "$top/test/mpi/run" --verify --list | grep -vxF "$(list_verify)"
}
# shellcheck disable=SC2046,SC2086 # words are meant to split
inside_verify()     { verified ${@:-$verify_jobs}; }
# shellcheck disable=SC2046,SC2086 # words are meant to split
inside_verifymore() { verified ${@:-$(list_verifymore)}; }

# Jobs that the helper stays out of, or in which something is refused, go on as
# without it: some always, the others in the part mpi
aside_jobs="off.openmpi.unset off.mpich.no bad.openmpi.policy bad.openmpi.ceiling
bad.mpich.report pipe.openmpi.report reloc.openmpi.ucm limit.openmpi.memlock"
list_aside() { words "$aside_jobs"; }
# shellcheck disable=SC2086 # words are meant to split
inside_aside() { mpi ${@:-$aside_jobs}; }

# Jobs of --verify that run in the part mpi as well, without the comparison,
# which takes its time; the others do so in the part mpimore
mpi_twice="default.openmpi default.mpich fig1.openmpi.predict fig1.mpich.predict
verify.openmpi.predict verify.mpich.predict"

list_mpimore() {
    "$top/test/mpi/run" --verify --list |
        grep -xF "$("$top/test/mpi/run" --list)" |
        grep -vxF "$(tr ' ' '\n' <<< "$mpi_twice")"
}
list_mpi() {
    "$top/test/mpi/run" --list | grep -vxF "$(list_mpimore; list_aside)"
}

# mpi JOB...
mpi() { "$top/test/mpi/run" --builddir "$build" --only "$(as_regex "$@")"; }

# shellcheck disable=SC2046,SC2086 # words are meant to split
inside_mpi()     { mpi ${@:-$(list_mpi)}; }
# shellcheck disable=SC2046,SC2086 # words are meant to split
inside_mpimore() { mpi ${@:-$(list_mpimore)}; }

# --- Guests

# What the guests run beside the programs of make
build_for_guests() {
    make -j"$jobs" -C "$build/test/oracle" oracle &&
        make -j"$jobs" -C "$build/test/pipeline" pipeline_example &&
        make -j"$jobs" -C "$build/test/firehose" nodes
}

# An emulated guest takes its time, up to minutes a test: always only what no software
# NIC shows, by one MPI
vm_tests="rdma helper-churn-mpich helper-peer-kill helper-peer-close helper-storm
memory-events"
vm1_tests="rdma verify-openmpi verify-mpich gaps-openmpi-direct
helper-verify-openmpi helper-verify-mpich helper-large-openmpi helper-large-mpich
helper-churn-openmpi helper-disturb-mpich helper-off helper-perftest-tag_bw
perftest-tag_bw perftest-put_bw helper-perftest-put_bw perftest-get helper-perftest-get
tool-doctor"
vm2_tests="rdma helper-gaps-openmpi helper-count-openmpi helper-count-mpich
pipeline-openmpi pipeline-example firehose-random firehose-unmap firehose-strict
firehose-race helper-overlap-openmpi helper-oracle tool-try helper-rails-openmpi"
vm3_tests="rdma gaps-mpich-cached helper-gaps-mpich helper-fork-openmpi
helper-fork-mpich helper-disturb-openmpi helper-overlap-mpich pipeline-mpich nas-openmpi
nas-mpich helper-rails-mpich"

# vm TEST...
vm() {
    build_for_guests && "$top/test/vm/run" --builddir "$build" \
        --tests "$(separator=, as_list "$@")"
}

list_vm()  { words "$vm_tests"; }
list_vm1() { words "$vm1_tests"; }
list_vm2() { words "$vm2_tests"; }
list_vm3() { words "$vm3_tests"; }
# shellcheck disable=SC2086 # words are meant to split
inside_vm()  { vm ${@:-$vm_tests}; }
# shellcheck disable=SC2086 # words are meant to split
inside_vm1() { vm ${@:-$vm1_tests}; }
# shellcheck disable=SC2086 # words are meant to split
inside_vm2() { vm ${@:-$vm2_tests}; }
# shellcheck disable=SC2086 # words are meant to split
inside_vm3() { vm ${@:-$vm3_tests}; }

guest13a_tests="rdma helper-verify-openmpi helper-verify-mpich
helper-count-openmpi helper-count-mpich verify-openmpi verify-mpich helper-off
pipeline-example"
guest13b_tests="rdma helper-oracle"
guest13c_tests="rdma"
for test in openmpi mpich; do
    guest13b_tests+=" helper-churn-$test helper-disturb-$test"
    guest13c_tests+=" helper-fork-$test"
done
for test in tag_bw put_bw get; do
    guest13c_tests+=" perftest-$test helper-perftest-$test"
done

# guest13 PART TEST...
guest13() {
    local part=$1 root=$build/grounds/debian13
    shift
    "$top/test/grounds/make" debian13 "$root" ||
        { echo "SKIP $part: no root of Debian 13"; return 0; }
    build_for_guests && "$top/test/vm/run" --builddir "$build" --root "$root" \
        --tests "$(separator=, as_list "$@")"
}

list_guest13a() { words "$guest13a_tests"; }
list_guest13b() { words "$guest13b_tests"; }
list_guest13c() { words "$guest13c_tests"; }
# shellcheck disable=SC2086 # words are meant to split
inside_guest13a() { guest13 guest13a ${@:-$guest13a_tests}; }
# shellcheck disable=SC2086 # words are meant to split
inside_guest13b() { guest13 guest13b ${@:-$guest13b_tests}; }
# shellcheck disable=SC2086 # words are meant to split
inside_guest13c() { guest13 guest13c ${@:-$guest13c_tests}; }

# --- Other UCX, packages, models, mutants

list_suites()     { "$top/test/suites/run" --list | grep -v '^ucx'; }
inside_suites()   { "$top/test/suites/run" --builddir "$build" --only '^[^u]'; }
list_ucxtests()   { "$top/test/suites/run" --list --only '^ucx'; }
inside_ucxtests() {
    "$top/test/suites/run" --builddir "$build" --only '^ucx' --seconds 150
}

list_abi()   { "$top/test/abi/run" --list; }
inside_abi() { "$top/test/abi/run" --builddir "$build"; }

list_ground13() { "$top/test/grounds/run" --list; }
inside_ground13() {
    make -j"$jobs" -C "$build/test/oracle" oracle &&
        "$top/test/grounds/run" --builddir "$build" --oracle 60
}
list_testing() { "$top/test/grounds/run" --ground testing --list; }
inside_testing() {
    make -j"$jobs" -C "$build/test/oracle" oracle || return 1
    "$top/test/grounds/run" --builddir "$build" --ground testing --oracle 60
}
figures_tests='^(versions|time|hit_path)'
list_figures() {
    "$top/test/grounds/run" --ground here --list | grep -E "$figures_tests"
}
inside_figures() {
    "$top/test/grounds/run" --builddir "$build" --ground here \
        --only "$figures_tests"
}
list_protocols()   { "$top/test/protocols/run" --list --all; }
inside_protocols() { "$top/test/protocols/run" --builddir "$build" --all; }
list_package()     { "$top/test/package/run" --list --all; }
inside_package()   { "$top/test/package/run" --builddir "$build" --all; }

list_model()   { "$top/test/models/run" --list; }
inside_model() { "$top/test/models/run" --jobs "$jobs"; }
list_fuzz()    { "$top/test/fuzz/run" --list; }
inside_fuzz()  {
    "$top/test/fuzz/run" --builddir "$build" --seconds 30 --jobs "$jobs" \
        --seed "$(tree_seed "$top")"
}

# By the day some of them, of those that the last such slice did not take: all of them
# in six weeks. With --all all.
mutants_share() {
    local shares=24 day=$(($(date +%s) / 86400)) slices i
    [ -z "${RUNTESTS_ALL:-}" ] || { echo 1/1; return; }
    slices=$(awk '$1 == "mutants" { print $3 }' <<< "$parts")
    IFS=, read -r -a slices <<< "$slices"
    for ((i = 0; i < ${#slices[@]} - 1; ++i)); do
        [ "${slices[i]}" != "${RUNTESTS_SLICE:-$((day % 14 + 1))}" ] || break
    done
    echo $(((day / 14 * ${#slices[@]} + i) % shares + 1))/$shares
}
list_mutants()  { "$top/test/mutation/run" --list --share "$(mutants_share)"; }
inside_mutants() { both_halves mutants mutants_half; }

# Each half in a tree of its own, for a mutant changes one file
mutants_half() {
    local share first of
    share=$(mutants_share) first=${share%/*} of=${share#*/}
    "$top/test/mutation/run" --jobs 1 --builddir "$build/mutation.$HALF" \
        --share "$((first + HALF * of))/$((2 * of))"
}

list_dist() { printf '%s\n' apart distcheck dist-complete; }
inside_dist() {
    local tarball
    verdict apart make -C "$build/test/gtest" apart || return 1
    cd "$build" || return 1
    rm -f ucx-helper-md-*.tar.xz
    # Its own unit tests are compiled once more, from another place
    make -j"$jobs" VERBOSE=yes distcheck \
        DISTCHECK_CONFIGURE_FLAGS="CFLAGS='$tree_flags' CXXFLAGS='$test_flags'" ||
        return 1
    echo "PASS distcheck"
    tarball=$(ls ucx-helper-md-*.tar.xz) && dist_is_complete "$tarball" &&
        echo "PASS dist-complete"
}

# Every file of the repository is in the tarball
dist_is_complete() {
    local missing
    git -C "$top" rev-parse > /dev/null 2>&1 ||
        { echo "SKIP dist-complete: no repository to compare with"; return 1; }
    missing=$(comm -23 \
        <(git -C "$top" ls-files -co --exclude-standard | while read -r file; do
              [ ! -e "$top/$file" ] || echo "$file"
          done | grep -v '\(^\|/\)\.gitignore$' | sort) \
        <(tar -tJf "$1" | sed 's,^[^/]*/,,' | sort))
    [ -z "$missing" ] || { echo "FAIL dist-complete: no $missing" |
                           tr '\n' ' '; echo; return 1; }
}

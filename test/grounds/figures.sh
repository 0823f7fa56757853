#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# What test/grounds/run measures for the table of docs/matrix.md; to be sourced by
# bash. Expects srcdir and BUILDDIR.

# mpi_version openmpi|mpich: a word such as 4.1.4
mpi_version() {
    "mpirun.$1" --version 2> /dev/null |
        awk 'found == "" && match($0, /[0-9]+\.[0-9]+[0-9.]*/) {
                 found = substr($0, RSTART, RLENGTH)
             }
             END { print found }'
}

# version_reaches 1.X.Y MINOR
version_reaches() {
    local minor=${1#1.}
    [ "${minor%%.*}" -ge "$2" ] 2> /dev/null
}

# figure_keep_time POLICY < fig1's line
figure_keep_time() {
    jq -c --arg policy "$1" \
        '{policy: $policy, us: ((.sender.median_us + .receiver.median_us) / 2)}'
}

# figure_time FILE: the medians of the runs of each policy, and their ratio
figure_time() {
    jq -s -c '
        def median: sort | .[length / 2 | floor];
        def of(name): map(select(.policy == name) | .us) | median;
        {predict_us: of("predict"), leave_pinned_us: of("leave_pinned")} |
        .ratio = .predict_us / .leave_pinned_us' "$1"
}

# hit_path_build PREFIX: bench/hit_path for the UCX of PREFIX, with the archives
# that were built here; the last line of build.log says what is missing
hit_path_build() {
    local header=$1/include/ucs/memory/rcache.h define= archives libs
    [ -e "$header" ] && command -v gcc > /dev/null ||
        { echo "no gcc, or no $header" > build.log; return 1; }
    if grep -q ' max_alignment;' "$header"; then
        define=-DHAVE_UCS_RCACHE_PARAMS_T_ALIGNMENT
    fi
    archives=$(grep -o 'src/[^ ]*\.la' "$srcdir/config/libs.am" |
               sed "s,^\(.*\)/\(.*\)\.la,$BUILDDIR/\1/.libs/\2.a,")
    libs=$(sed -n 's/^\(URING\|UNWIND\\)_LIBS = //p' "$BUILDDIR/Makefile")
    # shellcheck disable=SC2086 # words are meant to split
    gcc -O2 -D_GNU_SOURCE $define -I"$srcdir/src" -I"$1/include" \
        -o hit_path "$srcdir"/bench/hit/hit_*.c -L"$1/lib" \
        "$BUILDDIR/src/uct/sm/pin_md/.libs/libuct_pin_md.a" \
        -Wl,--start-group $archives -Wl,--end-group \
        -luct -lucs -lucm $libs -lpthread -ldl -lm > build.log 2>&1
}

#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# When a build tree is to be configured, and configured again; to be sourced by
# bash. What configure can do without it leaves out for good, and says so once:
# a tree that was configured before a package was there goes on without it, and
# its tests are skipped among those that are skipped with reason.

# Flags of the compiler, the same wherever such a tree is built, so that the compiler's
# cache serves all. The unit tests alone are in C++. With optimization they take two to
# four times as long to compile, and test the same. Names and lines are what a report of a
# sanitizer or a stack shows; what a debugger asks for besides takes a fifth of the time.
# shellcheck disable=SC2034 # used where this is sourced
test_flags="-O0 -g1"
# shellcheck disable=SC2034
tree_flags="-O2 -g1"

# What configure can do without: the variable of config.status and its value
# where it was left out ('-': empty), the option that says so, and a command or
# a header that comes with it
tree_optional="
OMPICC          - openmpi-cc mpicc.openmpi
MPICHCC         - mpich-cc   mpicc.mpich
HAVE_GTEST_TRUE # gtest      gtest/gtest.h
HAVE_VERBS_TRUE # verbs      infiniband/verbs.h
"

# tree_was_told DIR OPTION: with or without it was the user's own word
tree_was_told() {
    [ -x "$1/config.status" ] &&
        "$1/config.status" --config | grep -q -- "--with\(out\)\?-$2"
}

# tree_has COMMAND-OR-HEADER: it is there now
tree_has() {
    case $1 in
    *.h) echo "#include <$1>" | g++ -E -x c++ - > /dev/null 2>&1 ;;
    *)   command -v "$1" > /dev/null ;;
    esac
}

# tree_lacks DIR: prints what DIR was configured without though it is there now
# and nobody asked to leave it out; fails if there is no such thing
tree_lacks() {
    local variable value option what lacking=
    while read -r variable value option what; do
        [ -n "$variable" ] || continue
        if grep -qF "S[\"$variable\"]=\"${value#-}\"" "$1/config.status" &&
           ! tree_was_told "$1" "$option" && tree_has "$what"; then
            lacking+=${lacking:+ }$what
        fi
    done <<< "$tree_optional"
    [ -n "$lacking" ] && echo "$lacking"
}

# tree_configure SOURCE DIR OPTIONS...: configures DIR, which is there, if that
# was not done or is out of date; again with the options that it had. Debian's configure
# takes bash for itself, for make and for libtool, which reads its 11,000 lines for each
# source: dash does that in half the time.
tree_configure() {
    local source=$1 dir=$2 lacking shell
    shift 2
    if [ ! -e "$dir/Makefile" ] ||
       [ "$source/configure" -nt "$dir/config.status" ]; then
        shell=$(command -v dash || echo /bin/sh)
        (cd "$dir" && CONFIG_SHELL=$shell "$source/configure" "$@")
    elif lacking=$(tree_lacks "$dir"); then
        echo "configured without $lacking, which is there now: once more"
        (cd "$dir" && ./config.status --recheck && ./config.status)
    fi
}

# tree_seed TOP: the seed of tests that are random. By default that of the commit
# that is tested and the day; it is told, so that a run can be repeated.
# HELPER_MD_SEED names another.
tree_seed() {
    local commit day=$(($(date +%s) / 86400))
    if [ -n "${HELPER_MD_SEED:-}" ]; then
        echo "$HELPER_MD_SEED"
    elif commit=$(git -C "$1" rev-parse --verify -q HEAD 2> /dev/null); then
        echo $(((16#${commit:0:8} + day) & 0xffffffff))
    else
        echo $day
    fi
}

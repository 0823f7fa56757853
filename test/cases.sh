#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# What the scripts of test/*/run have in common: to be sourced by bash, beside
# ledger.sh and options.sh. Expects `out`, a folder, and the options --only and --list.

passed=0 failed=0 skipped=0

# skip WHY: in the process of a case
skip() {
    echo "SKIP: $*"
    exit 77
}

# tell NAME CODE LOG START: one line PASS, SKIP or FAIL, and what was said last
tell() {
    case $2 in
    0)  passed=$((passed + 1)); echo "PASS $1 ($((SECONDS - $4))s)" ;;
    77) skipped=$((skipped + 1))
        echo "SKIP $1: $(sed -n 's/^SKIP: //p' "$3" | tail -n 1)" ;;
    *)  failed=$((failed + 1)); echo "FAIL $1 ($3)"
        tail -n 12 "$3" | sed 's/^/    | /' ;;
    esac
}

# run_case NAME COMMAND...: in $out/NAME.d, which is empty, with a ledger of its own.
# Leaves its exit code in case_code.
run_case() {
    local name=$1 start=$SECONDS
    shift
    mkdir -p "$out/$name.d" && find "$out/$name.d" -mindepth 1 -delete
    ledger_take "$name"
    (cd "$out/$name.d" && "$@") > "$out/$name.log" 2>&1 < /dev/null
    case_code=$?
    ledger_remove || true # where nobody had need of one
    tell "$name" $case_code "$out/$name.log" "$start"
}

# is_wanted NAME: by --only; with --list it is named, and not to run
is_wanted() {
    [[ $1 =~ ${only:-.} ]] || return 1
    [ -z "${list:-}" ] || { echo "$1"; return 1; }
}

# finish WHAT: the last line, and the exit code, which is 0 only if none failed
finish() {
    [ -z "${list:-}" ] || exit 0
    echo "$1: $passed passed, $failed failed, $skipped skipped, ${SECONDS}s"
    [ -z "${strict:-}" ] || failed=$((failed + skipped))
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

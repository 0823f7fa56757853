#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# What a test leaves for test/grounds/matrix, as test/grounds/run leaves it: each
# ground has a folder, and each test one in it. To be sourced by bash.

# ground_here: debian12 or the like, of this machine
ground_here() {
    (. /etc/os-release && echo "$ID${VERSION_ID:-}")
}

# result_keep BUILDDIR GROUND NAME CODE FILE...: the exit code of the test, and of
# its files those that are there, a report by the name that it has with all tests
result_keep() {
    local dir=$1/test/grounds/$2/$3 code=$4 file name
    shift 4
    rm -rf "$dir" && mkdir -p "$dir" || return 1
    for file in "$@"; do
        name=${file##*/}
        [ ! -f "$file" ] || cp "$file" "$dir/${name/#*.report./report.}" ||
            return 1
    done
    echo "$code" > "$dir/result"
}

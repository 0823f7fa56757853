#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Source packages of Debian, in a folder of ours; to be sourced by bash. Expects BUILDDIR.

# Apt with lists and a source of its own: the system's are left alone
apt_own() {
    local dir=$1
    shift
    apt-get -qq -o Dir::Etc::SourceList="$dir/list" \
            -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$dir/lists" \
            -o Dir::Cache="$dir/cache" -o Debug::NoLocking=1 \
            -o Acquire::http::Timeout=20 \
            -o Acquire::Languages=none -o APT::Sandbox::User=root "$@"
}

# source_root RELEASE: the root of that release, if there is one
source_root() {
    case $1 in
    trixie) set -- debian13 ;;
    esac
    echo "${GROUNDS:-$BUILDDIR/grounds}/$1"
}

# source_addresses DIR RELEASE: where its sources may lie, best first. An archive may
# have the packages of a release and not its sources: then what the root's own apt
# knows, and the day's snapshot, by the name that apt has for it since Debian 13.
source_addresses() {
    local root date
    root=$(source_root "$2")
    echo http://deb.debian.org/debian
    sed -n 's,^deb \(\[.*\] \)\?\(http[^ ]*/debian\)/\? .*,\2,p' \
        "$root/etc/apt/sources.list" 2> /dev/null
    date=$(sed -n 's/^Date: //p' "$1"/*.InRelease 2> /dev/null | head -n 1)
    [ -z "$date" ] ||
        echo "http://snapshot.debian.org/archive/debian/$(
              date -u -d "$date" +%Y%m%dT%H%M%SZ)"
    echo http://archive.debian.org/debian
}

# source_fetch_from ADDRESS DIR RELEASE PACKAGE
source_fetch_from() {
    local dir=$2
    rm -rf "$dir/lists" "$dir/cache"
    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" || return 1
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
         "$1 $3 main" > "$dir/list"
    apt_own "$dir" update || return 1
    cp "$dir"/lists/*InRelease "$dir/$3.InRelease" 2> /dev/null
    (cd "$dir" && apt_own "$dir" source --download-only "$4")
}

# source_fetch DIR RELEASE PACKAGE: its tree in DIR/tree, unless there is one
source_fetch() {
    local dir=$1 tarball address tried=
    [ ! -d "$dir/tree" ] || return 0
    mkdir -p "$dir" && : > "$dir/log" || return 1
    # The list grows by what the first address says of the day
    while address=$(source_addresses "$dir" "$2" |
                        grep -vxF "${tried:-none}" | head -n 1) &&
          [ -n "$address" ]; do
        tried+=${tried:+$'\n'}$address
        echo "fetching $3 of $2 from $address ..." >&2
        ! source_fetch_from "$address" "$dir" "$2" "$3" >> "$dir/log" 2>&1 || break
    done
    tarball=$(ls "$dir/$3"_*.orig.tar.* 2> /dev/null | grep -v '\.asc$')
    [ -n "$tarball" ] || return 1
    rm -rf "$dir/new" && mkdir "$dir/new" &&
        tar -xf "$tarball" -C "$dir/new" --strip-components=1 &&
        rm -rf "$dir/lists" "$dir/cache" && mv "$dir/new" "$dir/tree"
}

# source_missing DIR: why there is none
source_missing() {
    local why
    # The version is the one that the archive's list of sources has at present
    why=$(sed -n 's,^E: Failed to fetch .*/\([^/ ]*\)  *404 .*,\1,p' \
              "$1/log" | head -n 1)
    if [ -n "$why" ]; then
        echo "the archive lists $(printf %b "${why//%/\\x}") and does not have it (404)"
        return
    fi
    why=$(sed -n 's/^E: \(Failed to fetch .*\)/\1/p' "$1/log" | head -n 1)
    echo "its sources cannot be fetched: ${why:-see $1/log}"
}

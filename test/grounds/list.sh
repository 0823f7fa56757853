#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The releases of Debian that the helper is tried on beside the machine's own,
# and what their roots hold; to be sourced by bash.

grounds_all="debian13 testing"

# What the programs of the tests are linked with and what the rxe guest needs;
# what packages are built with in Debian 13, too
grounds_common="libucx0 libucx-dev ucx-utils openmpi-bin libopenmpi-dev mpich
libmpich-dev gcc g++ make pkg-config binutils libc6-dev
libjansson-dev liburing-dev zlib1g-dev procps util-linux iproute2 jq"
grounds_debian13="rdma-core ibverbs-utils ibverbs-providers libibverbs-dev kmod
autoconf automake libtool build-essential debhelper"

# ground_suite NAME: the name of the release in the archive
ground_suite() {
    case $1 in
    debian13) echo trixie ;;
    testing)  echo testing ;;
    *)        return 1 ;;
    esac
}

# ground_packages NAME: a line of them
ground_packages() {
    local of=grounds_$1
    echo $grounds_common ${!of:-}
}

# ground_stamp NAME: what the ready-made root is compared with
ground_stamp() {
    echo "$(ground_suite "$1"): $(ground_packages "$1")" | cksum
}

# ground_is_ready NAME DIR
ground_is_ready() {
    [ "$(cat "$2/.ready" 2> /dev/null)" = "$(ground_stamp "$1")" ]
}

# ucx_enter PREFIX: what is started from now on finds that UCX first
ucx_enter() {
    [ -x "$1/bin/ucx_info" ] && [ -e "$1/lib/libucp.so.0" ] ||
        { echo "no UCX in $1, which needs bin/ucx_info and" \
               "lib/libucp.so.0" >&2; exit 1; }
    export PATH=$1/bin:$PATH
    export LD_LIBRARY_PATH=$1/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

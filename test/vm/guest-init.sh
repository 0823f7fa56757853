#!/bin/bash
#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Process 1 of the guest once the host's root file system is there: sets up a
# Soft-RoCE device over a veth pair, runs the tests that /run/out/config names,
# and powers off. Results leave as lines that carry the nonce of this run;
# tests never see it.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/run/tmp LC_ALL=C
# NONCE, TESTS, TEST_TIMEOUT, KERNEL_TREE, SRCDIR, BUILDDIR, OTHER_UCX,
# SHELL_WANTED
source /run/out/config
rm -f /run/out/config

mark() {
    printf '\n@@%s %s\n' "$NONCE" "$*"
}

power_off() {
    sync
    poweroff -f 2>/dev/null
    echo o > /proc/sysrq-trigger
    sleep 30
}

setup_rdma() {
    local module
    for module in veth ib_uverbs rdma_ucm crc32_generic rdma_rxe; do
        modprobe -d "$KERNEL_TREE" "$module" || return 1
    done
    ip link set lo up
    # A RoCE packet of 4096 bytes and its headers must fit in one frame
    ip link add v0 mtu 4200 type veth peer name v1 mtu 4200 || return 1
    ip addr add 10.9.0.1/24 dev v0
    ip link set v0 up
    ip link set v1 up
    rdma link add rxe0 type rxe netdev v0
}

# Seven more, that reach each other and the first one: their own ends of the pairs are
# ports of one bridge
setup_rails() {
    local i
    [ -z "$(rdma link show rxe7/1 2> /dev/null)" ] || return 0
    modprobe -d "$KERNEL_TREE" bridge && ip link add b0 type bridge &&
        ip link set b0 up && ip link set v1 master b0 || return 1
    for i in 1 2 3 4 5 6 7; do
        ip link add "v$((2 * i))" mtu 4200 type veth \
            peer name "v$((2 * i + 1))" mtu 4200 &&
            ip link set "v$((2 * i))" up &&
            ip link set "v$((2 * i + 1))" up master b0 &&
            rdma link add "rxe$i" type rxe netdev "v$((2 * i))" || return 1
    done
    sleep 3 # until the addresses are known to be nobody else's
}

run_test() {
    local name=$1 start=$SECONDS rc
    mark START "$name"
    [[ $name != helper-rails-* ]] || setup_rails
    timeout -k 5 "$TEST_TIMEOUT" \
        bash "$SRCDIR/test/vm/guest-tests.sh" --run "$name" \
        < /dev/null 2>&1 | tee "/run/out/$name.log"
    rc=${PIPESTATUS[0]}
    # Whatever a test left behind must not run beside the next one
    kill -9 -1 2>/dev/null
    case $rc in
    0)       mark PASS "$name" "$((SECONDS - start))s" ;;
    77)      mark SKIP "$name" "$(sed -n 's/^SKIP: //p' "/run/out/$name.log" |
                                  tail -n 1)" ;;
    124|137) mark FAIL "$name" "no end within ${TEST_TIMEOUT}s" ;;
    *)       mark FAIL "$name" "exit code $rc" ;;
    esac
}

hostname guest
echo "127.0.0.1 localhost guest" > /etc/hosts
ulimit -l unlimited
export SRCDIR BUILDDIR OTHER_UCX OUTDIR=/run/out
if [ -n "$OTHER_UCX" ]; then
    export PATH=$OTHER_UCX/bin:$PATH LD_LIBRARY_PATH=$OTHER_UCX/lib
fi
cd /run/tmp || power_off

mark BOOTED "$(uname -r)" "$(cut -d' ' -f1 /proc/uptime)s"
setup_rdma || mark NOTE "no RDMA device"
if [ -n "$SHELL_WANTED" ]; then
    source "$SRCDIR/test/vm/guest-tests.sh" --env
    setsid -c bash -i < /dev/ttyS0 > /dev/ttyS0 2>&1
else
    for name in $TESTS; do
        run_test "$name"
    done
    mark DONE
fi
power_off

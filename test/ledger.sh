#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# A node ledger of a job's own, so that no job that runs beside decides a test
# or a measurement, and nothing stays when it is over; to be sourced by bash.

ledger_version=$(sed -n 's/^#define UCS_LEDGER_VERSION //p' \
    "$(dirname "${BASH_SOURCE[0]}")/../src/ucs/node/ledger.h")

# ledger_take NAME: for what is started from now on. Letters, digits, - and _
ledger_take() {
    export HELPER_MD_NODE_LEDGER=$(printf '%.40s' "${1//[!a-zA-Z0-9_-]/_}")-$$
}

# Fails if no process has opened it
ledger_exists() {
    ipcs -m | grep -q "^$(ledger_key) "
}

# ledger_key [UID [DEVICE]]: of its segment, or of that of a device's registrations,
# FNV-1a of the name as by ucs_ledger_key()
ledger_key() {
    local name=ucx-helper-md-$ledger_version.${1:-$(id -u)}
    name+=.$HELPER_MD_NODE_LEDGER${2:+"+$2"}
    local hash=$((0xcbf29ce484222325)) i code
    for ((i = 0; i < ${#name}; ++i)); do
        printf -v code %d "'${name:i:1}"
        hash=$(((hash ^ code) * 0x100000001b3))
    done
    printf '0x%08x\n' $(((hash ^ (hash >> 32)) & 0xffffffff))
}

# ledger_remove [UID]: at the end of a job, of this user or another. Fails if
# none of its processes opened the ledger.
ledger_remove() {
    local device
    # What killed processes have left
    for device in pin software-nic $(ls /sys/class/infiniband 2> /dev/null); do
        ipcrm -M "$(ledger_key "${1:-$(id -u)}" "$device")" 2> /dev/null
    done
    ipcrm -M "$(ledger_key "$@")" 2> /dev/null
}

#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# Where other releases of Debian are taken from; to be sourced by bash.

# The archive that this machine takes its own packages from
mirror_find() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
        2> /dev/null | grep '/debian/\?$' | head -n 1 |
        grep . || echo http://deb.debian.org/debian
}

# What this machine's own apt is told of how old an archive may be: a mirror that
# stands still is known to be one there
age_options() {
    local key value
    for key in Acquire::Check-Valid-Until Acquire::Check-Date; do
        eval "$(apt-config shell value "$key")"
        [ -z "${value:-}" ] || echo "--aptopt=$key \"$value\""
        value=
    done
}

# debian_make SUITE TARGET OPTIONS...: in a mount namespace of its own, so that
# whatever ends this leaves nothing mounted
debian_make() {
    local suite=$1 target=$2 age
    shift 2
    readarray -t age < <(age_options)
    timeout -k 10 "${GROUND_TIMEOUT:-600}" unshare -m --propagation private \
        mmdebstrap --mode=root "$@" "${age[@]}" \
        --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
        --dpkgopt=force-unsafe-io "$suite" "$target" "$(mirror_find)"
}

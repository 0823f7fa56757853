/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include "hands.h"
#include "helper_md_int.h"

#include <ucs/node/hands.h>
#include <ucs/sys/mem/populate.h>

#include <linux/capability.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * UCP asks for all access, atomics included, only for what the program maps
 * itself. Pools and bounce buffers are smaller, or hide errors.
 */
int uct_helper_hands_is_mapped(unsigned flags)
{
    return ((flags & UCT_MD_MEM_ACCESS_ALL) == UCT_MD_MEM_ACCESS_ALL) &&
           !(flags & (UCT_MD_MEM_FLAG_HIDE_ERRORS | UCT_MD_MEM_FLAG_NONBLOCK));
}

/* @return Nonzero if the kernel lets this thread pin beyond its limit. */
static int uct_helper_hands_is_free(void)
{
    struct __user_cap_header_struct header = {
        .version = _LINUX_CAPABILITY_VERSION_3
    };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    return (syscall(SYS_capget, &header, data) == 0) &&
           (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &
            CAP_TO_MASK(CAP_IPC_LOCK));
}

/* Populate nothing if the memlock limit will refuse the registration */
static int uct_helper_hands_may_lock(size_t length)
{
    struct rlimit limit;

    return ((getrlimit(RLIMIT_MEMLOCK, &limit) == 0) &&
            ((limit.rlim_cur == RLIM_INFINITY) ||
             (limit.rlim_cur >= length))) ||
           uct_helper_hands_is_free();
}

void uct_helper_hands_populate(uct_helper_md_t *md, void *address,
                               size_t length, unsigned flags)
{
    unsigned hands = md->config.populate_threads;
    ucs_populated_t populated;
    unsigned near, most;
    cpu_set_t cpus;

    if ((hands == 0) || (length < UCT_HELPER_HANDS_MIN) ||
        !uct_helper_hands_is_mapped(flags) ||
        !uct_helper_hands_may_lock(length)) {
        return;
    }

    near = ucs_hands_near(&cpus);
    if (hands == UCT_HELPER_HANDS_AUTO) {
        hands = ucs_hands_idle(near);
    }
    if (hands < 2) {
        return; /* the registration does it */
    }
    populated = ucs_populate(address, length, (near > 0) ? &cpus : NULL, hands);
    if (populated.bytes == 0) {
        return;
    }

    /* relaxed: figures for the report */
    ucs_add_relaxed(&md->populated.bytes, populated.bytes);
    most = ucs_load_relaxed(&md->populated.hands);
    while ((populated.hands > most) &&
           !ucs_cas_relaxed(&md->populated.hands, &most, populated.hands)) {
    }
}

int uct_helper_hands_note(const uct_helper_md_t *md, char *note, size_t max)
{
    uint64_t bytes = ucs_load_relaxed(&md->populated.bytes);

    if (bytes == 0) {
        return 0;
    }
    snprintf(note, max,
             "%s: %lu bytes were brought into memory by up to %u threads "
             "before they were registered",
             md->name, bytes, ucs_load_relaxed(&md->populated.hands));
    return 1;
}

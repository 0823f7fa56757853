/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "events_probe.h"
#include <ucs/sys/spawn.h>

#include <ucs/sys/atomic.h>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A library that patches a function does so within so many bytes of its
 * entry. */
#define UCT_HELPER_PROBE_CODE 16

/* One way in which memory leaves a mapping. What is left of it, or has moved,
 * is described by the address and the length that is returned. */
typedef struct uct_helper_probe_way {
    size_t     (*leave)(char **address_p, size_t length);
    const char *reason;
} uct_helper_probe_way_t;

/* This code is compared, for it cannot be tried. */
typedef struct uct_helper_probe_code {
    const char *name;
    const void *entry;
    char       bytes[UCT_HELPER_PROBE_CODE];
} uct_helper_probe_code_t;

static _Atomic(uintptr_t) uct_helper_probe_address;
static _Atomic(int) uct_helper_probe_seen;

/* [E-PROBE] Nonzero while a thread probes: that thread owns what is above, and
 * it alone writes what is below. */
static _Atomic(int) uct_helper_probe_busy;
static _Atomic(uint64_t) uct_helper_probe_next;
static _Atomic(uint64_t) uct_helper_probe_look;
static _Atomic(uint64_t) uct_helper_probe_loads; /* as of the last probe */

static uct_helper_probe_code_t uct_helper_probe_codes[] = {
    {.name = "brk"},
    {.name = "sbrk"}
};

#define UCT_HELPER_PROBE_CODES \
    (sizeof(uct_helper_probe_codes) / sizeof(uct_helper_probe_codes[0]))


void uct_helper_events_probe_saw(uintptr_t address)
{
    if (ucs_unlikely(address == ucs_load_relaxed(&uct_helper_probe_address))) {
        ucs_store_relaxed(&uct_helper_probe_seen, 1);
    }
}

static size_t uct_helper_probe_munmap(char **address_p, size_t length)
{
    return (munmap(*address_p, length) == 0) ? 0 : length;
}

static size_t uct_helper_probe_madvise(char **address_p, size_t length)
{
    madvise(*address_p, length, MADV_DONTNEED);
    return length;
}

static size_t uct_helper_probe_map_over(char **address_p, size_t length)
{
    mmap(*address_p, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
         -1, 0);
    return length;
}

static size_t uct_helper_probe_mremap(char **address_p, size_t length)
{
    void *moved = mremap(*address_p, length, 2 * length, MREMAP_MAYMOVE);

    if (moved == MAP_FAILED) {
        return length;
    }

    *address_p = moved;
    return 2 * length;
}

static const uct_helper_probe_way_t uct_helper_probe_ways[] = {
    {uct_helper_probe_munmap,
     "munmap() is not reported by UCX's memory hooks"},
    {uct_helper_probe_madvise,
     "madvise() is not reported by UCX's memory hooks"},
    {uct_helper_probe_map_over,
     "mmap() over a mapping is not reported by UCX's memory hooks"},
    {uct_helper_probe_mremap,
     "mremap() is not reported by UCX's memory hooks"}
};

#define UCT_HELPER_PROBE_WAYS \
    (sizeof(uct_helper_probe_ways) / sizeof(uct_helper_probe_ways[0]))


/* The event is told from others by the address, which no other thread has; the
 * event of the clean-up does not count. */
static ucs_status_t uct_helper_probe_way(const uct_helper_probe_way_t *way)
{
    size_t length = sysconf(_SC_PAGESIZE);
    char *address;

    address = mmap(NULL, length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
        return UCS_ERR_NO_MEMORY;
    }

    ucs_store_relaxed(&uct_helper_probe_seen, 0);
    ucs_store_relaxed(&uct_helper_probe_address, (uintptr_t)address);
    length = way->leave(&address, length);
    ucs_store_relaxed(&uct_helper_probe_address, 0);
    if (length > 0) {
        munmap(address, length);
    }
    return ucs_load_relaxed(&uct_helper_probe_seen) ? UCS_OK :
                                                      UCS_ERR_UNSUPPORTED;
}

static ucs_status_t uct_helper_probe_all(const char **reason_p)
{
    unsigned i;

    for (i = 0; i < UCT_HELPER_PROBE_WAYS; ++i) {
        if (uct_helper_probe_way(&uct_helper_probe_ways[i]) ==
            UCS_ERR_UNSUPPORTED) {
            *reason_p = uct_helper_probe_ways[i].reason;
            return UCS_ERR_UNSUPPORTED;
        }
    }
    return UCS_OK;
}

static int uct_helper_probe_count(struct dl_phdr_info *info, size_t size,
                                  void *arg)
{
    (void)size;
    *(uint64_t*)arg = info->dlpi_adds;
    return 1;
}

/* Objects that were ever loaded */
static uint64_t uct_helper_probe_count_loads(void)
{
    uint64_t loads = 0;

    dl_iterate_phdr(uct_helper_probe_count, &loads);
    return loads;
}

static void uct_helper_probe_keep_code(void)
{
    uct_helper_probe_code_t *code;
    unsigned i;

    for (i = 0; i < UCT_HELPER_PROBE_CODES; ++i) {
        code        = &uct_helper_probe_codes[i];
        code->entry = dlsym(RTLD_DEFAULT, code->name);
        if (code->entry != NULL) {
            memcpy(code->bytes, code->entry, sizeof(code->bytes));
        }
    }
}

static int uct_helper_probe_same_code(void)
{
    const uct_helper_probe_code_t *code;
    unsigned i;

    for (i = 0; i < UCT_HELPER_PROBE_CODES; ++i) {
        code = &uct_helper_probe_codes[i];
        if ((code->entry != NULL) &&
            (memcmp(code->bytes, code->entry, sizeof(code->bytes)) != 0)) {
            return 0;
        }
    }
    return 1;
}

/* @return The reason, or NULL */
static void *uct_helper_probe_thread(void *arg)
{
    const char *reason = NULL;

    (void)arg;
    uct_helper_probe_all(&reason);
    return (void*)reason;
}

/* A hook may work in one thread only. If no thread can be had there will be no
 * helper either. */
static ucs_status_t uct_helper_probe_elsewhere(const char **reason_p)
{
    void *reason = NULL;
    pthread_t id;

    if (ucs_spawn(&id, 0, uct_helper_probe_thread, NULL) != 0) {
        return UCS_OK;
    }

    pthread_join(id, &reason);
    if (reason == NULL) {
        return UCS_OK;
    }

    *reason_p = reason;
    return UCS_ERR_UNSUPPORTED;
}

ucs_status_t uct_helper_events_probe_first(const char **reason_p)
{
    ucs_status_t status;

    ucs_store_relaxed(&uct_helper_probe_loads, uct_helper_probe_count_loads());
    uct_helper_probe_keep_code();
    status = uct_helper_probe_all(reason_p);
    if (status != UCS_OK) {
        return status;
    }

    return uct_helper_probe_elsewhere(reason_p);
}

void uct_helper_events_probe_forget(void)
{
    ucs_store_relaxed(&uct_helper_probe_busy, 0);
}

int uct_helper_events_probe_is_due(uint64_t now)
{
    if (now >= ucs_load_relaxed(&uct_helper_probe_next)) {
        return 1;
    }

    if (now < ucs_load_relaxed(&uct_helper_probe_look)) {
        return 0;
    }

    ucs_store_relaxed(&uct_helper_probe_look, now + UCT_HELPER_EVENTS_LOOK_NS);
    return uct_helper_probe_count_loads() !=
           ucs_load_relaxed(&uct_helper_probe_loads);
}

ucs_status_t uct_helper_events_probe_again(uint64_t now, const char **reason_p)
{
    ucs_status_t status;
    int idle = 0;

    /* [E-PROBE] The acquire pairs with the release below. */
    if (!ucs_cas_acq_rel(&uct_helper_probe_busy, &idle, 1)) {
        return UCS_OK;
    }

    /* The objects are counted first: what is loaded during the probe is for the
     * next one. */
    ucs_store_relaxed(&uct_helper_probe_loads, uct_helper_probe_count_loads());
    ucs_store_relaxed(&uct_helper_probe_next,
                      now + UCT_HELPER_EVENTS_PROBE_NS);
    status = uct_helper_probe_all(reason_p);
    if ((status == UCS_OK) && !uct_helper_probe_same_code()) {
        *reason_p = "brk() is not hooked by UCX";
        status    = UCS_ERR_UNSUPPORTED;
    }
    /* [E-PROBE] The release pairs with the acquire above. */
    ucs_store_release(&uct_helper_probe_busy, 0);
    return status;
}

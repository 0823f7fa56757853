/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "events_probe.h"
#include <ucs/sys/proc/spawn.h>

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/hash.h>

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* A library patches a function within so many bytes of its entry */
#define UCT_HELPER_PROBE_CODE 16

/* Another thread may patch code while it is read; the next look reads it
 * again */
#ifdef __clang__
#  define UCT_HELPER_PROBE_RACES __attribute__((no_sanitize("thread")))
#else
#  define UCT_HELPER_PROBE_RACES __attribute__((no_sanitize_thread))
#endif

/* Bytes; the program's own hooks may run on it */
#define UCT_HELPER_PROBE_STACK_SIZE (128ul << 10)

/* One way in which memory leaves a mapping. The call must fail. */
typedef struct uct_helper_probe_way {
    void       (*leave)(char *address);
    const char *reason;
} uct_helper_probe_way_t;

/* The beginning of a function */
typedef struct uct_helper_probe_code {
    const char *name;
    const void *entry;
    char       bytes[UCT_HELPER_PROBE_CODE]; /* as they were at the start */
} uct_helper_probe_code_t;

/* The address that the probe unmaps. It is odd, so the kernel refuses; the
 * hooks report it before they call the kernel. */
static char uct_helper_probe_place[2];
static _Atomic(uintptr_t) uct_helper_probe_address;
static _Atomic(int) uct_helper_probe_seen;

/* [E-PROBE] Nonzero while a thread probes: that thread owns the variables
 * above, and only it writes those below. */
static _Atomic(int) uct_helper_probe_busy;
static _Atomic(uint64_t) uct_helper_probe_next;
static _Atomic(uint64_t) uct_helper_probe_sum; /* of the code that was probed */

/* The first ones cannot be tried: their code is compared instead */
static uct_helper_probe_code_t uct_helper_probe_codes[] = {
    {.name = "brk"},
    {.name = "sbrk"},
    {.name = "munmap"},
    {.name = "madvise"},
    {.name = "mmap"},
    {.name = "mremap"}
};

#define UCT_HELPER_PROBE_UNTRIED 2

#define UCT_HELPER_PROBE_CODES \
    (sizeof(uct_helper_probe_codes) / sizeof(uct_helper_probe_codes[0]))

void uct_helper_events_probe_saw(uintptr_t address)
{
    if (ucs_unlikely(address == ucs_load_relaxed(&uct_helper_probe_address))) {
        ucs_store_relaxed(&uct_helper_probe_seen, 1);
    }
}

static void uct_helper_probe_munmap(char *address)
{
    (void)munmap(address, 1);
}

static void uct_helper_probe_madvise(char *address)
{
    (void)madvise(address, 1, MADV_DONTNEED);
}

static void uct_helper_probe_map_over(char *address)
{
    (void)mmap(address, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0);
}

static void uct_helper_probe_mremap(char *address)
{
    (void)mremap(address, 1, 2, MREMAP_MAYMOVE);
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

/* The probe's event is known by its address, which nothing else uses */
static ucs_status_t uct_helper_probe_way(const uct_helper_probe_way_t *way)
{
    char *address = (char*)((uintptr_t)uct_helper_probe_place | 1);
    int saved     = errno;

    ucs_store_relaxed(&uct_helper_probe_seen, 0);
    ucs_store_relaxed(&uct_helper_probe_address, (uintptr_t)address);
    way->leave(address);
    ucs_store_relaxed(&uct_helper_probe_address, 0);
    errno = saved;
    return ucs_load_relaxed(&uct_helper_probe_seen) ? UCS_OK :
                                                      UCS_ERR_UNSUPPORTED;
}

static ucs_status_t uct_helper_probe_all(const char **reason_p)
{
    unsigned i;

    for (i = 0; i < UCT_HELPER_PROBE_WAYS; ++i) {
        if (uct_helper_probe_way(&uct_helper_probe_ways[i]) != UCS_OK) {
            *reason_p = uct_helper_probe_ways[i].reason;
            return UCS_ERR_UNSUPPORTED;
        }
    }
    return UCS_OK;
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

    for (i = 0; i < UCT_HELPER_PROBE_UNTRIED; ++i) {
        code = &uct_helper_probe_codes[i];
        if ((code->entry != NULL) &&
            (memcmp(code->bytes, code->entry, sizeof(code->bytes)) != 0)) {
            return 0;
        }
    }
    return 1;
}

/* A library that patches a function changes this sum. The loader is not asked:
 * a thread of the program may hold its lock for long, in a callback of
 * dl_iterate_phdr(). */
static UCT_HELPER_PROBE_RACES uint64_t uct_helper_probe_sum_code(void)
{
    uint64_t sum = 0;
    const volatile uint64_t *word;
    unsigned i, j;

    for (i = 0; i < UCT_HELPER_PROBE_CODES; ++i) {
        word = uct_helper_probe_codes[i].entry;
        for (j = 0; (word != NULL) &&
                    (j < UCT_HELPER_PROBE_CODE / sizeof(*word)); ++j) {
            sum = (sum + word[j]) * UCS_HASH_FACTOR;
        }
    }
    return sum;
}

/* @return The reason, or NULL */
static void *uct_helper_probe_thread(void *arg)
{
    const char *reason = NULL;

    uct_helper_probe_all(&reason);
    return (void*)reason;
}

/* A hook may work in one thread only, so another one probes too. Without a
 * thread there is no helper either. */
static ucs_status_t uct_helper_probe_elsewhere(const char **reason_p)
{
    ucs_spawned_t thread;
    void *reason;

    if (ucs_spawn(&thread, UCT_HELPER_PROBE_STACK_SIZE, uct_helper_probe_thread,
                  NULL) != 0) {
        return UCS_OK;
    }

    reason = ucs_spawn_join(&thread);
    if (reason == NULL) {
        return UCS_OK;
    }

    *reason_p = reason;
    return UCS_ERR_UNSUPPORTED;
}

ucs_status_t uct_helper_events_probe_first(const char **reason_p)
{
    ucs_status_t status;

    uct_helper_probe_keep_code();
    ucs_store_relaxed(&uct_helper_probe_sum, uct_helper_probe_sum_code());
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
    return (now >= ucs_load_relaxed(&uct_helper_probe_next)) ||
           (uct_helper_probe_sum_code() !=
            ucs_load_relaxed(&uct_helper_probe_sum));
}

ucs_status_t uct_helper_events_probe_again(uint64_t now, const char **reason_p)
{
    ucs_status_t status;
    int idle = 0;

    /* [E-PROBE] The acquire pairs with the release below. */
    if (!ucs_cas_acq_rel(&uct_helper_probe_busy, &idle, 1)) {
        return UCS_OK;
    }

    /* The sum first: the next probe sees what is patched during this one. */
    ucs_store_relaxed(&uct_helper_probe_sum, uct_helper_probe_sum_code());
    ucs_store_relaxed(&uct_helper_probe_next, now + UCT_HELPER_EVENTS_PROBE_NS);
    status = uct_helper_probe_all(reason_p);
    if ((status == UCS_OK) && !uct_helper_probe_same_code()) {
        *reason_p = "brk() is not hooked by UCX";
        status    = UCS_ERR_UNSUPPORTED;
    }
    /* [E-PROBE] The release pairs with the acquire above. */
    ucs_store_release(&uct_helper_probe_busy, 0);
    return status;
}

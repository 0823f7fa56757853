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

/* Ways in which memory leaves a mapping */
#define UCT_HELPER_PROBE_WAYS 4
#define UCT_HELPER_PROBE_UNHEARD(_call) \
    _call " is not reported by UCX's memory hooks"

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

/* The call must fail. @return What to say if it is not reported */
static const char *uct_helper_probe_leave(unsigned way, char *address)
{
    switch (way) {
    case 0:
        (void)munmap(address, 1);
        return UCT_HELPER_PROBE_UNHEARD("munmap()");
    case 1:
        (void)madvise(address, 1, MADV_DONTNEED);
        return UCT_HELPER_PROBE_UNHEARD("madvise()");
    case 2:
        (void)mmap(address, 1, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        return UCT_HELPER_PROBE_UNHEARD("mmap() over a mapping");
    default:
        (void)mremap(address, 1, 2, MREMAP_MAYMOVE);
        return UCT_HELPER_PROBE_UNHEARD("mremap()");
    }
}

/* The probe's event is known by its address, which nothing else uses.
 * @return NULL, or which event was missed; also of a thread's main function */
static void *uct_helper_probe_all(void *arg)
{
    char *address      = (char*)((uintptr_t)uct_helper_probe_place | 1);
    int saved          = errno;
    const char *reason = NULL;
    unsigned way;

    for (way = 0; (way < UCT_HELPER_PROBE_WAYS) && (reason == NULL); ++way) {
        ucs_store_relaxed(&uct_helper_probe_seen, 0);
        ucs_store_relaxed(&uct_helper_probe_address, (uintptr_t)address);
        reason = uct_helper_probe_leave(way, address);
        ucs_store_relaxed(&uct_helper_probe_address, 0);
        if (ucs_load_relaxed(&uct_helper_probe_seen)) {
            reason = NULL;
        }
    }
    errno = saved;
    return (void*)reason;
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

/* A hook may work in one thread only, so another one probes too. Without a
 * thread there is no helper either. */
static const char *uct_helper_probe_elsewhere(void)
{
    ucs_spawned_t thread;

    return (ucs_spawn(&thread, UCT_HELPER_PROBE_STACK_SIZE,
                      uct_helper_probe_all, NULL) == 0) ?
                   ucs_spawn_join(&thread) : NULL;
}

const char *uct_helper_events_probe_first(void)
{
    const char *reason;

    uct_helper_probe_keep_code();
    ucs_store_relaxed(&uct_helper_probe_sum, uct_helper_probe_sum_code());
    reason = uct_helper_probe_all(NULL);
    return (reason != NULL) ? reason : uct_helper_probe_elsewhere();
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

const char *uct_helper_events_probe_again(uint64_t now)
{
    const char *reason;
    int idle = 0;

    /* [E-PROBE] The acquire pairs with the release below. */
    if (!ucs_cas_acq_rel(&uct_helper_probe_busy, &idle, 1)) {
        return NULL;
    }

    /* The sum first: the next probe sees what is patched during this one. */
    ucs_store_relaxed(&uct_helper_probe_sum, uct_helper_probe_sum_code());
    ucs_store_relaxed(&uct_helper_probe_next, now + UCT_HELPER_EVENTS_PROBE_NS);
    reason = uct_helper_probe_all(NULL);
    if ((reason == NULL) && !uct_helper_probe_same_code()) {
        reason = "brk() is not hooked by UCX";
    }
    /* [E-PROBE] The release pairs with the acquire above. */
    ucs_store_release(&uct_helper_probe_busy, 0);
    return reason;
}

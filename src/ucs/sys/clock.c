/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/clock.h>
#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/io/own_fd.h>

#include <ucs/sys/compiler_def.h>

#include <pthread.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#  include <cpuid.h>
#endif

#define UCS_CLOCK_SOURCE_FILE \
    "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define UCS_CLOCK_FIRST_BASELINE_NS 1000000ul
#define UCS_CLOCK_BASELINE_FACTOR   10
#define UCS_CLOCK_SAMPLE_TRIES      8

ucs_clock_scale_t ucs_clock_scales[UCS_CLOCK_MAX_SCALES];
_Atomic(unsigned) ucs_clock_index;
static pthread_once_t ucs_clock_once = PTHREAD_ONCE_INIT;

/* Protects the calibration's state below. Taken with no lock held, and only
 * tried, so that neither a fork nor many threads can block. */
static pthread_mutex_t ucs_clock_lock = PTHREAD_MUTEX_INITIALIZER;
static ucs_clock_scale_t ucs_clock_origin;
static uint64_t ucs_clock_baseline_ns;


int ucs_clock_read(clockid_t clock, uint64_t *ns_p)
{
    struct timespec ts = {0};
    int ret            = clock_gettime(clock, &ts);

    *ns_p = (ts.tv_sec * UCS_CLOCK_NSEC_PER_SEC) + ts.tv_nsec;
    return ret == 0;
}

uint64_t ucs_clock_monotonic(void)
{
    uint64_t ns;

    (void)ucs_clock_read(CLOCK_MONOTONIC, &ns);
    return ns;
}

#if defined(__x86_64__)

static int ucs_clock_counter_is_invariant(void)
{
    unsigned eax, ebx, ecx, edx;

    /* One bit stands for both constant_tsc and nonstop_tsc */
    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
}

#else

static int ucs_clock_counter_is_invariant(void)
{
    return 0;
}

#endif

/* The kernel leaves the counter if it drifts between processors, so its choice
 * is the best test. */
static int ucs_clock_kernel_uses_counter(void)
{
    char name[16];

    return (ucs_own_fd_read_text(UCS_CLOCK_SOURCE_FILE, name, sizeof(name)) >
            0) &&
           !strncmp(name, "tsc", 3);
}

/* A preemption between the two reads spoils a sample: take the tightest of
 * several. */
static void ucs_clock_sample(ucs_clock_scale_t *sample)
{
    uint64_t best = UINT64_MAX;
    uint64_t before, ns, after;
    int i;

    for (i = 0; i < UCS_CLOCK_SAMPLE_TRIES; ++i) {
        before = ucs_clock_counter();
        ns     = ucs_clock_monotonic();
        after  = ucs_clock_counter();
        if ((after - before) < best) {
            best        = after - before;
            sample->tsc = before + (best / 2);
            sample->ns  = ns;
        }
    }
}

/* Called with the lock held, or from the only initializer */
static void ucs_clock_publish(const ucs_clock_scale_t *sample)
{
    unsigned index          = ucs_load_relaxed(&ucs_clock_index);
    ucs_clock_scale_t *next = &ucs_clock_scales[index + 1];
    uint64_t delta_ns       = sample->ns - ucs_clock_origin.ns;
    uint64_t delta_tsc      = sample->tsc - ucs_clock_origin.tsc;

    if ((index + 1 == UCS_CLOCK_MAX_SCALES) || (delta_tsc == 0)) {
        return;
    }

    next->tsc  = sample->tsc;
    next->ns   = (index == 0) ? sample->ns :
                                ucs_clock_scale_apply(&ucs_clock_scales[index],
                                                      sample->tsc);
    next->mult = (uint64_t)((((unsigned __int128)delta_ns) << UCS_CLOCK_SHIFT) /
                            delta_tsc);
    ucs_clock_baseline_ns = delta_ns;
    /* [R-SCALE] pairs with the acquire in ucs_clock_try_read() */
    ucs_store_release(&ucs_clock_index, index + 1);
}

static void ucs_clock_init_once(void)
{
    ucs_clock_scale_t sample;

    if (!ucs_clock_counter_is_invariant() || !ucs_clock_kernel_uses_counter()) {
        return;
    }

    ucs_clock_sample(&ucs_clock_origin);
    do {
        ucs_clock_sample(&sample);
    } while ((sample.ns - ucs_clock_origin.ns) < UCS_CLOCK_FIRST_BASELINE_NS);

    ucs_clock_publish(&sample);
}

void ucs_clock_init(void)
{
    pthread_once(&ucs_clock_once, ucs_clock_init_once);
}

void ucs_clock_refine(void)
{
    ucs_clock_scale_t sample;

    if (!ucs_clock_is_tsc() || (pthread_mutex_trylock(&ucs_clock_lock) != 0)) {
        return;
    }

    if ((ucs_clock_now() - ucs_clock_origin.ns) >=
        (ucs_clock_baseline_ns * UCS_CLOCK_BASELINE_FACTOR)) {
        ucs_clock_sample(&sample);
        ucs_clock_publish(&sample);
    }

    pthread_mutex_unlock(&ucs_clock_lock);
}

int ucs_clock_is_tsc(void)
{
    /* [R-SCALE] pairs with the release in ucs_clock_publish() */
    return ucs_load_acquire(&ucs_clock_index) != 0;
}

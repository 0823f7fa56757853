/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/clock.h>
#include <ucs/sys/io/own_fd.h>

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#  include <cpuid.h>
#endif

#define UCS_CLOCK_SOURCE_FILE \
    "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define UCS_CLOCK_BASELINE_NS  1000000ul
/* Counts of the counter in which a clock that runs passes the baseline: hundredths of a
 * second. The program may have a library before the C library's that lets time stand. */
#define UCS_CLOCK_BASELINE_MAX 100000000ul
#define UCS_CLOCK_SAMPLE_TRIES 8

/* The counter and CLOCK_MONOTONIC at one moment */
typedef struct ucs_clock_sample {
    uint64_t tsc;
    uint64_t ns;
} ucs_clock_sample_t;

ucs_clock_scale_t ucs_clock_scale;
static pthread_once_t ucs_clock_once = PTHREAD_ONCE_INIT;

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

static int ucs_clock_counter_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;

    /* One bit stands for both constant_tsc and nonstop_tsc */
    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
#else
    return 0;
#endif
}

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
static ucs_clock_sample_t ucs_clock_take_sample(void)
{
    ucs_clock_sample_t sample = {0, 0};
    uint64_t best             = UINT64_MAX;
    uint64_t before, ns, after;
    int i;

    for (i = 0; i < UCS_CLOCK_SAMPLE_TRIES; ++i) {
        before = ucs_clock_counter();
        ns     = ucs_clock_monotonic();
        after  = ucs_clock_counter();
        if ((after - before) < best) {
            best       = after - before;
            sample.tsc = before + (best / 2);
            sample.ns  = ns;
        }
    }
    return sample;
}

static void ucs_clock_init_once(void)
{
    ucs_clock_sample_t first, last;

    if (!ucs_clock_counter_is_invariant() || !ucs_clock_kernel_uses_counter()) {
        return;
    }

    first = ucs_clock_take_sample();
    do {
        last = ucs_clock_take_sample();
    } while (((last.ns - first.ns) < UCS_CLOCK_BASELINE_NS) &&
             ((last.tsc - first.tsc) < UCS_CLOCK_BASELINE_MAX));
    if ((last.ns - first.ns) < UCS_CLOCK_BASELINE_NS) {
        return;
    }

    ucs_clock_scale.tsc = last.tsc;
    ucs_clock_scale.ns  = last.ns;
    /* [R-SCALE] pairs with the acquire in ucs_clock_try_read() */
    ucs_store_release(&ucs_clock_scale.mult,
                      (uint64_t)((((unsigned __int128)(last.ns - first.ns))
                                  << UCS_CLOCK_SHIFT) /
                                 (last.tsc - first.tsc)));
}

void ucs_clock_init(void)
{
    pthread_once(&ucs_clock_once, ucs_clock_init_once);
}

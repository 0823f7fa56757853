/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_HELPER_CLOCK_H_
#define UCS_HELPER_CLOCK_H_

#include <ucs/sys/sync/atomic.h>

#include <ucs/sys/compiler_def.h>

#include <stdint.h>
#include <time.h>

/*
 * Monotonic nanoseconds, cheap enough for the hit path. Where the processor's
 * time stamp counter is invariant and the kernel itself keeps time by it, the
 * counter is scaled to nanoseconds of CLOCK_MONOTONIC; everywhere else
 * CLOCK_MONOTONIC is read.
 *
 * The scale is found once, over a millisecond, so it drifts against
 * CLOCK_MONOTONIC by up to 100 ppm. Use it for durations, not to wait for an
 * absolute CLOCK_MONOTONIC time.
 *
 * All functions may be called from any thread.
 */

BEGIN_C_DECLS

#define UCS_CLOCK_NSEC_PER_SEC UINT64_C(1000000000)

#define UCS_CLOCK_SHIFT 32

/** nanoseconds = ns + ((counter - tsc) * mult >> UCS_CLOCK_SHIFT) */
typedef struct ucs_clock_scale {
    uint64_t          tsc;
    uint64_t          ns;
    _Atomic(uint64_t) mult; /**< 0: the counter is not in use */
} ucs_clock_scale_t;

/** The scale of @ref ucs_clock_now, constant once its factor is set. */
extern ucs_clock_scale_t ucs_clock_scale;

/**
 * Calibrate once per process; takes up to two milliseconds the first time and
 * nothing later. Before it @ref ucs_clock_now reads CLOCK_MONOTONIC.
 */
void ucs_clock_init(void);

/**
 * Read one of the system's clocks: those of processor time show what a thread
 * or a process has used.
 *
 * @param [out] ns_p  Nanoseconds; 0 on failure.
 *
 * @return Zero if there is no such clock, as of a process that has ended.
 */
int ucs_clock_read(clockid_t clock, uint64_t *ns_p);

/** @return CLOCK_MONOTONIC, nanoseconds. */
uint64_t ucs_clock_monotonic(void);

/** @return The time stamp counter; 0 where there is none, or no published
 *          scale. */
static inline uint64_t ucs_clock_counter(void)
{
#if defined(__x86_64__)
    /* A builtin: the header of __rdtsc() declares all vector instructions and
     * takes longer to compile than most files here */
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

/**
 * Read a clock without a call.
 *
 * @param [in]  scale  NULL: there is none.
 * @param [out] ns_p   As of @ref ucs_clock_now.
 *
 * @return Zero if it takes a call: the time stamp counter is not in use.
 */
static inline int ucs_clock_try_read(const ucs_clock_scale_t *scale,
                                     uint64_t *ns_p)
{
    uint64_t mult, delta;

    if (ucs_unlikely(scale == NULL)) {
        return 0;
    }

    /* [R-SCALE] pairs with the release in ucs_clock_init_once() */
    mult = ucs_load_acquire(&scale->mult);
    if (ucs_unlikely(mult == 0)) {
        return 0;
    }

    /* Another processor's counter may be some cycles behind */
    delta = ucs_clock_counter() - scale->tsc;
    if (ucs_unlikely((int64_t)delta < 0)) {
        delta = 0;
    }

    *ns_p = scale->ns +
            (uint64_t)(((unsigned __int128)delta * mult) >> UCS_CLOCK_SHIFT);
    return 1;
}

/**
 * @return Nanoseconds. Does not go backwards within a thread; between
 *         processors it is as monotonic as the counters are synchronised.
 */
static inline uint64_t ucs_clock_now(void)
{
    uint64_t ns;

    return ucs_clock_try_read(&ucs_clock_scale, &ns) ? ns :
                                                       ucs_clock_monotonic();
}

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_HELPER_CLOCK_H_
#define UCS_HELPER_CLOCK_H_

#include <ucs/sys/sync/atomic.h>

#include <ucs/sys/compiler_def.h>

#include <stdint.h>
#include <time.h>

/**
 * @file clock.h
 *
 * Monotonic nanoseconds, cheap enough for the hit path. Where the processor's
 * time stamp counter is invariant and the kernel itself keeps time by it, the
 * counter is scaled to nanoseconds of CLOCK_MONOTONIC; everywhere else
 * CLOCK_MONOTONIC is read.
 *
 * Drift against CLOCK_MONOTONIC: at most 100 ppm after @ref ucs_clock_init,
 * which calibrates over one millisecond, and below 1 ppm, apart from the
 * adjustment of CLOCK_MONOTONIC by NTP, once @ref ucs_clock_refine has been
 * called a second later. A refinement changes the rate, never the reading, so
 * time does not jump. Use it for durations, not to wait for an absolute
 * CLOCK_MONOTONIC time.
 *
 * All functions may be called from any thread.
 */

BEGIN_C_DECLS

#define UCS_CLOCK_NSEC_PER_SEC UINT64_C(1000000000)

/**
 * Calibrate once per process; takes up to two milliseconds the first time and
 * nothing later. Before it @ref ucs_clock_now reads CLOCK_MONOTONIC.
 */
void ucs_clock_init(void);


/** nanoseconds = ns + ((counter - tsc) * mult >> UCS_CLOCK_SHIFT) */
typedef struct ucs_clock_scale {
    uint64_t tsc;
    uint64_t ns;
    uint64_t mult;
} ucs_clock_scale_t;

#define UCS_CLOCK_SHIFT      32
#define UCS_CLOCK_MAX_SCALES 8

/* Scale number i is written before the index first becomes i and never again;
 * scale 0 stands for CLOCK_MONOTONIC. For ucs_clock_view() only. */
extern ucs_clock_scale_t ucs_clock_scales[UCS_CLOCK_MAX_SCALES];
extern _Atomic(unsigned) ucs_clock_index;

/** A clock that can be read without a call. Zeroed: it cannot. */
typedef struct ucs_clock_view {
    const _Atomic(unsigned) *index;
    const ucs_clock_scale_t *scales;
} ucs_clock_view_t;

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


/** @return Nanoseconds of CLOCK_MONOTONIC by a scale that has been
 *          published. */
static inline uint64_t ucs_clock_scale_apply(const ucs_clock_scale_t *scale,
                                             uint64_t counter)
{
    uint64_t delta = counter - scale->tsc;

    /* Another processor may have published this scale some cycles ahead */
    if (ucs_unlikely((int64_t)delta < 0)) {
        return scale->ns;
    }

    return scale->ns +
           (uint64_t)(((unsigned __int128)delta * scale->mult) >>
                      UCS_CLOCK_SHIFT);
}


/** @return The clock of @ref ucs_clock_now. */
static inline ucs_clock_view_t ucs_clock_view(void)
{
    return (ucs_clock_view_t){&ucs_clock_index, ucs_clock_scales};
}


/**
 * Read a clock without a call.
 *
 * @param [out] ns_p  As of @ref ucs_clock_now.
 *
 * @return Zero if it takes one: the time stamp counter is not in use.
 */
static inline int ucs_clock_try_read(ucs_clock_view_t view, uint64_t *ns_p)
{
    /* [R-SCALE] pairs with the release in ucs_clock_publish() */
    unsigned index = ucs_load_acquire(view.index);

    if (ucs_unlikely(index == 0)) {
        return 0;
    }

    *ns_p = ucs_clock_scale_apply(&view.scales[index], ucs_clock_counter());
    return 1;
}


/**
 * @return Nanoseconds. Does not go backwards within a thread; between
 *         processors it is as monotonic as the counters are synchronised.
 */
static inline uint64_t ucs_clock_now(void)
{
    uint64_t ns;

    return ucs_clock_try_read(ucs_clock_view(), &ns) ? ns :
                                                       ucs_clock_monotonic();
}


/**
 * Calibrate again over the time since @ref ucs_clock_init, if it has become ten
 * times as long as at the last calibration; else return at once. Called often,
 * by a thread that has time.
 */
void ucs_clock_refine(void);


/** @return Nonzero if the time stamp counter is in use. */
int ucs_clock_is_tsc(void);

END_C_DECLS

#endif

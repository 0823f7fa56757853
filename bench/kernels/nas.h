/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef NAS_H_
#define NAS_H_

#include "../mpi/vmpin.h"

#include <mpi.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file nas.h
 *
 * What the kernels share: the generator of random numbers, the command line,
 * memory, and the line of results. The kernels are written from "The NAS
 * Parallel Benchmarks" (Bailey et al., RNR-94-007); each verifies its result.
 */

/** Multiplier and seed of the benchmarks, RNR-94-007 section 2.3. */
#define NAS_RANDOM_A    UINT64_C(1220703125)
#define NAS_RANDOM_SEED UINT64_C(314159265)

typedef struct nas {
    const char *kernel;
    char       class_id;   /**< S, W, A, B, C, or D */
    unsigned   iterations; /**< From the command line; 0: the class's own */
    unsigned   columns;    /**< ft: ranks along the first dimension */
    int        rank;
    int        size;
    double     start;      /**< Seconds; set by @ref nas_start */
    double     cpu_start;  /**< Of this thread, nanoseconds; likewise */
    vmpin_t    pin;        /**< From @ref nas_init on */
} nas_t;

/**
 * Initialise MPI and read the command line, `CLASS [--iterations N]
 * [--columns N]`; a bad one ends the job with a message and code 2.
 *
 * @param [in] classes  Those that the kernel has.
 *
 * @return Index of the class in @a classes.
 */
int nas_init(nas_t *nas, const char *kernel, const char *classes, int *argc,
             char ***argv);

/** @return Iterations of the command line, or @a own. */
static inline int nas_iterations(const nas_t *nas, int own)
{
    return (nas->iterations > 0) ? (int)nas->iterations : own;
}

/** End the job with a message of this rank. */
void nas_fatal(const nas_t *nas, const char *format, ...)
        __attribute__((format(printf, 2, 3), noreturn));

/** Memory of the job's life, zeroed, from mmap: so that each array has pages of
 *  its own, as a Fortran program's large arrays have. */
void *nas_alloc(size_t bytes);

/** Let every rank come, and start the clock. */
void nas_start(nas_t *nas);

/**
 * Print one JSON object with the result, the memory and the processor time of every
 * rank, and finalize MPI.
 *
 * @param [in] is_good  This rank's finding; all must be good.
 *
 * @return Exit code.
 */
int nas_finish(nas_t *nas, int iterations, int is_good);

/** @return @a a * @a x mod 2^46. */
uint64_t nas_random_next(uint64_t x, uint64_t a);

/** @return @a a ^ @a n mod 2^46. */
uint64_t nas_random_power(uint64_t a, uint64_t n);

/** @return Next number in (0, 1); @a x is advanced. */
double nas_random(uint64_t *x, uint64_t a);

/** @return Nonzero if @a value is @a expected up to a part of @a epsilon. */
int nas_is_close(double value, double expected, double epsilon);

/** Sum over all ranks. */
double nas_sum(double value);

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_FIG1_OPTS_H_
#define BENCH_FIG1_OPTS_H_

#include <stddef.h>

/** fig1_opts_parse() printed the help text; there is nothing to run. */
#define FIG1_OPTS_HELP 1

typedef struct fig1_opts {
    unsigned   iterations;      /**< At least 1 */
    unsigned   num_buffers;     /**< At least 1 */
    size_t     size;            /**< Of a message, bytes; 1 to INT_MAX */
    double     compute_ms;      /**< Between messages, milliseconds */
    int        is_asleep;       /**< Computation sleeps, else it is busy */
    double     jitter;          /**< Computation varies by this share, 0 to 1 */
    double     sample_ms;       /**< Period of the VmPin sampler; 0: none */
    int        is_reused;       /**< Same buffers in every iteration */
    int        is_synchronised; /**< Barrier before each message, not timed */
    int        is_thp;          /**< Leave transparent huge pages alone */
    const char *trace;          /**< Prefix of the VmPin traces, or NULL */
} fig1_opts_t;

/**
 * @param [in] is_talking  Nonzero on the rank that prints help and errors.
 *
 * @return 0, @ref FIG1_OPTS_HELP, or -1 after a line about what is wrong.
 */
int fig1_opts_parse(fig1_opts_t *opts, int argc, char **argv, int is_talking);

#endif

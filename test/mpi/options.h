/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_MPI_OPTIONS_H_
#define TEST_MPI_OPTIONS_H_

#include <stddef.h>
#include <stdint.h>

/**
 * @file options.h
 *
 * Values of options that are alike in the programs of this folder.
 */

/** Says how the program is used, and ends it. */
typedef void (*options_usage_func_t)(void);

/** @return The number in @a text, which may end in k or m (of 1024); if it is
 *          none, @a usage is called. */
uint64_t options_number(const char *text, options_usage_func_t usage);

/** After the last option: calls @a usage if anything is left of the command
 *  line, or unless least <= min_size <= max_size <= most, in bytes. */
void options_check(int argc, size_t least, size_t min_size, size_t max_size,
                   size_t most, options_usage_func_t usage);

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_UNITS_H_
#define UCX_HELPER_TOOL_UNITS_H_

#include <stdint.h>

/**
 * @file units.h
 *
 * Sizes, times and shares: as the user writes them (in the units of UCX's
 * configuration) and as people read them.
 */

/** Large enough for every text that is written here. */
#define TOOL_UNITS_MAX 32

/**
 * Read a size, as the helper does: a whole number with an optional K, M, G or T
 * (powers of 1024, either case, optionally followed by B), a plain B, or `inf`.
 * This is what UCX accepts, less what UCX would silently ignore or overflow.
 *
 * @return 0, or -1 when @a text is no such size or exceeds 2^64-1 bytes, which
 *         is `inf`.
 */
int tool_units_parse_size(const char *text, uint64_t *bytes_p);

/**
 * Read a whole number or `inf`.
 * @return 0, or -1 when @a text is neither or exceeds UINT32_MAX.
 */
int tool_units_parse_count(const char *text, uint64_t *count_p);

/**
 * Read a time: a decimal number followed by m (minutes), s, ms, us, ns, or
 * nothing (seconds), as in UCX.
 * @return 0, or -1 when it is no such time or exceeds one hour.
 */
int tool_units_parse_time(const char *text, double *seconds_p);

/**
 * Read two times with a comma between: BASE,PER_PAGE.
 * @return 0, or -1 when it is no such pair.
 */
int tool_units_parse_cost(const char *text, double *base_p, double *page_p);

/** Bytes with one decimal and a binary unit: `512 B`, `24.0 MiB`. */
const char *tool_units_print_bytes(double bytes, char *buf);

/** Seconds in s, ms, us or ns with three significant digits. */
const char *tool_units_print_seconds(double seconds, char *buf);

/** @a part of @a whole as `97.5 %`, or `-` when @a whole is zero. */
const char *tool_units_print_share(double part, double whole, char *buf);

/** The same with three decimals, for what is small: `0.015 %`; `-` too where
 *  @a part is negative, which is not known. */
const char *tool_units_print_fine_share(double part, double whole, char *buf);

/** Change from @a before to @a now as `-75.0 %`, or `-` from zero. */
const char *tool_units_print_change(double now, double before, char *buf);

#endif

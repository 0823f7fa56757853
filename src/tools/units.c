/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include "units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOOL_UNITS_TIME_MAX 3600.0


/* strto* skip blanks and take signs; a value of ours starts with a digit */
static int tool_units_parse_digits(const char *text, uint64_t *value_p,
                                   const char **rest_p)
{
    unsigned long long value;
    char *end;

    if (!isdigit((unsigned char)text[0])) {
        return -1;
    }

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0) {
        return -1;
    }

    *value_p = value;
    *rest_p  = end;
    return 0;
}

/* Length of the suffix's power of two, or -1 */
static int tool_units_suffix_shift(const char *suffix)
{
    static const char letters[] = "BKMGT";
    const char *letter;

    if (suffix[0] == '\0') {
        return 0;
    }

    letter = strchr(letters, toupper((unsigned char)suffix[0]));
    if ((letter == NULL) ||
        ((suffix[1] != '\0') && ((letter == letters) ||
                                 strcasecmp(suffix + 1, "b")))) {
        return -1;
    }
    return 10 * (int)(letter - letters);
}

int tool_units_parse_size(const char *text, uint64_t *bytes_p)
{
    const char *suffix;
    uint64_t value;
    int shift;

    if (!strcasecmp(text, "inf")) {
        *bytes_p = TOOL_UNITS_INF;
        return 0;
    }

    if (tool_units_parse_digits(text, &value, &suffix) != 0) {
        return -1;
    }

    shift = tool_units_suffix_shift(suffix);
    if ((shift < 0) || (value > ((TOOL_UNITS_INF - 1) >> shift))) {
        return -1;
    }

    *bytes_p = value << shift;
    return 0;
}

int tool_units_parse_count(const char *text, uint64_t *count_p)
{
    const char *rest;
    uint64_t value;

    if (!strcasecmp(text, "inf")) {
        *count_p = TOOL_UNITS_INF;
        return 0;
    }

    if ((tool_units_parse_digits(text, &value, &rest) != 0) ||
        (*rest != '\0') || (value > UINT32_MAX)) {
        return -1;
    }

    *count_p = value;
    return 0;
}

int tool_units_parse_time(const char *text, double *seconds_p)
{
    static const struct {
        const char *name;
        double     seconds;
    } units[] = {
        {"", 1.0}, {"s", 1.0}, {"m", 60.0}, {"ms", 1e-3}, {"us", 1e-6},
        {"ns", 1e-9}
    };
    size_t digits = strspn(text, "0123456789.");
    double value;
    char *end;
    size_t i;

    if (!isdigit((unsigned char)text[0])) {
        return -1;
    }

    value = strtod(text, &end);
    if (end != (text + digits)) { /* 1.2.3, 0x10, 1e5 */
        return -1;
    }

    for (i = 0; i < (sizeof(units) / sizeof(units[0])); ++i) {
        if (!strcmp(end, units[i].name)) {
            *seconds_p = value * units[i].seconds;
            return (*seconds_p <= TOOL_UNITS_TIME_MAX) ? 0 : -1;
        }
    }
    return -1;
}

const char *tool_units_print_bytes(double bytes, char *buf)
{
    static const char *const names[] = {"B",   "KiB", "MiB", "GiB",
                                        "TiB", "PiB", "EiB"};
    size_t i = 0;

    /* 1023.96 would be printed as 1024.0 of the smaller unit */
    while ((i < 6) && (bytes >= ((i == 0) ? 1023.5 : 1023.95))) {
        bytes /= 1024;
        ++i;
    }

    snprintf(buf, TOOL_UNITS_MAX, "%.*f %s", (i == 0) ? 0 : 1, bytes,
             names[i]);
    return buf;
}

const char *tool_units_print_seconds(double seconds, char *buf)
{
    static const char *const names[] = {"s", "ms", "us", "ns"};
    size_t i = 0;

    while ((i < 3) && (seconds > 0) && (seconds < 0.9995)) {
        seconds *= 1000;
        ++i;
    }

    snprintf(buf, TOOL_UNITS_MAX, "%.*f %s",
             (seconds < 9.995) ? 2 : (seconds < 99.95) ? 1 : 0, seconds,
             names[i]);
    return buf;
}

const char *tool_units_print_share(double part, double whole, char *buf)
{
    if (whole > 0) {
        snprintf(buf, TOOL_UNITS_MAX, "%.1f %%", 100 * part / whole);
    } else {
        strcpy(buf, "-");
    }
    return buf;
}

const char *tool_units_print_change(double now, double before, char *buf)
{
    double percent;

    if (before <= 0) {
        strcpy(buf, "-");
        return buf;
    }

    percent = 100 * (now - before) / before;
    if (fabs(percent) < 0.05) {
        percent = 0; /* never -0.0 */
    }
    snprintf(buf, TOOL_UNITS_MAX, "%+.1f %%", percent);
    return buf;
}

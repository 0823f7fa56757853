/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tool.h"

#include <uct/ib/helper_md/config/values.h>

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* No run that is made or replayed takes longer: 11 days */
#define TOOL_UNITS_TIME_MAX_NS 1e15

int tool_units_parse_size(const char *text, uint64_t *bytes_p)
{
    size_t bytes;

    if (!uct_helper_value_size(text, &bytes)) {
        return -1;
    }

    *bytes_p = bytes;
    return 0;
}

int tool_units_parse_count(const char *text, uint64_t *count_p)
{
    unsigned long count;

    if (!uct_helper_value_count(text, &count) ||
        ((count > UINT32_MAX) && strcasecmp(text, "inf"))) {
        return -1;
    }

    *count_p = count;
    return 0;
}

int tool_units_parse_time(const char *text, double *seconds_p)
{
    double ns;

    if (!uct_helper_value_time(text, TOOL_UNITS_TIME_MAX_NS, &ns)) {
        return -1;
    }

    *seconds_p = ns * 1e-9;
    return 0;
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

    snprintf(buf, TOOL_UNITS_MAX, "%.*f %s", (i == 0) ? 0 : 1, bytes, names[i]);
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

const char *tool_units_print_fine_share(double part, double whole, char *buf)
{
    if ((whole > 0) && (part >= 0)) {
        snprintf(buf, TOOL_UNITS_MAX, "%.3f %%", 100 * part / whole);
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

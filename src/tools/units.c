/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tool.h"

#include <math.h>
#include <string.h>

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

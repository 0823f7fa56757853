/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "why.h"

const ucs_regcache_why_name_t ucs_regcache_held_names[] = {
    [UCS_REGCACHE_HELD_IN_USE]  = {"in_use_byte_seconds", "in use"},
    [UCS_REGCACHE_HELD_SOON]    = {"soon_byte_seconds",
                                   "kept: used again sooner than registering "
                                   "pays"},
    [UCS_REGCACHE_HELD_AHEAD]   = {"ahead_byte_seconds",
                                   "registered ahead of its use"},
    [UCS_REGCACHE_HELD_UNKNOWN] = {"unknown_byte_seconds",
                                   "kept: the next use cannot be foretold"},
    [UCS_REGCACHE_HELD_LATE]    = {"late_byte_seconds",
                                   "the helper came too late to give it up"},
    [UCS_REGCACHE_HELD_OTHER]   = {"other_byte_seconds",
                                   "ceiling, posted receive, being deregistered"}
};

const ucs_regcache_why_name_t ucs_regcache_lost_names[] = {
    [UCS_REGCACHE_LOST_FIRST]      = {"lost_first_seconds", "first uses"},
    [UCS_REGCACHE_LOST_UNFORETOLD] = {"lost_unforetold_seconds",
                                      "missed: not foretold"},
    [UCS_REGCACHE_LOST_LATE]       = {"lost_late_seconds",
                                      "missed: the helper came too late"},
    [UCS_REGCACHE_LOST_ROOM]       = {"lost_room_seconds",
                                      "missed: a ceiling had no room"},
    [UCS_REGCACHE_LOST_WAITED]     = {"lost_waited_seconds",
                                      "waited for a registration"},
    [UCS_REGCACHE_LOST_RELEASED]   = {"lost_released_seconds",
                                      "deregistered after a use"}
};

double ucs_regcache_why_held(const ucs_regcache_why_t *why)
{
    double sum = 0;
    int i;

    for (i = 0; i < UCS_REGCACHE_HELD_LAST; ++i) {
        sum += why->held_byte_ns[i];
    }
    return sum;
}

uint64_t ucs_regcache_why_lost(const ucs_regcache_why_t *why)
{
    uint64_t sum = 0;
    int i;

    for (i = 0; i < UCS_REGCACHE_LOST_LAST; ++i) {
        sum += why->lost_ns[i];
    }
    return sum;
}

void ucs_regcache_why_add(ucs_regcache_why_t *sum,
                          const ucs_regcache_why_t *why)
{
    int i;

    for (i = 0; i < UCS_REGCACHE_HELD_LAST; ++i) {
        sum->held_byte_ns[i] += why->held_byte_ns[i];
    }
    for (i = 0; i < UCS_REGCACHE_LOST_LAST; ++i) {
        sum->lost_ns[i] += why->lost_ns[i];
    }
    sum->ahead    += why->ahead;
    sum->ahead_ns += why->ahead_ns;
}

static double ucs_regcache_why_percent(double part, double whole)
{
    return (whole > 0) ? 100 * part / whole : 0;
}

/* @return Nonzero if there is a line: for nothing there is none */
static int ucs_regcache_why_line(const char *margin, const char *text,
                                 double part, double most, double all,
                                 FILE *stream)
{
    return (part > 0) && fprintf(stream, "%s  %-46s %10.3f %% %9.1f %%", margin,
                                 text, ucs_regcache_why_percent(part, most),
                                 ucs_regcache_why_percent(part, all));
}

static void ucs_regcache_why_ahead(const ucs_regcache_why_t *why, FILE *stream)
{
    if (why->ahead > 0) {
        fprintf(stream, "  by %.3f ms on average, %lu times",
                why->ahead_ns * 1e-6 / (double)why->ahead, why->ahead);
    }
}

void ucs_regcache_why_print(const ucs_regcache_why_t *why, double leave_byte_ns,
                            double run_ns, const char *margin, FILE *stream)
{
    double all = ucs_regcache_why_held(why);
    int i;

    fprintf(stream, "%s%-46s %14s %11s\n", margin, "why memory is held",
            "of leave pinned", "of all");
    for (i = 0; i < UCS_REGCACHE_HELD_LAST; ++i) {
        if (ucs_regcache_why_line(margin, ucs_regcache_held_names[i].text,
                                  why->held_byte_ns[i], leave_byte_ns, all,
                                  stream)) {
            if (i == UCS_REGCACHE_HELD_AHEAD) {
                ucs_regcache_why_ahead(why, stream);
            }
            fputc('\n', stream);
        }
    }

    all = (double)ucs_regcache_why_lost(why);
    fprintf(stream, "%s%-46s %14s %11s\n", margin, "why time is lost",
            "of the run", "of all");
    for (i = 0; i < UCS_REGCACHE_LOST_LAST; ++i) {
        if (ucs_regcache_why_line(margin, ucs_regcache_lost_names[i].text,
                                  (double)why->lost_ns[i], run_ns, all,
                                  stream)) {
            fputc('\n', stream);
        }
    }
}

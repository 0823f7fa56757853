/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "values.h"
#include <ucs/sys/io/sink.h>

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UCT_HELPER_JSON_PREFIX "json:"

/* The software NIC waits as long, busy, at each registration. A thousand times
 * a slow device's cost is enough. */
#define UCT_HELPER_COST_BASE_MAX_NS 1e9
#define UCT_HELPER_COST_PAGE_MAX_NS 1e6

/* Share of the run time: less than a second a day cannot be measured */
#define UCT_HELPER_SHARE_MIN 1e-5

/* The program may have chosen a locale in which a decimal number has a comma */
static double uct_helper_value_decimal(const char *text, char **end_p)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    double value;

    if (plain == (locale_t)0) {
        return strtod(text, end_p);
    }
    value = strtod_l(text, end_p, plain);
    freelocale(plain);
    return value;
}

/* Only digits: strtoull() also accepts a sign and leading blanks */
static int uct_helper_value_digits(const char *text, unsigned long *value_p,
                                   char **end_p)
{
    if (!isdigit((unsigned char)*text)) {
        return 0;
    }

    errno    = 0;
    *value_p = strtoul(text, end_p, 10);
    return errno == 0;
}

static int uct_helper_value_unit(const char *unit, unsigned *shift_p)
{
    static const char prefixes[] = "bkmgt";
    const char *prefix;

    *shift_p = 0;
    if (*unit == '\0') {
        return 1;
    }

    prefix = strchr(prefixes, tolower((unsigned char)*unit));
    if (prefix == NULL) {
        return 0;
    }

    *shift_p = 10 * (prefix - prefixes);
    ++unit;
    if ((*shift_p > 0) && (tolower((unsigned char)*unit) == 'b')) {
        ++unit;
    }
    return *unit == '\0';
}

int uct_helper_value_size(const char *text, size_t *value_p)
{
    unsigned long value;
    unsigned shift;
    char *end;

    if (!strcasecmp(text, "inf")) {
        *value_p = SIZE_MAX;
        return 1;
    }

    if (!uct_helper_value_digits(text, &value, &end) ||
        !uct_helper_value_unit(end, &shift) || (value > (SIZE_MAX >> shift))) {
        return 0;
    }

    *value_p = value << shift;
    return 1;
}

int uct_helper_value_count(const char *text, unsigned long *value_p)
{
    /* A size without a unit */
    return (!strcasecmp(text, "inf") ||
            (text[strspn(text, "0123456789")] == '\0')) &&
           uct_helper_value_size(text, value_p);
}

int uct_helper_value_share(const char *text, double *value_p)
{
    double value;
    char *end;

    if ((*text != '.') && !isdigit((unsigned char)*text)) {
        return 0; /* spaces, signs, nan */
    }

    value = uct_helper_value_decimal(text, &end);
    if (*end == '%') {
        value /= 100;
        ++end;
    }
    if ((*end != '\0') || !(value >= UCT_HELPER_SHARE_MIN) || !(value <= 1)) {
        return 0;
    }

    *value_p = value;
    return 1;
}

int uct_helper_value_cpus(const char *text, ucs_cpu_set_t *value_p)
{
    unsigned long first, last;
    ucs_cpu_set_t cpus;
    char *end;

    UCS_CPU_ZERO(&cpus);
    do {
        if (!uct_helper_value_digits(text, &first, &end)) {
            return 0;
        }
        last = first;
        if (((*end == '-') && !uct_helper_value_digits(end + 1, &last, &end)) ||
            (first > last) || (last >= UCS_CPU_SETSIZE)) {
            return 0;
        }
        for (; first <= last; ++first) {
            UCS_CPU_SET(first, &cpus);
        }
        text = end + 1;
    } while (*end == ',');

    if (*end != '\0') {
        return 0;
    }
    *value_p = cpus;
    return 1;
}

/* @return The text after a time of @a max at most, or NULL */
static const char *uct_helper_value_skip_time(const char *text, double max,
                                              double *ns_p)
{
    static const struct {
        const char *name;
        double     ns;
    } units[] = {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6},
                 {"s", 1e9},  {"m", 60e9}, {"", 1e9}};
    size_t length;
    double value;
    unsigned i;
    char *end;

    value = uct_helper_value_decimal(text, &end);
    if ((end == text) || !isfinite(value) || signbit(value)) {
        return NULL;
    }

    length = strcspn(end, ",");
    for (i = 0; i < sizeof(units) / sizeof(units[0]); ++i) {
        if ((strlen(units[i].name) == length) &&
            !strncmp(end, units[i].name, length)) {
            *ns_p = value * units[i].ns;
            return (*ns_p <= max) ? end + length : NULL;
        }
    }

    return NULL;
}

int uct_helper_value_time(const char *text, double max_ns, double *ns_p)
{
    double ns;

    text = uct_helper_value_skip_time(text, max_ns, &ns);
    if ((text == NULL) || (*text != '\0')) {
        return 0;
    }

    *ns_p = ns;
    return 1;
}

int uct_helper_value_cost(const char *text, double *base_ns_p,
                          double *per_page_ns_p)
{
    double base_ns     = 0;
    double per_page_ns = 0;

    if (*text != '\0') {
        text = uct_helper_value_skip_time(text, UCT_HELPER_COST_BASE_MAX_NS,
                                          &base_ns);
        if ((text == NULL) || (*text != ',') ||
            !uct_helper_value_time(text + 1, UCT_HELPER_COST_PAGE_MAX_NS,
                                   &per_page_ns)) {
            return 0;
        }
    }

    *base_ns_p     = base_ns;
    *per_page_ns_p = per_page_ns;
    return 1;
}

int uct_helper_value_told(const char *text, double *told_ns_p)
{
    double told_ns = 0;

    if ((*text != '\0') &&
        (!uct_helper_value_time(text, UCT_HELPER_COST_BASE_MAX_NS, &told_ns) ||
         (told_ns == 0))) {
        return 0;
    }

    *told_ns_p = told_ns;
    return 1;
}

/* An unknown word before a colon is a mistyped form. A file of such a name is
 * given with its folder. */
static int uct_helper_value_has_form(const char *text)
{
    const char *end = text;

    while (isalpha((unsigned char)*end)) {
        ++end;
    }
    return (end > text) && (*end == ':');
}

int uct_helper_value_report(const char *text, uct_helper_report_dest_t *dest)
{
    uct_helper_report_kind_t kind = UCT_HELPER_REPORT_TEXT;

    if (*text == '\0') {
        dest->kind    = UCT_HELPER_REPORT_NONE;
        dest->stream  = 0;
        dest->path[0] = '\0';
        return 1;
    }

    if (!strncasecmp(text, UCT_HELPER_JSON_PREFIX,
                     strlen(UCT_HELPER_JSON_PREFIX))) {
        kind  = UCT_HELPER_REPORT_JSON;
        text += strlen(UCT_HELPER_JSON_PREFIX);
    } else if (uct_helper_value_has_form(text)) {
        return 0;
    }
    if (!strcasecmp(text, "stderr")) {
        text = "/dev/stderr";
    }

    if ((*text == '\0') || (strlen(text) >= sizeof(dest->path))) {
        return 0;
    }

    dest->kind   = kind;
    dest->stream = ucs_sink_stream(text);
    strcpy(dest->path, text);
    return 1;
}

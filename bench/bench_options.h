/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_OPTIONS_H_
#define BENCH_OPTIONS_H_

#include "bench_util.h"

#include <stdio.h>
#include <string.h>

/**
 * @file bench_options.h
 *
 * The command line of a bench or a test program: a table of options, and at most
 * one argument beside them.
 */

typedef enum bench_kind {
    BENCH_FLAG,  /**< int, which becomes `least`; takes no value */
    BENCH_COUNT, /**< unsigned */
    BENCH_SIZE,  /**< size_t, with a suffix k, m or g */
    BENCH_REAL,  /**< double */
    BENCH_TEXT   /**< const char*, any */
} bench_kind_t;

/** A row of the table, which an empty one ends. */
typedef struct bench_option {
    const char   *name;
    bench_kind_t kind;
    void         *field;
    double       least, most; /**< what is allowed, both included */
    const char   *help;       /**< the value, and what it is [default] */
} bench_option_t;

/* @return Zero if the value is allowed */
static inline int bench_option_set(const bench_option_t *option,
                                   const char *value)
{
    size_t size = 0;
    double real;
    char *end;

    if (option->kind == BENCH_FLAG) {
        *(int*)option->field = (int)option->least;
        return 0;
    }
    if (value == NULL) {
        return -1;
    }
    if (option->kind == BENCH_TEXT) {
        *(const char**)option->field = value;
        return 0;
    }
    if (option->kind == BENCH_REAL) {
        real = strtod(value, &end);
        if ((end == value) || (*end != '\0')) {
            return -1;
        }
    } else if (bench_parse_size(value, &size) == 0) {
        real = (double)size;
    } else {
        return -1;
    }
    /* Written so that NaN fails, too */
    if (!(real >= option->least) || !(real <= option->most)) {
        return -1;
    }
    if (option->kind == BENCH_REAL) {
        *(double*)option->field = real;
    } else if (option->kind == BENCH_SIZE) {
        *(size_t*)option->field = size;
    } else {
        *(unsigned*)option->field = (unsigned)size;
    }
    return 0;
}

static inline void
bench_options_help(const char *usage, const bench_option_t *options, FILE *file)
{
    fprintf(file, "Usage: %s\n", usage);
    for (; options->name != NULL; ++options) {
        fprintf(file, "  --%-12s %s\n", options->name, options->help);
    }
}

/**
 * Read a command line.
 *
 * @param [in]  usage      After "Usage: ", before the options.
 * @param [in]  is_silent  Nonzero where another rank speaks.
 * @param [out] argument   The one beside the options, NULL if there is none;
 *                         NULL: none is allowed.
 *
 * @return 0; 1 after help; -1 after a line about what is wrong.
 */
static inline int
bench_options_parse(const char *usage, const bench_option_t *options, char **argv,
                    int is_silent, const char **argument)
{
    const bench_option_t *option;
    char **arg;

    if (argument != NULL) {
        *argument = NULL;
    }
    for (arg = argv + 1; *arg != NULL; ++arg) {
        if (!strcmp(*arg, "--help")) {
            if (!is_silent) {
                bench_options_help(usage, options, stdout);
            }
            return 1;
        }
        for (option = options; (option->name != NULL) &&
             (strncmp(*arg, "--", 2) || strcmp(*arg + 2, option->name));
             ++option) {
        }
        if ((option->name == NULL) && (argument != NULL) &&
            (*argument == NULL) && (**arg != '-')) {
            *argument = *arg;
        } else if (option->name == NULL) {
            if (!is_silent) {
                fprintf(stderr, "unknown argument '%s'\n", *arg);
                bench_options_help(usage, options, stderr);
            }
            return -1;
        } else if (bench_option_set(option, arg[1]) != 0) {
            if (!is_silent) {
                fprintf(stderr, "bad value '%s' of %s, allowed: %g to %g\n",
                        (arg[1] == NULL) ? "" : arg[1], *arg, option->least,
                        option->most);
            }
            return -1;
        } else {
            arg += (option->kind != BENCH_FLAG);
        }
    }
    return 0;
}

/** The same; ends the program after help, with 0, and with 2 if it is wrong. */
static inline void
bench_options_or_exit(const char *usage, const bench_option_t *options,
                      char **argv, const char **argument)
{
    int ret = bench_options_parse(usage, options, argv, 0, argument);

    if (ret != 0) {
        exit((ret > 0) ? 0 : 2);
    }
}

#endif

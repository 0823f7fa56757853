/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_OPTIONS_H_
#define UCX_HELPER_TOOL_OPTIONS_H_

#include "tool.h"

#include <stdio.h>

/**
 * @file options.h
 *
 * Options of a command as tables, of which it may have several. Not thread
 * safe.
 */

#ifdef __cplusplus
extern "C" {
#endif

/** Take a value into @a field. @return 0, or -1 if it is not allowed. */
typedef int (*tool_option_func_t)(void *field, const char *value);

/** An option. */
typedef struct tool_option {
    const char         *name;    /**< Without dashes; may be one letter */
    tool_option_func_t parse;    /**< NULL: no value, sets an int to 1 */
    size_t             offset;   /**< Of the field in the group's object */
    const char         *allowed; /**< In words; NULL: parse() says it */
    const char         *help;    /**< Its line in the help after the name; NULL:
                                      the command's usage has it */
} tool_option_t;

/** A table, ended by an option without a name, and what it sets. */
typedef struct tool_options {
    const tool_option_t *table;
    void                *object;
} tool_options_t;

/**
 * Take all options of a command line, and `--help`; then `optind` is the first
 * argument that is none.
 *
 * @param order   "": wherever they stand; "+": up to the first argument that is
 *                none.
 * @param groups  Ended by one without a table.
 * @param usage   Prints the help.
 *
 * @return -1 to go on, or the status to exit with, after a message.
 */
int tool_options_parse(int argc, char **argv, const char *order,
                       const tool_options_t *groups,
                       void (*usage)(FILE *stream));

/** Print the lines of a table's options. */
void tool_options_help(const tool_option_t *table, FILE *stream);

/** The value of an option is not allowed. @return -1 after a message. */
int tool_options_refuse(const char *name, const char *value,
                        const char *allowed);

/** Take a size into a uint64_t. */
int tool_option_size(void *field, const char *value);

/** Keep a text, as a const char*. */
int tool_option_text(void *field, const char *value);

#ifdef __cplusplus
}
#endif

#endif

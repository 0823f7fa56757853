/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_ARGS_H_
#define UCX_HELPER_TOOL_ARGS_H_

#include "launcher.h"

/**
 * @file args.h
 *
 * A walk over a launcher's command line that tells the launcher's own options
 * from the program and its arguments. A job may have several parts, which `:`
 * separates (all launchers split there, whatever stands around it).
 */

/** What the walk stands on. */
typedef enum tool_args_kind {
    TOOL_ARGS_PART,   /**< The launcher's name, or `:`: a part begins */
    TOOL_ARGS_OPTION, /**< An option of the launcher with its values */
    TOOL_ARGS_PROGRAM /**< The program or one of its arguments */
} tool_args_kind_t;

/** State of a walk; the first four fields are the caller's to read. */
typedef struct tool_args {
    char *const      *argv;
    size_t           at;   /**< Index in argv */
    size_t           span; /**< Arguments that belong together from there */
    tool_args_kind_t kind;
    size_t           count;
    tool_launcher_t  launcher;
} tool_args_t;

/** Begin a walk over the NULL-terminated @a argv, which must outlive it. */
void tool_args_begin(tool_args_t *args, tool_launcher_t launcher,
                     char *const *argv);

/** @return Zero at the end. */
int tool_args_next(tool_args_t *args);

/** Go on to the next launcher's option of these names; zero if none. */
int tool_args_find(tool_args_t *args, const char *const *names);

/** Is @a arg an option (one dash or two, perhaps `=value`) of these names? */
int tool_args_is_option(const char *arg, const char *const *names);

#endif

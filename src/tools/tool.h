/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_H_
#define UCX_HELPER_TOOL_H_

#ifdef HAVE_CONFIG_H
#  include <config.h>
#endif
#include <stddef.h>

/**
 * @file tool.h
 *
 * What all subcommands of `ucx-helper` share: exit statuses, messages, and
 * allocation. The program is single threaded; nothing here is thread safe.
 */

#define TOOL_NAME "ucx-helper"

#ifndef PACKAGE_VERSION
#  define PACKAGE_VERSION "unknown"
#endif

/** Exit statuses; 126, 127 and 128+signal follow the shell's convention. */
enum {
    TOOL_EXIT_OK          = 0,
    TOOL_EXIT_FAILED      = 1, /**< Something could not be read or written */
    TOOL_EXIT_USAGE       = 2, /**< Wrong option or value; nothing was done */
    TOOL_EXIT_CANNOT_EXEC = 126,
    TOOL_EXIT_NOT_FOUND   = 127
};

/** A subcommand: gets its own name as argv[0], returns an exit status. */
typedef int (*tool_command_func_t)(int argc, char **argv);

/** `ucx-helper run`, see run.c. */
int tool_run_main(int argc, char **argv);

/** `ucx-helper try`, see try.h. */
int tool_try_main(int argc, char **argv);

/** `ucx-helper doctor`, see doctor.h. */
int tool_doctor_main(int argc, char **argv);

/** `ucx-helper report`, see merge.c for how ranks are merged. */
int tool_report_main(int argc, char **argv);

/** `ucx-helper import`, see import.c. */
int tool_import_main(int argc, char **argv);

/** `ucx-helper plot`, see plot.c. */
int tool_plot_main(int argc, char **argv);

/** `ucx-helper replay`, see replay.c. */
int tool_replay_main(int argc, char **argv);

/**
 * One line on stderr, prefixed by the program's name. Control characters in
 * the text are replaced, because it may quote a file that is not ours.
 */
void tool_message(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/**
 * The end of what goes to stdout.
 * @return An exit status, after a message if it could not be written.
 */
int tool_finish_output(void);

/**
 * sprintf into a new string. Ends the program when memory is out: there is
 * nothing to save in so small a tool. The caller frees the result.
 */
char *tool_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** Ends the program after a message. */
void tool_out_of_memory(void) __attribute__((noreturn));

/** realloc, calloc and strdup that end the program when memory is out. The
 *  caller frees the results. */
void *tool_realloc(void *ptr, size_t size);
void *tool_calloc(size_t count, size_t size);
char *tool_strdup(const char *str);

/**
 * Room for one more.
 *
 * @param items       So many that it has, of @a size bytes each, or NULL.
 * @param capacity_p  How many there is room for; grows.
 *
 * @return Where they are now.
 */
void *tool_grow(void *items, size_t count, size_t *capacity_p, size_t size);

/** Replace control characters (and DEL) by '?', in place. */
void tool_string_sanitize(char *str);

/**
 * A list of strings that it owns. `items` is NULL-terminated when count > 0,
 * so it can be passed to exec.
 */
typedef struct tool_list {
    char   **items;
    size_t count;
} tool_list_t;

#define TOOL_LIST_INITIALIZER {NULL, 0}

/** Append a copy of @a str, or a text as of @ref tool_format. */
void tool_list_add(tool_list_t *list, const char *str);
void tool_list_addf(tool_list_t *list, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));

/** Append @a str unless it is there already. */
void tool_list_add_unique(tool_list_t *list, const char *str);

/** @return Nonzero when @a str is in the list. */
int tool_list_has(const tool_list_t *list, const char *str);

/** Put @a str, which the list takes over, in the place of an item. */
void tool_list_put(tool_list_t *list, size_t index, char *str);

/** @return The items joined by @a separator; the caller frees it. */
char *tool_list_join(const tool_list_t *list, const char *separator);

/** Bring the items into the order of strcmp(). */
void tool_list_sort(tool_list_t *list);

/** Release the items; the list is empty, and may be used again. */
void tool_list_cleanup(tool_list_t *list);

#endif

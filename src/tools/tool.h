/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_H_
#define UCX_HELPER_TOOL_H_

#include <config.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * What all subcommands of `ucx-helper` share: exit statuses, messages,
 * allocation, files, units (units.c) and options (options.c). The program is single
 * threaded; nothing here is thread safe.
 */

#define TOOL_NAME "ucx-helper"

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

/** `ucx-helper plot`, see replay_plot.c. */
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

/** Sort numbers. @return The one in the middle; there is memory for one at least. */
double tool_median(double *numbers, size_t count);

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

/**
 * Read a regular file or a pipe, such as `<(zcat x)`, gzip'ed or not, to its
 * end. A device, socket or folder is refused without being opened.
 *
 * @param [in]  max     Bytes of its content, at most.
 * @param [out] size_p  Bytes read.
 *
 * @return What is in it and a zero behind, which is the caller's to free; NULL
 *         after a message that names the file.
 */
char *tool_input_read(const char *file, size_t max, size_t *size_p);

/*
 * units.c: sizes, times and shares, as people read them
 */

/** Large enough for every text that is written here. */
#define TOOL_UNITS_MAX 32

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

/*
 * options.c: options of a command as tables, of which it may have several
 */

/** Take a value into @a field. @return 0, or -1 if it is not allowed. */
typedef int (*tool_option_func_t)(void *field, const char *value);

/** An option. */
typedef struct tool_option {
    const char         *name;    /**< Without dashes; `-x` if one letter */
    tool_option_func_t parse;    /**< NULL: no value, sets an int to 1 */
    size_t             offset;   /**< Of the field in the group's object */
    const char         *allowed; /**< In words; NULL: all are, or it has none */
    const char         *help;    /**< Its line in the help after the name; NULL:
                                      not for users */
    const char         *variable; /**< Of the environment, which gets the value as
                                       well; NULL: none */
} tool_option_t;

/** A table, ended by an option without a name, and what it sets. */
typedef struct tool_options {
    const tool_option_t *table;
    void                *object;
} tool_options_t;

/** What the help says around the options, as argp has it. */
typedef struct tool_usage {
    const char *arguments; /**< Behind the command's name */
    const char *text;      /**< Before the options; after them what stands behind
                                a '\v' */
} tool_usage_t;

/**
 * Take all options of a command line, by argp. Ends the program with the help, or
 * with TOOL_EXIT_USAGE after a message.
 *
 * @param flags   ARGP_IN_ORDER: up to the first argument that is none; 0:
 *                wherever they stand.
 * @param groups  Ended by one without a table.
 *
 * @return The index of the first argument that is no option.
 */
int tool_options_parse(int argc, char **argv, unsigned flags,
                       const tool_options_t *groups,
                       const tool_usage_t *usage);

/** Values as the helper reads them (config/values.h): a size or a count of 32 bits,
 *  each of which may be `inf`, UINT64_MAX, into a uint64_t. */
int tool_option_size(void *field, const char *value);
int tool_option_count(void *field, const char *value);

/** Likewise a share, and a time of a million seconds at most, in seconds, into a
 *  double; a cost (base and page, in nanoseconds) into two of them. */
int tool_option_share(void *field, const char *value);
int tool_option_time(void *field, const char *value);
int tool_option_cost(void *field, const char *value);

/** Keep a text, as a const char*. */
int tool_option_text(void *field, const char *value);

/** @return Which of @a count words it is, in any case as UCX reads it, or @a count. */
int tool_word_find(const char *word, const char *const *words, int count);

/** @return The ucs_regcache_policy_t of this name, or its LAST. */
int tool_policy_find(const char *name);

#endif

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_REPORT_H_
#define UCX_HELPER_TOOL_REPORT_H_

#include <tools/tool.h>

#include <jansson.h>

/*
 * A rank's report (docs/report.md is its specification): reading it, merging
 * those of a job, and printing the outcome. Reports stay the JSON objects that
 * they are.
 */

/** What is read; another version is refused. */
#define TOOL_REPORT_VERSION 3

/** How a field is checked and merged. */
typedef enum tool_field_kind {
    TOOL_FIELD_ID,       /**< a whole number of one rank; not merged */
    TOOL_FIELD_TEXT,     /**< all that the ranks say */
    TOOL_FIELD_PARTS,    /**< likewise, all parts between commas */
    TOOL_FIELD_MODELLED, /**< null, or the cost that was added; largest */
    TOOL_FIELD_WHOLE,    /**< a whole number, sum */
    TOOL_FIELD_REAL,     /**< sum */
    TOOL_FIELD_LONGEST,  /**< maximum */
    TOOL_FIELD_PRICE,    /**< computed from the other sums */
    TOOL_FIELD_MODEL,    /**< a learned cost, mean weighted by samples */
    TOOL_FIELD_NOTES     /**< each once, with the ranks that made it */
} tool_field_kind_t;

/** A field; the table holds them in the order of the JSON. */
typedef struct tool_field {
    const char        *key;
    tool_field_kind_t kind;
} tool_field_t;

/** All fields that are checked, but version; the last has no key. */
extern const tool_field_t tool_fields[];

/**
 * Read a report.
 *
 * @return The report, which the caller owns, with all of @ref tool_fields, and
 *         its file's name as `file`; NULL after a message that names the file
 *         and what is wrong.
 */
json_t *tool_report_read(const char *file);

/** @return A number of a report, or -1 where it is null. */
double tool_report_number(const json_t *report, const char *key);

/** @return A text of a report. */
const char *tool_report_text(const json_t *report, const char *key);

/** @return A JSON string, which the caller owns; of a text that is not UTF-8, such as
 *          a file's name, with '?' in place of each byte that is not ASCII. */
json_t *tool_report_string(const char *text);

/** The ranks of a job and their sum. */
typedef struct tool_merge {
    json_t *ranks;       /**< Array of reports, ordered by rank, host and pid */
    json_t *total;       /**< NULL until it is computed */
    size_t host_count;
    double rank_seconds; /**< Sum of elapsed_seconds */
} tool_merge_t;

/** An empty merge. */
void tool_merge_init(tool_merge_t *merge);

/**
 * Add a rank's report, which the merge takes over.
 *
 * @return 0, or -1, after a message, when the same process was added before.
 */
int tool_merge_add(tool_merge_t *merge, json_t *report);

/** Bring the ranks, one at least, into order and compute the total. */
void tool_merge_finish(tool_merge_t *merge);

/** Release the reports of all ranks. */
void tool_merge_cleanup(tool_merge_t *merge);

/** Print words and table for people, without control characters. */
void tool_table_print(const tool_merge_t *merge, FILE *stream);

/**
 * Add the folder's regular files whose names end so, in their order.
 * @return How many; -1 after a message.
 */
int tool_report_list_dir(const char *dir, const char *suffix,
                         tool_list_t *files);

/** Merge what the ranks wrote to @a dir. If none did the total is NULL, after a
 *  message. */
void tool_report_collect(const char *dir, tool_merge_t *merge);

/**
 * At the end of `run`: merge what the ranks wrote to @a dir into a table on
 * stderr.
 *
 * @param other_hosts  Ranks may have run elsewhere: say how to get theirs.
 *
 * @return Ranks in it.
 */
size_t tool_report_finish_run(const char *dir, int other_hosts);

/** Remove @a dir, the files in it, and its folders with what is in these. */
void tool_report_remove_dir(const char *dir);

#endif

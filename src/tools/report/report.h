/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPORT_H_
#define UCX_HELPER_TOOL_REPORT_H_

#include <tools/tool.h>
#include <ucs/regcache/region/why.h>

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/**
 * @file report.h
 *
 * A rank's report (docs/report.md is its specification), reading it, merging
 * those of a job, and printing the outcome.
 */

/** What is read; another version is refused. */
#define TOOL_REPORT_VERSION 2

/** Largest whole number that is read: all JSON readers keep it exactly. */
#define TOOL_REPORT_WHOLE_MAX ((int64_t)1 << 53)

/** Largest other number that is read, in its own unit. */
#define TOOL_REPORT_REAL_MAX 1e24

/** seconds = a * pages + b */
typedef struct tool_report_model {
    double  a_seconds_per_page;
    double  b_seconds;
    int64_t samples;
} tool_report_model_t;

/**
 * One rank's figures, or those of all ranks.
 * Invariants: uses == on_time + late + missed + cold; what is held for each
 * reason adds up to pinned_byte_seconds, what is lost by each cause to
 * lost_seconds.
 */
typedef struct tool_report {
    char                *file; /**< Where it was read; not in the JSON */
    char                *host;
    char                *command;
    char                *policy;
    char                *ucx_version;
    char                *lower_domain;
    int64_t             pid;
    int64_t             rank; /**< -1 when the rank is not known */

    int                 is_modelled; /**< A modelled cost was added */
    double              modelled_base_seconds;
    double              modelled_per_page_seconds;

    double              elapsed_seconds;
    int64_t             pinned_peak_bytes;
    double              pinned_byte_seconds;
    int64_t             leave_pinned_bytes;
    int64_t             leave_pinned_peak_bytes;
    double              leave_pinned_byte_seconds;
    double              held[UCS_REGCACHE_HELD_LAST]; /**< byte-seconds */
    int64_t             registered_ahead;
    double              ahead_seconds; /**< that these waited for uses */
    int64_t             in_use_peak_bytes;
    int64_t             uses;
    int64_t             on_time;
    int64_t             late;
    int64_t             missed;
    int64_t             cold;
    int64_t             wasted;
    int64_t             evicted;
    int64_t             invalidated;
    int64_t             heard;
    int64_t             heard_lost;
    int64_t             announced;
    int64_t             announced_on_time;
    int64_t             announced_late;
    int64_t             idle_steps;
    int64_t             helper_switches;
    double              helper_cpu_seconds;
    double              lost_seconds;        /**< By ranks */
    double              lost[UCS_REGCACHE_LOST_LAST]; /**< Its parts */
    double              max_slowdown;        /**< Share of the run time */
    double              price_j;             /**< Share of the run time */
    int64_t             soft_ceiling_bytes;
    int64_t             soft_ceiling_raises;
    int64_t             registrations; /**< Made */
    int64_t             repinned;      /**< Of them, of what was given up */
    int64_t             prefetched;    /**< Of them, by a device that pages */
    int64_t             covers;        /**< Of them, for neighbours as well */
    int64_t             spared;        /**< First uses that had one by these */
    double              spared_seconds; /**< That they would have waited */
    double              hit_ns_p50; /**< Negative when no hit was sampled */
    double              hit_ns_p99; /**< Negative when no hit was sampled */
    tool_report_model_t register_model;
    tool_report_model_t deregister_model;
    tool_list_t         notes;
    json_t              *node; /**< Keys that only the ranks have */
} tool_report_t;

/** How a field is read, written and merged. */
typedef enum tool_field_kind {
    TOOL_FIELD_ID,      /**< int64_t of one rank; not merged */
    TOOL_FIELD_TEXT,    /**< char*, all that the ranks say */
    TOOL_FIELD_PARTS,   /**< char*, all parts between commas */
    TOOL_FIELD_WHOLE,   /**< int64_t, sum */
    TOOL_FIELD_SAMPLES, /**< int64_t, sum, or the most that is read */
    TOOL_FIELD_REAL,    /**< double, sum */
    TOOL_FIELD_LONGEST, /**< double, maximum */
    TOOL_FIELD_ADDED,   /**< double, maximum; its object may be null */
    TOOL_FIELD_WORST,   /**< double or null, maximum */
    TOOL_FIELD_MEAN,    /**< double or null, weighted mean */
    TOOL_FIELD_TERM,    /**< double of any sign, weighted mean */
    TOOL_FIELD_PRICE    /**< double, computed from the other sums */
} tool_field_kind_t;

/** A field; the table holds them in the order of the JSON. */
typedef struct tool_field {
    const char        *object; /**< That it is in, NULL: the report */
    const char        *key;
    tool_field_kind_t kind;
    size_t            offset;  /**< In tool_report_t */
    size_t            weight;  /**< Offset of the int64_t that weighs it */
} tool_field_t;

/** All fields but the notes; the last has no key. */
extern const tool_field_t tool_fields[];

/** The field in a report. */
#define tool_field_whole(_report, _field) \
    ((int64_t*)(void*)((char*)(_report) + (_field)->offset))
#define tool_field_real(_report, _field) \
    ((double*)(void*)((char*)(_report) + (_field)->offset))
#define tool_field_text(_report, _field) \
    ((char**)(void*)((char*)(_report) + (_field)->offset))

/**
 * Read a report.
 *
 * @param report  Set only on success; tool_report_cleanup() frees it.
 *
 * @return 0, or -1 after a message that names the file and what is wrong.
 */
int tool_report_read(const char *file, tool_report_t *report);

/** Free what the report owns. */
void tool_report_cleanup(tool_report_t *report);

/** The ranks of a job and their sum. */
typedef struct tool_merge {
    tool_report_t *ranks; /**< Ordered by rank, host and pid */
    size_t        count;
    tool_report_t total;
    size_t        host_count;
    double        rank_seconds; /**< Sum of elapsed_seconds */
} tool_merge_t;

/** An empty merge. */
void tool_merge_init(tool_merge_t *merge);

/**
 * Add a rank's report, which the merge takes over.
 *
 * @return 0, or -1, after a message, when the same process was added before
 *         or the sums leave the range; the report is then freed.
 */
int tool_merge_add(tool_merge_t *merge, tool_report_t *report);

/** Bring the ranks into order and compute the total. */
void tool_merge_finish(tool_merge_t *merge);

/** @return The merge as an object, which the caller owns. */
json_t *tool_merge_to_json(const tool_merge_t *merge);

/** Release the reports of all ranks. */
void tool_merge_cleanup(tool_merge_t *merge);

/** Print words and table for people. */
void tool_table_print(const tool_merge_t *merge, FILE *stream);

/**
 * At the end of `run`: merge what the ranks wrote to @a dir into a table on
 * stderr.
 *
 * @param other_hosts  Ranks may have run elsewhere: say how to get theirs.
 */
void tool_report_finish_run(const char *dir, int other_hosts);

/** Remove @a dir and the files in it (it has no folders). */
void tool_report_remove_dir(const char *dir);

#endif

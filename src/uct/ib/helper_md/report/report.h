/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_REPORT_H_
#define UCT_HELPER_REPORT_H_

#include <uct/ib/helper_md/config/helper_config.h>
#include <ucs/node/node.h>
#include <ucs/regcache/stats.h>

#include <stdio.h>

/*
 * The report, as text or as one JSON object. Units: bytes, seconds, counts.
 */

BEGIN_C_DECLS

#define UCT_HELPER_REPORT_VERSION   3
#define UCT_HELPER_REPORT_NOTES_MAX 16
#define UCT_HELPER_REPORT_NOTE_MAX  192
#define UCT_HELPER_REPORT_NAMES_MAX 512

/** A report's contents, of all domains of the process together. */
typedef struct uct_helper_figures {
    ucs_regcache_stats_t stats;
    double               elapsed_seconds; /**< while any domain was open */
    double               helper_cpu_seconds;
    uint64_t             heard_lost;      /**< operations of the program that
                                               were lost */
    const char           *policy;
    double               max_slowdown;    /**< share of the run time that leave
                                               pinned's memory is worth */
    char                 ucx_version[32];
    char                 lower_domain[UCT_HELPER_REPORT_NAMES_MAX];
    int                  modelled;        /**< a modelled cost was added */
    double               modelled_base_ns;
    double               modelled_per_page_ns;
    char               notes[UCT_HELPER_REPORT_NOTES_MAX]
                            [UCT_HELPER_REPORT_NOTE_MAX];
    unsigned             num_notes;
    int                  has_node;        /**< the process was in the ledger */
    ucs_node_figures_t   node;
    int                  has_quota;       /**< registrations were counted */
    ucs_node_figures_t   quota;           /**< of the device with most of them,
                                               one each for a byte */
} uct_helper_figures_t;

/** @return Time lost and memory held at the price of max_slowdown, together as
 *          a share of the run time; leaving everything pinned costs
 *          max_slowdown. 0 if no time has passed. */
double uct_helper_report_price(const uct_helper_figures_t *figures);

/** Add a name to lower_domain, unless it is there; too long: cut. */
void uct_helper_report_add_domain(uct_helper_figures_t *figures,
                                  const char *name);

/** Add what is known of the registrations of one device: the one with most
 *  counts. */
void uct_helper_report_add_quota(uct_helper_figures_t *figures,
                                 const ucs_node_figures_t *quota);

/** Add a note, as printf() has it, unless it is there or there is no room. */
void uct_helper_report_add_note(uct_helper_figures_t *figures,
                                const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/**
 * Add a note for a helper that rested: since when, how long and why, so that
 * the reports of all ranks show which had no helper; and for one on whose processors
 * ranks waited.
 */
void uct_helper_report_note_node(uct_helper_figures_t *figures);

/**
 * Check whether the report can be written at the end. Leaves nothing behind and
 * opens regular files only.
 *
 * @param [out] error  One line that names the option, the value and the reason,
 *                     set on error only.
 *
 * @return UCS_OK or UCS_ERR_IO_ERROR.
 */
ucs_status_t uct_helper_report_check(const uct_helper_report_dest_t *dest,
                                     char *error, size_t max);

/**
 * Write the report. A file appears complete or not at all and replaces what was
 * there, also a link. Waits a second at most for a stream's reader.
 *
 * @return UCS_OK, or UCS_ERR_IO_ERROR, for a file after one line of warning.
 */
ucs_status_t uct_helper_report_write(const uct_helper_report_dest_t *dest,
                                     const uct_helper_figures_t *figures);

/* report_print.c: the two forms. Errors stay in the stream's error indicator. */

/** One JSON object with the keys of docs/report.md. */
void uct_helper_report_print_json(FILE *stream,
                                  const uct_helper_figures_t *figures);

/** Some lines of text: what was pinned, what leave pinned would hold, how the
 *  uses found their buffers. The rest is in the JSON, of which ucx-helper report
 *  makes words. */
void uct_helper_report_print_text(FILE *stream,
                                  const uct_helper_figures_t *figures);

END_C_DECLS

#endif

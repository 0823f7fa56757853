/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_REPORT_PRINT_H_
#define UCT_HELPER_REPORT_PRINT_H_

#include "report.h"

#include <stdio.h>

/**
 * @file report_print.h
 *
 * The two forms of a report. Errors stay in the stream's error indicator.
 */

BEGIN_C_DECLS

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

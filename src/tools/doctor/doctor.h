/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_DOCTOR_H_
#define UCX_HELPER_TOOL_DOCTOR_H_

#include <tools/run/run.h>

#include <stddef.h>

/*
 * Looks at the machine. Whether the helper would work, the helper itself says:
 * a process that runs as a rank would opens UCX with it (probe.c), and what is
 * logged there is read here.
 */

/** What a line means for the helper. */
typedef enum tool_doctor_level {
    TOOL_DOCTOR_OK,
    TOOL_DOCTOR_ATTENTION, /**< it works, and something is lost */
    TOOL_DOCTOR_STOPS      /**< it stays off, or saves nothing */
} tool_doctor_level_t;

/** A thing that was looked at. */
typedef struct tool_doctor_line {
    tool_doctor_level_t level;
    const char          *name; /**< of the thing, a constant */
    char                *text; /**< what was found */
    const char          *cure; /**< a constant; NULL with TOOL_DOCTOR_OK */
} tool_doctor_line_t;

/** What has been found so far. */
typedef struct tool_doctor {
    const tool_run_t   *run;
    tool_doctor_line_t *lines;
    size_t             count;
    size_t             capacity;
} tool_doctor_t;

/** What registering takes here, nanoseconds an operation and a page. */
typedef struct tool_doctor_cost {
    double reg_ns, reg_page_ns, dereg_ns, dereg_page_ns;
} tool_doctor_cost_t;

/**
 * Add a line, unless it is there.
 *
 * @param level  Nonzero also as the outcome of a comparison: attention.
 * @param cure   What to do, if the level is not TOOL_DOCTOR_OK.
 * @param text   As of @ref tool_format; it is taken over.
 */
void tool_doctor_say(tool_doctor_t *doctor, tool_doctor_level_t level,
                     const char *name, const char *cure, char *text);

/** ucx.c: UCX, its memory domains, the helper in them. */
void tool_doctor_ucx(tool_doctor_t *doctor);

/**
 * Measure what registering takes, within a second, as a rank would but without the
 * helper; a line for each domain.
 *
 * @param [in]  domains  Names; the first domain that is among them counts. NULL: the
 *                       first.
 * @param [out] cost     Of that one; may be NULL.
 *
 * @return 0, or -1: there is none, and @a cost is not set.
 */
int tool_doctor_measure(tool_doctor_t *doctor, const char *domains,
                        tool_doctor_cost_t *cost);

/** Forget the lines. */
void tool_doctor_cleanup(tool_doctor_t *doctor);

/**
 * The helper could not start: say on stderr what stops it or needs attention.
 *
 * @param run  As it was asked for.
 */
void tool_doctor_short(const tool_run_t *run);

/** probe.c: what the process that opens UCX does.
 *  @param what  "helper" or "cost". */
int tool_doctor_probe(const char *what);

#endif

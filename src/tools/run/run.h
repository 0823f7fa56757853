/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_RUN_H_
#define UCX_HELPER_TOOL_RUN_H_

#include "settings.h"

#include <tools/tool.h>

/**
 * @file run.h
 *
 * What `run` was asked for, and the environment in which it starts the command.
 */

/** The command line. */
typedef struct tool_run {
    const char  *values[TOOL_SETTING_COUNT]; /**< NULL where not given */
    const char  *trace;                      /**< folder, NULL: no trace */
    int         software_nic;
    int         pipeline;                    /**< its MPI layer as well */
    int         firehose;                    /**< its MPI layer as well */
    int         verbose;
    char *const *command;
    char        *library;    /**< for LD_PRELOAD */
    char        *report_dir; /**< our own, NULL when ranks report elsewhere */
} tool_run_t;

/** @return The report as the ranks will see it, NULL when there is none. */
const char *tool_run_report(const tool_run_t *run);

/**
 * Set this process's environment for the command.
 *
 * @param names  Receives the variables that ranks need, in order; must be
 *               empty.
 */
void tool_run_set_environment(const tool_run_t *run, tool_list_t *names);

#endif

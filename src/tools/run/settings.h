/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_SETTINGS_H_
#define UCX_HELPER_TOOL_SETTINGS_H_

#include <stddef.h>

/**
 * @file settings.h
 *
 * The options of `run` that mirror an option of the environment: one table
 * holds name, variable, allowed values and their check.
 */

#define TOOL_ENV_HELPER   "UCX_MD_HELPER"
#define TOOL_ENV_REPORT   "UCX_MD_HELPER_REPORT"
#define TOOL_ENV_PIN      "UCX_MD_PIN"
#define TOOL_ENV_PIN_COST "UCX_MD_PIN_COST"

/** `--report` value that asks for no report at all. */
#define TOOL_REPORT_NONE "none"

/** One option with a value. */
typedef struct tool_setting {
    const char *name;                 /**< Long option without dashes */
    const char *variable;             /**< Environment variable it sets */
    const char *argument;             /**< Name of the value in the help */
    const char *help;                 /**< One line */
    const char *allowed;              /**< What the check accepts, in words */
    int        (*check)(const char *value); /**< 0 when allowed */
    const char *const *words;         /**< Without a check: one of these, in
                                           any case; else what it knows */
} tool_setting_t;

/** All settings, ended by one without a name. */
extern const tool_setting_t tool_settings[];

/** How many there are. */
#define TOOL_SETTING_COUNT 12

/** @return The setting of @a variable, which must be in the table. */
const tool_setting_t *tool_setting_of(const char *variable);

/**
 * Check @a value; when it is not allowed, print a line that names the option,
 * the value and what is allowed.
 *
 * @return 0, or -1 when it is not allowed.
 */
int tool_setting_check(const tool_setting_t *setting, const char *value);

/**
 * @return The file of a report option (`FILE` or `json:FILE`), NULL when it
 *         names none.
 */
const char *tool_report_option_file(const char *value);

#endif

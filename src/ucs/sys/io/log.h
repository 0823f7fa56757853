/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_LOG_H_
#define UCS_LOG_H_

#include <ucs/debug/log_def.h>

/**
 * @file log.h
 *
 * Messages of the helper: one line each, through UCX's log, under the name
 * HELPER and with a level of its own (UCX_MD_HELPER_LOG). Never to be called
 * from a memory event, for a log line allocates.
 */

BEGIN_C_DECLS

extern ucs_log_component_config_t ucs_helper_log_config;

#define ucs_helper_log(_level, _fmt, ...) \
    ucs_log_component(_level, &ucs_helper_log_config, _fmt, ##__VA_ARGS__)

#define ucs_helper_error(_fmt, ...) \
    ucs_helper_log(UCS_LOG_LEVEL_ERROR, _fmt, ##__VA_ARGS__)
#define ucs_helper_warn(_fmt, ...) \
    ucs_helper_log(UCS_LOG_LEVEL_WARN, _fmt, ##__VA_ARGS__)
#define ucs_helper_debug(_fmt, ...) \
    ucs_helper_log(UCS_LOG_LEVEL_DEBUG, _fmt, ##__VA_ARGS__)


/** Set the level, UCS_LOG_LEVEL_WARN at the start. */
void ucs_helper_log_set_level(ucs_log_level_t level);


/**
 * Call before the first use of @ref ucs_helper_log_hush, any number of times.
 */
void ucs_helper_log_init(void);


/**
 * Suppress, or allow again, all of UCX's messages from the calling thread. The
 * verbs domain of UCX 1.13 logs a failed registration as an error in spite of
 * UCT_MD_MEM_FLAG_HIDE_ERRORS; for a registration ahead of its use it is none.
 */
void ucs_helper_log_hush(int hush);

END_C_DECLS

#endif

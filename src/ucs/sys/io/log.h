/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_LOG_H_
#define UCS_LOG_H_

#include <ucs/debug/log_def.h>

/*
 * Messages of the helper: one line each, through UCX's log, under the name
 * HELPER and with a level of its own (UCX_MD_HELPER_LOG). Never to be called
 * from a memory event, for a log line allocates. A line is lost where the log is a
 * stream of the program's that is not ours to write to (stream.h).
 */

BEGIN_C_DECLS

extern ucs_log_component_config_t ucs_helper_log_config;

/** As ucs_log_component(), for messages under another name than HELPER. */
#define ucs_helper_log_as(_config, _level, _fmt, ...) \
    do { \
        if (ucs_log_component_is_enabled(_level, _config) && \
            ucs_helper_log_hold()) { \
            ucs_log_component(_level, _config, _fmt, ##__VA_ARGS__); \
            ucs_helper_log_release(); \
        } \
    } while (0)

/** Of the software NIC, at UCX's own level. */
#define ucs_helper_log_plain(_level, _fmt, ...) \
    ucs_helper_log_as(&ucs_global_opts.log_component, _level, _fmt, ##__VA_ARGS__)

#define ucs_helper_log(_level, _fmt, ...) \
    ucs_helper_log_as(&ucs_helper_log_config, _level, _fmt, ##__VA_ARGS__)

#define ucs_helper_error(_fmt, ...) \
    ucs_helper_log(UCS_LOG_LEVEL_ERROR, _fmt, ##__VA_ARGS__)
#define ucs_helper_warn(_fmt, ...) \
    ucs_helper_log(UCS_LOG_LEVEL_WARN, _fmt, ##__VA_ARGS__)
#define ucs_helper_debug(_fmt, ...) \
    ucs_helper_log(UCS_LOG_LEVEL_DEBUG, _fmt, ##__VA_ARGS__)

/**
 * Set how detailed lines are at most. Before other threads log.
 *
 * @param level   Of UCX's log; UCS_LOG_LEVEL_WARN at the start.
 * @param system  Of the system's log; UCS_LOG_LEVEL_FATAL, as at the start: none.
 */
void ucs_helper_log_set_levels(ucs_log_level_t level, ucs_log_level_t system);

/** Where the system's log listens; for tests. */
extern const char *ucs_helper_log_system_socket;

/** @return Nonzero if a line may be written, before @ref ucs_helper_log_release. */
int ucs_helper_log_hold(void);
void ucs_helper_log_release(void);

/**
 * Call when a domain is opened, before the first use of @ref ucs_helper_log_hush.
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

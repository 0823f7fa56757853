/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_CONFIG_H_
#define UCT_HELPER_CONFIG_H_

#include <ucs/regcache/regcache.h>

#include <ucs/config/types.h>
#include <ucs/type/cpu_set.h>

#include <limits.h>

/*
 * Options of the helper and of the software NIC: one UCX configuration table
 * with the prefix "MD_", so that the environment variables are UCX_MD_HELPER,
 * UCX_MD_HELPER_POLICY, ..., UCX_MD_PIN, UCX_MD_PIN_COST, ucx.conf is honoured,
 * and `ucx_info -c` lists them. The table holds strings, and values are checked
 * here: a bad one costs one clear line and the helper, never the job, and UCX's
 * own check does not say what is allowed.
 */

BEGIN_C_DECLS

/** Prefix of environment variables and prefix of the table. */
#define UCT_HELPER_ENV_PREFIX   "UCX_"
#define UCT_HELPER_TABLE_PREFIX "MD_"

/** How unmapped memory is noticed (UCX_MD_HELPER_MONITOR). The kernel alone is
 *  no choice: its event comes too late when one thread unmaps memory and
 *  another maps it again. */
typedef enum uct_helper_monitor {
    UCT_HELPER_MONITOR_AUTO, /**< the kernel, where it can, and UCX's hooks */
    UCT_HELPER_MONITOR_UCM   /**< UCX's hooks of mmap() and the like alone */
} uct_helper_monitor_t;

/** Kind of the report. */
typedef enum uct_helper_report_kind {
    UCT_HELPER_REPORT_NONE,
    UCT_HELPER_REPORT_TEXT,
    UCT_HELPER_REPORT_JSON
} uct_helper_report_kind_t;

/** Destination of a report. */
typedef struct uct_helper_report_dest {
    uct_helper_report_kind_t kind;
    int                      stream; /**< stdout or stderr; 0: the file */
    char                     path[PATH_MAX]; /**< as given, %h %p %r not yet
                                                  expanded */
} uct_helper_report_dest_t;

/** How the helper thread is bound. */
typedef enum uct_helper_cpu_mode {
    UCT_HELPER_CPU_INHERIT, /**< as the thread that starts it */
    UCT_HELPER_CPU_AUTO,    /**< near the device, away from the main thread */
    UCT_HELPER_CPU_LIST     /**< to the given processors */
} uct_helper_cpu_mode_t;

/** As many registrations as the device says that it allows. */
#define UCT_HELPER_REGIONS_AUTO 0

/** Which processor time the helper takes. The last two are the paper's. */
typedef enum uct_helper_cpu_policy {
    UCT_HELPER_CPU_POLICY_IDLE,         /**< only what nobody else wants */
    UCT_HELPER_CPU_POLICY_CONSERVATIVE, /**< what it needs, if one of the node's
                                             idle cores is for its rank; else it
                                             rests */
    UCT_HELPER_CPU_POLICY_AGGRESSIVE    /**< what it needs */
} uct_helper_cpu_policy_t;

/** Options of the helper, and after them those of the software NIC. */
#define UCT_HELPER_NUM_OPTIONS 21

/** Their texts, filled by UCX's parser, in the order of helper_options.h. */
typedef struct uct_helper_options {
    char *text[UCT_HELPER_NUM_OPTIONS];
} uct_helper_options_t;

/** Options that have been checked. */
typedef struct uct_helper_config {
    int                      helper;          /**< UCX_MD_HELPER */
    ucs_regcache_policy_t    policy;
    double                   max_slowdown;    /**< share of the run time */
    size_t                   region_bytes;    /**< held for each registration
                                                   beside its pages */
    size_t                   min_size;        /**< bytes */
    size_t                   max_pinned;   /**< bytes, SIZE_MAX: no ceiling */
    unsigned long            max_regions;     /**< of a device, of all ranks of
                                                   the node; ULONG_MAX: any number,
                                                   UCT_HELPER_REGIONS_AUTO */
    size_t                   node_max_pinned; /**< bytes, SIZE_MAX: no budget */
    uct_helper_monitor_t     monitor;
    uct_helper_report_dest_t report;
    char                     trace[PATH_MAX]; /**< empty: none; %h %p %r not yet
                                                   expanded */
    uct_helper_cpu_mode_t    cpu_mode;
    ucs_cpu_set_t            cpus;            /**< with UCT_HELPER_CPU_LIST */
    uct_helper_cpu_policy_t  cpu_policy;
    ucs_regcache_cover_kind_t coalesce;
    ucs_log_level_t          log_level;
    ucs_log_level_t          syslog_level;    /**< UCS_LOG_LEVEL_FATAL: none */
    int                      pin;             /**< UCX_MD_PIN */
    double                   pin_base_ns;     /**< MODELLED cost, nanoseconds */
    double                   pin_per_page_ns;
    unsigned long            pin_max_regions; /**< of all processes of the node;
                                                   ULONG_MAX: any number */
    double                   pin_told_ns;     /**< told to UCX, 0: as
                                                   measured */
    int                      pin_verify;
} uct_helper_config_t;

/**
 * Check @a options and convert them.
 *
 * @param [in]  options  None of the strings may be NULL.
 * @param [out] config   Always filled. After a bad UCX_MD_HELPER* `helper` is
 *                       0, after a bad UCX_MD_PIN* `pin` is 0.
 * @param [out] error    One line that names the first bad option, its value
 *                       and what is allowed; empty if all are good.
 * @param [in]  max      Size of @a error in bytes.
 *
 * @return UCS_OK or UCS_ERR_INVALID_PARAM.
 */
ucs_status_t uct_helper_config_parse(const uct_helper_options_t *options,
                                     uct_helper_config_t *config, char *error,
                                     size_t max);

/**
 * Read the options of this process from environment and ucx.conf. A bad value
 * has been reported in one log line when this returns.
 *
 * @param [out] config  As by @ref uct_helper_config_parse.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, or the error of UCX's parser, after
 *         which helper and pin are off.
 */
ucs_status_t uct_helper_config_read(uct_helper_config_t *config);

END_C_DECLS

#endif

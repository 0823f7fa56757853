/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_ABI_CONFIG_H_
#define UCT_ABI_CONFIG_H_

#include <ucs/config/parser.h>

/*
 * Option tables for the parser of the running UCX. An option's description and
 * the arguments of the parser grew from release to release. The parser also
 * walks all registered tables (`ucx_info -c`, unknown variables), so a table in
 * another release's layout must never be registered.
 */

BEGIN_C_DECLS

/** An option, whose value is a string. */
typedef struct uct_abi_option {
    const char *name;
    const char *value; /**< by default */
    const char *doc;
} uct_abi_option_t;

/** A table of options, of which the process has one. */
typedef struct uct_abi_config {
    const char *name;    /**< heading in lists */
    const char *prefix;  /**< of each option in this table */
    const void *options; /**< structures that begin with an option each; the last
                              has none's name */
    size_t     stride;   /**< of these */
    size_t     size;     /**< of what is filled: a string for each option */
} uct_abi_config_t;

/** List @a config among UCX's options, if the running release is known.
 *  Idempotent. Not thread-safe: for constructors. */
void uct_abi_config_list(const uct_abi_config_t *config);

/** The counterpart, for destructors. */
void uct_abi_config_unlist(void);

/**
 * Fill @a opts from environment and ucx.conf. Not thread-safe.
 *
 * @param [in]  env_prefix  Before each variable.
 * @param [out] opts        config->size bytes; strings in it are to be released
 *                          with @ref uct_abi_config_release.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED if the running UCX is unknown; what UCX's
 *         parser returns; UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_abi_config_fill(const uct_abi_config_t *config,
                                 const char *env_prefix, void *opts);

/** Release what @ref uct_abi_config_fill has put into @a opts. */
void uct_abi_config_release(void *opts);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_ABI_CONFIG_H_
#define UCT_ABI_CONFIG_H_

#include <ucs/config/parser.h>

/**
 * @file uct_abi_config.h
 *
 * Option tables for the parser of the running UCX. An option's description and
 * the arguments of the parser grew from release to release. The parser also
 * walks all registered tables (`ucx_info -c`, unknown variables), so a table in
 * another release's layout must never be registered.
 */

BEGIN_C_DECLS

/** A string, as UCS_CONFIG_TYPE_STRING, without the function that 1.17 added
 *  and earlier libraries lack. */
#define UCT_ABI_CONFIG_STRING \
    { \
        .read    = ucs_config_sscanf_string, \
        .write   = ucs_config_sprintf_string, \
        .clone   = ucs_config_clone_string, \
        .release = ucs_config_release_string, \
        .help    = ucs_config_help_generic, \
        .arg     = "string" \
    }

/** A table of options as the headers describe it that this is built with. The
 *  process has one of it. Constant after its registration. */
typedef struct uct_abi_config {
    const char         *name;   /**< heading in lists */
    const char         *prefix; /**< of each option in this table */
    ucs_config_field_t *fields; /**< ends with an option without name */
    size_t             size;    /**< of the structure that is filled */
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

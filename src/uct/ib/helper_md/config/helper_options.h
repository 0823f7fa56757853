/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_OPTIONS_H_
#define UCT_HELPER_OPTIONS_H_

#include "helper_config.h"

#include <uct/base/uct_abi_config.h>

/**
 * @file helper_options.h
 *
 * The table that UCX's parser fills, and `ucx_info -c` lists: names, defaults
 * and help of the options. All of them are strings, at the offsets of
 * @ref uct_helper_options_t. Ended by a field without a name.
 */

BEGIN_C_DECLS

extern ucs_config_field_t uct_helper_options_table[];

/** The table in the form that the running UCX can read. */
extern const uct_abi_config_t uct_helper_options;

END_C_DECLS

#endif

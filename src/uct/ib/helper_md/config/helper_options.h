/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_OPTIONS_H_
#define UCT_HELPER_OPTIONS_H_

#include "helper_config.h"

#include <uct/base/uct_abi_config.h>

/*
 * The table of options. UCX's parser fills @ref uct_helper_options_t by it, and
 * `ucx_info -c` lists names, defaults and help.
 */

BEGIN_C_DECLS

/** An option, and how its text is checked. */
typedef struct uct_helper_option {
    uct_abi_option_t  super;
    /** UCX's, or of the same form: returns zero for invalid text and leaves the
     *  value. */
    int               (*read)(const char *text, void *value_p,
                              const void *words);
    const char *const *words;   /**< known ones; NULL: none */
    size_t            value;    /**< its offset in @ref uct_helper_config_t */
    const char        *allowed; /**< for a user */
} uct_helper_option_t;

/** Ended by one without a name. */
extern const uct_helper_option_t uct_helper_options_table[];

/** The table in the form that the running UCX can read. */
extern const uct_abi_config_t uct_helper_options;

END_C_DECLS

#endif

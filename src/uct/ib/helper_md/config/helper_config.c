/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "helper_options.h"

#include <ucs/sys/io/log.h>

#include <ucs/sys/preprocessor.h>

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define UCT_HELPER_ERROR_MAX 512

/* @return Zero for invalid text; the configuration is unchanged then */
static int uct_helper_config_set(uct_helper_config_t *config,
                                 const uct_helper_option_t *option,
                                 const char *text)
{
    return option->read(text, UCS_PTR_BYTE_OFFSET(config, option->value),
                        option->words);
}

static void uct_helper_config_set_defaults(uct_helper_config_t *config)
{
    const uct_helper_option_t *option = uct_helper_options_table;

    memset(config, 0, sizeof(*config));
    for (; option->super.name != NULL; ++option) {
        (void)uct_helper_config_set(config, option, option->super.value);
    }
}

ucs_status_t uct_helper_config_parse(const uct_helper_options_t *options,
                                     uct_helper_config_t *config, char *error,
                                     size_t max)
{
    const uct_helper_option_t *option = uct_helper_options_table;
    ucs_status_t status               = UCS_OK;
    const char *text;
    unsigned i;
    int is_pin;

    error[0] = '\0';
    uct_helper_config_set_defaults(config);
    for (i = 0; option->super.name != NULL; ++i, ++option) {
        text = options->text[i];
        if (uct_helper_config_set(config, option, text)) {
            continue;
        }

        /* Each switch comes before its options, so nothing turns it on again */
        is_pin = !strncmp(option->super.name, "PIN", 3);
        *(is_pin ? &config->pin : &config->helper) = 0;
        if (status == UCS_OK) {
            snprintf(error, max,
                     UCT_HELPER_ENV_PREFIX UCT_HELPER_TABLE_PREFIX
                     "%s: '%s' is not valid, allowed: %s; %s stays off",
                     option->super.name, text, option->allowed,
                     is_pin ? "the software NIC" : "the helper");
            status = UCS_ERR_INVALID_PARAM;
        }
    }

    return status;
}

ucs_status_t uct_helper_config_read(uct_helper_config_t *config)
{
    char error[UCT_HELPER_ERROR_MAX];
    uct_helper_options_t options;
    ucs_status_t status;

    /* The user may set any variable of such a program: it would write files and
     * pin pages with rights that the user does not have. */
    if (getauxval(AT_SECURE)) {
        uct_helper_config_set_defaults(config);
        ucs_helper_warn("this program has more rights than its user (setuid or "
                        "file capabilities): UCX_MD_HELPER and UCX_MD_PIN stay "
                        "off");
        return UCS_OK;
    }

    status = uct_abi_config_fill(&uct_helper_options, UCT_HELPER_ENV_PREFIX,
                                 &options);
    if (status != UCS_OK) {
        uct_helper_config_set_defaults(config);
        ucs_helper_error("options cannot be read: %s; the helper stays off",
                         ucs_status_string(status));
        return status;
    }

    status = uct_helper_config_parse(&options, config, error, sizeof(error));
    ucs_helper_log_set_levels(config->log_level, config->syslog_level);
    if (status != UCS_OK) {
        ucs_helper_warn("%s", error);
    }

    uct_abi_config_release(&options);
    return status;
}

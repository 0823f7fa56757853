/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The text of each option: a line each, in the order of the table;
 * the rest is a pattern for the name of a report.
 */
#include "fuzz.h"

#include <uct/ib/helper_md/config/helper_config.h>
#include <uct/ib/helper_md/report/report_path.h>

#include <string.h>

/* A good configuration can be used, a bad one is off and says why */
static void fuzz_options_parse(const uct_helper_options_t *options)
{
    uct_helper_config_t config;
    ucs_status_t status;
    char error[256];

    memset(error, 'x', sizeof(error));
    status = uct_helper_config_parse(options, &config, error, sizeof(error));
    FUZZ_CHECK(memchr(error, '\0', sizeof(error)) != NULL);
    FUZZ_CHECK((status == UCS_OK) == (error[0] == '\0'));
    FUZZ_CHECK((status == UCS_OK) || !config.helper || !config.pin);
    FUZZ_CHECK(strchr(error, '\n') == NULL);
    FUZZ_CHECK(memchr(config.report.path, '\0', sizeof(config.report.path)) !=
               NULL);
    FUZZ_CHECK((config.pin_base_ns >= 0) && (config.pin_per_page_ns >= 0) &&
               (config.pin_told_ns >= 0));
    FUZZ_CHECK(config.policy < UCS_REGCACHE_POLICY_LAST);
}

static void fuzz_options_expand(const char *pattern)
{
    char path[64];

    if (uct_helper_report_expand(pattern, path, sizeof(path)) == UCS_OK) {
        FUZZ_CHECK(memchr(path, '\0', sizeof(path)) != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);
    char *rest = copy;
    static char empty[] = "";
    uct_helper_options_t options;
    unsigned i;

    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, data, size);
    copy[size] = '\0';
    for (i = 0; i < UCT_HELPER_NUM_OPTIONS; ++i) {
        options.text[i] = (rest != NULL) ? strsep(&rest, "\n") : empty;
    }
    fuzz_options_parse(&options);
    fuzz_options_expand((rest != NULL) ? rest : empty);
    free(copy);
    return 0;
}

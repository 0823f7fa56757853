/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "uct_abi_config.h"
#include "uct_abi.h"

#include <stdlib.h>
#include <string.h>

/* An option's description in the running layout, as words: name, default,
 * text and offset, five functions, from 1.17 on a sixth, and an argument */
#define UCT_ABI_CONFIG_WORDS_WITHOUT_DOC 10

/* A table as UCX links it: 1.15 put the flags behind it */
typedef struct uct_abi_config_entry {
    const char      *name;
    const char      *prefix;
    void            *table;
    size_t          size;
    ucs_list_link_t list;
    uint64_t        flags;
} uct_abi_config_entry_t;

typedef ucs_status_t (*uct_abi_config_fill_table_func_t)(
        void *opts, void *table, const char *env_prefix,
        const char *table_prefix, int ignore_errors);
typedef ucs_status_t (*uct_abi_config_fill_entry_func_t)(
        void *opts, uct_abi_config_entry_t *entry, const char *env_prefix,
        int ignore_errors);
typedef void (*uct_abi_config_any_func_t)(void);

static uct_abi_config_entry_t uct_abi_config_entry;
static int uct_abi_config_is_listed;

static void uct_abi_config_no_doc(void *strb, const void *arg)
{
}

static void uct_abi_config_copy(uintptr_t *word, const uct_abi_option_t *from,
                                size_t offset, int has_doc)
{
    const uintptr_t words[] = {
        (uintptr_t)from->name, (uintptr_t)from->value, (uintptr_t)from->doc,
        offset, (uintptr_t)ucs_config_sscanf_string,
        (uintptr_t)ucs_config_sprintf_string,
        (uintptr_t)ucs_config_clone_string,
        (uintptr_t)ucs_config_release_string,
        (uintptr_t)ucs_config_help_generic
    };

    word = (uintptr_t*)mempcpy(word, words, sizeof(words));
    if (has_doc) {
        *word++ = (uintptr_t)uct_abi_config_no_doc;
    }
    *word = (uintptr_t)"string";
}

static const uct_abi_option_t *
uct_abi_config_option(const uct_abi_config_t *config, size_t i)
{
    return (const void*)((const char*)config->options + i * config->stride);
}

static ucs_status_t uct_abi_config_build(const uct_abi_config_t *config)
{
    uct_abi_config_entry_t *entry = &uct_abi_config_entry;
    size_t words, count = 0, i;
    uintptr_t *table;

    if (entry->table != NULL) {
        return UCS_OK;
    }

    while (uct_abi_config_option(config, count)->name != NULL) {
        ++count;
    }

    words = uct_abi_running->config_field / sizeof(uintptr_t);
    table = calloc(count + 1, uct_abi_running->config_field);
    if (table == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    for (i = 0; i < count; ++i) {
        uct_abi_config_copy(&table[i * words], uct_abi_config_option(config, i),
                            i * sizeof(char*),
                            words > UCT_ABI_CONFIG_WORDS_WITHOUT_DOC);
    }
    entry->name   = config->name;
    entry->prefix = config->prefix;
    entry->size   = config->size;
    entry->table  = table;
    return UCS_OK;
}

void uct_abi_config_list(const uct_abi_config_t *config)
{
    uct_abi_version_t version;

    if (uct_abi_running == NULL) {
        uct_abi_version_get(&version);
        uct_abi_select(uct_abi_find(version.major, version.minor));
    }

    if ((uct_abi_running == NULL) || uct_abi_config_is_listed ||
        (uct_abi_config_build(config) != UCS_OK)) {
        return;
    }

    ucs_list_add_tail(&ucs_config_global_list, &uct_abi_config_entry.list);
    uct_abi_config_is_listed = 1;
}

void uct_abi_config_unlist(void)
{
    if (uct_abi_config_is_listed) {
        ucs_list_del(&uct_abi_config_entry.list);
        uct_abi_config_is_listed = 0;
    }
}

ucs_status_t uct_abi_config_fill(const uct_abi_config_t *config,
                                 const char *env_prefix, void *opts)
{
    /* Either form: the headers' prototype may differ */
    uct_abi_config_any_func_t fill =
            (uct_abi_config_any_func_t)ucs_config_parser_fill_opts;
    ucs_status_t status;

    if (!uct_abi_is_known()) {
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_abi_config_build(config);
    if (status != UCS_OK) {
        return status;
    }

    if (uct_abi_running->has_config_entry) {
        return ((uct_abi_config_fill_entry_func_t)fill)(
                opts, &uct_abi_config_entry, env_prefix, 0);
    }

    return ((uct_abi_config_fill_table_func_t)fill)(
            opts, uct_abi_config_entry.table, env_prefix, config->prefix, 0);
}

void uct_abi_config_release(void *opts)
{
    ucs_config_parser_release_opts(opts, uct_abi_config_entry.table);
}

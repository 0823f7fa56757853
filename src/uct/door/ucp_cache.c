/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "attach.h"

#include <uct/ib/helper_md/session.h>
#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/io/log.h>

#include <ucp/api/ucp.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UCT_DOOR_UCP_LIBRARY    "libucp.so.0"
#define UCT_DOOR_RCACHE         "RCACHE_ENABLE"
#define UCT_DOOR_RCACHE_ENV     "UCX_RCACHE_ENABLE"
#define UCT_DOOR_RCACHE_DEFAULT "try"
#define UCT_DOOR_PROTO_ENV      "UCX_PROTO_ENABLE"

/* The first release whose old protocols use UCP's cache as well */
#define UCT_DOOR_RCACHE_MINOR 14

/* Switched off in options that were read here; a plugin is loaded too late for
 * that */
static _Atomic(int) uct_door_ucp_cache_is_off;

static _Atomic(int) uct_door_ucp_cache_is_reported;

static void *uct_door_ucp_symbol(const char *name)
{
    void *handle = dlopen(UCT_DOOR_UCP_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    void *symbol;

    if (handle == NULL) {
        return NULL;
    }

    symbol = dlsym(handle, name);
    dlclose(handle); /* still loaded by others */
    return symbol;
}

/* A function of UCP's; NULL: there is none */
#define UCT_DOOR_UCP(_name) ((__typeof__(&_name))uct_door_ucp_symbol(#_name))

/* UCX's words for "no" */
static int uct_door_is_no(const char *value)
{
    return !strncmp(value, "n", 1) || !strncmp(value, "N", 1) ||
           !strncmp(value, "0", 1) || !strncmp(value, "off", 3);
}

/* UCP cannot be asked for one option, but prints all */
static int uct_door_ucp_cache_value(const void *config, char *value, size_t max)
{
    __typeof__(&ucp_config_print) print = UCT_DOOR_UCP(ucp_config_print);
    char *text                          = NULL, *at;
    size_t length;
    FILE *stream;

    stream = (print == NULL) ? NULL : open_memstream(&text, &length);
    if (stream == NULL) {
        return 0;
    }

    print(config, stream, NULL, UCS_CONFIG_PRINT_CONFIG);
    fclose(stream);
    at = (text == NULL) ? NULL : strstr(text, UCT_DOOR_RCACHE "=");
    if (at != NULL) {
        at += strlen(UCT_DOOR_RCACHE "=");
        snprintf(value, max, "%.*s", (int)strcspn(at, "\n"), at);
    }
    free(text);
    return at != NULL;
}

void uct_door_ucp_cache_disable(void *config)
{
    __typeof__(&ucp_config_modify) modify = UCT_DOOR_UCP(ucp_config_modify);
    char value[16];
    int is_off;

    if ((modify == NULL) ||
        !uct_door_ucp_cache_value(config, value, sizeof(value))) {
        return;
    }

    is_off = uct_door_is_no(value) ||
             (!strcmp(value, UCT_DOOR_RCACHE_DEFAULT) &&
              (getenv(UCT_DOOR_RCACHE_ENV) == NULL) &&
              (modify(config, UCT_DOOR_RCACHE, "n") == UCS_OK));
    ucs_store_relaxed(&uct_door_ucp_cache_is_off, is_off);
}

/* As UCP would read it now, from the environment or ucx.conf */
static int uct_door_ucp_cache_reads_off(void)
{
    __typeof__(&ucp_config_read) read       = UCT_DOOR_UCP(ucp_config_read);
    __typeof__(&ucp_config_release) release = UCT_DOOR_UCP(ucp_config_release);
    char value[16];
    ucp_config_t *config;
    int is_off;

    if ((read == NULL) || (release == NULL) ||
        (read(NULL, NULL, &config) != UCS_OK)) {
        return 0;
    }

    is_off = uct_door_ucp_cache_value(config, value, sizeof(value)) &&
             uct_door_is_no(value);
    release(config);
    return is_off;
}

void uct_door_ucp_cache_report(void)
{
    const char *proto = getenv(UCT_DOOR_PROTO_ENV);

    /* Once: it takes the loader's lock */
    if (ucs_load_relaxed(&uct_door_ucp_cache_is_off) ||
        (ucs_add_relaxed(&uct_door_ucp_cache_is_reported, 1) > 0) ||
        uct_door_ucp_cache_reads_off() ||
        ((uct_abi_running->minor_min < UCT_DOOR_RCACHE_MINOR) &&
         ((proto == NULL) || (strchr("yY1", *proto) == NULL)))) {
        return;
    }

    ucs_helper_warn("UCP's own registration cache is on and keeps all memory "
                    "registered above the helper; set %s=n",
                    UCT_DOOR_RCACHE_ENV);
    uct_helper_session_note("UCP's own registration cache was on: memory "
                            "stayed registered above the helper");
}

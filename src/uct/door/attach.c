/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "attach.h"

#include <ucp/door/door.h>
#include <uct/ib/helper_md/watch/calls.h>
#include <ucs/sys/proc/deserted.h>
#include <uct/ib/helper_md/watch/events.h>
#include <uct/ib/helper_md/helper_md.h>
#include <ucs/sys/io/log.h>
#include <uct/ib/helper_md/session.h>
#include <uct/sm/pin_md/pin_md.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UCT_DOOR_IB              "ib"
#define UCT_DOOR_CMA             "cma"
#define UCT_DOOR_PIN_NAME        "pin"
#define UCT_DOOR_REG_METHODS     "REG_METHODS"
#define UCT_DOOR_REG_METHODS_ENV "UCX_IB_REG_METHODS"
#define UCT_DOOR_REG_DIRECT      "direct"
#define UCT_DOOR_REG_MAX         128

/* Options and version do not change while the process runs */
static pthread_once_t uct_door_once = PTHREAD_ONCE_INIT;
static uct_helper_config_t uct_door_config;

static int uct_door_env_asks(const char *name)
{
    const char *value = getenv(name);

    return (value != NULL) && (*value != '\0') &&
           (strchr("nN0", *value) == NULL) && strcasecmp(value, "off");
}

/* Nothing of an unknown release is called, not even its option parser, which
 * may read another layout. */
static int uct_door_choose_abi(void)
{
    uct_abi_version_t version;
    const uct_abi_t *abi, *last = NULL;
    unsigned i;

    uct_abi_version_get(&version);
    abi = uct_abi_find(version.major, version.minor);
    uct_abi_select(abi);
    if (abi != NULL) {
        uct_helper_session_set_version(version.text);
        return 1;
    }

    /* Silent unless asked for: a plugin may be installed for all users */
    if (!uct_door_env_asks("UCX_MD_HELPER") &&
        !uct_door_env_asks("UCX_MD_PIN")) {
        return 0;
    }

    for (i = 0; uct_abi_row(i) != NULL; ++i) {
        last = uct_abi_row(i);
    }
    ucs_helper_warn("the running UCX is version %s, the helper knows %d.%u to "
                    "%d.%u: UCX_MD_HELPER and UCX_MD_PIN stay off",
                    version.text, UCT_ABI_MAJOR, uct_abi_row(0)->minor_min,
                    UCT_ABI_MAJOR, last->minor_max);
    return 0;
}

static void uct_door_init(void)
{
    if (!uct_door_choose_abi()) {
        return;
    }

    uct_helper_config_read(&uct_door_config);
    if (uct_door_config.helper) {
        (void)uct_helper_calls_listen();
        ucp_door_reader_start();
    }
}

int uct_door_is_asked_for(void)
{
    pthread_once(&uct_door_once, uct_door_init);
    return uct_door_config.helper || uct_door_config.pin;
}

/* Can there be a helper? Asked before anything is changed. */
static int uct_door_helper_comes(void)
{
    return uct_door_is_asked_for() && uct_door_config.helper &&
           (uct_helper_md_check() == UCS_OK);
}

static int uct_door_is_component(uct_component_h component, const char *name)
{
    return !strcmp(uct_abi_component_name(component), name);
}

/* @return Nonzero if UCX's cache in the IB domain (up to 1.15) is off; *old is
 * the option's former value, or empty if nothing was changed. */
static int uct_door_disable_rcache(void *config, char *old, size_t max)
{
    char methods[UCT_DOOR_REG_MAX];

    *old = '\0';
    if (uct_abi_running->reg_methods == NULL) {
        return 1;
    }

    if (uct_config_get(config, UCT_DOOR_REG_METHODS, methods,
                       sizeof(methods)) != UCS_OK) {
        return 0;
    }

    if (!strcmp(methods, UCT_DOOR_REG_DIRECT)) {
        return 1;
    }

    /* ucx.conf can set the option too; its value is not the default then. */
    if ((getenv(UCT_DOOR_REG_METHODS_ENV) != NULL) ||
        strcmp(methods, uct_abi_running->reg_methods)) {
        return 0;
    }

    if (uct_config_modify(config, UCT_DOOR_REG_METHODS,
                          UCT_DOOR_REG_DIRECT) != UCS_OK) {
        return 0;
    }

    snprintf(old, max, "%s", methods);
    return 1;
}

static ucs_status_t uct_door_attach_helper(uct_md_h md, const char *md_name)
{
    ucs_status_t status;

    status = uct_helper_md_attach(md, md_name, &uct_door_config);
    if (status == UCS_OK) {
        uct_door_ucp_cache_report();
    }
    return status;
}

static ucs_status_t uct_door_open_ib(uct_component_h component,
                                     const char *md_name,
                                     const uct_md_config_t *config,
                                     uct_md_h *md_p,
                                     uct_abi_md_open_func_t real_open)
{
    char methods[UCT_DOOR_REG_MAX];
    ucs_status_t status;

    if (!uct_door_helper_comes()) {
        return real_open(component, md_name, config, md_p);
    }

    if (!uct_door_disable_rcache((void*)config, methods, sizeof(methods))) {
        ucs_helper_warn("%s: UCX's own registration cache stays on, it keeps all "
                        "memory registered; unset %s or set it to %s",
                        md_name, UCT_DOOR_REG_METHODS_ENV, UCT_DOOR_REG_DIRECT);
        uct_helper_session_note("UCX's own registration cache was on: memory "
                                "stayed registered below the helper");
    }

    status = real_open(component, md_name, config, md_p);
    if ((status != UCS_OK) ||
        (uct_door_attach_helper(*md_p, md_name) == UCS_OK) ||
        (methods[0] == '\0')) {
        return status;
    }

    /* Without helper and without cache it would be slow: open it again. */
    uct_md_close(*md_p);
    uct_config_modify((void*)config, UCT_DOOR_REG_METHODS, methods);
    return real_open(component, md_name, config, md_p);
}

/* A buffer may be unmapped in part while it is in use; then its registration
 * may differ. The helper, which receives the events, decides. */
static void uct_door_verify(uct_md_h md, uct_mem_h memh)
{
    uct_pin_difference_t difference;

    if (uct_pin_md_compare(md, memh, &difference) &&
        !uct_helper_md_is_gone(md, memh)) {
        uct_pin_md_stale(md, memh, &difference);
    }
}

static ucs_status_t uct_door_open_cma(uct_component_h component,
                                      const char *md_name,
                                      const uct_md_config_t *config,
                                      uct_md_h *md_p,
                                      uct_abi_md_open_func_t real_open)
{
    const uct_pin_config_t pin_config = {
        .cost_base_ns     = uct_door_config.pin_base_ns,
        .cost_per_page_ns = uct_door_config.pin_per_page_ns,
        .told_ns          = uct_door_config.pin_told_ns,
        .node_regions     = (uct_door_config.pin_max_regions == ULONG_MAX) ?
                                    0 : uct_door_config.pin_max_regions,
        .verify           = uct_door_config.pin_verify
    };
    ucs_status_t status;

    status = real_open(component, md_name, config, md_p);
    if ((status != UCS_OK) ||
        (uct_pin_md_attach(*md_p, &pin_config) != UCS_OK)) {
        return status;
    }

    if (uct_door_config.helper &&
        (uct_door_attach_helper(*md_p, UCT_DOOR_PIN_NAME) == UCS_OK) &&
        pin_config.verify) {
        uct_pin_md_delegate_verify(*md_p);
        uct_helper_md_set_verify(*md_p, uct_door_verify);
    }

    return UCS_OK;
}

__attribute__((visibility("default"))) ucs_status_t
uct_door_md_open(uct_component_h component, const char *md_name,
                 const uct_md_config_t *config, uct_md_h *md_p,
                 uct_abi_md_open_func_t real_open)
{
    /* With both doors open this is the inner one, the plugin's */
    static __thread int is_inside;
    ucs_status_t status;

    if (is_inside || !uct_door_is_asked_for()) {
        return real_open(component, md_name, config, md_p);
    }

    is_inside = 1;
    if (uct_door_config.helper &&
        uct_door_is_component(component, UCT_DOOR_IB)) {
        status = uct_door_open_ib(component, md_name, config, md_p, real_open);
    } else if (uct_door_config.pin &&
               uct_door_is_component(component, UCT_DOOR_CMA)) {
        status = uct_door_open_cma(component, md_name, config, md_p, real_open);
    } else {
        status = real_open(component, md_name, config, md_p);
    }
    is_inside = 0;
    return status;
}

__attribute__((visibility("default"))) void uct_door_ucp_config(void *config)
{
    if (uct_door_helper_comes()) {
        uct_door_ucp_cache_disable(config);
    }
}

__attribute__((visibility("default"))) void uct_door_leader_left(void)
{
    ucs_deserted_watch();
}

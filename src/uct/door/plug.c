/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "attach.h"

#include <ucs/datastruct/list.h>
#include <ucs/sys/io/log.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/*
 * The plugin door: UCX loads the helper as one of its modules. The constructor
 * replaces the function by which a component opens its domains.
 */

/* Components that can be plugged: ib and cma */
#define UCT_DOOR_PLUGS 2

/* UCX's modules, below the folder of libucs */
#define UCT_DOOR_MODULE_FORMAT "ucx/libuct_%s.so.0"

/* Exported by libuct, declared in a header that libucx-dev does not ship */
extern ucs_list_link_t uct_components_list;

static struct {
    uct_abi_component_t    *component;
    uct_abi_md_open_func_t md_open;
} uct_door_plugs[UCT_DOOR_PLUGS];

static ucs_status_t uct_door_plug_md_open(uct_component_h component,
                                          const char *md_name,
                                          const uct_md_config_t *config,
                                          uct_md_h *md_p)
{
    unsigned i;

    for (i = 0; i < UCT_DOOR_PLUGS; ++i) {
        if (uct_door_plugs[i].component == (uct_abi_component_t*)component) {
            return uct_door_md_open(component, md_name, config, md_p,
                                    uct_door_plugs[i].md_open);
        }
    }

    return UCS_ERR_NO_DEVICE; /* never: a plugged component is in the list */
}

/* UCX loads plugins before its own modules, so load the component's module
 * here */
static void uct_door_load_component(const char *name)
{
    const char *slash;
    char path[PATH_MAX];
    Dl_info info;

    if (dladdr((void*)ucs_log_dispatch, &info) &&
        ((slash = strrchr(info.dli_fname, '/')) != NULL)) {
        snprintf(path, sizeof(path), "%.*s/" UCT_DOOR_MODULE_FORMAT,
                 (int)(slash - info.dli_fname), info.dli_fname, name);
        (void)dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    }
}

static uct_abi_component_t *uct_door_find_component(const char *name)
{
    ucs_list_link_t *link;
    char *component;

    for (link = uct_components_list.next; link != &uct_components_list;
         link = link->next) {
        component = (char*)link - uct_abi_running->component_list;
        if (!strncmp(component, name, UCT_COMPONENT_NAME_MAX)) {
            return (uct_abi_component_t*)component;
        }
    }

    return NULL;
}

__attribute__((visibility("default"))) int uct_door_plug(const char *name)
{
    uct_abi_component_t *component;
    unsigned i;

    if (!uct_door_is_asked_for()) {
        return 0;
    }

    component = uct_door_find_component(name);
    if (component == NULL) {
        uct_door_load_component(name);
        component = uct_door_find_component(name);
    }
    if (component == NULL) {
        return 0;
    }

    for (i = 0; (i < UCT_DOOR_PLUGS) &&
                (uct_door_plugs[i].component != NULL); ++i) {
        if (uct_door_plugs[i].component == component) {
            return 1;
        }
    }
    if (i == UCT_DOOR_PLUGS) {
        return 0;
    }

    uct_door_plugs[i].component = component;
    uct_door_plugs[i].md_open   = component->md_open;
    component->md_open          = uct_door_plug_md_open;
    ucs_helper_debug("domains of %s are opened through the helper", name);
    return 1;
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "module.h"

#include <limits.h>

/*
 * The plugins that UCX (from 1.22 on) finds in UCX_PLUGIN_PATH or its module
 * folder: libuct_ib_helper, loaded by the constructor of IB's module, and
 * libuct_pin. Built once for each component. A plugin finds the helper proper,
 * which the preloaded stub loads too, and names the component.
 */

typedef int (*uct_plugin_plug_func_t)(const char *component);

/* Beside the plugin (build tree), above it (installed), or beside UCX's module
 * folder if the plugin lies there */
static const char *const uct_plugin_places[] = {
    "", "../", "../ucx-helper/", NULL
};

__attribute__((constructor)) static void uct_plugin_init(void)
{
    uct_plugin_plug_func_t plug;
    char path[PATH_MAX];
    void *handle;

    if (!uct_module_find(uct_plugin_places, uct_plugin_places, path,
                         sizeof(path))) {
        fprintf(stderr, "ucx-helper-md: the plugin finds no %s, UCX runs "
                        "without the helper\n", UCT_MODULE);
        return;
    }

    plug = uct_module_load(path, "uct_door_plug", &handle);
    if (plug != NULL) {
        (void)plug(UCT_PLUGIN_COMPONENT);
    }
}

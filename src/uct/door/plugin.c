/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * The plugins that UCX (from 1.22 on) finds in UCX_PLUGIN_PATH or its module
 * folder: libuct_ib_helper, loaded by the constructor of IB's module, and
 * libuct_pin. Built once for each component. A plugin finds the helper proper,
 * which the preloaded stub loads too, and names the component.
 */

#define UCT_PLUGIN_MODULE     "libuct_helper_md.so"
#define UCT_PLUGIN_MODULE_ENV "HELPER_MD_MODULE_PATH"

typedef int (*uct_plugin_plug_func_t)(const char *component);

/* Beside the plugin (build tree), above it (installed), or beside UCX's module
 * folder if the plugin lies there */
static const char *const uct_plugin_places[] = {
    "", "../", "../ucx-helper/"
};

static int uct_plugin_find_module(char *path, size_t max)
{
    const char *given = secure_getenv(UCT_PLUGIN_MODULE_ENV);
    const char *slash;
    struct stat st;
    Dl_info info;
    size_t i;

    if (given != NULL) {
        snprintf(path, max, "%s%s", given,
                 ((stat(given, &st) == 0) && S_ISDIR(st.st_mode)) ?
                 "/" UCT_PLUGIN_MODULE : "");
        return 1;
    }

    if (!dladdr((void*)uct_plugin_places, &info) ||
        ((slash = strrchr(info.dli_fname, '/')) == NULL)) {
        return 0;
    }

    for (i = 0; i < sizeof(uct_plugin_places) / sizeof(*uct_plugin_places);
         ++i) {
        snprintf(path, max, "%.*s/%s%s", (int)(slash - info.dli_fname),
                 info.dli_fname, uct_plugin_places[i], UCT_PLUGIN_MODULE);
        if (stat(path, &st) == 0) {
            return 1;
        }
    }

    return 0;
}

/* NODELETE: a component and memory hooks point into the module for ever */
__attribute__((constructor)) static void uct_plugin_init(void)
{
    uct_plugin_plug_func_t plug;
    char path[PATH_MAX];
    void *handle;

    if (!uct_plugin_find_module(path, sizeof(path))) {
        fprintf(stderr, "ucx-helper-md: the plugin finds no %s, UCX runs "
                        "without the helper\n", UCT_PLUGIN_MODULE);
        return;
    }

    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    plug   = (handle == NULL) ? NULL : dlsym(handle, "uct_door_plug");
    if (plug == NULL) {
        fprintf(stderr, "ucx-helper-md: the helper cannot be loaded, UCX runs "
                        "without it: %s\n", dlerror());
        return;
    }

    (void)plug(UCT_PLUGIN_COMPONENT);
}

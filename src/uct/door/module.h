/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_MODULE_H_
#define UCT_MODULE_H_

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * The helper proper, for those who load it: the preloaded stub and the plugins.
 * libc only.
 */

#define UCT_MODULE     "libuct_helper_md.so"
#define UCT_MODULE_ENV "HELPER_MD_MODULE_PATH"

/**
 * Find its file.
 *
 * @param [in]  self    An address in the caller's library.
 * @param [in]  places  Where it may lie, from the folder of that library: each
 *                      empty or with a slash at its end; ended by NULL. The
 *                      variable, which names the file or its folder, comes first.
 * @param [out] path    The last place, or the bare name, if it is at none of
 *                      these.
 *
 * @return Zero then.
 */
static inline int uct_module_find(const void *self, const char *const *places,
                                  char *path, size_t max)
{
    const char *given = secure_getenv(UCT_MODULE_ENV);
    const char *slash;
    struct stat st;
    Dl_info info;

    if (given != NULL) {
        snprintf(path, max, "%s%s", given,
                 ((stat(given, &st) == 0) && S_ISDIR(st.st_mode)) ?
                 "/" UCT_MODULE : "");
        return 1;
    }

    snprintf(path, max, "%s", UCT_MODULE);
    if (dladdr(self, &info) &&
        ((slash = strrchr(info.dli_fname, '/')) != NULL)) {
        for (; *places != NULL; ++places) {
            snprintf(path, max, "%.*s/%s" UCT_MODULE,
                     (int)(slash - info.dli_fname), info.dli_fname, *places);
            if (stat(path, &st) == 0) {
                return 1;
            }
        }
    }

    return 0;
}

/**
 * Load it, for good: a component, memory hooks and fork handlers point into it
 * for ever.
 *
 * @param [in]  name      A function of it.
 * @param [out] handle_p  For further functions.
 *
 * @return That function, or NULL after a line that says why not.
 */
static inline void *uct_module_load(const char *path, const char *name,
                                    void **handle_p)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *func   = (handle == NULL) ? NULL : dlsym(handle, name);

    if (func == NULL) {
        fprintf(stderr, "ucx-helper-md: the helper cannot be loaded, UCX runs "
                        "without it: %s\n", dlerror());
    }
    *handle_p = handle;
    return func;
}

#endif

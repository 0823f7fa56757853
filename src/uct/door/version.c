/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "version.h"

#include <uct/base/uct_abi.h>

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#define UCT_DOOR_UCP_LIBRARY "libucp.so.0"

typedef void (*uct_door_get_version_func_t)(unsigned *major, unsigned *minor,
                                            unsigned *release);
typedef const char *(*uct_door_get_version_string_func_t)(void);


int uct_door_version_get(uct_door_version_t *version)
{
    uct_door_get_version_func_t get_version;
    uct_door_get_version_string_func_t get_string;
    unsigned release;
    void *handle;

    version->major = 0;
    version->minor = 0;
    snprintf(version->text, sizeof(version->text), "unknown");

    /* An MPI may have loaded UCX out of the global scope, so the library is
     * asked by its name. No handle is kept, so that a program that unloads
     * libucp is rid of it. */
    handle = dlopen(UCT_DOOR_UCP_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return 0;
    }

    get_version = (uct_door_get_version_func_t)dlsym(handle,
                                                     "ucp_get_version");
    get_string  = (uct_door_get_version_string_func_t)
            dlsym(handle, "ucp_get_version_string");
    if ((get_version != NULL) && (get_string != NULL)) {
        get_version(&version->major, &version->minor, &release);
        snprintf(version->text, sizeof(version->text), "%s", get_string());
    }
    dlclose(handle);
    return uct_abi_is_supported(version->major, version->minor);
}

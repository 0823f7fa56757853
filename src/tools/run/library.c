/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "library.h"

#include <tools/tool.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOOL_ENV_LIBDIR "HELPER_MD_LIBDIR"

/* What is preloaded, and where it lies from this program: first in the build
 * tree, where a stub finds its module too */
typedef struct tool_library {
    const char *file;
    const char *dirs[4];
} tool_library_t;

static const tool_library_t tool_library_helper = {
    "libucx_helper.so", {"../uct/door/.libs", "../lib", "../lib64", NULL}
};
static const tool_library_t tool_library_pipeline = {
    "libucx_pipeline_mpi.so",
    {"../mpi/pipeline/.libs", "../lib", "../lib64", NULL}
};


static char *tool_library_try(const tool_library_t *library, const char *dir)
{
    char *path = tool_format("%s/%s", dir, library->file);
    char *real_dir, *found;

    if (access(path, R_OK) != 0) {
        free(path);
        return NULL;
    }
    free(path);

    /* The folder only: an upgrade may move the link of the library itself */
    real_dir = realpath(dir, NULL);
    if (real_dir == NULL) {
        return NULL;
    }

    found = tool_format("%s/%s", real_dir, library->file);
    free(real_dir);
    return found;
}

/* Folder of this program; for libtool's wrapper the one above .libs */
static char *tool_library_program_dir(void)
{
    char path[PATH_MAX];
    ssize_t length;
    char *slash;

    length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length <= 0) {
        return NULL;
    }

    path[length] = '\0';
    slash        = strrchr(path, '/');
    *slash       = '\0';
    slash        = strrchr(path, '/');
    if ((slash != NULL) && !strcmp(slash, "/.libs")) {
        *slash = '\0';
    }
    return tool_strdup(path);
}

/* In the first of the folders, relative to base, that has it */
static char *tool_library_search(const tool_library_t *library,
                                 const char *base)
{
    const char *const *dirs = library->dirs;
    char *found             = NULL;
    char *dir;

    for (; (found == NULL) && (*dirs != NULL); ++dirs) {
        dir   = tool_format("%s/%s", base, *dirs);
        found = tool_library_try(library, dir);
        free(dir);
    }
    return found;
}

static char *tool_library_search_all(const tool_library_t *library)
{
    const char *libdir = getenv(TOOL_ENV_LIBDIR);
    char *found        = NULL;
    char *base;

    if ((libdir != NULL) && (*libdir != '\0')) {
        found = tool_library_try(library, libdir);
        if (found == NULL) {
            tool_message("no readable %s in %s=%s", library->file,
                         TOOL_ENV_LIBDIR, libdir);
        }
        return found;
    }

    base = tool_library_program_dir();
    if (base != NULL) {
        found = tool_library_search(library, base);
    }

    if (found == NULL) {
        found = tool_library_try(library, TOOL_LIBDIR);
    }

    if (found == NULL) {
        tool_message("cannot find %s, neither beside %s nor in %s; set %s to "
                     "its folder",
                     library->file, (base != NULL) ? base : "this program",
                     TOOL_LIBDIR, TOOL_ENV_LIBDIR);
    }
    free(base);
    return found;
}

static char *tool_library_check(char *found)
{
    /* The loader splits at blanks and colons and expands $ORIGIN */
    if ((found != NULL) && (strpbrk(found, " :$") != NULL)) {
        tool_message("'%s' cannot be preloaded: LD_PRELOAD does not allow a "
                     "blank, ':' or '$' in a path",
                     found);
        free(found);
        return NULL;
    }
    return found;
}

char *tool_library_find(int pipeline)
{
    char *helper = tool_library_check(
            tool_library_search_all(&tool_library_helper));
    char *layer  = NULL;
    char *both   = helper;

    if ((helper != NULL) && pipeline) {
        layer = tool_library_check(
                tool_library_search_all(&tool_library_pipeline));
        both  = (layer == NULL) ? NULL : tool_format("%s:%s", layer, helper);
        free(helper);
        free(layer);
    }

    /* UCX would warn about a UCX_ variable that it does not know */
    unsetenv(TOOL_ENV_LIBDIR);
    return both;
}

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
    const char *installed; /* as it is called below a folder of libraries */
    const char *dirs[4];
} tool_library_t;

static const tool_library_t tool_library_helper = {
    "libucx_helper.so",
    "libucx_helper.so",
    {"../uct/door/.libs", "../lib", "../lib64", NULL}
};
static const tool_library_t tool_library_pipeline = {
    "libucx_pipeline_mpi.so",
    "libucx_pipeline_mpi.so",
    {"../mpi/pipeline/.libs", "../lib", "../lib64", NULL}
};
/* One for each MPI, whose compiler built it */
static const tool_library_t tool_library_firehose[] = {
    {"openmpi/libucx_firehose_mpi.so",
     "ucx-firehose/openmpi/libucx_firehose_mpi.so",
     {"../mpi/firehose", "../lib", "../lib64", NULL}},
    {"mpich/libucx_firehose_mpi.so",
     "ucx-firehose/mpich/libucx_firehose_mpi.so",
     {"../mpi/firehose", "../lib", "../lib64", NULL}}
};


static char *tool_library_try_file(const char *file, const char *dir)
{
    char *path = tool_format("%s/%s", dir, file);
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

    found = tool_format("%s/%s", real_dir, file);
    free(real_dir);
    return found;
}

static char *tool_library_try(const tool_library_t *library, const char *dir)
{
    char *found = tool_library_try_file(library->file, dir);

    return (found != NULL) ? found :
                             tool_library_try_file(library->installed, dir);
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
            tool_message("no readable %s in %s=%s", library->installed,
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
                     library->installed, (base != NULL) ? base : "this program",
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

/* @return What was found, then what is there already, which is freed; NULL if
 *         either is NULL */
static char *tool_library_before(char *found, char *there)
{
    char *both = ((found == NULL) || (there == NULL)) ?
                         NULL :
                         tool_format("%s:%s", found, there);

    free(found);
    free(there);
    return both;
}

static char *tool_library_get(const tool_library_t *library)
{
    return tool_library_check(tool_library_search_all(library));
}

/* For the MPI of this launcher */
static char *tool_library_get_firehose(tool_launcher_t launcher)
{
    switch (launcher) {
    case TOOL_LAUNCHER_OPENMPI:
        return tool_library_get(&tool_library_firehose[0]);
    case TOOL_LAUNCHER_HYDRA:
        return tool_library_get(&tool_library_firehose[1]);
    default:
        tool_message("option --firehose needs Open MPI's or MPICH's mpirun as "
                     "the command, which tells the MPI, not %s; else preload "
                     "libucx_firehose_mpi.so as libucx_firehose_mpi(7) says",
                     tool_launcher_name(launcher));
        return NULL;
    }
}

char *tool_library_find(int pipeline, int firehose, tool_launcher_t launcher)
{
    char *all = tool_library_get(&tool_library_helper);

    if ((all != NULL) && pipeline) {
        all = tool_library_before(tool_library_get(&tool_library_pipeline),
                                  all);
    }
    if ((all != NULL) && firehose) {
        all = tool_library_before(tool_library_get_firehose(launcher), all);
    }

    /* UCX would warn about a UCX_ variable that it does not know */
    unsetenv(TOOL_ENV_LIBDIR);
    return all;
}

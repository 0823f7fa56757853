/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOOL_ENV_LIBDIR "HELPER_MD_LIBDIR"

/* What is preloaded: from this program in the build tree, where a stub finds its
 * module too, and below a folder of libraries */
typedef struct tool_library {
    const char *built;
    const char *installed;
} tool_library_t;

static const tool_library_t tool_library_helper = {
    "../uct/door/.libs/libucx_helper.so", "libucx_helper.so"
};
static const tool_library_t tool_library_pipeline = {
    "../mpi/pipeline/.libs/libucx_pipeline_mpi.so", "libucx_pipeline_mpi.so"
};
/* One for each MPI, whose compiler built it */
static const tool_library_t tool_library_openmpi = {
    "../mpi/firehose/openmpi/libucx_firehose_mpi.so",
    "ucx-firehose/openmpi/libucx_firehose_mpi.so"
};
static const tool_library_t tool_library_mpich = {
    "../mpi/firehose/mpich/libucx_firehose_mpi.so",
    "ucx-firehose/mpich/libucx_firehose_mpi.so"
};

/* @return NULL if there is none. The folder only is resolved: an upgrade may
 *         move the link of the library itself. */
static char *tool_library_try(const char *dir, const char *file)
{
    char *path  = tool_format("%s/%s", dir, file);
    char *found = NULL;
    char *name  = strrchr(path, '/');
    char *real_dir;

    if (access(path, R_OK) == 0) {
        *name    = '\0';
        real_dir = realpath(path, NULL);
        if (real_dir != NULL) {
            found = tool_format("%s/%s", real_dir, name + 1);
        }
        free(real_dir);
    }
    free(path);
    return found;
}

/* Folder of this program; for libtool's wrapper the one above .libs */
static char *tool_library_program_dir(void)
{
    char *path = realpath("/proc/self/exe", NULL);
    char *slash;

    if (path != NULL) {
        *strrchr(path, '/') = '\0';
        slash               = strrchr(path, '/');
        if ((slash != NULL) && !strcmp(slash, "/.libs")) {
            *slash = '\0';
        }
    }
    return path;
}

static char *tool_library_search(const tool_library_t *library)
{
    static const char *const dirs[] = {"../lib", "../lib64"};
    char *base                      = tool_library_program_dir();
    char *found                     = NULL;
    char *dir;
    size_t i;

    if (base != NULL) {
        found = tool_library_try(base, library->built);
        for (i = 0; (found == NULL) && (i < 2); ++i) {
            dir   = tool_format("%s/%s", base, dirs[i]);
            found = tool_library_try(dir, library->installed);
            free(dir);
        }
    }
    if (found == NULL) {
        found = tool_library_try(TOOL_LIBDIR, library->installed);
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
    const char *libdir = getenv(TOOL_ENV_LIBDIR);
    char *found;

    if ((libdir == NULL) || (*libdir == '\0')) {
        return tool_library_check(tool_library_search(library));
    }
    found = tool_library_try(libdir, library->installed);
    if (found == NULL) {
        tool_message("no readable %s in %s=%s", library->installed,
                     TOOL_ENV_LIBDIR, libdir);
    }
    return tool_library_check(found);
}

/* For the MPI of this launcher */
static char *tool_library_get_firehose(tool_launcher_t launcher)
{
    switch (launcher) {
    case TOOL_LAUNCHER_OPENMPI:
        return tool_library_get(&tool_library_openmpi);
    case TOOL_LAUNCHER_HYDRA:
        return tool_library_get(&tool_library_mpich);
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
    return all;
}

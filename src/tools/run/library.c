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
static char *tool_library_try(const char *dir, const char *below,
                              const char *file)
{
    char *path  = tool_format("%s/%s%s", dir, below, file);
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

    if (path == NULL) {
        return tool_strdup("this program");
    }
    *strrchr(path, '/') = '\0';
    slash               = strrchr(path, '/');
    if ((slash != NULL) && !strcmp(slash, "/.libs")) {
        *slash = '\0';
    }
    return path;
}

/* @return NULL after a message */
static char *tool_library_get(const tool_library_t *library)
{
    const char *told = getenv(TOOL_ENV_LIBDIR);
    const char *file = library->installed;
    char *base       = tool_library_program_dir();
    char *found;

    if ((told != NULL) && (*told != '\0')) {
        found = tool_library_try(told, "", file);
        if (found == NULL) {
            tool_message("no readable %s in %s=%s", file, TOOL_ENV_LIBDIR,
                         told);
        }
    } else {
        found = tool_library_try(base, "", library->built) ?:
                tool_library_try(base, "../lib/", file) ?:
                tool_library_try(base, "../lib64/", file) ?:
                tool_library_try(TOOL_LIBDIR, "", file);
        if (found == NULL) {
            tool_message("cannot find %s, neither beside %s nor in %s; set %s "
                         "to its folder", file, base, TOOL_LIBDIR,
                         TOOL_ENV_LIBDIR);
        }
    }
    /* The loader splits at blanks and colons and expands $ORIGIN */
    if ((found != NULL) && (strpbrk(found, " :$") != NULL)) {
        tool_message("'%s' cannot be preloaded: LD_PRELOAD does not allow a "
                     "blank, ':' or '$' in a path", found);
        free(found);
        found = NULL;
    }
    free(base);
    return found;
}

/* For the MPI of this launcher; NULL after a message */
static const tool_library_t *tool_library_firehose(tool_launcher_t launcher)
{
    switch (launcher) {
    case TOOL_LAUNCHER_OPENMPI:
        return &tool_library_openmpi;
    case TOOL_LAUNCHER_HYDRA:
        return &tool_library_mpich;
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
    const tool_library_t *wanted[3] = {}; /* the first in front */
    tool_list_t found               = TOOL_LIST_INITIALIZER;
    size_t count                    = 0;
    char *one, *all;
    size_t i;

    if (firehose) {
        wanted[count] = tool_library_firehose(launcher);
        if (wanted[count++] == NULL) {
            return NULL;
        }
    }
    if (pipeline) {
        wanted[count++] = &tool_library_pipeline;
    }
    wanted[count++] = &tool_library_helper;
    for (i = 0; (i < count) && ((one = tool_library_get(wanted[i])) != NULL);
         ++i) {
        tool_list_add(&found, one);
        free(one);
    }
    all = (i == count) ? tool_list_join(&found, ":") : NULL;
    tool_list_cleanup(&found);
    return all;
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "entries.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ucs/sys/sync/atomic.h>

/*
 * The preloaded stub, one for all MPIs. LD_PRELOAD reaches every process of a
 * job, shells and launchers included, so this needs libc alone. The first call
 * of a function that the layer stands in front of tells which MPI the process
 * has; the module for that one is loaded then. Where there is none, calls go
 * to the MPI as if there were no stub.
 */

#define MPI_PIPELINE_MODULE_ENV "HELPER_MD_MODULE_PATH"
#define MPI_PIPELINE_SUBDIR     "ucx-helper"
#define MPI_PIPELINE_UCP        "libucp.so.0"

extern mpi_pipeline_func_t mpi_pipeline_stub_slots[MPI_PIPELINE_NUM_ENTRIES];

/* Called by the entry points, from any thread */
void mpi_pipeline_stub_resolve(void);

unsigned ucp_worker_progress(void *worker);

static mpi_pipeline_func_t mpi_pipeline_stub_real[MPI_PIPELINE_NUM_ENTRIES];

#define MPI_PIPELINE_NAME(_name) "PMPI_" #_name,
static const char *const mpi_pipeline_stub_names[] = {
    MPI_PIPELINE_ENTRIES(MPI_PIPELINE_NAME)
};

/* Where an MPI is that only its users see, such as a Python module */
static const char *const mpi_pipeline_libraries[] = {
    "libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi.so.80", NULL
};

/* --- UCP's progress ------------------------------------------------------- */

/* A program that uses UCP without MPI may come before and without the rest */
static mpi_pipeline_progress_func_t mpi_pipeline_stub_find_progress(void)
{
    void *handle;
    void *real = dlsym(RTLD_NEXT, "ucp_worker_progress");

    if (real == NULL) {
        handle = dlopen(MPI_PIPELINE_UCP, RTLD_LAZY | RTLD_NOLOAD);
        real   = (handle == NULL) ? NULL :
                                    dlsym(handle, "ucp_worker_progress");
    }
    return (mpi_pipeline_progress_func_t)real;
}

/* UCP's own or the hook; NULL until it is called */
static _Atomic(mpi_pipeline_progress_func_t) mpi_pipeline_stub_progress;

__attribute__((visibility("default"))) unsigned
ucp_worker_progress(void *worker)
{
    mpi_pipeline_progress_func_t none = NULL, progress;

    /* relaxed: the hook is the module's code, which was there before; what it
     * looks at is ordered by its own locks */
    progress = ucs_load_relaxed(&mpi_pipeline_stub_progress);
    if (progress == NULL) {
        progress = mpi_pipeline_stub_find_progress();
        if (progress == NULL) { /* a caller of it has it: does not happen */
            abort();
        }
        /* Not over a hook that has come in between */
        ucs_cas_relaxed(&mpi_pipeline_stub_progress, &none, progress);
    }
    return progress(worker);
}

static mpi_pipeline_progress_func_t
mpi_pipeline_stub_set_progress(mpi_pipeline_progress_func_t hook)
{
    mpi_pipeline_progress_func_t real = mpi_pipeline_stub_find_progress();

    if (real != NULL) {
        /* relaxed: as in ucp_worker_progress() */
        ucs_store_relaxed(&mpi_pipeline_stub_progress,
                          (hook != NULL) ? hook : real);
    }
    return real;
}

/* --- The MPI -------------------------------------------------------------- */

static void mpi_pipeline_stub_say(const char *what, const char *why)
{
    const char *verbose = getenv(MPI_PIPELINE_ENV_VERBOSE);

    if ((verbose != NULL) && !strcmp(verbose, "y")) {
        fprintf(stderr, MPI_PIPELINE_LINE "%s%s%s\n", what,
                (why != NULL) ? ": " : "", (why != NULL) ? why : "");
    }
}

/* The module needs the MPI's symbols, so the MPI is made visible to it */
static void *mpi_pipeline_stub_find_mpi(void)
{
    const char *const *library;
    void *handle;

    for (library = mpi_pipeline_libraries; *library != NULL; ++library) {
        handle = dlopen(*library, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
        if (handle != NULL) {
            return handle;
        }
    }
    return RTLD_NEXT;
}

static const char *mpi_pipeline_stub_module(void *mpi)
{
    int (*get_version)(char *version, int *length) =
            dlsym(mpi, "PMPI_Get_library_version");
    char version[8192] = ""; /* above MPI_MAX_LIBRARY_VERSION_STRING of both */
    int length;

    if ((get_version == NULL) || (get_version(version, &length) != 0)) {
        return NULL;
    }
    return !strncmp(version, "Open MPI", 8) ? "libucx_pipeline_mpi_openmpi.so" :
           !strncmp(version, "MPICH", 5)    ? "libucx_pipeline_mpi_mpich.so" :
                                              NULL;
}

static int mpi_pipeline_stub_join(char *path, const char *dir, size_t length,
                                  const char *subdir, const char *file)
{
    int written = snprintf(path, PATH_MAX, "%.*s/%s%s%s", (int)length, dir,
                           subdir, (*subdir != '\0') ? "/" : "", file);

    return (written > 0) && (written < PATH_MAX) && (access(path, R_OK) == 0);
}

/* In the folder that the variable names, below the stub's, or beside it */
static int mpi_pipeline_stub_find_module(char *path, const char *file)
{
    const char *given = secure_getenv(MPI_PIPELINE_MODULE_ENV);
    const char *slash;
    Dl_info info;

    if ((given != NULL) &&
        mpi_pipeline_stub_join(path, given, strlen(given), "", file)) {
        return 1;
    }
    if (!dladdr((void*)mpi_pipeline_stub_slots, &info) ||
        ((slash = strrchr(info.dli_fname, '/')) == NULL)) {
        return 0;
    }
    return mpi_pipeline_stub_join(path, info.dli_fname, slash - info.dli_fname,
                                  MPI_PIPELINE_SUBDIR, file) ||
           mpi_pipeline_stub_join(path, info.dli_fname,
                                  slash - info.dli_fname, "", file);
}

static void mpi_pipeline_stub_load(void *mpi)
{
    const char *module       = mpi_pipeline_stub_module(mpi);
    mpi_pipeline_door_t door = {mpi_pipeline_stub_slots,
                                mpi_pipeline_stub_real,
                                mpi_pipeline_stub_set_progress};
    mpi_pipeline_open_func_t open;
    char path[PATH_MAX];
    void *handle;

    if (module == NULL) {
        mpi_pipeline_stub_say("all stays with the MPI, which is neither Open "
                              "MPI nor MPICH", NULL);
        return;
    }
    if (!mpi_pipeline_stub_find_module(path, module)) {
        mpi_pipeline_stub_say("all stays with the MPI, as there is no", module);
        return;
    }
    /* NODELETE: UCM's hooks point into the module for ever */
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    open   = (handle == NULL) ? NULL : dlsym(handle, MPI_PIPELINE_OPEN);
    if (open == NULL) {
        mpi_pipeline_stub_say("all stays with the MPI", dlerror());
        return;
    }
    open(&door);
}

/* A function that this MPI lacks and that is called all the same */
static void mpi_pipeline_stub_missing(void)
{
    fprintf(stderr, MPI_PIPELINE_LINE "the program calls a function that its "
                    "MPI does not have\n");
    abort();
}

/* MPI has one thread until it is initialized, and whatever comes first is
 * looked up here for all */
void mpi_pipeline_stub_resolve(void)
{
    void *mpi = mpi_pipeline_stub_find_mpi();
    unsigned i;

    for (i = 0; i < MPI_PIPELINE_NUM_ENTRIES; ++i) {
        mpi_pipeline_stub_real[i] = (mpi_pipeline_func_t)
                                    dlsym(mpi, mpi_pipeline_stub_names[i]);
        if (mpi_pipeline_stub_real[i] == NULL) {
            mpi_pipeline_stub_real[i] = mpi_pipeline_stub_missing;
        }
        mpi_pipeline_stub_slots[i] = mpi_pipeline_stub_real[i];
    }
    mpi_pipeline_stub_load(mpi);
}

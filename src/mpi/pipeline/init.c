/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "layer.h"

#include <ucs/sys/string.h>

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/*
 * Begin and end. All ranks agree, or none of them has the layer: what the one
 * sends the other must be able to read.
 */

mpi_layer_t mpi_layer;

void mpi_layer_say(const char *format, ...)
{
    va_list arguments;

    if (mpi_layer.verbose) {
        fprintf(stderr, MPI_PIPELINE_LINE "rank %d: ", mpi_layer.rank);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
    }
}

int mpi_layer_error(MPI_Comm comm, int code)
{
    PMPI_Comm_call_errhandler(comm, code);
    return code;
}

/* --- What the environment says -------------------------------------------- */

#define MPI_LAYER_ENV "HELPER_MD_PIPELINE_"

static int mpi_layer_option_refuse(const char *name, const char *value,
                                   const char *allowed)
{
    fprintf(stderr, MPI_PIPELINE_LINE "%s%s='%s' is not allowed; allowed: %s; "
                    "all stays with the MPI\n", MPI_LAYER_ENV, name, value,
            allowed);
    return 0;
}

static const char *mpi_layer_option_get(const char *name)
{
    char variable[64];
    const char *value;

    snprintf(variable, sizeof(variable), "%s%s", MPI_LAYER_ENV, name);
    value = getenv(variable);
    return ((value == NULL) || (*value == '\0')) ? NULL : value;
}

static int mpi_layer_option_size(const char *name, size_t min, size_t *value_p)
{
    const char *text = mpi_layer_option_get(name);
    size_t value;

    if (text == NULL) {
        return 1;
    }
    /* UCX knows words, too, and signs */
    if ((*text < '0') || (*text > '9') ||
        (ucs_str_to_memunits(text, &value) != UCS_OK) || (value < min)) {
        return mpi_layer_option_refuse(name, text, (min > 0) ?
                                       "bytes above 64K, with an optional K, M "
                                       "or G" :
                                       "bytes, with an optional K, M or G");
    }
    *value_p = value;
    return 1;
}

/* The number of one of some words, which end with NULL */
static int mpi_layer_option_word(const char *name, const char *const words[],
                                 const char *allowed, int *number)
{
    const char *text = mpi_layer_option_get(name);
    int i;

    for (i = 0; (text != NULL) && (words[i] != NULL); ++i) {
        if (!strcmp(text, words[i])) {
            *number = i;
            return 1;
        }
    }
    return (text == NULL) || mpi_layer_option_refuse(name, text, allowed);
}

/* @return Zero if a value is not allowed: then a line has said which, and what is */
static int mpi_layer_options_read(ucx_pipeline_options_t *pipeline)
{
    static const char *const modes[]    = {"pipeline", "cache", "copy", NULL};
    static const char *const switches[] = {"n", "y", NULL};
    int mode = UCX_PIPELINE_MODE_CACHE;

    ucx_pipeline_options_init(pipeline);
    mpi_layer.min_bytes = MPI_LAYER_MIN_BYTES;
    if (!mpi_layer_option_size("MIN_SIZE", 65537, &mpi_layer.min_bytes) ||
        !mpi_layer_option_size("CACHE_BYTES", 0, &pipeline->cache_bytes) ||
        !mpi_layer_option_word("MODE", modes, "pipeline, cache or copy",
                               &mode) ||
        !mpi_layer_option_word("VERBOSE", switches, "y or n",
                               &mpi_layer.verbose)) {
        return 0;
    }
    pipeline->mode = (ucx_pipeline_mode_t)mode;
    return 1;
}

/* --- Begin ---------------------------------------------------------------- */

/* Addresses of devices' memory cannot be told from others here */
static int mpi_layer_has_devices(void)
{
    static const char *const libraries[] = {"libcuda.so.1", "libamdhip64.so.6",
                                            "libamdhip64.so.5",
                                            "libze_loader.so.1", NULL};
    const char *const *library;

    for (library = libraries; *library != NULL; ++library) {
        if (dlopen(*library, RTLD_LAZY | RTLD_NOLOAD) != NULL) {
            mpi_layer_say("all stays with the MPI: the program has loaded %s, "
                          "and memory of devices is not the layer's", *library);
            return 1;
        }
    }
    return 0;
}

/* What rank 0 says goes for all */
static int mpi_layer_agree_terms(void)
{
    int good = 1;

    if (mpi_layer.rank == 0) {
        good = getrandom(mpi_layer.magic, sizeof(mpi_layer.magic), 0) ==
               (ssize_t)sizeof(mpi_layer.magic);
    }
    PMPI_Bcast(mpi_layer.magic, sizeof(mpi_layer.magic), MPI_BYTE, 0,
               MPI_COMM_WORLD);
    PMPI_Bcast(&mpi_layer.min_bytes, sizeof(mpi_layer.min_bytes), MPI_BYTE, 0,
               MPI_COMM_WORLD);
    return good;
}

static int mpi_layer_all(int good)
{
    int all;

    PMPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

static int mpi_layer_connect_all(const char *addresses, int length)
{
    int i;

    for (i = 0; i < mpi_layer.size; ++i) {
        if (ucx_pipeline_connect(mpi_layer.pipeline, i,
                                 addresses + (size_t)i * length) != UCS_OK) {
            return 0;
        }
    }
    return 1;
}

/* All addresses in slots of one length: the longest one's */
static int mpi_layer_connect(void)
{
    const void *address;
    char *mine, *all;
    size_t length;
    int own, longest, good;

    ucx_pipeline_address(mpi_layer.pipeline, &address, &length);
    own = (int)length;
    PMPI_Allreduce(&own, &longest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    mine = calloc(1, longest);
    all  = malloc((size_t)longest * mpi_layer.size);
    good = mpi_layer_all((mine != NULL) && (all != NULL));
    if (good) {
        memcpy(mine, address, length);
        PMPI_Allgather(mine, longest, MPI_BYTE, all, longest, MPI_BYTE,
                       MPI_COMM_WORLD);
        good = mpi_layer_all(mpi_layer_connect_all(all, longest));
    }
    free(mine);
    free(all);
    return good;
}

static int mpi_layer_create(const ucx_pipeline_options_t *options)
{
    ucs_status_t status;

    status = ucx_pipeline_create(mpi_layer.rank, mpi_layer.size, options,
                                 &mpi_layer.pipeline);
    if (status != UCS_OK) {
        fprintf(stderr, MPI_PIPELINE_LINE "all stays with the MPI: %s\n",
                ucs_status_string(status));
    }
    if (!mpi_layer_all(status == UCS_OK)) {
        if (status == UCS_OK) {
            ucx_pipeline_destroy(mpi_layer.pipeline);
        }
        return 0;
    }
    return 1;
}

/* Calls of the MPI's progress, some of which may be for other transports */
#define MPI_LAYER_TRIES 1000

/* An MPI that is not over UCX would not call what carries the pipeline on */
static int mpi_layer_is_carried(void)
{
    int good = 0, i, found;

    for (i = 0; (i < MPI_LAYER_TRIES) && !good; ++i) {
        REAL_MPI(Iprobe)(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found,
                         MPI_STATUS_IGNORE);
        /* relaxed: counted by this thread */
        good = ucs_load_relaxed(&mpi_layer.num_progress) > 0;
    }
    if (!good) {
        mpi_layer_say("all stays with the MPI, which does not use UCX");
    }
    return mpi_layer_all(good);
}

static void mpi_layer_begin(int level)
{
    ucx_pipeline_options_t options;

    PMPI_Comm_rank(MPI_COMM_WORLD, &mpi_layer.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &mpi_layer.size);
    mpi_layer.multiple = (level == MPI_THREAD_MULTIPLE);
    if (!mpi_layer_all(mpi_layer_options_read(&options) &&
                       !mpi_layer_has_devices()) || (mpi_layer.size == 1)) {
        return;
    }
    mpi_layer.progress = mpi_layer.door->set_progress(mpi_layer_hook);
    if (!mpi_layer_all(mpi_layer_agree_terms() &&
                       (mpi_layer.progress != NULL)) ||
        !mpi_layer_is_carried() || !mpi_layer_create(&options)) {
        mpi_layer.door->set_progress(NULL);
        return;
    }
    if (!mpi_layer_connect()) {
        fprintf(stderr, MPI_PIPELINE_LINE "all stays with the MPI: not all "
                        "ranks can be connected\n");
        mpi_layer.door->set_progress(NULL);
        ucx_pipeline_destroy(mpi_layer.pipeline);
        return;
    }
    mpi_layer_comm_setup();
    REAL_MPI(Comm_dup)(MPI_COMM_WORLD, &mpi_layer.progress_comm);
    REAL_MPI(Comm_dup)(MPI_COMM_SELF, &mpi_layer.self_comm);
    mpi_layer.on = 1;
    mpi_layer_comm_agree(MPI_COMM_WORLD);
    mpi_layer_say("messages from %zu bytes on go by the pipeline",
                  mpi_layer.min_bytes);
}

int mpi_layer_Init(int *argc, char ***argv)
{
    int result = REAL_MPI(Init)(argc, argv);

    if (result == MPI_SUCCESS) {
        mpi_layer_begin(MPI_THREAD_SINGLE);
    }
    return result;
}

int mpi_layer_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = REAL_MPI(Init_thread)(argc, argv, required, provided);

    if (result == MPI_SUCCESS) {
        mpi_layer_begin(*provided);
    }
    return result;
}

/* --- End ------------------------------------------------------------------ */

static void mpi_layer_say_stats(void)
{
    ucx_pipeline_stats_t stats = {.size = sizeof(stats)};

    ucx_pipeline_get_stats(mpi_layer.pipeline, &stats);
    mpi_layer_say("%lu bytes written, %lu copied, %lu registrations, %lu "
                  "reused, %lu failed, %lu messages refused",
                  (unsigned long)stats.written, (unsigned long)stats.copied,
                  (unsigned long)stats.registrations,
                  (unsigned long)stats.reused, (unsigned long)stats.failed,
                  (unsigned long)stats.refused);
}

/* Until all ranks are here, each of which may wait for what another one sends */
static void mpi_layer_meet(void)
{
    MPI_Request request;
    int flag;

    PMPI_Ibarrier(MPI_COMM_WORLD, &request);
    do {
        mpi_layer_pump();
        PMPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    } while (!flag);
}

/* Once all are here nobody begins to receive. What comes to receives that were
 * freed is waited for, and what nobody receives is left, as the MPIs do. */
static void mpi_layer_end_freed(void)
{
    mpi_layer_meet();
    while (mpi_layer_ops_end_freed() > 0) {
        mpi_layer_pump();
    }
    mpi_layer_meet();
}

/* What a program has forgotten stays where it is: the pipeline says that it is
 * busy, and goes with the process */
int mpi_layer_Finalize(void)
{
    if (mpi_layer.on) {
        mpi_layer_end_freed();
        mpi_layer.on = 0;
        mpi_layer_progress_end();
        mpi_layer_say_stats();
        PMPI_Comm_free(&mpi_layer.progress_comm);
        PMPI_Comm_free(&mpi_layer.self_comm);
        (void)ucx_pipeline_destroy(mpi_layer.pipeline);
    }
    return REAL_MPI(Finalize)();
}

/* --- The stub's call ------------------------------------------------------ */

#define MPI_LAYER_SLOT(_name) \
    door->slots[MPI_PIPELINE_##_name] = (mpi_pipeline_func_t)mpi_layer_##_name;

void mpi_pipeline_open(const mpi_pipeline_door_t *door);

__attribute__((visibility("default"))) void
mpi_pipeline_open(const mpi_pipeline_door_t *door)
{
    static mpi_pipeline_door_t kept;

    kept           = *door;
    mpi_layer.door = &kept;
    mpi_layer.real = door->real;
    pthread_mutex_init(&mpi_layer.send_lock, NULL);
    pthread_mutex_init(&mpi_layer.match_lock, NULL);
    pthread_mutex_init(&mpi_layer.lock, NULL);
    pthread_mutex_init(&mpi_layer.step_lock, NULL);
    ucs_list_head_init(&mpi_layer.posted);
    ucs_list_head_init(&mpi_layer.unwatched);
    ucs_list_head_init(&mpi_layer.freed);
    ucs_store_relaxed(&mpi_layer.next_comm, 1); /* relaxed: one thread yet */
    MPI_LAYER_ENTRIES(MPI_LAYER_SLOT)
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Bytes that each rank lends the others of one window, in all (M). Half: more
 *  misses where the ranks' working sets of this rank's memory are larger.
 *  Double: twice as much may be pinned. */
#define FIREHOSE_MPI_MEMORY (64ul << 20)

static int firehose_mpi_option(const char *name, int otherwise)
{
    const char *value = getenv(name);

    return ((value == NULL) || (*value == '\0')) ?
                   otherwise : (strchr("yY1", *value) != NULL);
}

/* Bytes, perhaps with K, M or G behind; what is no number is told once */
static size_t firehose_mpi_memory(void)
{
    const char *value = getenv("FIREHOSE_MPI_MEMORY"), *at;
    static const char units[] = "kKmMgG";
    unsigned long long number;
    unsigned shift;
    char *end;

    if (value == NULL) {
        return FIREHOSE_MPI_MEMORY;
    }
    number = strtoull(value, &end, 10);
    at     = (*end == '\0') ? NULL : strchr(units, *end);
    shift  = (at == NULL) ? 0 : 10 * ((at - units) / 2 + 1);
    if ((end == value) || (*value == '-') || ((*end != '\0') && (at == NULL)) ||
        ((at != NULL) && (end[1] != '\0')) ||
        ((number << shift) >> shift != number)) {
        fprintf(stderr, "firehose: FIREHOSE_MPI_MEMORY: '%s' is not valid, "
                        "allowed: bytes with an optional k, m or g; taken as "
                        "%lu\n", value, FIREHOSE_MPI_MEMORY);
        return FIREHOSE_MPI_MEMORY;
    }
    return number << shift;
}

/* --- Windows -------------------------------------------------------------- */

static int firehose_mpi_key           = MPI_KEYVAL_INVALID;
static pthread_once_t firehose_mpi_once = PTHREAD_ONCE_INIT;

/* Once: a window is not found by another key */
static void firehose_mpi_make_key(void)
{
    int key;

    if (PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN,
                               &key, NULL) == MPI_SUCCESS) {
        firehose_mpi_key = key;
    }
}

firehose_mpi_window_t *firehose_mpi_find(MPI_Win win)
{
    void *window = NULL;
    int is_there = 0;

    if ((firehose_mpi_key == MPI_KEYVAL_INVALID) || (win == MPI_WIN_NULL) ||
        (PMPI_Win_get_attr(win, firehose_mpi_key, &window, &is_there) !=
         MPI_SUCCESS)) {
        return NULL;
    }
    return is_there ? window : NULL;
}

static int firehose_mpi_all(MPI_Comm comm, int is_good)
{
    int all = 0;

    return (PMPI_Allreduce(&is_good, &all, 1, MPI_INT, MPI_MIN, comm) ==
            MPI_SUCCESS) &&
           all;
}

/* @return Zero if a rank could not connect to another */
static int firehose_mpi_connect(firehose_mpi_window_t *window, char *addresses,
                                int length)
{
    int rank, is_good = 1;

    for (rank = 0; (rank < window->size) && is_good; ++rank) {
        if (rank != window->rank) {
            is_good = ucx_firehose_connect(window->firehose, rank,
                                           addresses + (size_t)rank * length) ==
                      UCS_OK;
        }
    }
    return firehose_mpi_all(window->comm, is_good);
}

/* Exchange all addresses. @return Zero on failure of a rank */
static int firehose_mpi_meet(firehose_mpi_window_t *window)
{
    const void *address;
    char *addresses, *mine;
    size_t length;
    int own, most = 0, is_good;

    ucx_firehose_address(window->firehose, &address, &length);
    own = (int)length;
    PMPI_Allreduce(&own, &most, 1, MPI_INT, MPI_MAX, window->comm);
    addresses = calloc(window->size, most);
    mine      = calloc(1, most);
    is_good   = firehose_mpi_all(window->comm, (addresses != NULL) &&
                                                       (mine != NULL));
    if (is_good) {
        memcpy(mine, address, length);
        is_good = PMPI_Allgather(mine, most, MPI_BYTE, addresses, most,
                                 MPI_BYTE, window->comm) == MPI_SUCCESS;
        is_good = firehose_mpi_connect(window, addresses, most) && is_good;
    }
    free(mine);
    free(addresses);
    return is_good;
}

static int firehose_mpi_open(firehose_mpi_window_t *window)
{
    ucx_firehose_params_t params = {
        .field_mask = UCX_FIREHOSE_PARAM_FIELD_FLAGS,
        .node       = window->rank,
        .num_nodes  = window->size,
        .memory     = firehose_mpi_memory(),
        .flags      = UCX_FIREHOSE_FLAG_THREAD | UCX_FIREHOSE_FLAG_STRICT
    };

    window->exclusive = calloc(window->size, sizeof(*window->exclusive));
    if (!firehose_mpi_option("FIREHOSE_MPI", 1) ||
        (window->exclusive == NULL) ||
        (ucx_firehose_open(&params, &window->firehose) != UCS_OK)) {
        window->firehose = NULL;
    }
    return firehose_mpi_all(window->comm, window->firehose != NULL);
}

static void firehose_mpi_destroy(firehose_mpi_window_t *window)
{
    firehose_mpi_attached_t *attached;

    if (window->firehose != NULL) {
        ucx_firehose_close(window->firehose);
    }
    while ((attached = window->attached) != NULL) {
        window->attached = attached->next;
        free(attached);
    }
    PMPI_Comm_free(&window->comm);
    pthread_mutex_destroy(&window->lock);
    free(window->exclusive);
    free(window);
}

/* By all ranks of the communicator. If one fails, none is served. */
static void firehose_mpi_serve(MPI_Comm comm, MPI_Win win)
{
    firehose_mpi_window_t *window = calloc(1, sizeof(*window));

    if (!firehose_mpi_all(comm, window != NULL) ||
        (PMPI_Comm_dup(comm, &window->comm) != MPI_SUCCESS)) {
        free(window);
        return;
    }
    pthread_mutex_init(&window->lock, NULL);
    PMPI_Comm_rank(window->comm, &window->rank);
    PMPI_Comm_size(window->comm, &window->size);
    pthread_once(&firehose_mpi_once, firehose_mpi_make_key);
    if (firehose_mpi_open(window) && firehose_mpi_meet(window) &&
        firehose_mpi_all(window->comm,
                         PMPI_Win_set_attr(win, firehose_mpi_key, window) ==
                                 MPI_SUCCESS)) {
        return;
    }
    if ((window->rank == 0) && firehose_mpi_option("FIREHOSE_MPI", 1)) {
        fprintf(stderr, "firehose: a window is the MPI's alone, for a rank "
                        "could not open it or reach all others\n");
    }
    firehose_mpi_destroy(window);
}

FIREHOSE_MPI_API int
MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    int status, is_inter = 0, size = 0;

    status = PMPI_Win_create_dynamic(info, comm, win);
    if (status == MPI_SUCCESS) {
        PMPI_Comm_test_inter(comm, &is_inter);
        PMPI_Comm_size(comm, &size);
        if (!is_inter && (size > 1)) {
            firehose_mpi_serve(comm, *win);
        }
    }
    return status;
}

static void firehose_mpi_report(firehose_mpi_window_t *window)
{
    ucx_firehose_attr_t attr;

    if (!firehose_mpi_option("FIREHOSE_MPI_REPORT", 0)) {
        return;
    }
    ucx_firehose_query(window->firehose, &attr);
    fprintf(stderr,
            "firehose: rank %d: %lu transfers served, %lu passed on, %lu done "
            "again; %lu hits, %lu misses; %zu of %zu bytes pinned at most\n",
            window->rank, (unsigned long)window->served,
            (unsigned long)window->passed, (unsigned long)window->again,
            (unsigned long)attr.hits, (unsigned long)attr.misses,
            attr.pinned_peak, attr.pinned_max);
}

FIREHOSE_MPI_API int MPI_Win_free(MPI_Win *win)
{
    firehose_mpi_window_t *window = firehose_mpi_find(*win);

    if (window != NULL) {
        (void)firehose_mpi_complete(*win);
        PMPI_Barrier(window->comm); /* no rank accesses it any more */
        firehose_mpi_report(window);
        PMPI_Win_delete_attr(*win, firehose_mpi_key);
        firehose_mpi_destroy(window);
    }
    return PMPI_Win_free(win);
}

/* --- Attached memory ------------------------------------------------------ */

/** Nanoseconds that a detach waits for the peers. Their threads answer in
 *  microseconds; a lost one has been noticed by then. Half: a rank that is
 *  stopped for so long in a debugger keeps its firehose. Double: a detach hangs
 *  twice as long on one. */
#define FIREHOSE_MPI_DETACH_NS UINT64_C(10000000000)

/* Without the MPI: it pins nothing then, and does no transfers */
static int firehose_mpi_attaches(void)
{
    return firehose_mpi_option("FIREHOSE_MPI_ATTACH", 1);
}

FIREHOSE_MPI_API int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint length)
{
    firehose_mpi_window_t *window = firehose_mpi_find(win);
    firehose_mpi_attached_t *attached;
    int status = MPI_SUCCESS;

    if ((window == NULL) || firehose_mpi_attaches()) {
        status = PMPI_Win_attach(win, base, length);
    }
    if ((window == NULL) || (status != MPI_SUCCESS)) {
        return status;
    }
    attached = malloc(sizeof(*attached));
    if (attached != NULL) { /* else the unmapping releases it */
        pthread_mutex_lock(&window->lock);
        attached->next   = window->attached;
        attached->base   = base;
        attached->length = length;
        window->attached = attached;
        pthread_mutex_unlock(&window->lock);
    }
    return status;
}

FIREHOSE_MPI_API int MPI_Win_detach(MPI_Win win, const void *base)
{
    firehose_mpi_window_t *window = firehose_mpi_find(win);
    firehose_mpi_attached_t **at, *attached = NULL;

    if (window != NULL) {
        pthread_mutex_lock(&window->lock);
        for (at = &window->attached; *at != NULL; at = &(*at)->next) {
            if ((*at)->base == base) {
                attached = *at;
                *at      = attached->next;
                break;
            }
        }
        pthread_mutex_unlock(&window->lock);
        if (attached != NULL) {
            (void)ucx_firehose_release(window->firehose, base, attached->length,
                                       FIREHOSE_MPI_DETACH_NS);
            free(attached);
        }
    }
    return ((window == NULL) || firehose_mpi_attaches()) ?
                   PMPI_Win_detach(win, base) :
                   MPI_SUCCESS;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucx_firehose.h>

#include <mpi.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * MPI_Put and MPI_Get on dynamic windows by firehose, for programs as they are:
 * a library that is preloaded, built by the compiler of the program's MPI. All
 * is done by the MPI as well but what is moved here:
 *
 * - Served are transfers between two ranks whose types at both ends are basic
 *   ones. Whatever else a program does is passed on.
 * - What completes transfers (flush, unlock, fence, complete, free) completes
 *   those here first, and then calls the MPI.
 * - What firehose refuses (a peer that cannot pin memory, a range that is not
 *   there) is done again by the MPI, before that call; so nothing fails that
 *   would not fail without this.
 * - Epochs under an exclusive lock are the MPI's alone: whether such a lock is
 *   held before the first transfer, the standard leaves open.
 */

#define FIREHOSE_MPI_API __attribute__((visibility("default")))

/** Bytes that each rank lends the others of one window, in all (M). Half: more
 *  misses where the ranks' working sets of this rank's memory are larger.
 *  Double: twice as much may be pinned. */
#define FIREHOSE_MPI_MEMORY (64ul << 20)

/** Nanoseconds that a detach waits for the peers. Their threads answer in
 *  microseconds; a lost one has been noticed by then. Half: a rank that is
 *  stopped for so long in a debugger keeps its firehose. Double: a detach hangs
 *  twice as long on one. */
#define FIREHOSE_MPI_DETACH_NS UINT64_C(10000000000)

typedef struct window window_t;

/** A transfer that is under way, as the MPI is to do it if it fails here. */
typedef struct transfer {
    struct transfer *next;
    window_t        *window;
    void            *local;
    int             count;
    MPI_Datatype    type;
    int             target;
    MPI_Aint        remote;
    int             target_count;
    MPI_Datatype    target_type;
    int             is_put;
} transfer_t;

/** Memory that has been attached. */
typedef struct attached {
    struct attached *next;
    const void      *base;
    size_t          length;
} attached_t;

struct window {
    MPI_Win         win;
    MPI_Comm        comm; /**< a copy of the window's */
    int             rank;
    int             size;
    ucx_firehose_h  firehose;
    uint8_t         *exclusive; /**< for each rank: such a lock is held */
    atomic_ulong    pending;   /**< transfers under way */
    atomic_ulong    served;    /**< transfers, since it was made */
    atomic_ulong    passed;
    unsigned long   again;
    pthread_mutex_t lock;      /**< what follows */
    transfer_t      *refused;
    attached_t      *attached;
};

static int firehose_mpi_key = MPI_KEYVAL_INVALID;

static int firehose_mpi_option(const char *name, int otherwise)
{
    const char *value = getenv(name);

    return (value == NULL) ? otherwise : (strchr("yY1", value[0]) != NULL);
}

/* Bytes, perhaps with K, M or G behind; what is no number is told once */
static size_t firehose_mpi_memory(void)
{
    const char *value = getenv("FIREHOSE_MPI_MEMORY"), *at;
    static const char units[] = "kKmMgG";
    unsigned long long number;
    char *end;

    if (value == NULL) {
        return FIREHOSE_MPI_MEMORY;
    }
    number = strtoull(value, &end, 10);
    at     = (*end == '\0') ? NULL : strchr(units, *end);
    if ((end == value) || (*value == '-') || ((*end != '\0') && (at == NULL)) ||
        ((at != NULL) && (end[1] != '\0'))) {
        fprintf(stderr, "firehose: FIREHOSE_MPI_MEMORY=%s: a number of "
                        "bytes, perhaps with k, m or g behind; taken as %lu\n",
                value, FIREHOSE_MPI_MEMORY);
        return FIREHOSE_MPI_MEMORY;
    }
    return number << ((at == NULL) ? 0 : 10 * ((at - units) / 2 + 1));
}

/* @return What serves the window, or NULL */
static window_t *firehose_mpi_find(MPI_Win win)
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

/* --- making a window ---------------------------------------------------- */

static int firehose_mpi_all(MPI_Comm comm, int is_good)
{
    int all = 0;

    return (PMPI_Allreduce(&is_good, &all, 1, MPI_INT, MPI_MIN, comm) ==
            MPI_SUCCESS) &&
           all;
}

/* @return Zero if a rank could not connect */
static int firehose_mpi_connect(window_t *window, char *addresses, int length)
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

/* Everybody tells everybody its address. @return Zero if one could not */
static int firehose_mpi_meet(window_t *window)
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

static int firehose_mpi_open(window_t *window)
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

static void firehose_mpi_destroy(window_t *window)
{
    attached_t *attached;

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

/* By all ranks of the communicator. Where one cannot, none is served. */
static void firehose_mpi_serve(MPI_Comm comm, MPI_Win win)
{
    window_t *window = calloc(1, sizeof(*window));

    if (!firehose_mpi_all(comm, window != NULL) ||
        (PMPI_Comm_dup(comm, &window->comm) != MPI_SUCCESS)) {
        free(window);
        return;
    }
    window->win = win;
    pthread_mutex_init(&window->lock, NULL);
    PMPI_Comm_rank(window->comm, &window->rank);
    PMPI_Comm_size(window->comm, &window->size);
    if ((firehose_mpi_key == MPI_KEYVAL_INVALID) &&
        (PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN,
                                &firehose_mpi_key, NULL) != MPI_SUCCESS)) {
        firehose_mpi_key = MPI_KEYVAL_INVALID;
    }
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

/* --- memory ------------------------------------------------------------- */

/* The MPI can be left out: then it pins nothing, and does no transfers */
static int firehose_mpi_attaches(void)
{
    return firehose_mpi_option("FIREHOSE_MPI_ATTACH", 1);
}

FIREHOSE_MPI_API int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint length)
{
    window_t *window = firehose_mpi_find(win);
    attached_t *attached;
    int status = MPI_SUCCESS;

    if ((window == NULL) || firehose_mpi_attaches()) {
        status = PMPI_Win_attach(win, base, length);
    }
    if ((window == NULL) || (status != MPI_SUCCESS)) {
        return status;
    }
    attached = malloc(sizeof(*attached));
    if (attached != NULL) { /* else the unmapping itself takes it back */
        pthread_mutex_lock(&window->lock);
        *attached        = (attached_t){window->attached, base, length};
        window->attached = attached;
        pthread_mutex_unlock(&window->lock);
    }
    return status;
}

FIREHOSE_MPI_API int MPI_Win_detach(MPI_Win win, const void *base)
{
    window_t *window = firehose_mpi_find(win);
    attached_t **at, *attached = NULL;

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

/* --- transfers ---------------------------------------------------------- */

/* @return Bytes of a basic type without holes, else 0. A program uses few
 *         types: the last one is remembered. */
static size_t firehose_mpi_type(MPI_Datatype type)
{
    static _Thread_local MPI_Datatype last;
    static _Thread_local size_t last_size;
    int integers, addresses, types, combiner = 0, size = 0;
    MPI_Aint lower = 0, extent = 0;

    if ((last_size > 0) && (type == last)) {
        return last_size;
    }
    if ((PMPI_Type_get_envelope(type, &integers, &addresses, &types,
                                &combiner) != MPI_SUCCESS) ||
        (combiner != MPI_COMBINER_NAMED)) {
        return 0; /* a number may be given to another type later */
    }
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &lower, &extent);
    if ((size <= 0) || (lower != 0) || (extent != size)) {
        return 0;
    }
    last      = type;
    last_size = size;
    return size;
}

static void firehose_mpi_done(void *arg, ucs_status_t status)
{
    transfer_t *transfer = arg;
    window_t *window     = transfer->window;

    if (status == UCS_OK) {
        free(transfer);
    } else {
        pthread_mutex_lock(&window->lock);
        transfer->next  = window->refused;
        window->refused = transfer;
        pthread_mutex_unlock(&window->lock);
    }
    /* release: pairs with the load in firehose_mpi_complete() */
    atomic_fetch_sub_explicit(&window->pending, 1, memory_order_release);
}

/* @return Zero if it is the MPI's. */
static int firehose_mpi_move(const transfer_t *wanted)
{
    window_t *window = wanted->window;
    size_t length, target_length;
    transfer_t *transfer;
    ucs_status_t status;

    if ((wanted->target < 0) || (wanted->target >= window->size) ||
        (wanted->target == window->rank) || (wanted->count <= 0) ||
        window->exclusive[wanted->target]) {
        return 0;
    }
    length        = wanted->count * firehose_mpi_type(wanted->type);
    target_length = wanted->target_count *
                    firehose_mpi_type(wanted->target_type);
    if ((length == 0) || (length != target_length)) {
        return 0;
    }
    transfer = malloc(sizeof(*transfer));
    if (transfer == NULL) {
        return 0;
    }
    *transfer = *wanted;
    atomic_fetch_add_explicit(&window->pending, 1, memory_order_relaxed);
    status = wanted->is_put ?
                     ucx_firehose_put_nb(window->firehose, wanted->target,
                                         wanted->local, wanted->remote, length,
                                         firehose_mpi_done, transfer) :
                     ucx_firehose_get_nb(window->firehose, wanted->target,
                                         wanted->local, wanted->remote, length,
                                         firehose_mpi_done, transfer);
    if (status != UCS_INPROGRESS) {
        atomic_fetch_sub_explicit(&window->pending, 1, memory_order_relaxed);
        free(transfer);
    }
    return (status == UCS_OK) || (status == UCS_INPROGRESS);
}

/* @return Zero if the MPI is to do it */
static int firehose_mpi_try(const transfer_t *wanted)
{
    window_t *window = wanted->window;
    int is_served;

    if (window == NULL) {
        return 0;
    }
    is_served = firehose_mpi_move(wanted);
    /* relaxed: they count */
    atomic_fetch_add_explicit(is_served ? &window->served : &window->passed, 1,
                              memory_order_relaxed);
    return is_served;
}

FIREHOSE_MPI_API int
MPI_Put(const void *local, int count, MPI_Datatype type, int target,
        MPI_Aint remote, int target_count, MPI_Datatype target_type,
        MPI_Win win)
{
    const transfer_t wanted = {NULL,         firehose_mpi_find(win),
                               (void*)local, count,
                               type,         target,
                               remote,       target_count,
                               target_type,  1};

    return firehose_mpi_try(&wanted) ?
                   MPI_SUCCESS :
                   PMPI_Put(local, count, type, target, remote, target_count,
                            target_type, win);
}

FIREHOSE_MPI_API int
MPI_Get(void *local, int count, MPI_Datatype type, int target, MPI_Aint remote,
        int target_count, MPI_Datatype target_type, MPI_Win win)
{
    const transfer_t wanted = {NULL,        firehose_mpi_find(win),
                               local,       count,
                               type,        target,
                               remote,      target_count,
                               target_type, 0};

    return firehose_mpi_try(&wanted) ?
                   MPI_SUCCESS :
                   PMPI_Get(local, count, type, target, remote, target_count,
                            target_type, win);
}

/* --- completion --------------------------------------------------------- */

static int firehose_mpi_again(transfer_t *transfer)
{
    return transfer->is_put ?
                   PMPI_Put(transfer->local, transfer->count, transfer->type,
                            transfer->target, transfer->remote,
                            transfer->target_count, transfer->target_type,
                            transfer->window->win) :
                   PMPI_Get(transfer->local, transfer->count, transfer->type,
                            transfer->target, transfer->remote,
                            transfer->target_count, transfer->target_type,
                            transfer->window->win);
}

/* All that was begun here is there, or is the MPI's now. @return MPI_SUCCESS or
 * what the MPI said of one that it did again */
static int firehose_mpi_complete(MPI_Win win)
{
    window_t *window = firehose_mpi_find(win);
    int status = MPI_SUCCESS, one;
    transfer_t *transfer, *next;

    if (window == NULL) {
        return MPI_SUCCESS;
    }
    (void)ucx_firehose_flush(window->firehose); /* what failed is in the list */
    /* acquire: pairs with the release in firehose_mpi_done(); another thread
     * may be about to tell of the last ones */
    while (atomic_load_explicit(&window->pending, memory_order_acquire) > 0) {
        if (ucx_firehose_progress(window->firehose) == 0) {
            sched_yield();
        }
    }
    pthread_mutex_lock(&window->lock);
    transfer        = window->refused;
    window->refused = NULL;
    pthread_mutex_unlock(&window->lock);
    for (; transfer != NULL; transfer = next) {
        next   = transfer->next;
        one    = firehose_mpi_again(transfer);
        status = (status == MPI_SUCCESS) ? one : status;
        ++window->again;
        free(transfer);
    }
    return status;
}

/* A function of MPI that completes transfers: here, then by the MPI; the first
 * error is told */
#define FIREHOSE_MPI_COMPLETES(_function, _params, _args) \
    FIREHOSE_MPI_API int MPI_##_function _params \
    { \
        int here  = firehose_mpi_complete(win); \
        int there = PMPI_##_function _args; \
        return (here == MPI_SUCCESS) ? there : here; \
    }

FIREHOSE_MPI_COMPLETES(Win_flush, (int rank, MPI_Win win), (rank, win))
FIREHOSE_MPI_COMPLETES(Win_flush_all, (MPI_Win win), (win))
FIREHOSE_MPI_COMPLETES(Win_flush_local, (int rank, MPI_Win win), (rank, win))
FIREHOSE_MPI_COMPLETES(Win_flush_local_all, (MPI_Win win), (win))
FIREHOSE_MPI_COMPLETES(Win_unlock_all, (MPI_Win win), (win))
FIREHOSE_MPI_COMPLETES(Win_fence, (int asserted, MPI_Win win), (asserted, win))
FIREHOSE_MPI_COMPLETES(Win_complete, (MPI_Win win), (win))

/* A rank has one lock of another at a time */
static void firehose_mpi_exclude(MPI_Win win, int rank, int is_exclusive)
{
    window_t *window = firehose_mpi_find(win);

    if ((window != NULL) && (rank >= 0) && (rank < window->size)) {
        window->exclusive[rank] = is_exclusive;
    }
}

FIREHOSE_MPI_API int
MPI_Win_lock(int type, int rank, int assertion, MPI_Win win)
{
    firehose_mpi_exclude(win, rank, type == MPI_LOCK_EXCLUSIVE);
    return PMPI_Win_lock(type, rank, assertion, win);
}

FIREHOSE_MPI_API int MPI_Win_unlock(int rank, MPI_Win win)
{
    int here, there;

    firehose_mpi_exclude(win, rank, 0); /* what failed here is done again */
    here  = firehose_mpi_complete(win);
    there = PMPI_Win_unlock(rank, win);
    return (here == MPI_SUCCESS) ? there : here;
}

static void firehose_mpi_report(window_t *window)
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
            (unsigned long)window->passed, window->again,
            (unsigned long)attr.hits, (unsigned long)attr.misses,
            attr.pinned_peak, attr.pinned_max);
}

FIREHOSE_MPI_API int MPI_Win_free(MPI_Win *win)
{
    window_t *window = firehose_mpi_find(*win);

    if (window != NULL) {
        (void)firehose_mpi_complete(*win);
        PMPI_Barrier(window->comm); /* nobody reaches for it any more */
        firehose_mpi_report(window);
        PMPI_Win_delete_attr(*win, firehose_mpi_key);
        firehose_mpi_destroy(window);
    }
    return PMPI_Win_free(win);
}

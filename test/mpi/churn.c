/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Messages between which memory comes and goes. Before each exchange a buffer
 * may be freed and allocated anew, grown, unmapped and mapped again at its
 * address, replaced in place, or given up page by page; every byte that arrives
 * is checked, and so are those beside the buffer on its first and last page.
 * With --fork-every a child is made, that writes to the buffers and beside
 * them: while the message is under way, or once it has arrived.
 *
 * All that is random follows from the seed, which is printed: give it again and
 * the same run is made, but for how threads interleave.
 */

#include "ring.h"
#include "../../bench/bench_options.h"

#include <ucs/sys/hash.h>

#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUM_SLOTS   6   /* pairs of buffers of a thread */
#define MAX_THREADS 16
#define PAGE        4096ul
#define GUARD       48  /* bytes watched on either side of a buffer */
#define GUARD_VALUE 0xa5
#define CHILD_VALUE 0x3c

typedef enum {
    TURN_KEEP,      /* as most messages of a simulation */
    TURN_FREE,      /* free, malloc: often the same address */
    TURN_REALLOC,
    TURN_UNMAP,     /* munmap, mmap at the same address */
    TURN_REPLACE,   /* mmap(MAP_FIXED) over it */
    TURN_DONTNEED,  /* what allocators do with free memory */
    TURN_LAST
} turn_t;

static const char *turn_names[TURN_LAST] = {
    "keep", "free", "realloc", "unmap", "replace", "dontneed"
};

typedef struct {
    uint8_t *base;  /* what was allocated */
    size_t  room;   /* bytes of it */
    int     is_map; /* mmap, not malloc */
} memory_t;

typedef struct {
    memory_t send, recv;
} slot_t;

typedef struct {
    unsigned id;
    uint64_t common;            /* random state, the same on every rank */
    uint64_t own;               /* random state of this rank */
    slot_t   slots[NUM_SLOTS];
    uint64_t messages, bytes, forks;
    uint64_t turns[TURN_LAST];
    MPI_Comm comm;
} worker_t;

static struct {
    uint64_t messages;
    size_t   min_size, max_size;
    uint64_t seed;
    unsigned threads;
    unsigned fork_every;
    int      fork_idle; /* once the message has arrived, not beside it */
    uint64_t corrupt;
} opts = {
    .messages = 2000,
    .min_size = 32 * 1024,
    .max_size = 512 * 1024,
    .threads  = 1,
    .corrupt  = UINT64_MAX
};

/* --- randomness and content ----------------------------------------------- */

static uint64_t content_key(const worker_t *worker, uint64_t message,
                            int sender)
{
    return ucs_hash_mix(opts.seed ^
                        ucs_hash_mix(message * MAX_THREADS + worker->id) ^
                        ucs_hash_mix(~(uint64_t)sender));
}

/* --- memory ----------------------------------------------------------------
 * */

static void *checked(void *address, size_t size)
{
    if ((address == NULL) || (address == MAP_FAILED)) {
        fail("cannot allocate %zu bytes: %s", size, strerror(errno));
    }
    return address;
}

static void *map_at(void *where, size_t size, int flags)
{
    void *address = mmap(where, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    if ((address == MAP_FAILED) && (flags == MAP_FIXED_NOREPLACE)) {
        address = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return checked(address, size);
}

static void memory_init(memory_t *memory, int is_map)
{
    memory->room   = (opts.max_size + 2 * PAGE) & ~(PAGE - 1);
    memory->is_map = is_map;
    memory->base   = is_map ? map_at(NULL, memory->room, 0) :
                              checked(malloc(memory->room), memory->room);
}

static void memory_cleanup(memory_t *memory)
{
    if (memory->is_map) {
        munmap(memory->base, memory->room);
    } else {
        free(memory->base);
    }
}

static void memory_give_up(memory_t *memory)
{
    uintptr_t start = ((uintptr_t)memory->base + PAGE - 1) & ~(PAGE - 1);
    uintptr_t end   = ((uintptr_t)memory->base + memory->room) & ~(PAGE - 1);

    if (madvise((void*)start, end - start, MADV_DONTNEED) != 0) {
        fail("MADV_DONTNEED: %s", strerror(errno));
    }
}

/* Content does not outlive a turn, but room for the largest message does. Which
 * turns there are depends on where the memory comes from. */
static turn_t memory_turn(memory_t *memory, uint64_t random)
{
    static const turn_t heap[] = {TURN_KEEP, TURN_FREE, TURN_FREE,
                                  TURN_REALLOC, TURN_REALLOC, TURN_DONTNEED};
    static const turn_t map[]  = {TURN_KEEP, TURN_UNMAP, TURN_UNMAP,
                                  TURN_REPLACE, TURN_REPLACE, TURN_DONTNEED};
    turn_t turn                = (memory->is_map ? map : heap)[random % 6];
    size_t room                = memory->room;

    switch (turn) {
    case TURN_FREE:
        free(memory->base);
        memory->base = checked(malloc(room), room);
        break;
    case TURN_REALLOC:
        /* Larger and back: by mremap(), or by a move */
        memory->base = checked(realloc(memory->base,
                                       room + (random >> 32) % (8 * room)),
                               room);
        memory->base = checked(realloc(memory->base, room), room);
        break;
    case TURN_UNMAP:
        munmap(memory->base, room);
        memory->base = map_at(memory->base, room, MAP_FIXED_NOREPLACE);
        break;
    case TURN_REPLACE:
        map_at(memory->base, room, MAP_FIXED);
        break;
    case TURN_DONTNEED:
        memory_give_up(memory);
        break;
    default:
        break;
    }
    return turn;
}

/* Where in its first page the data begin: odd, with the guard before it */
static uint8_t *memory_data(const memory_t *memory, uint64_t random)
{
    return memory->base + GUARD + random % (PAGE - 2 * GUARD);
}

static void guard_set(uint8_t *data, size_t size)
{
    memset(data - GUARD, GUARD_VALUE, GUARD);
    memset(data + size, GUARD_VALUE, GUARD);
}

static int guard_is_whole(const uint8_t *data, size_t size)
{
    int i;

    for (i = 0; i < GUARD; i++) {
        if ((data[-1 - i] != GUARD_VALUE) || (data[size + i] != GUARD_VALUE)) {
            return 0;
        }
    }
    return 1;
}

/* --- messages --------------------------------------------------------------
 * */

/* A child of a process with memory that a device reads and writes: it must see
 * what lies beside that memory, and what it writes must not arrive anywhere */
static pid_t fork_beside(uint8_t *send, uint8_t *recv, size_t size)
{
    pid_t pid = fork();

    if (pid != 0) {
        return pid;
    }
    if (!guard_is_whole(send, size) || !guard_is_whole(recv, size)) {
        _exit(1);
    }
    memset(send - GUARD, CHILD_VALUE, size + 2 * GUARD);
    memset(recv - GUARD, CHILD_VALUE, size + 2 * GUARD);
    _exit(0);
}

static void fork_wait(pid_t pid, uint64_t message)
{
    int status;

    if ((pid < 0) || (waitpid(pid, &status, 0) != pid) || (status != 0)) {
        fail("message %" PRIu64 ": the child made beside it failed (status "
             "0x%x)", message, (pid < 0) ? -1 : status);
    }
}

static void fork_if_due(worker_t *worker, uint64_t message, uint8_t *send,
                        uint8_t *recv, size_t size, int is_idle)
{
    if ((opts.fork_every == 0) || (opts.fork_idle != is_idle) ||
        (message % opts.fork_every != 0)) {
        return;
    }
    fork_wait(fork_beside(send, recv, size), message);
    worker->forks++;
}

static void exchange(worker_t *worker, uint64_t message, uint8_t *send,
                     uint8_t *recv, size_t size)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    size_t offset;

    content_fill(send, size, content_key(worker, message, rank));
    guard_set(send, size);
    guard_set(recv, size);

    MPI_Irecv(recv, size, MPI_BYTE, left(), 1, worker->comm, &requests[0]);
    MPI_Isend(send, size, MPI_BYTE, right(), 1, worker->comm, &requests[1]);
    fork_if_due(worker, message, send, recv, size, 0);
    MPI_Waitall(2, requests, statuses);

    fork_if_due(worker, message, send, recv, size, 1);
    if ((message == opts.corrupt) && (rank == 0)) {
        recv[size / 2] ^= 1;
    }
    offset = content_check(recv, size, content_key(worker, message, left()));
    if (offset < size) {
        fail("thread %u, message %" PRIu64 ", %zu bytes at %p: wrong from "
             "offset %zu on", worker->id, message, size, (const void*)recv,
             offset);
    }
    if (!guard_is_whole(send, size) || !guard_is_whole(recv, size)) {
        fail("thread %u, message %" PRIu64 ": written beside the buffer",
             worker->id, message);
    }
    worker->messages++;
    worker->bytes += size;
}

/* Small ones are frequent, as sizes of halves of the range before */
static size_t random_size(uint64_t random)
{
    size_t range = opts.max_size - opts.min_size;

    range >>= random % 4;
    return opts.min_size + (random >> 8) % (range + 1);
}

static void *work(void *arg)
{
    worker_t *worker = arg;
    uint64_t i, random;
    slot_t *slot;
    size_t size;

    for (i = 0; i < NUM_SLOTS; i++) {
        memory_init(&worker->slots[i].send, i % 2);
        memory_init(&worker->slots[i].recv, i / 2 % 2);
    }

    for (i = 0; i < opts.messages; i++) {
        size   = random_size(ucs_hash_random(&worker->common));
        random = ucs_hash_random(&worker->own);
        slot   = &worker->slots[random % NUM_SLOTS];
        worker->turns[memory_turn(&slot->send, ucs_hash_random(&worker->own))]++;
        worker->turns[memory_turn(&slot->recv, ucs_hash_random(&worker->own))]++;
        exchange(worker, i, memory_data(&slot->send, random >> 16),
                 memory_data(&slot->recv, random >> 32), size);
    }

    for (i = 0; i < NUM_SLOTS; i++) {
        memory_cleanup(&worker->slots[i].send);
        memory_cleanup(&worker->slots[i].recv);
    }
    return NULL;
}

/* --- program ---------------------------------------------------------------
 * */

static void parse_options(char **argv)
{
    const bench_option_t table[] = {
        {"messages", BENCH_SIZE, &opts.messages, 1, 1e12,
         "of each rank and thread [2000]"},
        {"min-size", BENCH_SIZE, &opts.min_size, 1, 1 << 28,
         "smallest message [32k]"},
        {"max-size", BENCH_SIZE, &opts.max_size, 1, 1 << 28,
         "largest message [512k]"},
        {"seed", BENCH_SIZE, &opts.seed, 0, 1e18,
         "what is random follows from it [random]"},
        {"threads", BENCH_COUNT, &opts.threads, 1, MAX_THREADS,
         "that many threads at a time [1]"},
        {"fork-every", BENCH_COUNT, &opts.fork_every, 1, 1e9,
         "make a child at each Nth message"},
        {"fork-idle", BENCH_FLAG, &opts.fork_idle, 1, 1,
         "once the message has arrived, not beside it"},
        {"corrupt", BENCH_SIZE, &opts.corrupt, 0, 1e18,
         "flip a bit of this message: the run must fail"},
        {NULL}
    };

    if (getrandom(&opts.seed, sizeof(opts.seed), 0) != sizeof(opts.seed)) {
        opts.seed = getpid();
    }
    opts.seed %= 1000000000; /* a seed that one can type */
    bench_options_or_exit("churn [options]", table, argv, NULL);
}

/* Threads have communicators of their own, so that order does not matter */
static void workers_init(worker_t *workers)
{
    unsigned i;

    memset(workers, 0, opts.threads * sizeof(*workers));
    for (i = 0; i < opts.threads; i++) {
        workers[i].id     = i;
        workers[i].common = ucs_hash_mix(opts.seed + i);
        workers[i].own    = ucs_hash_mix(opts.seed + i) ^ ucs_hash_mix(rank + 1);
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    }
}

static void workers_run(worker_t *workers)
{
    pthread_t threads[MAX_THREADS];
    unsigned i;

    if (opts.threads == 1) {
        work(&workers[0]);
        return;
    }
    for (i = 0; i < opts.threads; i++) {
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) {
            fail("no thread");
        }
    }
    for (i = 0; i < opts.threads; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void print_result(worker_t *workers)
{
    uint64_t mine[3 + TURN_LAST] = {0};
    uint64_t sum[3 + TURN_LAST];
    unsigned i, j;

    for (i = 0; i < opts.threads; i++) {
        mine[0] += workers[i].messages;
        mine[1] += workers[i].bytes;
        mine[2] += workers[i].forks;
        for (j = 0; j < TURN_LAST; j++) {
            mine[3 + j] += workers[i].turns[j];
        }
    }

    MPI_Reduce(mine, sum, 3 + TURN_LAST, MPI_UINT64_T, MPI_SUM, 0,
               MPI_COMM_WORLD);
    if (rank != 0) {
        return;
    }
    printf("churn:");
    for (j = 0; j < TURN_LAST; j++) {
        printf(" %s %" PRIu64, turn_names[j], sum[3 + j]);
    }
    printf("\nchurn: %" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64
           " forks, OK\n", sum[0], sum[1], sum[2]);
    fflush(stdout);
}

int main(int argc __attribute__((unused)), char **argv)
{
    static worker_t workers[MAX_THREADS];

    parse_options(argv);
    ring_begin("churn", (opts.threads > 1) ? MPI_THREAD_MULTIPLE :
                                             MPI_THREAD_SINGLE);
    MPI_Bcast(&opts.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("churn: seed %" PRIu64 "\n", opts.seed);
        fflush(stdout);
    }
    workers_init(workers);
    workers_run(workers);
    print_result(workers);
    MPI_Finalize();
    return 0;
}

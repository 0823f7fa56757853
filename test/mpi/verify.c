/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Moves messages of many sizes between all neighbours of a ring and checks
 * every byte. What a byte must be follows from (seed, round, sender, offset),
 * and no two rounds share content, so that data which came from, or went to,
 * pages that the application no longer has at that address cannot pass.
 *
 * Three kinds of buffers take turns:
 *   rotate  three pairs that live as long as the program, with gaps between
 *   heap    malloc, use, free; the allocator likes to hand out the same address
 *   map     mmap, use, munmap, then mmap again at the very same address
 */

#include "ring.h"
#include "../own_proc.h"
#include "../../bench/bench_options.h"

#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NUM_ROTATING  3
#define GUARD_BYTES   64
#define GUARD_VALUE   0x5a
/* How far back a wrong word is looked for, to name the round it belongs to */
#define STALE_SEARCH  4096

typedef enum {
    OP_SEND_RECV,
    OP_ISEND_IRECV,
    OP_SENDRECV,
    OP_ALLTOALL,
    OP_ALLREDUCE,
    OP_LAST
} op_t;

static const char *op_names[OP_LAST] = {
    "send/recv", "isend/irecv", "sendrecv", "alltoall", "allreduce"
};

typedef enum {
    KIND_ROTATE,
    KIND_HEAP,
    KIND_MAP,
    KIND_LAST
} kind_t;

static const char *kind_names[KIND_LAST] = {"rotate", "heap", "map"};

/* A pair of buffers that one round sends from and receives into */
typedef struct {
    uint8_t *send;
    uint8_t *recv;
    size_t  capacity; /* bytes each of them holds, guard not included */
} pair_t;

typedef struct {
    uint64_t again;   /* allocations that came back at the address before */
    uint64_t total;   /* allocations after the first */
} reuse_t;

static struct {
    unsigned iterations;
    size_t   min_size;
    size_t   max_size;
    unsigned gap_ms;
    uint64_t seed;
    int      kinds[KIND_LAST];
    uint64_t corrupt;
    int      unseen;  /* mappings go by a system call that nobody hooks */
    const char *thread;
    const char *no_thread;
    int      memory;  /* print what a rank has */
} opts = {
    .iterations = 6,
    .min_size   = 32 * 1024,
    .max_size   = 8 * 1024 * 1024,
    .gap_ms     = 0,
    .seed       = 1,
    .corrupt    = UINT64_MAX
};

static uint64_t round_id;
static uint64_t num_messages, num_bytes;
static reuse_t  reuse[KIND_LAST];

/* --- content ------------------------------------------------------------- */

static uint64_t content_key(uint64_t round, int sender)
{
    uint64_t key = opts.seed * 0x9e3779b97f4a7c15ul;

    key ^= (round + 1) * 0xbf58476d1ce4e5b9ul;
    key ^= (uint64_t)(sender + 1) * 0x94d049bb133111ebul;
    return key ^ (key >> 29);
}

/* Names the earlier round whose content stands at that offset, if any does */
static const char *
stale_origin(const uint8_t *buffer, size_t offset, int sender, int block)
{
    static char text[64];
    size_t index = offset / sizeof(uint64_t);
    uint64_t got, key, back;

    memcpy(&got, buffer + index * sizeof(got), sizeof(got));
    if (got == 0) {
        return "all zero";
    }

    for (back = 1; (back <= round_id) && (back <= STALE_SEARCH); back++) {
        key = content_key(round_id - back, sender) + block;
        if (got == content_word(key, index)) {
            snprintf(text, sizeof(text), "STALE: content of %" PRIu64
                     " rounds before", back);
            return text;
        }
    }

    return "of no earlier round";
}

/* Checks what a sender's block brought */
static void check_part(op_t op, kind_t kind, const uint8_t *part, size_t size,
                       int sender, int block)
{
    uint64_t key  = content_key(round_id, sender) + block;
    size_t offset = content_check(part, size, key);

    if (offset == size) {
        return;
    }

    fail("%s, %s buffer %p, %zu bytes from rank %d, round %" PRIu64
         ": first difference at offset %zu: 0x%02x, expected 0x%02x (%s)",
         op_names[op], kind_names[kind], (const void*)part, size, sender,
         round_id, offset, part[offset],
         (uint8_t)(content_word(key, offset / 8) >> (offset % 8 * 8)),
         (offset + 8 <= size) ? stale_origin(part, offset, sender, block) :
                                "in the last bytes");
}

/* --- operations ---------------------------------------------------------- */

static void op_send_recv(const pair_t *pair, int size)
{
    if (rank % 2) {
        MPI_Recv(pair->recv, size, MPI_BYTE, left(), 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(pair->send, size, MPI_BYTE, right(), 1, MPI_COMM_WORLD);
    } else {
        MPI_Send(pair->send, size, MPI_BYTE, right(), 1, MPI_COMM_WORLD);
        MPI_Recv(pair->recv, size, MPI_BYTE, left(), 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
}

static void op_isend_irecv(const pair_t *pair, int size)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];

    MPI_Irecv(pair->recv, size, MPI_BYTE, left(), 2, MPI_COMM_WORLD,
              &requests[0]);
    MPI_Isend(pair->send, size, MPI_BYTE, right(), 2, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Waitall(2, requests, statuses);
}

static void op_sendrecv(const pair_t *pair, int size)
{
    MPI_Sendrecv(pair->send, size, MPI_BYTE, right(), 3, pair->recv, size,
                 MPI_BYTE, left(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void run_op(op_t op, const pair_t *pair, size_t size)
{
    switch (op) {
    case OP_SEND_RECV:
        op_send_recv(pair, size);
        break;
    case OP_ISEND_IRECV:
        op_isend_irecv(pair, size);
        break;
    case OP_SENDRECV:
        op_sendrecv(pair, size);
        break;
    case OP_ALLTOALL:
        MPI_Alltoall(pair->send, size, MPI_BYTE, pair->recv, size, MPI_BYTE,
                     MPI_COMM_WORLD);
        break;
    default:
        MPI_Allreduce(pair->send, pair->recv, size / sizeof(uint64_t),
                      MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        break;
    }
}

static size_t op_blocks(op_t op)
{
    return (op == OP_ALLTOALL) ? num_ranks : 1;
}

/* Block b of a sender has its own content: an all-to-all that mixes up blocks
 * must not pass */
static void fill_round(op_t op, const pair_t *pair, size_t size)
{
    size_t block;

    for (block = 0; block < op_blocks(op); block++) {
        content_fill(pair->send + block * size, size,
                     content_key(round_id, rank) + block);
    }
    memset(pair->recv + op_blocks(op) * size, GUARD_VALUE, GUARD_BYTES);
}

static void check_sum(kind_t kind, const pair_t *pair, size_t size)
{
    size_t i;
    uint64_t sum, got;
    int peer;

    for (i = 0; i < size / sizeof(sum); i++) {
        sum = 0;
        for (peer = 0; peer < num_ranks; peer++) {
            sum += content_word(content_key(round_id, peer), i);
        }
        memcpy(&got, pair->recv + i * sizeof(got), sizeof(got));
        if (got != sum) {
            fail("allreduce, %s buffer %p, %zu bytes, round %" PRIu64
                 ": first difference in word %zu (offset %zu): 0x%016" PRIx64
                 ", expected 0x%016" PRIx64, kind_names[kind],
                 (void*)pair->recv, size, round_id, i, i * sizeof(got), got,
                 sum);
        }
    }
}

static void check_round(op_t op, kind_t kind, const pair_t *pair, size_t size)
{
    size_t end = op_blocks(op) * size;
    size_t i;
    int peer;

    if (op == OP_ALLREDUCE) {
        check_sum(kind, pair, size);
    } else if (op == OP_ALLTOALL) {
        for (peer = 0; peer < num_ranks; peer++) {
            check_part(op, kind, pair->recv + peer * size, size, peer, rank);
        }
    } else {
        check_part(op, kind, pair->recv, size, left(), 0);
    }

    for (i = 0; i < GUARD_BYTES; i++) {
        if (pair->recv[end + i] != GUARD_VALUE) {
            fail("%s, %s buffer, %zu bytes, round %" PRIu64
                 ": written %zu bytes past the end", op_names[op],
                 kind_names[kind], size, round_id, i + 1);
        }
    }
}

static void do_round(op_t op, kind_t kind, const pair_t *pair, size_t size)
{
    struct timespec gap = {opts.gap_ms / 1000,
                           (opts.gap_ms % 1000) * 1000000l};

    if (op == OP_ALLREDUCE) {
        size -= size % sizeof(uint64_t);
    }

    fill_round(op, pair, size);
    run_op(op, pair, size);
    if ((round_id == opts.corrupt) && (rank == 0)) {
        pair->recv[size - 1] ^= 1;
    }
    check_round(op, kind, pair, size);
    round_id++;
    num_messages += (op == OP_ALLTOALL) ? num_ranks - 1 : 1;
    num_bytes    += size * ((op == OP_ALLTOALL) ? num_ranks - 1 : 1);
    if (opts.gap_ms > 0) {
        nanosleep(&gap, NULL);
    }
}

/* --- buffers ------------------------------------------------------------- */

static size_t pair_bytes(size_t size)
{
    /* Room for the blocks of an all-to-all, and for the guard */
    return size * num_ranks + GUARD_BYTES;
}

static void *checked_malloc(size_t size)
{
    void *ptr = malloc(size);

    if (ptr == NULL) {
        fail("cannot allocate %zu bytes", size);
    }
    return ptr;
}

/* A library that hooks mmap() hears of what is mapped as well, and infers from
 * it */
static void *map_pages(void *wish, size_t size, int flags)
{
    int prot = PROT_READ | PROT_WRITE;

    flags |= MAP_PRIVATE | MAP_ANONYMOUS;
    return opts.unseen ?
                   (void*)syscall(SYS_mmap, wish, size, prot, flags, -1, 0) :
                   mmap(wish, size, prot, flags, -1, 0);
}

static void *map_at(void *wish, size_t size)
{
    void *ptr = MAP_FAILED;

    if (wish != NULL) {
        ptr = map_pages(wish, size, MAP_FIXED_NOREPLACE);
    }
    if (ptr == MAP_FAILED) {
        ptr = map_pages(NULL, size, 0);
    }
    if (ptr == MAP_FAILED) {
        fail("cannot map %zu bytes: %s", size, strerror(errno));
    }
    return ptr;
}

static uint8_t *buffer_get(kind_t kind, uint8_t *wish, size_t bytes)
{
    uint8_t *ptr;

    ptr = (kind == KIND_MAP) ? map_at(wish, bytes) : checked_malloc(bytes);
    if (wish != NULL) {
        reuse[kind].total++;
        reuse[kind].again += (ptr == wish);
    }
    return ptr;
}

static void buffer_put(kind_t kind, uint8_t *ptr, size_t bytes)
{
    if ((kind == KIND_MAP) && opts.unseen) {
        syscall(SYS_munmap, ptr, bytes);
    } else if (kind == KIND_MAP) {
        munmap(ptr, bytes);
    } else {
        free(ptr);
    }
}

/* Odd lengths inside the size, but the same ones whenever the size is asked
 * for, as an application's would be */
static size_t odd_size(size_t size, unsigned variant)
{
    return size - (variant * 1237 + opts.seed * 3) % (size / 8);
}

static void rotate_run(size_t size)
{
    pair_t pairs[NUM_ROTATING];
    unsigned i, b;
    op_t op;

    for (b = 0; b < NUM_ROTATING; b++) {
        pairs[b].capacity = pair_bytes(size);
        pairs[b].send     = checked_malloc(pairs[b].capacity);
        pairs[b].recv     = checked_malloc(pairs[b].capacity);
    }

    for (i = 0; i < opts.iterations; i++) {
        for (op = 0; op < OP_LAST; op++) {
            for (b = 0; b < NUM_ROTATING; b++) {
                do_round(op, KIND_ROTATE, &pairs[b],
                         (b == 0) ? size : odd_size(size, b));
            }
        }
    }

    for (b = 0; b < NUM_ROTATING; b++) {
        free(pairs[b].recv);
        free(pairs[b].send);
    }
}

/* Each round has buffers of its own, at the address of the round before. Every
 * third round is half as long: another region at the same address. */
static void fresh_run(kind_t kind, size_t size)
{
    pair_t pair   = {NULL, NULL, 0};
    unsigned n    = opts.iterations * NUM_ROTATING;
    size_t length;
    unsigned i;
    op_t op;

    for (i = 0; i < n; i++) {
        for (op = 0; op < OP_LAST; op++) {
            length        = (i % 3 == 2) ? odd_size(size / 2, i % 7) : size;
            pair.capacity = pair_bytes(size);
            pair.send     = buffer_get(kind, pair.send, pair.capacity);
            pair.recv     = buffer_get(kind, pair.recv, pair.capacity);
            do_round(op, kind, &pair, length);
            buffer_put(kind, pair.recv, pair.capacity);
            buffer_put(kind, pair.send, pair.capacity);
        }
    }
}

/* --- threads ------------------------------------------------------------- */

static void check_threads(void)
{
    if ((opts.thread != NULL) && (own_proc_threads(opts.thread, NULL) != 1)) {
        fail("there are %d threads %s", own_proc_threads(opts.thread, NULL),
             opts.thread);
    }
    if ((opts.no_thread != NULL) &&
        (own_proc_threads(opts.no_thread, NULL) != 0)) {
        fail("there is a thread %s", opts.no_thread);
    }
}

/* --- memory -------------------------------------------------------------- */

/* Of no file, KB; the kernel walks the pages, as its counters lag behind */
static uint64_t anonymous_kb(void)
{
    FILE *file  = fopen("/proc/self/smaps_rollup", "r");
    uint64_t kb = 0;
    char line[128];

    while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
        (void)sscanf(line, "Anonymous: %" SCNu64, &kb);
    }
    if (kb == 0) {
        fail("cannot read /proc/self/smaps_rollup");
    }
    fclose(file);
    return kb;
}

static void print_memory(void)
{
    uint64_t mine = anonymous_kb();
    uint64_t most;

    MPI_Reduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("verify: %" PRIu64 " KB a rank\n", most);
    }
}

/* --- program ------------------------------------------------------------- */

static void parse_options(char **argv)
{
    const char *kinds            = "rotate,heap,map";
    const bench_option_t table[] = {
        {"iterations", BENCH_COUNT, &opts.iterations, 1, 1e9,
         "rounds of each operation over each of the three buffers, a size [6]"},
        {"min-size", BENCH_SIZE, &opts.min_size, 1024, 1 << 30,
         "smallest message [32k]"},
        {"max-size", BENCH_SIZE, &opts.max_size, 1024, 1 << 30,
         "largest message, sizes double [8m]"},
        {"gap-ms", BENCH_COUNT, &opts.gap_ms, 0, 1e6,
         "compute gap after each round [0]"},
        {"seed", BENCH_SIZE, &opts.seed, 0, 1e18, "content, odd lengths [1]"},
        {"kinds", BENCH_TEXT, &kinds, 0, 0, "of rotate,heap,map [all]"},
        {"thread", BENCH_TEXT, &opts.thread, 0, 0,
         "one thread so named must exist at the end"},
        {"no-thread", BENCH_TEXT, &opts.no_thread, 0, 0, "none must"},
        {"memory", BENCH_FLAG, &opts.memory, 1, 1,
         "print how much memory a rank has at the end"},
        {"unseen", BENCH_FLAG, &opts.unseen, 1, 1,
         "map by raw system calls, behind all hooks"},
        {"corrupt", BENCH_SIZE, &opts.corrupt, 0, 1e18,
         "flip one bit received in this round: the run must fail"},
        {NULL}
    };
    kind_t kind;

    bench_options_or_exit("verify [options]", table, argv, NULL);
    for (kind = 0; kind < KIND_LAST; kind++) {
        opts.kinds[kind] = (strstr(kinds, kind_names[kind]) != NULL);
    }
}

static void print_result(void)
{
    uint64_t mine[6] = {num_messages, num_bytes,
                        reuse[KIND_HEAP].again, reuse[KIND_HEAP].total,
                        reuse[KIND_MAP].again, reuse[KIND_MAP].total};
    uint64_t sum[6];

    MPI_Reduce(mine, sum, 6, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("verify: same address again: heap %" PRIu64 " of %" PRIu64
               ", map %" PRIu64 " of %" PRIu64 "\n", sum[2], sum[3], sum[4],
               sum[5]);
        printf("verify: %" PRIu64 " messages, %" PRIu64 " bytes, OK\n", sum[0],
               sum[1]);
        fflush(stdout);
    }
}

int main(int argc __attribute__((unused)), char **argv)
{
    size_t size;

    parse_options(argv);
    ring_begin("verify", MPI_THREAD_SINGLE);
    for (size = opts.min_size; size <= opts.max_size; size *= 2) {
        if (opts.kinds[KIND_ROTATE]) {
            rotate_run(size);
        }
        if (opts.kinds[KIND_HEAP]) {
            fresh_run(KIND_HEAP, size);
        }
        if (opts.kinds[KIND_MAP]) {
            fresh_run(KIND_MAP, size);
        }
    }

    check_threads();
    if (opts.memory) {
        print_memory();
    }
    print_result();
    MPI_Finalize();
    return 0;
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * An MPI program with one-sided transfers on a dynamic window, verified; it
 * knows of no helper and of no firehose.
 *   rma cannon    Cannon's matrix multiplication, by rows: put, flush
 *   rma bitonic   Batcher's bitonic sort: put, fence
 *   rma churn     memory that is attached, detached and unmapped: put, get,
 *                 locks of both kinds, an accumulate, a strided type, a put
 *                 of what may be read only
 */

enum { BLOCK = 64, KEYS = 20000, KEYS_A_PUT = 125, CHURN_ROUNDS = 60 };

static int rank, size;

#define CHECK(_is_true, _format, ...) \
    do { \
        if (!(_is_true)) { \
            fprintf(stderr, "%s:%d: rank %d: " _format "\n", __FILE__, \
                    __LINE__, rank, ##__VA_ARGS__); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

/* Memory that all ranks know the addresses of, in a window of its own */
typedef struct shared {
    MPI_Win  win;
    char     *memory;
    size_t   length;
    MPI_Aint *at; /* of each rank */
} shared_t;

static void shared_tell(shared_t *shared)
{
    MPI_Aint mine;

    MPI_Get_address(shared->memory, &mine);
    MPI_Allgather(&mine, 1, MPI_AINT, shared->at, 1, MPI_AINT, MPI_COMM_WORLD);
}

static void shared_attach(shared_t *shared)
{
    shared->memory = mmap(NULL, shared->length, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(shared->memory != MAP_FAILED, "mmap");
    MPI_Win_attach(shared->win, shared->memory, shared->length);
    shared_tell(shared);
}

static void shared_detach(shared_t *shared)
{
    MPI_Win_detach(shared->win, shared->memory);
    munmap(shared->memory, shared->length);
}

static void shared_make(shared_t *shared, size_t length)
{
    shared->length = length;
    shared->at     = malloc(size * sizeof(*shared->at));
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &shared->win);
    shared_attach(shared);
}

static void shared_end(shared_t *shared)
{
    MPI_Barrier(MPI_COMM_WORLD);
    shared_detach(shared);
    MPI_Win_free(&shared->win);
    free(shared->at);
}

/* --- Cannon ------------------------------------------------------------- */

typedef double block_t[BLOCK][BLOCK];

typedef struct cannon {
    block_t a[2], b[2];
} cannon_t;

static double cannon_a(int row, int column)
{
    return (row * 7 + column * 3) % 11;
}

static double cannon_b(int row, int column)
{
    return (row * 5 + column * 13) % 17;
}

static void cannon_send(shared_t *shared, int to, block_t *from, block_t *into)
{
    MPI_Aint offset = (char*)into - shared->memory;
    int i;

    for (i = 0; i < BLOCK; ++i) {
        MPI_Put((*from)[i], BLOCK, MPI_DOUBLE, to,
                MPI_Aint_add(shared->at[to], offset + i * sizeof((*into)[0])),
                BLOCK, MPI_DOUBLE, shared->win);
    }
}

static void cannon_multiply(const cannon_t *cannon, int turn, block_t *c)
{
    int i, j, k;

    for (i = 0; i < BLOCK; ++i) {
        for (k = 0; k < BLOCK; ++k) {
            for (j = 0; j < BLOCK; ++j) {
                (*c)[i][j] += cannon->a[turn][i][k] * cannon->b[turn][k][j];
            }
        }
    }
}

static void cannon_check(block_t *c, int row, int column, int grid)
{
    double sum;
    int i, j, k;

    for (i = 0; i < BLOCK; ++i) {
        for (j = 0; j < BLOCK; ++j) {
            sum = 0;
            for (k = 0; k < grid * BLOCK; ++k) {
                sum += cannon_a(row + i, k) * cannon_b(k, column + j);
            }
            CHECK((*c)[i][j] == sum, "(%d, %d) is %g, not %g", row + i,
                  column + j, (*c)[i][j], sum);
        }
    }
}

static void cannon(void)
{
    static block_t c;
    int grid = 1, row, column, shift, step, i, j;
    shared_t shared;
    cannon_t *blocks;

    while (grid * grid < size) {
        ++grid;
    }
    CHECK(grid * grid == size, "%d ranks are no grid", size);
    shared_make(&shared, sizeof(*blocks));
    blocks = (cannon_t*)shared.memory;
    row    = rank / grid;
    column = rank % grid;
    shift  = (row + column) % grid;
    for (i = 0; i < BLOCK; ++i) {
        for (j = 0; j < BLOCK; ++j) {
            blocks->a[0][i][j] = cannon_a(row * BLOCK + i, shift * BLOCK + j);
            blocks->b[0][i][j] = cannon_b(shift * BLOCK + i,
                                          column * BLOCK + j);
        }
    }
    MPI_Win_lock_all(0, shared.win);
    for (step = 0; step < grid; ++step) {
        MPI_Barrier(MPI_COMM_WORLD);
        cannon_send(&shared, row * grid + (column + grid - 1) % grid,
                    &blocks->a[step % 2], &blocks->a[!(step % 2)]);
        cannon_send(&shared, (row + grid - 1) % grid * grid + column,
                    &blocks->b[step % 2], &blocks->b[!(step % 2)]);
        cannon_multiply(blocks, step % 2, &c);
        MPI_Win_flush_all(shared.win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(shared.win);
    cannon_check(&c, row * BLOCK, column * BLOCK, grid);
    shared_end(&shared);
}

/* --- bitonic sort ------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;

    return (x > y) - (x < y);
}

/* The lower or the upper half of both lists */
static void bitonic_split(uint64_t *mine, const uint64_t *theirs, int is_low)
{
    static uint64_t both[2 * KEYS];

    memcpy(both, mine, KEYS * sizeof(*mine));
    memcpy(both + KEYS, theirs, KEYS * sizeof(*mine));
    qsort(both, 2 * KEYS, sizeof(*both), compare);
    memcpy(mine, both + (is_low ? 0 : KEYS), KEYS * sizeof(*mine));
}

static void bitonic_exchange(shared_t *shared, int partner)
{
    uint64_t *mine = (uint64_t*)shared->memory;
    int i;

    MPI_Win_fence(0, shared->win);
    for (i = 0; i < KEYS; i += KEYS_A_PUT) {
        MPI_Put(mine + i, KEYS_A_PUT, MPI_UINT64_T, partner,
                MPI_Aint_add(shared->at[partner], (KEYS + i) * sizeof(*mine)),
                KEYS_A_PUT, MPI_UINT64_T, shared->win);
    }
    MPI_Win_fence(0, shared->win);
}

static void bitonic_check(const uint64_t *mine, uint64_t before)
{
    uint64_t after = 0, sums[2], all[2], previous = 0;
    int i;

    for (i = 0; i < KEYS; ++i) {
        after += mix(mine[i]);
        CHECK((i == 0) || (mine[i - 1] <= mine[i]), "key %d is too small", i);
    }
    sums[0] = before;
    sums[1] = after;
    MPI_Allreduce(sums, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all[0] == all[1], "not the keys that there were");
    MPI_Sendrecv(&mine[KEYS - 1], 1, MPI_UINT64_T, (rank + 1) % size, 0,
                 &previous, 1, MPI_UINT64_T, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK((rank == 0) || (previous <= mine[0]), "less than the rank before");
}

static void bitonic(void)
{
    uint64_t *mine, before = 0;
    int length, distance, i;
    shared_t shared;

    CHECK((size & (size - 1)) == 0, "%d is no power of two", size);
    shared_make(&shared, 2 * KEYS * sizeof(*mine));
    mine = (uint64_t*)shared.memory;
    for (i = 0; i < KEYS; ++i) {
        mine[i] = mix((uint64_t)rank * KEYS + i + 1);
        before += mix(mine[i]);
    }
    qsort(mine, KEYS, sizeof(*mine), compare);
    for (length = 2; length <= size; length *= 2) {
        for (distance = length / 2; distance > 0; distance /= 2) {
            bitonic_exchange(&shared, rank ^ distance);
            bitonic_split(mine, mine + KEYS,
                          !(rank & length) == !(rank & distance));
        }
    }
    bitonic_check(mine, before);
    shared_end(&shared);
}

/* --- memory that comes and goes ------------------------------------------ */

static const char churn_text[40] = "what may be read, and not written";

/* What the next rank has: its first half from here, a word by an accumulate, a
 * text, and every second word of its last page by a strided type */
static void churn_reach(shared_t *shared, int round, const char *from)
{
    const int next = (rank + 1) % size, half = shared->length / 2;
    const int kind = (round % 3 == 2) ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
    uint64_t one = 1;
    MPI_Datatype strided;
    char *back = malloc(half);

    MPI_Type_vector(256, 1, 2, MPI_UINT64_T, &strided);
    MPI_Type_commit(&strided);
    MPI_Win_lock(kind, next, 0, shared->win);
    MPI_Put(from, half, MPI_CHAR, next, shared->at[next], half, MPI_CHAR,
            shared->win);
    MPI_Accumulate(&one, 1, MPI_UINT64_T, next,
                   MPI_Aint_add(shared->at[next], half), 1, MPI_UINT64_T,
                   MPI_SUM, shared->win);
    MPI_Put(from, 256, MPI_UINT64_T, next,
            MPI_Aint_add(shared->at[next], shared->length - 4096), 1, strided,
            shared->win);
    MPI_Put(churn_text, sizeof(churn_text), MPI_CHAR, next,
            MPI_Aint_add(shared->at[next], half + 64), sizeof(churn_text),
            MPI_CHAR, shared->win);
    MPI_Win_flush(next, shared->win);
    MPI_Get(back, half, MPI_BYTE, next, shared->at[next], half, MPI_BYTE,
            shared->win);
    MPI_Win_unlock(next, shared->win);
    CHECK(memcmp(back, from, half) == 0, "round %d: not what was put", round);
    MPI_Type_free(&strided);
    free(back);
}

static void churn_check(const shared_t *shared, int round)
{
    const int previous = (rank + size - 1) % size;
    const char wanted  = round * size + previous + 1;
    const uint64_t *last, *sum;
    size_t i;

    sum  = (const uint64_t*)(shared->memory + shared->length / 2);
    last = (const uint64_t*)(shared->memory + shared->length - 4096);
    for (i = 0; i < shared->length / 2; ++i) {
        CHECK(shared->memory[i] == wanted, "round %d: byte %zu is %d", round, i,
              shared->memory[i]);
    }
    CHECK(*sum == 1, "round %d: accumulated %lu", round, (unsigned long)*sum);
    CHECK(memcmp(shared->memory + shared->length / 2 + 64, churn_text,
                 sizeof(churn_text)) == 0,
          "round %d: not the text", round);
    for (i = 0; i < 512; ++i) {
        CHECK((last[i] != 0) == (i % 2 == 0), "round %d: word %zu", round, i);
    }
}

static void churn(void)
{
    shared_t shared;
    int round;
    char *from;

    shared_make(&shared, 64 << 10);
    from = malloc(shared.length);
    for (round = 0; round < CHURN_ROUNDS; ++round) {
        memset(from, round * size + rank + 1, shared.length);
        if (round > 0) { /* the same addresses, as it happens, other memory */
            MPI_Barrier(MPI_COMM_WORLD);
            shared_detach(&shared);
            shared_attach(&shared);
        }
        churn_reach(&shared, round, from);
        MPI_Barrier(MPI_COMM_WORLD);
        churn_check(&shared, round);
    }
    free(from);
    shared_end(&shared);
}

int main(int argc, char **argv)
{
    const char *name = (argc == 2) ? argv[1] : "";

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(name, "cannon") == 0) {
        cannon();
    } else if (strcmp(name, "bitonic") == 0) {
        bitonic();
    } else if (strcmp(name, "churn") == 0) {
        churn();
    } else {
        fprintf(stderr, "usage: rma cannon|bitonic|churn\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0) {
        printf("rma: %s, %d ranks, OK\n", name, size);
    }
    MPI_Finalize();
    return 0;
}

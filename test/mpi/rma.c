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
 *   rma flush   rows to the next rank, flushed
 *   rma fence   the same between fences
 *   rma churn   memory that is attached, detached and unmapped: put, get, locks
 *               of both kinds, an accumulate, a strided type, a put of what may
 *               be read only
 */

enum { STEPS = 8, ROWS = 32, WORDS = 64, CHURN_ROUNDS = 60 };

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

/* --- rows, to the next rank --------------------------------------------- */

static uint64_t rows_word(int step, int from, int i)
{
    return ((uint64_t)step * size + from + 1) * ROWS * WORDS + i;
}

static void rows_check(const uint64_t *rows, int step)
{
    int i, previous = (rank + size - 1) % size;

    for (i = 0; i < ROWS * WORDS; ++i) {
        CHECK(rows[i] == rows_word(step, previous, i),
              "step %d: word %d is %lu", step, i, (unsigned long)rows[i]);
    }
}

static void rows(int by_fence)
{
    static uint64_t mine[ROWS][WORDS];
    const int next = (rank + 1) % size;
    shared_t shared;
    int step, i;

    shared_make(&shared, sizeof(mine));
    if (!by_fence) {
        MPI_Win_lock_all(0, shared.win);
    }
    for (step = 0; step < STEPS; ++step) {
        for (i = 0; i < ROWS * WORDS; ++i) {
            mine[i / WORDS][i % WORDS] = rows_word(step, rank, i);
        }
        by_fence ? MPI_Win_fence(0, shared.win) : MPI_Barrier(MPI_COMM_WORLD);
        for (i = 0; i < ROWS; ++i) {
            MPI_Put(mine[i], WORDS, MPI_UINT64_T, next,
                    MPI_Aint_add(shared.at[next], i * sizeof(mine[i])), WORDS,
                    MPI_UINT64_T, shared.win);
        }
        if (by_fence) {
            MPI_Win_fence(0, shared.win);
        } else {
            MPI_Win_flush_all(shared.win);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        rows_check((uint64_t*)shared.memory, step);
    }
    if (!by_fence) {
        MPI_Win_unlock_all(shared.win);
    }
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
    if ((strcmp(name, "flush") == 0) || (strcmp(name, "fence") == 0)) {
        rows(strcmp(name, "fence") == 0);
    } else if (strcmp(name, "churn") == 0) {
        churn();
    } else {
        fprintf(stderr, "usage: rma flush|fence|churn\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0) {
        printf("rma: %s, %d ranks, OK\n", name, size);
    }
    MPI_Finalize();
    return 0;
}

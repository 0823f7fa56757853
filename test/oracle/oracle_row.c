/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"

#include <sys/mman.h>

/*
 * Pieces of one range, registered one by one and held, as a service does it,
 * upwards, downwards or in any order, all or some of them, in memory or not.
 * Meanwhile pieces that nobody has asked for yet, but that a neighbour's
 * registration may reach, are mapped anew, let go of, or taken away and mapped
 * again. Each piece's registration must show what its address does, whatever
 * became of the others. Given back in any order, and unmapped in parts.
 */

#define ORACLE_ROW_PIECES 12
#define ORACLE_ROW_PAGES  3 /* of a piece: below and above the minimal size */

typedef struct oracle_row {
    char      *start;
    size_t    length;                     /* of a piece */
    unsigned  access;                     /* that all are registered for */
    uct_mem_h memhs[ORACLE_ROW_PIECES];   /* NULL: not registered */
} oracle_row_t;

static char *oracle_row_piece(const oracle_row_t *row, unsigned i)
{
    return row->start + i * row->length;
}

static void oracle_row_check(oracle_worker_t *worker, const oracle_row_t *row,
                             unsigned i)
{
    oracle_check_own(worker, row->memhs[i], oracle_row_piece(row, i),
                     row->length, "stale in a row");
}

/* What others can be given a key of is what was asked for: where covers are
 * for local uses alone, nothing on either side of a piece is seen through the
 * registration of one that gives others access */
static void oracle_row_check_ends(oracle_worker_t *worker,
                                  const oracle_row_t *row, unsigned i)
{
    uct_md_h md       = oracle_md(worker->world);
    uintptr_t address = (uintptr_t)oracle_row_piece(row, i);
    char seen;

    if ((worker->coalesce != UCS_REGCACHE_COVER_LOCAL) ||
        (row->access != UCT_MD_MEM_ACCESS_ALL)) {
        return;
    }
    if ((uct_pin_md_read(md, row->memhs[i], address - 1, &seen, 1) == UCS_OK) ||
        (uct_pin_md_read(md, row->memhs[i], address + row->length, &seen, 1) ==
         UCS_OK)) {
        ++worker->stale;
        oracle_print(worker, NULL, row->memhs[i], "more than was mapped");
    }
}

/* A piece that nobody uses, or its middle page alone */
static void oracle_row_disturb(oracle_worker_t *worker, oracle_row_t *row,
                               unsigned i)
{
    char *address = oracle_row_piece(row, i);
    size_t length = row->length;

    if (oracle_below(worker, 2)) {
        address += oracle_page;
        length   = oracle_page;
    }
    oracle_renew(worker, address, length);
}

static void oracle_row_use(oracle_worker_t *worker, oracle_row_t *row,
                           unsigned i)
{
    if (row->memhs[i] == NULL) {
        row->memhs[i] = oracle_get_access(worker->world,
                                          oracle_row_piece(row, i),
                                          row->length, row->access);
        oracle_fill(worker, oracle_row_piece(row, i), row->length);
    }
    oracle_row_check(worker, row, i);
    oracle_row_check_ends(worker, row, i);
}

static void oracle_row_end(oracle_worker_t *worker, oracle_row_t *row)
{
    unsigned i, first = oracle_below(worker, ORACLE_ROW_PIECES);
    unsigned k;

    for (k = 0; k < ORACLE_ROW_PIECES; ++k) {
        i = (first + 5 * k) % ORACLE_ROW_PIECES; /* 5 and 12 are coprime */
        if (row->memhs[i] == NULL) {
            continue;
        }
        oracle_row_check(worker, row, i);
        oracle_put(worker->world, row->memhs[i]);
        row->memhs[i] = NULL;
        if (oracle_below(worker, 3) == 0) {
            oracle_row_disturb(worker, row, i);
        }
    }
}

/* The k-th piece that is used: by steps that meet all of them, or with gaps */
static unsigned oracle_row_order(unsigned k, unsigned step)
{
    return k * step % ORACLE_ROW_PIECES;
}

void oracle_row(oracle_worker_t *worker)
{
    /* Up, down, each and every second one in an order of their own */
    static const unsigned steps[] = {1, 11, 5, 2};
    unsigned step    = steps[oracle_below(worker, 4)];
    oracle_row_t row = {.length = ORACLE_ROW_PAGES * oracle_page};
    unsigned k, other;

    row.access = oracle_below(worker, 2) ? UCT_MD_MEM_ACCESS_ALL :
                                           UCT_MD_MEM_ACCESS_LOCAL_READ |
                                           UCT_MD_MEM_ACCESS_LOCAL_WRITE;
    row.start  = mmap(NULL, ORACLE_ROW_PIECES * row.length,
                      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                      0);
    if (row.start == MAP_FAILED) {
        oracle_die("mmap of a row");
    }
    if (oracle_below(worker, 2)) {
        oracle_fill(worker, row.start, ORACLE_ROW_PIECES * row.length);
    }

    for (k = 0; k < 2 * ORACLE_ROW_PIECES; ++k) {
        oracle_row_use(worker, &row, oracle_row_order(k, step));
        other = oracle_below(worker, ORACLE_ROW_PIECES);
        if (oracle_below(worker, 3) > 0) {
            continue;
        }
        if (row.memhs[other] == NULL) {
            oracle_row_disturb(worker, &row, other);
        } else {
            oracle_put(worker->world, row.memhs[other]);
            row.memhs[other] = NULL;
        }
    }
    oracle_row_end(worker, &row);
    if (munmap(row.start, ORACLE_ROW_PIECES * row.length) != 0) {
        oracle_die("munmap of a row");
    }
}

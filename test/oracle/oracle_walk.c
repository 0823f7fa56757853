/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"

#include <sys/mman.h>
#include <time.h>

/*
 * A walk through an array, up or down, each piece or every second one, with all
 * of it in memory or some. What lies ahead, which a window may have registered, or
 * behind, is mapped anew, let go of, or taken away and mapped again while the walk
 * goes on. Each piece's registration must show what its address does.
 */

#define ORACLE_WALK_PIECES 96
#define ORACLE_WALK_PAGES  5     /* of a piece: above the minimal size */
#define ORACLE_WALK_NEAR   12    /* pieces from the walk that are disturbed */
#define ORACLE_WALK_NS     50000 /* between two steps, at most */

static void oracle_walk_disturb(oracle_worker_t *worker, char *start,
                                unsigned piece)
{
    size_t length = ORACLE_WALK_PAGES * oracle_page;
    char *address = start + piece * length;

    if (oracle_below(worker, 2)) {
        address += oracle_page * oracle_below(worker, ORACLE_WALK_PAGES);
        length   = oracle_page;
    }
    oracle_renew(worker, address, length);
    if (oracle_below(worker, 2)) {
        oracle_fill(worker, address, length); /* in memory again */
    }
}

static void oracle_walk_step(oracle_worker_t *worker, char *address,
                             unsigned access)
{
    size_t length  = ORACLE_WALK_PAGES * oracle_page;
    uct_mem_h memh = oracle_get_access(worker->world, address, length, access);

    oracle_fill(worker, address, length);
    oracle_check_own(worker, memh, address, length, "stale in a walk");
    oracle_put(worker->world, memh);
}

static void oracle_walk_pause(oracle_worker_t *worker)
{
    struct timespec pause = {0, oracle_below(worker, ORACLE_WALK_NS)};

    if (oracle_below(worker, 2)) {
        nanosleep(&pause, NULL);
    }
}

void oracle_walk(oracle_worker_t *worker)
{
    size_t length   = ORACLE_WALK_PAGES * oracle_page;
    unsigned by     = 1 + oracle_below(worker, 2);
    int is_down     = oracle_below(worker, 2);
    unsigned access = UCT_MD_MEM_ACCESS_LOCAL_READ |
                      UCT_MD_MEM_ACCESS_LOCAL_WRITE;
    unsigned i, piece, near;
    char *start;

    start = mmap(NULL, ORACLE_WALK_PIECES * length, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        oracle_die("mmap of a walk");
    }
    if (oracle_below(worker, 4) > 0) {
        oracle_fill(worker, start, ORACLE_WALK_PIECES * length);
    }
    for (i = 0; i < ORACLE_WALK_PIECES; i += by) {
        piece = is_down ? ORACLE_WALK_PIECES - 1 - i : i;
        oracle_walk_step(worker, start + piece * length, access);
        oracle_walk_pause(worker);
        near = piece + oracle_below(worker, 2 * ORACLE_WALK_NEAR);
        if ((oracle_below(worker, 8) == 0) && (near >= ORACLE_WALK_NEAR) &&
            (near < ORACLE_WALK_PIECES + ORACLE_WALK_NEAR)) {
            oracle_walk_disturb(worker, start, near - ORACLE_WALK_NEAR);
        }
    }
    if (munmap(start, ORACLE_WALK_PIECES * length) != 0) {
        oracle_die("munmap of a walk");
    }
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define _GNU_SOURCE
#include "life.h"
#include "../own_ledger.h"

#include <ucs/node/node.h>

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/clock.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Kills among the ranks of a node: they open domains, share a budget, use
 * buffers and close, and each is killed at some moment, also while it enters or
 * leaves the ledger; another takes its place. In every second round the ledger
 * is written over meanwhile. After each round a fresh process must find all as
 * if nobody had been there.
 */

#define LEDGER_RANKS     6
#define LEDGER_BUFFERS   4
#define LEDGER_ROUND     50   /* kills */
#define LEDGER_LIFE_US   3000 /* from one kill to the next, at most */
#define LEDGER_WORDS     32   /* written over from one kill to the next */
#define LEDGER_BUDGET    (LEDGER_RANKS * LEDGER_BUFFERS * LIFE_LENGTH / 2)
#define LEDGER_REOPEN    16   /* uses of one domain, on average */

/* A fresh process has found all in order after this long at most, seconds */
#define LEDGER_FRESH_SECONDS 5

/* Of the ranks; each writes its own */
typedef struct ledger_world {
    _Atomic(uint64_t) uses[LEDGER_RANKS];
    pid_t             pids[LEDGER_RANKS];
} ledger_world_t;


static void ledger_rank(ledger_world_t *world, unsigned rank, unsigned seed)
{
    void *buffers[LEDGER_BUFFERS];
    uct_md_h md;
    unsigned i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (i = 0; i < LEDGER_BUFFERS; ++i) {
        buffers[i] = life_map(LIFE_LENGTH);
    }
    for (;;) {
        md = life_domain_open_shared(LEDGER_BUDGET);
        do {
            life_use(md, buffers[rand_r(&seed) % LEDGER_BUFFERS], LIFE_LENGTH);
            ucs_add_relaxed(&world->uses[rank], 1);
        } while (rand_r(&seed) % LEDGER_REOPEN != 0);
        life_domain_close(md);
    }
}

static void ledger_start(ledger_world_t *world, unsigned rank, unsigned seed)
{
    pid_t pid = fork();

    if (pid == 0) {
        ledger_rank(world, rank, seed);
    }
    if (pid < 0) {
        life_fail("no child: %s", strerror(errno));
    }
    world->pids[rank] = pid;
}

/* A rank that ended before it was killed failed, and has said so */
static void ledger_kill(ledger_world_t *world, unsigned rank)
{
    int status;

    kill(world->pids[rank], SIGKILL);
    if ((waitpid(world->pids[rank], &status, 0) != world->pids[rank]) ||
        !WIFSIGNALED(status) || (WTERMSIG(status) != SIGKILL)) {
        life_fail("rank %u ended by itself: status 0x%x", rank, status);
    }
}

/* Each rank must have used a buffer since, or it hangs; the watch tells */
static void ledger_await_uses(ledger_world_t *world)
{
    uint64_t before;
    unsigned rank;

    life_step("use");
    for (rank = 0; rank < LEDGER_RANKS; ++rank) {
        before = ucs_load_relaxed(&world->uses[rank]);
        while (ucs_load_relaxed(&world->uses[rank]) == before) {
            usleep(1000);
        }
    }
}

/* What is written: anything, little, nothing, and what another word holds, so
 * that slots have owners that live and are not theirs */
static void ledger_scribble(ucs_ledger_t *ledger, unsigned *seed_p)
{
    _Atomic(uint64_t) *words = (_Atomic(uint64_t)*)ledger;
    size_t head              = offsetof(ucs_ledger_t, pinned) / sizeof(*words);
    size_t count             = sizeof(*ledger) / sizeof(*words);
    uint64_t value;
    unsigned i;

    for (i = 0; i < LEDGER_WORDS; ++i) {
        switch (rand_r(seed_p) % 4) {
        case 0:
            value = ((uint64_t)rand_r(seed_p) << 33) ^ rand_r(seed_p);
            break;
        case 1:
            value = rand_r(seed_p) % LEDGER_BUDGET;
            break;
        case 2:
            value = ucs_load_relaxed(&words[rand_r(seed_p) % head]);
            break;
        default:
            value = 0;
        }
        ucs_store_relaxed(&words[rand_r(seed_p) % ((i % 2) ? head : count)],
                          value);
    }
}

static void ledger_check_slots(ucs_ledger_t *ledger)
{
    unsigned owned = 0;
    unsigned i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        owned += (ucs_load_relaxed(&ledger->owner[i]) != 0);
    }
    if (owned != 1) {
        life_fail("%u slots have owners, not 1", owned);
    }
}

/* Nobody else is alive: nothing is pinned, all of the budget can be had. A
 * ledger whose head was written over is refused, and removed. */
static int ledger_fresh(int is_damaged)
{
    ucs_node_params_t params = {
        .name   = own_ledger_name(),
        .budget = LEDGER_BUDGET,
        .now    = ucs_clock_now
    };
    ucs_ledger_t *ledger;
    ucs_node_h node;
    char error[256];

    alarm(LEDGER_FRESH_SECONDS);
    if (ucs_ledger_open(params.name, &ledger, error, sizeof(error)) != UCS_OK) {
        if (!is_damaged) {
            life_fail("%s", error);
        }
        return !ucs_ledger_remove(params.name);
    }
    if (ucs_node_open(&params, &node, error, sizeof(error)) != UCS_OK) {
        life_fail("%s", error);
    }
    if (ucs_node_sum(node) != 0) {
        life_fail("%lu bytes of the dead are counted", ucs_node_sum(node));
    }
    ledger_check_slots(ledger);
    if (!ucs_node_claim(node, LEDGER_BUDGET, UCS_CLAIM_USE)) {
        life_fail("the budget cannot be had");
    }
    ucs_node_unclaim(node, LEDGER_BUDGET);
    if (!ucs_node_is_valid(node) || !ucs_node_is_shown(node) ||
        (!is_damaged && !own_ledger_is_valid())) {
        life_fail("the ledger is damaged");
    }
    ucs_node_close(node);
    return 0;
}

static void ledger_end_round(ledger_world_t *world, int is_damaged)
{
    unsigned rank;
    pid_t pid;

    ledger_await_uses(world);
    life_step("end of a round");
    for (rank = 0; rank < LEDGER_RANKS; ++rank) {
        ledger_kill(world, rank);
    }
    pid = fork();
    if (pid == 0) {
        _exit(ledger_fresh(is_damaged));
    }
    life_wait_child(pid, "a fresh process");
}

static void ledger_round(ledger_world_t *world, unsigned kills, int is_damaged,
                         unsigned *seed_p)
{
    ucs_ledger_t *ledger;
    unsigned rank, i;
    char error[256];

    if (ucs_ledger_open(own_ledger_name(), &ledger, error, sizeof(error)) !=
        UCS_OK) {
        life_fail("%s", error);
    }
    for (rank = 0; rank < LEDGER_RANKS; ++rank) {
        ledger_start(world, rank, rand_r(seed_p));
    }
    for (i = 0; i < kills; ++i) {
        life_step("kill");
        usleep(rand_r(seed_p) % LEDGER_LIFE_US);
        if (is_damaged) {
            ledger_scribble(ledger, seed_p);
        }
        rank = rand_r(seed_p) % LEDGER_RANKS;
        ledger_kill(world, rank);
        ledger_start(world, rank, rand_r(seed_p));
    }
    ledger_end_round(world, is_damaged);
    ucs_ledger_close(ledger);
}

void life_ledger(const life_options_t *options)
{
    ledger_world_t *world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned seed         = 1;
    unsigned long kills   = 0;
    unsigned rounds       = 0;
    uint64_t uses         = 0;
    unsigned rank;

    if (world == MAP_FAILED) {
        life_fail("no shared memory");
    }
    for (; kills < options->count; kills += LEDGER_ROUND, ++rounds) {
        ledger_round(world, LEDGER_ROUND, rounds % 2, &seed);
    }
    for (rank = 0; rank < LEDGER_RANKS; ++rank) {
        uses += ucs_load_relaxed(&world->uses[rank]);
    }
    printf("ledger: %lu kills in %u rounds, %lu uses\n", kills, rounds, uses);
}

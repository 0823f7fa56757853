/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_ORACLE_H_
#define TEST_ORACLE_H_

#include <uct/base/uct_abi.h>
#include <ucs/regcache/regcache.h>
#include <ucs/sys/clock.h>
#include <uct/ib/helper_md/config/helper_config.h>
#include <uct/ib/helper_md/watch/monitor.h>
#include "../inside/md_inside.h"
#include "../inside/pin_inside.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/**
 * @file oracle.h
 *
 * The oracle: random programs that map, fill, register, transfer, compare and
 * disturb, over the production helper and real pins. What a registration
 * shows is compared with what the virtual address shows; any difference that
 * was not planted is a stale registration.
 */

/** Buffers that a worker uses again and again. */
#define ORACLE_SLOTS 12

/** Buffers that all workers of a domain use. */
#define ORACLE_COMMONS 3

/** Largest buffer, pages. */
#define ORACLE_MAX_PAGES 16

/** Longest buffer on the heap: on both sides of malloc()'s threshold for a
 *  mapping of its own. */
#define ORACLE_HEAP_MAX (192ul << 10)

/** What lies behind a buffer. */
typedef enum oracle_kind {
    ORACLE_ANON,   /* private, anonymous */
    ORACLE_SHARED, /* memfd, shared */
    ORACLE_SHM,    /* System V segment */
    ORACLE_KIND_LAST
} oracle_kind_t;

typedef struct oracle_options {
    double   seconds;       /* 0: no limit */
    uint64_t seed;
    uint64_t cycles;        /* of all workers, 0: no limit */
    unsigned epoch;         /* the first */
    unsigned threads;
    int      hooks_only; /* without what UCX's own hooks do not see */
    int      has_stub;   /* the program's own calls are listened to */
    int      takes_files; /* the kernel pins pages of files, too */
    int      has_rows;   /* what touches a mapping can be asked for each time */
    int      has_covers;    /* neighbours share registrations: all in one
                               domain, those that give others no access in the
                               next */
    int      policy;        /* -1: a different one in each epoch */
} oracle_options_t;

typedef struct oracle_slot {
    char          *address;  /* NULL: not mapped */
    size_t        length;    /* whole pages; one more without access follows */
    oracle_kind_t kind;
    int           fd;        /* of ORACLE_SHARED, else -1 */
    const char    *history[4]; /* last disturbances, the latest first */
} oracle_slot_t;

/** A buffer that all workers use. */
typedef struct oracle_common {
    pthread_rwlock_t lock;    /* written to by who disturbs the slot, read by
                                 who uses it; taken with nothing held */
    pthread_mutex_t  content; /* protects what lies in it; taken last */
    oracle_slot_t    slot;
} oracle_common_t;

/** A decorated domain: helper over pin_md over nothing. */
typedef struct oracle_world {
    uct_abi_md_t           super;     /* first: uct_md_h points here */
    uct_abi_component_t    component;
    const uct_abi_md_ops_t *pin_ops;  /* the pinning domain below the helper */
    oracle_common_t        commons[ORACLE_COMMONS];
} oracle_world_t;

typedef struct oracle_worker {
    pthread_t              thread;
    const oracle_options_t *options;
    oracle_world_t         *world;
    unsigned               index;
    unsigned               epoch;
    ucs_regcache_cover_kind_t coalesce; /* of the domain */
    uint64_t               random;
    uint64_t               quota;       /* cycles to do */
    uint64_t               deadline;    /* ns, 0: none */
    oracle_slot_t          slots[ORACLE_SLOTS];
    int                    pidfd;       /* of this process, -1 until needed */
    struct io_uring        *ring;       /* NULL until needed */

    _Atomic uint64_t       cycles;      /* progress, also for the watchdog */
    uint64_t               stale, planted, found;
} oracle_worker_t;

/** Bytes of a page, set once before anything else is called. */
extern size_t oracle_page;

/* --- oracle_epoch.c --- */

/** Domain after domain, as long as the options say, with the figures printed.
 *  @return Nonzero if nothing was stale and all that was planted was found. */
int oracle_run(const oracle_options_t *options);

/* --- oracle_work.c --- */

/** A worker's thread: cycles until its quota or its deadline. @a arg is the
 *  oracle_worker_t. */
void *oracle_work(void *arg);

/* --- oracle_plant.c --- */

/** Plant a fault in a slot, which the comparison has to find; the slot is
 *  mapped anew afterwards. */
void oracle_plant(oracle_worker_t *worker, oracle_slot_t *slot);

/* --- oracle_util.c --- */

uint64_t oracle_random(oracle_worker_t *worker);

/** @return A random number below @a bound, which is not 0. */
static inline uint64_t oracle_below(oracle_worker_t *worker, uint64_t bound)
{
    return (oracle_random(worker) >> 11) % bound;
}

/** The test itself cannot go on. Does not return. */
void oracle_die(const char *what);

/* --- oracle_use.c --- */

/** New content, at both ends of each page: whatever is seen of an earlier page
 *  differs from it. */
void oracle_fill(oracle_worker_t *worker, char *address, size_t length);

/** Transfer through a registration, and compare; what differs is counted.
 *  @a slot is NULL for memory that is no slot. */
void oracle_check(oracle_worker_t *worker, oracle_slot_t *slot, uct_mem_h memh,
                  char *address, size_t length);

/** Compare what a use has registered with its addresses alone: what else the
 *  registration has may come and go meanwhile. What differs is counted as
 *  @a what. */
void oracle_check_own(oracle_worker_t *worker, uct_mem_h memh,
                      const char *address, size_t length, const char *what);

/** Map private memory that nobody uses anew, once or twice, or let its pages go.
 *  The place is never free: another thread would get it. */
void oracle_renew(oracle_worker_t *worker, char *address, size_t length);

/** One use of @a address: fill, register, transfer, compare, give back. */
void oracle_use(oracle_worker_t *worker, oracle_slot_t *slot, char *address,
                size_t length);

/** Print a difference, @a slot may be NULL. Not more than a few in all. */
void oracle_print(const oracle_worker_t *worker, const oracle_slot_t *slot,
                  uct_mem_h memh, const char *what);

/* --- oracle_row.c --- */

/** Pieces of one range, registered one by one, disturbed and given back. */
void oracle_row(oracle_worker_t *worker);

/* --- oracle_walk.c --- */

/** A walk through an array, of which parts are disturbed meanwhile. */
void oracle_walk(oracle_worker_t *worker);

/* --- oracle_world.c --- */

/** Open a domain of policy @a policy; dies if that fails. */
oracle_world_t *oracle_world_open(ucs_regcache_policy_t policy,
                                  uct_helper_monitor_t monitor,
                                  ucs_regcache_cover_kind_t coalesce);

/** Close it; @a stats are the cache's last figures. */
void oracle_world_close(oracle_world_t *world, ucs_regcache_stats_t *stats);

uct_md_h oracle_md(oracle_world_t *world);

/** Register through the helper; dies if refused. */
uct_mem_h oracle_get(oracle_world_t *world, void *address, size_t length);

/** The same for this access, UCT_MD_MEM_ACCESS_xx; the above asks for all. */
uct_mem_h oracle_get_access(oracle_world_t *world, void *address,
                            size_t length, unsigned access);

void oracle_put(oracle_world_t *world, uct_mem_h memh);

/** @return Nonzero if the helper does not register it. */
int oracle_is_refused(oracle_world_t *world, void *address, size_t length);

/** Register with the pinning domain, behind the helper's back. */
uct_mem_h oracle_lower_get(oracle_world_t *world, void *address, size_t length);
void oracle_lower_put(oracle_world_t *world, uct_mem_h memh);

/* --- oracle_common.c --- */

/** Map what all workers use, with the random numbers of one of them. */
void oracle_common_open(oracle_worker_t *worker);
void oracle_common_close(oracle_world_t *world);

/** A use of a common buffer, after which it may be disturbed. */
void oracle_common(oracle_worker_t *worker);

/* --- oracle_slot.c --- */

/** Map a slot that is not mapped. */
void oracle_slot_map(oracle_worker_t *worker, oracle_slot_t *slot);

/** Unmap it so that everybody hears of it. */
void oracle_slot_unmap(oracle_slot_t *slot);

/* --- oracle_disturb.c --- */

/** Disturb a slot in a random way; it is mapped whole afterwards. */
void oracle_disturb(oracle_worker_t *worker, oracle_slot_t *slot);

/** Take pages away by a system call that no hook of UCX 1.13 sees. */
void oracle_disturb_unseen(oracle_worker_t *worker, oracle_slot_t *slot);

/** Give back what the disturbances of a worker opened. */
void oracle_disturb_close(oracle_worker_t *worker);

/* --- oracle_twin.c --- */

/** Some random calls on two areas of memory, of which one is communicated from:
 *  both must consist of the same mappings after each. */
void oracle_twin(oracle_worker_t *worker);

/* --- oracle_elsewhere.c --- */

/** Start and wait for another process while a registration is in use. */
void oracle_around(oracle_worker_t *worker, oracle_slot_t *slot);

/** Put a pipe in place of the descriptor by which memory is watched, as a
 *  program does that closes what it does not know. @return It, or -1 if there
 *  is none. */
int oracle_take_descriptor(void);

/** A use of memory that is no slot: mappings of which every other one is
 *  communicated, heap, stack of a short-lived thread,
 *  .bss of a library. */
void oracle_elsewhere(oracle_worker_t *worker);

#endif

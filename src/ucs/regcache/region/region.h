/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_REGION_H_
#define UCS_REGCACHE_REGION_H_

#include <ucs/regcache/regcache.h>

#include <ucs/datastruct/dq.h>
#include <ucs/datastruct/heap.h>
#include <ucs/datastruct/itree.h>

#include <ucs/sys/sync/atomic.h>

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A region is one registration, or the memory of one that the helper intends
 * to make again. Its life is one atomic word:
 *
 *   63          28 27            4 3      2        0
 *   | generation  | references    | doom | state   |
 *
 *   FREE --> REGISTERING --> LIVE --> DEREGISTERING --> DORMANT or FREE
 *                 ^                                        |
 *                 +----------------------------------------+
 *
 * - The state, the doom bit and the generation change only under the index
 *   lock. References rise and fall without it, on LIVE regions that are not
 *   doomed (a user), and under it, on REGISTERING ones (a waiter).
 * - Doomed: the mapping is gone. A doomed region is in no look-up structure;
 *   the thread that takes its last reference away puts it on the reclaim list.
 * - The generation counts the lives of the object. Regions are never given
 *   back to the allocator before their cache ends, so a stale pointer may
 *   always be followed; the word tells that it is stale.
 *
 * Fields that the lock-less look-up reads are atomics: they are written only
 * while no reference can be taken, with release, and read with acquire before
 * the compare-and-swap of the word, which fails if they were [R-FIELDS].
 */

typedef enum ucs_regcache_state {
    UCS_REGCACHE_STATE_FREE,
    UCS_REGCACHE_STATE_DORMANT, /* not registered, expected to be again */
    UCS_REGCACHE_STATE_REGISTERING,
    UCS_REGCACHE_STATE_LIVE,
    UCS_REGCACHE_STATE_DEREGISTERING
} ucs_regcache_state_t;

#define UCS_REGCACHE_WORD_STATE_MASK UINT64_C(0x7)
#define UCS_REGCACHE_WORD_DOOMED     UINT64_C(0x8)
#define UCS_REGCACHE_WORD_REF        UINT64_C(0x10)
#define UCS_REGCACHE_WORD_REF_MASK   UINT64_C(0xffffff0)
#define UCS_REGCACHE_WORD_REF_SHIFT  4
#define UCS_REGCACHE_WORD_GEN_SHIFT  28

/** Classes of regions: each has its own LRU order. */
typedef enum ucs_regcache_class {
    UCS_REGCACHE_CLASS_SMALL, /* below min_size: bounded leave-pinned cache */
    UCS_REGCACHE_CLASS_MANAGED,
    UCS_REGCACHE_CLASS_LAST
} ucs_regcache_class_t;

/** What the last user does when it gives the region back. */
typedef enum ucs_regcache_idle {
    UCS_REGCACHE_IDLE_KEEP,  /* nothing: the region stays registered */
    UCS_REGCACHE_IDLE_QUEUE, /* one entry into the deregistration queue */
    UCS_REGCACHE_IDLE_DROP,  /* deregister at once */
    UCS_REGCACHE_IDLE_BOTH   /* one entry, and deregister at once: it may be
                                expected again */
} ucs_regcache_idle_t;

/** @return Nonzero if the helper is told of the use. */
static inline int ucs_regcache_idle_is_queued(unsigned idle)
{
    return (idle == UCS_REGCACHE_IDLE_QUEUE) ||
           (idle == UCS_REGCACHE_IDLE_BOTH);
}

/** How soon the helper must hear of the end of a use. */
typedef enum ucs_regcache_wake {
    UCS_REGCACHE_WAKE_NONE,    /* it looks by itself */
    UCS_REGCACHE_WAKE_RARELY,  /* it is to look by itself some time: there is
                                  nothing to be done but to learn */
    UCS_REGCACHE_WAKE_LEISURE, /* it is to look by itself in a while */
    UCS_REGCACHE_WAKE_NOW
} ucs_regcache_wake_t;

/** A use that is over, as the deregistration queue hands it to the helper. */
typedef struct ucs_use {
    struct ucs_regcache_region *region; /**< compare the generation */
    uint64_t                   generation;
    uint64_t                   start_ns; /**< when the use began */
    uint64_t                   end_ns;   /**< when the last user gave it back */
    uintptr_t                  sp;       /**< stack position of the use, stands
                                              for its path */
    uintptr_t                  address;
    size_t                     length;   /**< bytes */
} ucs_use_t;

UCS_DQ_CHECK_RECORD(ucs_use_t);

/** Completion that waits for an invalidated region's last user. */
typedef struct ucs_regcache_invalidate {
    ucs_regcache_comp_t            comp;
    struct ucs_regcache_invalidate *next;
} ucs_regcache_invalidate_t;

/** Bytes of a cache line. */
#define UCS_REGCACHE_LINE 64

typedef struct ucs_regcache_region {
    /* Read by every look-up, written by every user: up to `wake` in two lines,
     * of which nobody else writes anything meanwhile */
    _Atomic(uint64_t) word __attribute__((aligned(UCS_REGCACHE_LINE)));
    _Atomic(uintptr_t)          start;
    _Atomic(uintptr_t)          end;
    _Atomic(ucs_regcache_memh_t)          memh;
    _Atomic(unsigned)           access;        /* union of its users' flags */
    _Atomic(unsigned)           idle;          /* ucs_regcache_idle_t */
    _Atomic(uint64_t)           use_start;     /* ns: references went 0 -> 1 */
    _Atomic(uint64_t)           last_use;      /* ns: references went 1 -> 0 */
    _Atomic(uintptr_t)          sp;            /* stack position of that use */

    /* From begin to end of a life the same; read by those that have a reference
     * or the index lock */
    uintptr_t                   first;         /* the pages that it pins: first
                                                  byte of the first */
    uintptr_t                   last;          /* behind the last */
    ucs_regcache_class_t        size_class;
    uint8_t                     is_cover;      /* of pages, too, that nobody
                                                  asked for */
    uint8_t                     is_scattered;  /* and that no neighbours show */
    _Atomic(uint8_t)            is_window;     /* or that a walk is to come to
                                                  (cover/walk.h). Of a use that
                                                  is over it is a hint */

    _Atomic(uint64_t)           hits;          /* since registration, written
                                                  only by the user that made the
                                                  first reference */
    _Atomic(uint64_t)           joined;        /* uses that joined another */
    _Atomic(uint64_t)           busy_ns;       /* in use, since registration,
                                                  written only by the user that
                                                  has the last one */
    _Atomic(uint32_t)           usual_ns;      /* how long the next so many */
    _Atomic(uint32_t)           untimed;       /* uses are taken to be. 0: read
                                                  the clock */
    _Atomic(uint32_t)           shorts;        /* in a row, as read off it */
    _Atomic(unsigned)           wake;       /* ucs_regcache_wake_t: does the last
                                               user wake the helper? */

    _Atomic(unsigned)           planned;       /* the helper wants it kept
                                                  DORMANT when it is
                                                  deregistered */
    _Atomic(unsigned)           drops;         /* it wants it deregistered by
                                                  the thread that ends a use
                                                  which registered it. A hint:
                                                  of a life before it is
                                                  harmless */
    _Atomic(unsigned)           speculative;   /* registered by the helper */

    /* Until when it is to stay registered, as the helper has planned: */
    _Atomic(uint64_t)           until;         /* ns */
    _Atomic(uint64_t)           hold;          /* ns after its latest use */
    _Atomic(uint64_t)           due;           /* ns, when the helper is to have
                                                  registered it; 0: it is not
                                                  planned to */
    /* Why it is held; changes under the index lock only (why.h) */
    _Atomic(unsigned)           why;           /* ucs_regcache_held_t */
    _Atomic(uint64_t)           kept;          /* ns, the end of that by the
                                                  plan; 0: `hold` after its
                                                  latest use */

    /* Of the latest use that registered it: */
    _Atomic(uint64_t)           missed;        /* ns, its start */
    _Atomic(unsigned)           missed_room;   /* that was for want of room */

    /* For the choice of what to evict, as the predictor counts uses: */
    _Atomic(uint64_t)           learned;       /* the latest that it knows of */
    _Atomic(uint64_t)           learned_start; /* ns: its start */
    _Atomic(uint64_t)           next_use;      /* the next, as predicted; 0: not
                                                  known */
    _Atomic(uint64_t)           again;         /* uses between them; likewise */

    /* Protected by the index lock */
    ucs_itree_node_t            node;          /* [start, end), in the index
                                                  unless FREE or doomed */
    struct ucs_regcache_region  *memh_next;    /* chain of the handle table */
    struct ucs_regcache_region  **memh_link;   /* what points to it there */
    struct ucs_regcache_region  *next;         /* free list or reclaim list */
    ucs_regcache_invalidate_t   *invalidate;
    ucs_heap_elem_t             lru;           /* its key is last_use as the
                                                  LRU order knows it */
    uint64_t                    counted;       /* hits and joined, as in the
                                                  totals */
    uint64_t                    counted_busy;  /* busy_ns, likewise */
    uint64_t                    accounted;     /* ns, until when what it holds
                                                  is in the totals */
    int                         is_pinned;     /* it is counted as such */
    size_t                      ahead;         /* pages beyond what is asked for,
                                                  until they are counted */
    uint64_t                    pins;          /* registrations of this life */
    uint64_t                    unpinned;      /* the latest, as policies that
                                                  keep count them */
    uint64_t                    lapsed;        /* ns: it would have stayed until
                                                  then, had there been room */
    uint64_t                    refusals;      /* uses that lost for that */

    /* Owned by the helper; meaningful while items_gen is this generation */
    struct ucs_regcache_rq_item *items;
    uint64_t                    items_gen;

    /* Likewise, of the life that announced_gen names */
    unsigned                    announced;  /* uses that it is registered for */
    float                       plan_uses;  /* announced uses that a plan was due
                                               for, older ones fade */
    float                       plan_lost;  /* missed uses, if they had been left
                                               to it */
    uint64_t                    announced_gen;
} ucs_regcache_region_t;

static_assert(offsetof(ucs_regcache_region_t, planned) == 2 * UCS_REGCACHE_LINE,
              "a hit touches two cache lines of the region");

/** Regions are allocated in chunks of this many. */
#define UCS_REGCACHE_CHUNK 64

typedef struct ucs_regcache_chunk {
    struct ucs_regcache_chunk *next;
    ucs_regcache_region_t     regions[UCS_REGCACHE_CHUNK];
} ucs_regcache_chunk_t;

/** Where regions come from. Protected by the index lock. */
typedef struct ucs_regcache_store {
    ucs_regcache_region_t *free;
    unsigned              num_free;
    unsigned              num_regions; /* ever allocated */
    ucs_regcache_chunk_t  *chunks;
} ucs_regcache_store_t;

/** A walk over all regions, in use or free. They have their places for ever and
 *  in no order, so it may stop and go on later: whatever comes or goes
 *  meanwhile, each that was there at its begin is met once. */
typedef struct ucs_regcache_walk {
    ucs_regcache_chunk_t *chunk; /* NULL: it is over */
    unsigned             index;
} ucs_regcache_walk_t;

/** @return The next region of a walk, or NULL at its end. */
static inline ucs_regcache_region_t *
ucs_regcache_walk_next(ucs_regcache_walk_t *walk)
{
    ucs_regcache_region_t *region;

    if (walk->chunk == NULL) {
        return NULL;
    }
    region = &walk->chunk->regions[walk->index];
    if (++walk->index == UCS_REGCACHE_CHUNK) {
        walk->chunk = walk->chunk->next;
        walk->index = 0;
    }
    return region;
}

/** @return The state in a region's word. */
static inline ucs_regcache_state_t ucs_regcache_word_state(uint64_t word)
{
    return (ucs_regcache_state_t)(word & UCS_REGCACHE_WORD_STATE_MASK);
}

/** @return The references in a region's word. */
static inline uint64_t ucs_regcache_word_refs(uint64_t word)
{
    return (word & UCS_REGCACHE_WORD_REF_MASK) >> UCS_REGCACHE_WORD_REF_SHIFT;
}

/** @return The generation in a region's word. */
static inline uint64_t ucs_regcache_word_gen(uint64_t word)
{
    return word >> UCS_REGCACHE_WORD_GEN_SHIFT;
}

/** @return Nonzero if a reference may be taken without the lock. */
static inline int ucs_regcache_word_is_hit(uint64_t word)
{
    return (word & (UCS_REGCACHE_WORD_STATE_MASK | UCS_REGCACHE_WORD_DOOMED)) ==
           UCS_REGCACHE_STATE_LIVE;
}

/** @return Nonzero if it is registered, and nobody uses it: a hint without the
 *          lock, for both may change. */
static inline int ucs_regcache_word_is_idle(uint64_t word)
{
    return ucs_regcache_word_is_hit(word) &&
           (ucs_regcache_word_refs(word) == 0);
}

/** @return A word like this one, in another state. */
static inline uint64_t ucs_regcache_word_set_state(uint64_t word,
                                                   ucs_regcache_state_t state)
{
    return (word & ~UCS_REGCACHE_WORD_STATE_MASK) | state;
}

/** @return Generation of the region's present life. */
static inline uint64_t
ucs_regcache_region_gen(const ucs_regcache_region_t *region)
{
    return ucs_regcache_word_gen(ucs_load_relaxed(&region->word));
}

/** @return Bytes of the range that it serves. */
static inline size_t ucs_regcache_region_length(ucs_regcache_region_t *region)
{
    return ucs_load_relaxed(&region->end) - ucs_load_relaxed(&region->start);
}

/** @return Bytes of the pages that it pins. The caller has a reference or the
 *          index lock. */
static inline size_t
ucs_regcache_pinned_length(const ucs_regcache_region_t *region)
{
    return region->last - region->first;
}

/**
 * @return The half of the word that every change of the state changes: what a
 *         thread that waits for a registration sleeps on.
 */
static inline uint32_t *
ucs_regcache_region_wait_word(ucs_regcache_region_t *region)
{
    uint32_t *halves = (uint32_t*)&region->word;

    return &halves[__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__];
}

/**
 * Take a reference if the region is live, covers the range and allows the
 * access. Lock-less.
 *
 * @param [out] old_p  The word before, set on success.
 */
static inline int ucs_regcache_region_try_ref(ucs_regcache_region_t *region,
                                              uintptr_t start, uintptr_t end,
                                              unsigned access, uint64_t *old_p)
{
    /* acquire [R-LIVE]: pairs with the release that made the region LIVE */
    uint64_t word = ucs_load_acquire(&region->word);

    do {
        if (!ucs_regcache_word_is_hit(word) ||
            ((word & UCS_REGCACHE_WORD_REF_MASK) ==
             UCS_REGCACHE_WORD_REF_MASK)) {
            return 0;
        }

        /* acquire [R-FIELDS]: pairs with the release stores in
         * ucs_regcache_region_begin(); if these are values of a later life, the
         * word has changed as well and the compare-and-swap fails */
        if ((ucs_load_acquire(&region->start) > start) ||
            (ucs_load_acquire(&region->end) < end) ||
            (access & ~ucs_load_acquire(&region->access))) {
            return 0;
        }
        /* acq_rel [R-PUT]: pairs with the release of the latest user, whose
         * figures the next one goes on from */
    } while (!ucs_cas_acq_rel(&region->word, &word,
                              word + UCS_REGCACHE_WORD_REF));

    *old_p = word;
    return 1;
}

/**
 * What a use asks for: filled once where it comes in, and handed on as it is.
 * Addresses are rounded to pages there and nowhere behind.
 */
typedef struct ucs_regcache_request {
    uintptr_t            start;      /* bytes [start, end) */
    uintptr_t            end;
    uintptr_t            first;      /* the pages that they touch: first byte of
                                        the first */
    uintptr_t            last;       /* behind the last */
    unsigned             flags;      /* for the lower domain, if it registers */
    unsigned             access;     /* those of them that allow something */
    ucs_regcache_class_t size_class;
    uintptr_t            sp;         /* stack position of the call */
    uint64_t             now;        /* ns, when it came */
    int                  is_alone;   /* for this use only: in no look-up */
    int                  is_cover;   /* more than anybody asked for */
    int                  is_scattered; /* likewise, and beyond neighbours */
    int                  is_window;    /* likewise, ahead of a walk */
    size_t               ahead;        /* pages beyond what was asked for */
    const struct ucs_predict_walk *walk; /* that it is a step of, and for which
                                            windows are made; NULL: none */
} ucs_regcache_request_t;

/** What a use has lost beyond a hit and is not in the totals yet. */
typedef struct ucs_regcache_loss {
    uint64_t            since; /* ns: up to then it is */
    ucs_regcache_lost_t why;   /* it loses since */
} ucs_regcache_loss_t;

#endif

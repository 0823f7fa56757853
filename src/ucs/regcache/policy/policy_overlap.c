/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>
#include <ucs/sys/mem/own_memory.h>

#include <limits.h>

/*
 * Decoupled, overlapped pinning (Goglin, CAC'09). A buffer is declared by the
 * post of its receive, or by its first use, and the region that this opens is
 * the declaration. A rank that waits, or the helper's thread, pins it at the
 * post, so that this overlaps what the sender and the handshake take
 * (announce_serve.c); a use that comes before waits for the rest. What is pinned
 * stays, and is unpinned under pressure alone, the least recently used first.
 * The region is DORMANT then, and the next post or use pins it again. Nothing
 * is predicted.
 *
 * Declarations that are not pinned are bounded: of too many the one that was
 * unpinned longest ago is forgotten.
 */

/* A region as it was unpinned */
typedef struct ucs_regcache_unpinned {
    ucs_regcache_region_t *region; /* NULL: there is none */
    uint64_t              generation;
} ucs_regcache_unpinned_t;

/* The policy's own, in plan.state. Protected by the index lock. */
typedef struct ucs_regcache_overlap {
    uint64_t                count; /* ever unpinned */
    unsigned                size;  /* of the list */
    ucs_regcache_unpinned_t list[];  /* the latest, by their number */
} ucs_regcache_overlap_t;

static ucs_status_t ucs_regcache_overlap_init(ucs_regcache_h cache, unsigned max,
                                              void **state_p)
{
    ucs_regcache_overlap_t *overlap;

    overlap = ucs_own_alloc(sizeof(*overlap) + max * sizeof(overlap->list[0]));
    if (overlap == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    overlap->size = max;
    *state_p      = overlap;
    return UCS_OK;
}

static void ucs_regcache_overlap_cleanup(void *state)
{
    ucs_own_free(state);
}

/* Unless it has been pinned again since, or is another's by now */
static void ucs_regcache_overlap_forget(ucs_regcache_h cache,
                                        const ucs_regcache_unpinned_t *unpinned,
                                        uint64_t number)
{
    ucs_regcache_region_t *region = unpinned->region;
    uint64_t word;

    if ((region == NULL) ||
        (ucs_regcache_region_gen(region) != unpinned->generation) ||
        (region->unpinned != number)) {
        return;
    }
    word = ucs_load_relaxed(&region->word);
    if ((word & (UCS_REGCACHE_WORD_STATE_MASK | UCS_REGCACHE_WORD_DOOMED)) ==
        UCS_REGCACHE_STATE_DORMANT) {
        ucs_regcache_region_forget(cache, region);
    }
}

static void ucs_regcache_overlap_unpinned(ucs_regcache_h cache,
                                          ucs_regcache_region_t *region)
{
    ucs_regcache_overlap_t *overlap   = cache->plan.state;
    uint64_t number                   = overlap->count++;
    ucs_regcache_unpinned_t *unpinned = &overlap->list[number % overlap->size];
    ucs_regcache_unpinned_t oldest    = *unpinned;

    /* First, for the oldest may be this one's own time before */
    region->unpinned     = number;
    unpinned->region     = region;
    unpinned->generation = ucs_regcache_region_gen(region);
    if (number >= overlap->size) {
        ucs_regcache_overlap_forget(cache, &oldest, number - overlap->size);
    }
}

/* What passed a ceiling because all else was in use */
static void ucs_regcache_overlap_plan(ucs_regcache_h cache, uint64_t now)
{
    if ((cache->config.max_pinned != SIZE_MAX) ||
        (cache->config.max_regions != ULONG_MAX)) {
        ucs_regcache_trim(cache);
    }
}

const ucs_regcache_policy_ops_t ucs_regcache_policy_overlap = {
    .idle     = UCS_REGCACHE_IDLE_QUEUE,
    .keeps    = 1,
    .keeps_dormant = 1, /* each region is a buffer that was declared */
    .init     = ucs_regcache_overlap_init,
    .cleanup  = ucs_regcache_overlap_cleanup,
    .plan     = ucs_regcache_overlap_plan,
    .unpinned = ucs_regcache_overlap_unpinned
};

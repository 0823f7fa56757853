/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_inside.h"
#include "datastruct_inside.h"

#include <ucs/regcache/policy/apply.h>
#include <ucs/regcache/regcache_int.h>

#include <string.h>

#define UCS_REGCACHE_REQUIRE(_equation) \
    do { \
        if (!(_equation)) { \
            return #_equation; \
        } \
    } while (0)

/* Sums over all regions */
typedef struct ucs_regcache_sums {
    ucs_regcache_census_t census;
    unsigned              count[UCS_REGCACHE_STATE_DEREGISTERING + 1];
    size_t                pinned;      /* bytes, LIVE and DEREGISTERING */
    size_t                registering; /* bytes that may be pinned already */
    size_t                in_use;      /* of LIVE ones with users */
    size_t                counted;     /* bytes that are counted as pinned */
    double                held;        /* byte-ns since that was accounted */
    unsigned              small;       /* LIVE and DEREGISTERING */
    unsigned              listed;      /* in a state that is in the index, and
                                          not doomed */
    unsigned              in_heaps;    /* LIVE and not doomed */
    unsigned              unknown;    /* kept for a buffer that is not known */
} ucs_regcache_sums_t;

static int ucs_regcache_is_known(ucs_regcache_h cache,
                                const ucs_regcache_region_t *region)
{
    const ucs_regcache_buffers_t *buffers = cache->plan.state;
    unsigned i;

    if (cache->plan.ops->keeps) {
        return 1; /* each region is a buffer that was declared */
    }
    if (cache->plan.ops->keeps_dormant && (buffers != NULL)) {
        for (i = 0; i < buffers->count; ++i) {
            if ((buffers->list[i].region == region) &&
                (ucs_regcache_region_gen(region) == buffers->list[i].generation)) {
                return 1;
            }
        }
    }
    return 0;
}

static int ucs_regcache_is_unknown(ucs_regcache_h cache,
                                    const ucs_regcache_region_t *region)
{
    return cache->plan.ops->keeps_dormant &&
           ucs_load_relaxed(&region->planned) &&
           !ucs_regcache_is_known(cache, region);
}

static void ucs_regcache_sums_add_live(const ucs_regcache_region_t *region,
                                       ucs_regcache_sums_t *sums)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    if (ucs_regcache_word_refs(word) > 0) {
        sums->in_use += ucs_regcache_pinned_length(region);
    }
    if (!(word & UCS_REGCACHE_WORD_DOOMED)) {
        ++sums->in_heaps;
        sums->census.managed +=
                (region->size_class == UCS_REGCACHE_CLASS_MANAGED) ?
                        ucs_regcache_pinned_length(region) :
                        0;
    }
}

static void ucs_regcache_sums_add(ucs_regcache_h cache,
                                  const ucs_regcache_region_t *region,
                                  ucs_regcache_sums_t *sums)
{
    uint64_t word              = ucs_load_relaxed(&region->word);
    ucs_regcache_state_t state = ucs_regcache_word_state(word);
    int is_doomed              = !!(word & UCS_REGCACHE_WORD_DOOMED);
    size_t length              = ucs_regcache_pinned_length(region);

    ++sums->count[state];
    if (region->is_pinned) {
        sums->counted += length;
        sums->held    += (double)(cache->account.time - region->accounted) *
                         (double)length;
    }
    if (state == UCS_REGCACHE_STATE_FREE) {
        return;
    }
    sums->listed   += !is_doomed;
    sums->unknown += ucs_regcache_is_unknown(cache, region);
    sums->census.doomed += is_doomed && (ucs_regcache_word_refs(word) == 0);
    switch (state) {
    case UCS_REGCACHE_STATE_LIVE:
        ucs_regcache_sums_add_live(region, sums);
        /* fall through */
    case UCS_REGCACHE_STATE_DEREGISTERING:
        sums->pinned += length;
        sums->small  += region->size_class == UCS_REGCACHE_CLASS_SMALL;
        break;
    case UCS_REGCACHE_STATE_REGISTERING:
        sums->registering += length;
        break;
    default:
        sums->census.dormant += !ucs_regcache_is_known(cache, region);
        break;
    }
}

static void ucs_regcache_sum(ucs_regcache_h cache, ucs_regcache_sums_t *sums)
{
    ucs_regcache_walk_t walk = {.chunk = cache->store.chunks};
    const ucs_regcache_region_t *region;

    memset(sums, 0, sizeof(*sums));
    while ((region = ucs_regcache_walk_next(&walk)) != NULL) {
        ucs_regcache_sums_add(cache, region, sums);
    }
    sums->census.live = sums->count[UCS_REGCACHE_STATE_LIVE];
    sums->census.busy = sums->count[UCS_REGCACHE_STATE_REGISTERING] +
                        sums->count[UCS_REGCACHE_STATE_DEREGISTERING];
}

/* As far as sums of so many terms can be */
static int ucs_regcache_is_same(double a, double b)
{
    return ((a - b) <= 1e-6 * b) && ((b - a) <= 1e-6 * b);
}

/* What waits there is doomed, and nobody has anything to do with it. That it lies on the
 * list twice shows in its length. */
static int ucs_regcache_reclaim_is_valid(ucs_regcache_h cache,
                                         const ucs_regcache_sums_t *sums)
{
    const ucs_regcache_region_t *region;
    ucs_regcache_state_t state;
    unsigned length = 0;
    uint64_t word;

    for (region = cache->reclaim.list;
         (region != NULL) && (length <= sums->census.doomed);
         region = region->next) {
        word  = ucs_load_relaxed(&region->word);
        state = ucs_regcache_word_state(word);
        if (!(word & UCS_REGCACHE_WORD_DOOMED) ||
            (ucs_regcache_word_refs(word) > 0) ||
            ((state != UCS_REGCACHE_STATE_LIVE) &&
             (state != UCS_REGCACHE_STATE_DORMANT))) {
            return 0;
        }
        ++length;
    }
    return (length == ucs_load_relaxed(&cache->reclaim.count)) &&
           (length <= sums->census.doomed);
}

/* What a thread is with the lower domain for is in transit, and those alone of
 * the REGISTERING ones are counted as pinned */
static const char *ucs_regcache_sums_check(ucs_regcache_h cache,
                                           const ucs_regcache_sums_t *sums)
{
    const ucs_regcache_account_t *account = &cache->account;
    const ucs_regcache_stats_t *stats     = &cache->stats;
    const unsigned *count                 = sums->count;

    UCS_REGCACHE_REQUIRE(stats->pinned_bytes >= sums->pinned);
    UCS_REGCACHE_REQUIRE(stats->pinned_bytes <=
                         sums->pinned + sums->registering);
    UCS_REGCACHE_REQUIRE(stats->pinned_bytes <= stats->pinned_peak_bytes);
    UCS_REGCACHE_REQUIRE(stats->pinned_bytes == sums->counted);
    UCS_REGCACHE_REQUIRE(ucs_regcache_is_same(
            ucs_regcache_why_held(&stats->why) + sums->held,
            account->pinned_ns));
    UCS_REGCACHE_REQUIRE(stats->regions ==
                         count[UCS_REGCACHE_STATE_LIVE] + account->transit);
    UCS_REGCACHE_REQUIRE(account->transit >=
                         count[UCS_REGCACHE_STATE_DEREGISTERING]);
    UCS_REGCACHE_REQUIRE(account->leaving ==
                         count[UCS_REGCACHE_STATE_DEREGISTERING]);
    UCS_REGCACHE_REQUIRE(account->transit <= sums->census.busy);
    UCS_REGCACHE_REQUIRE(account->wanted <= account->transit);
    UCS_REGCACHE_REQUIRE(account->small >= sums->small);
    UCS_REGCACHE_REQUIRE(account->small <=
                         sums->small + count[UCS_REGCACHE_STATE_REGISTERING]);
    UCS_REGCACHE_REQUIRE(cache->index.tree.count == sums->listed);
    UCS_REGCACHE_REQUIRE(cache->lru[UCS_REGCACHE_CLASS_SMALL].count +
                                 cache->lru[UCS_REGCACHE_CLASS_MANAGED].count ==
                         sums->in_heaps);
    UCS_REGCACHE_REQUIRE(cache->store.num_free ==
                         count[UCS_REGCACHE_STATE_FREE]);
    UCS_REGCACHE_REQUIRE(
            ucs_heap_is_valid(&cache->lru[UCS_REGCACHE_CLASS_SMALL]));
    UCS_REGCACHE_REQUIRE(
            ucs_heap_is_valid(&cache->lru[UCS_REGCACHE_CLASS_MANAGED]));
    UCS_REGCACHE_REQUIRE(ucs_regcache_reclaim_is_valid(cache, sums));
    UCS_REGCACHE_REQUIRE(sums->unknown == 0);
    return NULL;
}

static int ucs_regcache_rq_list_is_valid(const ucs_regcache_rq_t *rq,
                                         ucs_regcache_rq_list_t list)
{
    const ucs_regcache_rq_item_t *prev = NULL;
    const ucs_regcache_rq_item_t *item;
    unsigned count = 0;

    for (item = rq->head[list]; item != NULL; item = item->next) {
        if ((item->list != list) || (item->prev != prev) ||
            ((prev != NULL) && (prev->time > item->time))) {
            return 0;
        }
        prev = item;
        ++count;
    }
    return (rq->tail[list] == prev) && (rq->count[list] == count);
}

int ucs_regcache_rq_is_valid(const ucs_regcache_rq_t *rq)
{
    return ucs_regcache_rq_list_is_valid(rq, UCS_REGCACHE_RQ_PENDING) &&
           ucs_regcache_rq_list_is_valid(rq, UCS_REGCACHE_RQ_EXPECTED) &&
           ucs_regcache_rq_list_is_valid(rq, UCS_REGCACHE_RQ_HELD) &&
           ucs_regcache_rq_list_is_valid(rq, UCS_REGCACHE_RQ_WATCHED);
}

static unsigned ucs_regcache_list_length(const ucs_regcache_region_t *region)
{
    unsigned length = 0;

    for (; region != NULL; region = region->next) {
        ++length;
    }
    return length;
}

/* While no other thread is inside */
static const char *ucs_regcache_quiet_check(ucs_regcache_h cache,
                                            const ucs_regcache_sums_t *sums)
{
    UCS_REGCACHE_REQUIRE(sums->census.busy == 0);
    UCS_REGCACHE_REQUIRE(cache->account.transit == 0);
    UCS_REGCACHE_REQUIRE(cache->stats.pinned_bytes == sums->pinned);
    UCS_REGCACHE_REQUIRE(cache->account.small == sums->small);
    UCS_REGCACHE_REQUIRE(ucs_first_sum_get(&cache->use.bytes) == sums->in_use);
    UCS_REGCACHE_REQUIRE(ucs_dq_is_valid(cache->use.queue));
    UCS_REGCACHE_REQUIRE(ucs_load_relaxed(&cache->reclaim.count) ==
                         sums->census.doomed);
    UCS_REGCACHE_REQUIRE(ucs_regcache_list_length(cache->store.free) ==
                         cache->store.num_free);
    UCS_REGCACHE_REQUIRE(ucs_itree_is_valid(&cache->index.tree));
    UCS_REGCACHE_REQUIRE(ucs_extents_is_valid(&cache->memory.seen));
    UCS_REGCACHE_REQUIRE(ucs_extents_is_valid(&cache->memory.kept));
    UCS_REGCACHE_REQUIRE(ucs_extents_is_valid(&cache->memory.barred));
    UCS_REGCACHE_REQUIRE(ucs_extents_is_valid(&cache->memory.untouched));
    UCS_REGCACHE_REQUIRE(ucs_regcache_rq_is_valid(&cache->plan.rq));
    return NULL;
}

const char *ucs_regcache_find_invalid(ucs_regcache_h cache)
{
    ucs_regcache_sums_t sums;

    ucs_regcache_sum(cache, &sums);
    return ucs_regcache_sums_check(cache, &sums);
}

const char *ucs_regcache_find_invalid_quiet(ucs_regcache_h cache,
                                            ucs_regcache_census_t *census)
{
    ucs_regcache_sums_t sums;
    const char *broken;

    ucs_regcache_sum(cache, &sums);
    *census = sums.census;
    broken  = ucs_regcache_sums_check(cache, &sums);
    return (broken != NULL) ? broken : ucs_regcache_quiet_check(cache, &sums);
}

int ucs_regcache_has_region(ucs_regcache_h cache, uintptr_t start,
                            uintptr_t end)
{
    ucs_regcache_walk_t walk = {.chunk = cache->store.chunks};
    ucs_regcache_region_t *region;
    uint64_t word;

    while ((region = ucs_regcache_walk_next(&walk)) != NULL) {
        word = ucs_load_relaxed(&region->word);
        if ((ucs_regcache_word_state(word) != UCS_REGCACHE_STATE_FREE) &&
            !(word & UCS_REGCACHE_WORD_DOOMED) &&
            (ucs_load_relaxed(&region->start) < end) &&
            (ucs_load_relaxed(&region->end) > start)) {
            return 1;
        }
    }
    return 0;
}

unsigned ucs_regcache_count_users(ucs_regcache_h cache,
                                  ucs_regcache_memh_t memh)
{
    ucs_regcache_walk_t walk = {.chunk = cache->store.chunks};
    ucs_regcache_region_t *region;
    uint64_t word;

    while ((region = ucs_regcache_walk_next(&walk)) != NULL) {
        word = ucs_load_relaxed(&region->word);
        if ((ucs_regcache_word_state(word) == UCS_REGCACHE_STATE_LIVE) &&
            (ucs_load_relaxed(&region->memh) == memh)) {
            return ucs_regcache_word_refs(word);
        }
    }
    return 0;
}

uint64_t ucs_regcache_lock_takings(ucs_regcache_h cache)
{
    return cache->account.lock_takings;
}

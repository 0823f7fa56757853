/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_inside.h"
#include "schedules_hooks.h"
#include "schedules_sched.h"

#include <ucs/regcache/regcache_int.h>

#include <string.h>

#define SIM_REQUIRE(_condition) \
    do { \
        if (!(_condition)) { \
            sim_loud(left); \
            sim_violation("not so: %s", #_condition); \
            return; \
        } \
    } while (0)

/* Sums over all regions, by state */
typedef struct sim_regions {
    size_t   pinned;      /* of LIVE and DEREGISTERING ones */
    size_t   registering; /* bytes that may be counted as pinned already */
    unsigned count[UCS_REGCACHE_STATE_DEREGISTERING + 1];
    unsigned listed;      /* not doomed, in a state that is in the index */
    unsigned in_heaps;    /* LIVE and not doomed */
    size_t   managed;
    unsigned idle_doomed;
    unsigned homeless;    /* kept for a buffer that nobody knows */
} sim_regions_t;

static ucs_regcache_h sim_engine;
static unsigned sim_max_contexts;

void sim_inside_bind(ucs_regcache_h cache, unsigned max_contexts)
{
    sim_engine       = cache;
    sim_max_contexts = max_contexts;
}

static const void *sim_inside_owner(void)
{
    return (sim_engine == NULL) ? NULL :
                                  ucs_load_relaxed(&sim_engine->lock.owner);
}

int sim_inside_is_lock_free(void)
{
    return sim_inside_owner() == NULL;
}

int sim_inside_is_lock_mine(void)
{
    return (sim_engine != NULL) && (sim_inside_owner() == (void*)sim_self());
}

static int sim_inside_is_home(const ucs_regcache_region_t *region)
{
    const ucs_regcache_home_t *home = sim_engine->plan.homes;
    unsigned i;

    for (i = 0; (home != NULL) && (i < sim_max_contexts); ++i, ++home) {
        if ((home->region == region) &&
            (ucs_regcache_word_gen(ucs_load_relaxed(&region->word)) ==
             home->generation)) {
            return 1;
        }
    }
    return 0;
}

static void sim_inside_add(ucs_regcache_region_t *region, sim_regions_t *sum)
{
    uint64_t word              = ucs_load_relaxed(&region->word);
    ucs_regcache_state_t state = ucs_regcache_word_state(word);
    int is_doomed              = !!(word & UCS_REGCACHE_WORD_DOOMED);
    size_t length;

    ++sum->count[state];
    if (state == UCS_REGCACHE_STATE_FREE) {
        return;
    }
    length = ucs_regcache_pinned_length(sim_engine, region);
    sum->listed   += !is_doomed;
    sum->homeless += (sim_engine->plan.homes != NULL) &&
                     ucs_load_relaxed(&region->planned) &&
                     !sim_inside_is_home(region);
    if ((state == UCS_REGCACHE_STATE_LIVE) ||
        (state == UCS_REGCACHE_STATE_DEREGISTERING)) {
        sum->pinned += length;
    } else if (state == UCS_REGCACHE_STATE_REGISTERING) {
        sum->registering += length;
    }
    if (is_doomed && (ucs_regcache_word_refs(word) == 0)) {
        ++sum->idle_doomed;
    }
    if (state == UCS_REGCACHE_STATE_LIVE) {
        sum->in_heaps += !is_doomed;
        if (!is_doomed &&
            (ucs_regcache_class(sim_engine,
                                ucs_regcache_region_length(region)) ==
             UCS_REGCACHE_CLASS_MANAGED)) {
            sum->managed += length;
        }
    }
}

static void sim_inside_sum(sim_regions_t *sum)
{
    ucs_regcache_chunk_t *chunk;
    unsigned i;

    memset(sum, 0, sizeof(*sum));
    for (chunk = sim_engine->store.chunks; chunk != NULL; chunk = chunk->next) {
        for (i = 0; i < UCS_REGCACHE_CHUNK; ++i) {
            sim_inside_add(&chunk->regions[i], sum);
        }
    }
}

static unsigned sim_inside_list_length(const ucs_regcache_region_t *region)
{
    unsigned length = 0;

    for (; region != NULL; region = region->next) {
        ++length;
    }
    return length;
}

static void sim_inside_check_sums(const sim_regions_t *sum, long left)
{
    ucs_regcache_h e                  = sim_engine;
    const ucs_regcache_account_t *now = &e->account;
    unsigned registered               = sum->count[UCS_REGCACHE_STATE_LIVE] +
                          sum->count[UCS_REGCACHE_STATE_DEREGISTERING];

    SIM_REQUIRE(now->pinned >= sum->pinned);
    SIM_REQUIRE(now->pinned <= sum->pinned + sum->registering);
    SIM_REQUIRE(now->regions >= registered);
    SIM_REQUIRE(now->regions <=
                registered + sum->count[UCS_REGCACHE_STATE_REGISTERING]);
    SIM_REQUIRE(e->index.tree.count == sum->listed);
    SIM_REQUIRE(e->lru[0].count + e->lru[1].count == sum->in_heaps);
    SIM_REQUIRE(e->store.num_free == sum->count[UCS_REGCACHE_STATE_FREE]);
    SIM_REQUIRE(sum->homeless == 0);
}

void sim_inside_check(void)
{
    sim_regions_t sum;
    long left;

    if ((sim_engine == NULL) || !sim_inside_is_lock_free()) {
        return;
    }
    left = sim_quiet();
    sim_inside_sum(&sum);
    sim_inside_check_sums(&sum, left);
    sim_loud(left);
}

static void sim_inside_check_structures(long left)
{
    ucs_regcache_h e = sim_engine;

    SIM_REQUIRE(ucs_itree_is_valid(&e->index.tree));
    SIM_REQUIRE(ucs_heap_is_valid(&e->lru[UCS_REGCACHE_CLASS_SMALL]));
    SIM_REQUIRE(ucs_heap_is_valid(&e->lru[UCS_REGCACHE_CLASS_MANAGED]));
    SIM_REQUIRE(ucs_extents_is_valid(&e->memory.seen));
    SIM_REQUIRE(ucs_extents_is_valid(&e->memory.kept));
    SIM_REQUIRE(ucs_extents_is_valid(&e->memory.barred));
    SIM_REQUIRE(ucs_regcache_rq_is_valid(&e->plan.rq));
    SIM_REQUIRE(sim_inside_list_length(e->store.free) == e->store.num_free);
    SIM_REQUIRE(sim_inside_list_length(e->reclaim.list) ==
                ucs_load_relaxed(&e->reclaim.count));
    SIM_REQUIRE(e->account.transit == 0);
}

static void sim_inside_check_exact(const sim_regions_t *sum, long left)
{
    SIM_REQUIRE(sum->registering == 0);
    SIM_REQUIRE(sum->count[UCS_REGCACHE_STATE_REGISTERING] == 0);
    SIM_REQUIRE(sum->count[UCS_REGCACHE_STATE_DEREGISTERING] == 0);
    SIM_REQUIRE(sum->idle_doomed ==
                ucs_load_relaxed(&sim_engine->reclaim.count));
}

/* DORMANT regions that the policy does not remember either */
static unsigned sim_inside_stray(void)
{
    unsigned count = 0;
    const ucs_regcache_region_t *region;
    ucs_regcache_chunk_t *chunk;
    unsigned i;

    for (chunk = sim_engine->store.chunks; chunk != NULL; chunk = chunk->next) {
        for (i = 0; i < UCS_REGCACHE_CHUNK; ++i) {
            region = &chunk->regions[i];
            count += (ucs_regcache_word_state(ucs_load_relaxed(
                              &region->word)) == UCS_REGCACHE_STATE_DORMANT) &&
                     !sim_inside_is_home(region);
        }
    }
    return count;
}

void sim_inside_check_quiet(sim_inside_sum_t *result)
{
    sim_regions_t sum;
    long left = sim_quiet();

    memset(result, 0, sizeof(*result));
    sim_inside_sum(&sum);
    sim_inside_check_structures(left);
    sim_inside_check_sums(&sum, left);
    sim_inside_check_exact(&sum, left);
    result->managed = sum.managed;
    result->live    = sum.count[UCS_REGCACHE_STATE_LIVE];
    result->dormant = sim_inside_stray();
    result->busy    = sum.count[UCS_REGCACHE_STATE_REGISTERING] +
                   sum.count[UCS_REGCACHE_STATE_DEREGISTERING];
    result->doomed  = sum.idle_doomed;
    sim_loud(left);
}

/* Every region that a look-up could find, not only those in the index */
int sim_inside_finds(uintptr_t start, uintptr_t end)
{
    ucs_regcache_chunk_t *chunk;
    ucs_regcache_region_t *region;
    uint64_t word;
    unsigned i;

    for (chunk = sim_engine->store.chunks; chunk != NULL; chunk = chunk->next) {
        for (i = 0; i < UCS_REGCACHE_CHUNK; ++i) {
            region = &chunk->regions[i];
            word   = ucs_load_relaxed(&region->word);
            if ((ucs_regcache_word_state(word) != UCS_REGCACHE_STATE_FREE) &&
                !(word & UCS_REGCACHE_WORD_DOOMED) &&
                (ucs_load_relaxed(&region->start) < end) &&
                (ucs_load_relaxed(&region->end) > start)) {
                return 1;
            }
        }
    }
    return 0;
}

unsigned sim_inside_refs(ucs_regcache_memh_t memh)
{
    ucs_regcache_chunk_t *chunk;
    ucs_regcache_region_t *region;
    uint64_t word;
    unsigned i;

    for (chunk = sim_engine->store.chunks; chunk != NULL; chunk = chunk->next) {
        for (i = 0; i < UCS_REGCACHE_CHUNK; ++i) {
            region = &chunk->regions[i];
            word   = ucs_load_relaxed(&region->word);
            if ((ucs_regcache_word_state(word) == UCS_REGCACHE_STATE_LIVE) &&
                (ucs_load_relaxed(&region->memh) == memh)) {
                return ucs_regcache_word_refs(word);
            }
        }
    }
    return 0;
}

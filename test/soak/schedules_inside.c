/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_inside.h"
#include "schedules_hooks.h"
#include "schedules_sched.h"

#include <uct/ib/helper_md/engine_int.h>

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
    unsigned count[UCT_HELPER_STATE_DEREGISTERING + 1];
    unsigned listed;      /* not doomed, in a state that is in the index */
    unsigned in_heaps;    /* LIVE and not doomed */
    size_t   managed;
    unsigned idle_doomed;
    unsigned homeless;    /* kept for a buffer that nobody knows */
} sim_regions_t;

static uct_helper_engine_h sim_engine;
static unsigned sim_max_contexts;

void sim_inside_bind(uct_helper_engine_h engine, unsigned max_contexts)
{
    sim_engine       = engine;
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

static int sim_inside_is_home(const uct_helper_region_t *region)
{
    const uct_helper_home_t *home = sim_engine->homes;
    unsigned i;

    for (i = 0; (home != NULL) && (i < sim_max_contexts); ++i, ++home) {
        if ((home->region == region) &&
            (uct_helper_word_gen(ucs_load_relaxed(&region->word)) ==
             home->generation)) {
            return 1;
        }
    }
    return 0;
}

static void sim_inside_add(uct_helper_region_t *region, sim_regions_t *sum)
{
    uint64_t word            = ucs_load_relaxed(&region->word);
    uct_helper_state_t state = uct_helper_word_state(word);
    int is_doomed            = !!(word & UCT_HELPER_WORD_DOOMED);
    size_t length;

    ++sum->count[state];
    if (state == UCT_HELPER_STATE_FREE) {
        return;
    }
    length         = uct_helper_engine_pinned_length(sim_engine, region);
    sum->listed   += !is_doomed;
    sum->homeless += (sim_engine->homes != NULL) &&
                     ucs_load_relaxed(&region->planned) &&
                     !sim_inside_is_home(region);
    if ((state == UCT_HELPER_STATE_LIVE) ||
        (state == UCT_HELPER_STATE_DEREGISTERING)) {
        sum->pinned += length;
    } else if (state == UCT_HELPER_STATE_REGISTERING) {
        sum->registering += length;
    }
    if (is_doomed && (uct_helper_word_refs(word) == 0)) {
        ++sum->idle_doomed;
    }
    if (state == UCT_HELPER_STATE_LIVE) {
        sum->in_heaps += !is_doomed;
        if (!is_doomed &&
            (uct_helper_engine_class(sim_engine,
                                     uct_helper_region_length(region)) ==
             UCT_HELPER_CLASS_MANAGED)) {
            sum->managed += length;
        }
    }
}

static void sim_inside_sum(sim_regions_t *sum)
{
    uct_helper_chunk_t *chunk;
    unsigned i;

    memset(sum, 0, sizeof(*sum));
    for (chunk = sim_engine->chunks; chunk != NULL; chunk = chunk->next) {
        for (i = 0; i < UCT_HELPER_CHUNK; ++i) {
            sim_inside_add(&chunk->regions[i], sum);
        }
    }
}

static unsigned sim_inside_list_length(const uct_helper_region_t *region)
{
    unsigned length = 0;

    for (; region != NULL; region = region->next) {
        ++length;
    }
    return length;
}

static void sim_inside_check_sums(const sim_regions_t *sum, long left)
{
    uct_helper_engine_h e           = sim_engine;
    const uct_helper_account_t *now = &e->account;
    unsigned registered = sum->count[UCT_HELPER_STATE_LIVE] +
                          sum->count[UCT_HELPER_STATE_DEREGISTERING];

    SIM_REQUIRE(now->pinned >= sum->pinned);
    SIM_REQUIRE(now->pinned <= sum->pinned + sum->registering);
    SIM_REQUIRE(now->regions >= registered);
    SIM_REQUIRE(now->regions <=
                registered + sum->count[UCT_HELPER_STATE_REGISTERING]);
    SIM_REQUIRE(e->index.tree.count == sum->listed);
    SIM_REQUIRE(e->lru[0].count + e->lru[1].count == sum->in_heaps);
    SIM_REQUIRE(e->num_free == sum->count[UCT_HELPER_STATE_FREE]);
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
    uct_helper_engine_h e = sim_engine;

    SIM_REQUIRE(uct_helper_itree_is_valid(&e->index.tree));
    SIM_REQUIRE(uct_helper_heap_is_valid(&e->lru[UCT_HELPER_CLASS_SMALL]));
    SIM_REQUIRE(uct_helper_heap_is_valid(&e->lru[UCT_HELPER_CLASS_MANAGED]));
    SIM_REQUIRE(uct_helper_rq_is_valid(&e->rq));
    SIM_REQUIRE(sim_inside_list_length(e->free_regions) == e->num_free);
    SIM_REQUIRE(sim_inside_list_length(e->reclaim) ==
                ucs_load_relaxed(&e->reclaimable));
    SIM_REQUIRE(e->account.transit == 0);
}

static void sim_inside_check_exact(const sim_regions_t *sum, long left)
{
    SIM_REQUIRE(sum->registering == 0);
    SIM_REQUIRE(sum->count[UCT_HELPER_STATE_REGISTERING] == 0);
    SIM_REQUIRE(sum->count[UCT_HELPER_STATE_DEREGISTERING] == 0);
    SIM_REQUIRE(sum->idle_doomed == ucs_load_relaxed(&sim_engine->reclaimable));
}

/* DORMANT regions that the policy does not remember either */
static unsigned sim_inside_stray(void)
{
    unsigned count = 0;
    const uct_helper_region_t *region;
    uct_helper_chunk_t *chunk;
    unsigned i;

    for (chunk = sim_engine->chunks; chunk != NULL; chunk = chunk->next) {
        for (i = 0; i < UCT_HELPER_CHUNK; ++i) {
            region = &chunk->regions[i];
            count += (uct_helper_word_state(ucs_load_relaxed(&region->word)) ==
                      UCT_HELPER_STATE_DORMANT) &&
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
    result->live    = sum.count[UCT_HELPER_STATE_LIVE];
    result->dormant = sim_inside_stray();
    result->busy    = sum.count[UCT_HELPER_STATE_REGISTERING] +
                   sum.count[UCT_HELPER_STATE_DEREGISTERING];
    result->doomed  = sum.idle_doomed;
    sim_loud(left);
}

/* Every region that a look-up could find, not only those in the index */
int sim_inside_finds(uintptr_t start, uintptr_t end)
{
    uct_helper_chunk_t *chunk;
    uct_helper_region_t *region;
    uint64_t word;
    unsigned i;

    for (chunk = sim_engine->chunks; chunk != NULL; chunk = chunk->next) {
        for (i = 0; i < UCT_HELPER_CHUNK; ++i) {
            region = &chunk->regions[i];
            word   = ucs_load_relaxed(&region->word);
            if ((uct_helper_word_state(word) != UCT_HELPER_STATE_FREE) &&
                !(word & UCT_HELPER_WORD_DOOMED) &&
                (ucs_load_relaxed(&region->start) < end) &&
                (ucs_load_relaxed(&region->end) > start)) {
                return 1;
            }
        }
    }
    return 0;
}

unsigned sim_inside_refs(uct_mem_h memh)
{
    uct_helper_chunk_t *chunk;
    uct_helper_region_t *region;
    uint64_t word;
    unsigned i;

    for (chunk = sim_engine->chunks; chunk != NULL; chunk = chunk->next) {
        for (i = 0; i < UCT_HELPER_CHUNK; ++i) {
            region = &chunk->regions[i];
            word   = ucs_load_relaxed(&region->word);
            if ((uct_helper_word_state(word) == UCT_HELPER_STATE_LIVE) &&
                (ucs_load_relaxed(&region->memh) == memh)) {
                return uct_helper_word_refs(word);
            }
        }
    }
    return 0;
}

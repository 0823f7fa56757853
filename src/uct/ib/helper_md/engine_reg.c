/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <ucs/sys/preprocessor.h>
#include <ucs/sys/math.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Regions among which a victim is looked for under predict; the index lock is
 * held for that long */
#define UCT_HELPER_VICTIMS 256

/*
 * Stock
 */

static ucs_status_t uct_helper_engine_stock_regions(uct_helper_engine_h engine)
{
    uct_helper_chunk_t *chunk = calloc(1, sizeof(*chunk));
    unsigned i;

    if (chunk == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    uct_helper_engine_lock(engine);
    chunk->next    = engine->chunks;
    engine->chunks = chunk;
    for (i = 0; i < UCT_HELPER_CHUNK; ++i) {
        chunk->regions[i].next = engine->free_regions;
        engine->free_regions   = &chunk->regions[i];
    }
    engine->num_free    += UCT_HELPER_CHUNK;
    engine->num_regions += UCT_HELPER_CHUNK;
    uct_helper_engine_unlock(engine);
    return UCS_OK;
}

/* Each LRU order must be able to hold every region that there is */
static ucs_status_t uct_helper_engine_stock_heap(uct_helper_engine_h engine,
                                                 uct_helper_heap_t *heap)
{
    uct_helper_region_t **array, **old;
    unsigned capacity;

    uct_helper_engine_lock(engine);
    capacity = (heap->capacity < engine->num_regions) ?
                       2 * engine->num_regions :
                       0;
    uct_helper_engine_unlock(engine);
    if (capacity == 0) {
        return UCS_OK;
    }

    array = malloc(capacity * sizeof(*array));
    if (array == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    uct_helper_engine_lock(engine);
    old = array;
    if (heap->capacity < capacity) {
        old = uct_helper_heap_grow(heap, array, capacity);
    }
    uct_helper_engine_unlock(engine);
    free(old);
    return UCS_OK;
}

static ucs_status_t uct_helper_engine_stock_extents(uct_helper_engine_h engine,
                                                    uct_helper_extents_t *set)
{
    uct_helper_itree_node_t *nodes[UCT_HELPER_EXTENTS_SPARES];
    unsigned i;

    for (i = 0; i < UCT_HELPER_EXTENTS_SPARES; ++i) {
        nodes[i] = malloc(sizeof(*nodes[i]));
        if (nodes[i] == NULL) {
            goto err;
        }
    }

    uct_helper_engine_lock(engine);
    for (i = 0; i < UCT_HELPER_EXTENTS_SPARES; ++i) {
        uct_helper_extents_give(set, nodes[i]);
    }
    uct_helper_engine_unlock(engine);
    return UCS_OK;

err:
    while (i-- > 0) {
        free(nodes[i]);
    }
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t uct_helper_engine_stock(uct_helper_engine_h engine)
{
    uct_helper_extents_t *sets[] = {&engine->seen, &engine->kept,
                                    &engine->barred};
    ucs_status_t status          = UCS_OK;
    int extents[ucs_static_array_size(sets)];
    int regions, class;
    unsigned i;

    uct_helper_engine_lock(engine);
    /* Several threads may be between here and their allocation */
    regions = engine->num_free < UCT_HELPER_CHUNK / 2;
    for (i = 0; i < ucs_static_array_size(sets); ++i) {
        extents[i] = sets[i]->spares < UCT_HELPER_EXTENTS_SPARES / 2;
    }
    uct_helper_engine_unlock(engine);

    if (regions) {
        status = uct_helper_engine_stock_regions(engine);
    }
    for (i = 0; (i < ucs_static_array_size(sets)) && (status == UCS_OK); ++i) {
        if (extents[i]) {
            status = uct_helper_engine_stock_extents(engine, sets[i]);
        }
    }
    for (class = 0; (class < UCT_HELPER_CLASS_LAST) && (status == UCS_OK);
         ++class) {
        status = uct_helper_engine_stock_heap(engine, &engine->lru[class]);
    }
    return status;
}

/*
 * Regions
 */

uct_helper_region_t *uct_helper_region_alloc(uct_helper_engine_h engine)
{
    uct_helper_region_t *region = engine->free_regions;

    if (region != NULL) {
        engine->free_regions = region->next;
        --engine->num_free;
        region->next       = NULL;
        region->invalidate = NULL;
    }
    return region;
}

void uct_helper_region_free(uct_helper_engine_h engine,
                            uct_helper_region_t *region)
{
    uint64_t gen = uct_helper_region_gen(region) + 1;

    ucs_store_relaxed(&region->planned, 0);
    /* release [R-FIELDS]: whoever reads a field of the next life has this
     * word's change before it */
    ucs_store_release(&region->word, (gen << UCT_HELPER_WORD_GEN_SHIFT) |
                                             UCT_HELPER_STATE_FREE);
    region->next         = engine->free_regions;
    engine->free_regions = region;
    ++engine->num_free;
}

/* Bytes that a doomed region without users pins */
static size_t uct_helper_region_held(uct_helper_engine_h engine,
                                     uct_helper_region_t *region)
{
    return (uct_helper_word_state(ucs_load_relaxed(&region->word)) ==
            UCT_HELPER_STATE_LIVE) ?
                   uct_helper_engine_pinned_length(engine, region) :
                   0;
}

void uct_helper_region_reclaim(uct_helper_engine_h engine,
                               uct_helper_region_t *region)
{
    region->next    = engine->reclaim;
    engine->reclaim = region;
    ucs_add_relaxed(&engine->reclaimable, 1);
    ucs_add_relaxed(&engine->reclaimable_bytes,
                    uct_helper_region_held(engine, region));
}

static uct_helper_region_t *
uct_helper_region_unreclaim(uct_helper_engine_h engine)
{
    uct_helper_region_t *region = engine->reclaim;

    if (region != NULL) {
        engine->reclaim = region->next;
        ucs_sub_relaxed(&engine->reclaimable, 1);
        ucs_sub_relaxed(&engine->reclaimable_bytes,
                        uct_helper_region_held(engine, region));
    }
    return region;
}

static uct_helper_heap_t *uct_helper_region_lru(uct_helper_engine_h engine,
                                                uct_helper_region_t *region)
{
    return &engine->lru[uct_helper_engine_class(
            engine, uct_helper_region_length(region))];
}

uint64_t uct_helper_region_doom(uct_helper_engine_h engine,
                                uct_helper_region_t *region)
{
    uct_helper_index_remove(&engine->index, region);
    uct_helper_heap_remove(uct_helper_region_lru(engine, region), region);
    /* From here on no look-up without the lock takes a reference: either its
     * compare-and-swap came first and is counted in the word, or it fails */
    return ucs_or_acq_rel(&region->word, UCT_HELPER_WORD_DOOMED);
}

int uct_helper_region_claim(uct_helper_engine_h engine,
                            uct_helper_region_t *region)
{
    uint64_t word = ucs_load_acquire(&region->word); /* [R-PUT] */

    if (!uct_helper_word_is_hit(word) || (uct_helper_word_refs(word) > 0) ||
        !ucs_cas_acq_rel(&region->word, &word,
                         uct_helper_word_set_state(
                                 word, UCT_HELPER_STATE_DEREGISTERING))) {
        return 0;
    }

    uct_helper_heap_remove(uct_helper_region_lru(engine, region), region);
    uct_helper_index_remove_memh(&engine->index, region);
    ++engine->account.transit;
    return 1;
}

/*
 * Accounts and ceilings
 */

void uct_helper_engine_account(uct_helper_engine_h engine, uint64_t now)
{
    uct_helper_account_t *account = &engine->account;
    double elapsed;

    /* Times were taken outside of the lock, so they may arrive out of order */
    if (now > account->time) {
        elapsed             = now - account->time;
        account->pinned_ns += elapsed * account->pinned;
        account->leave_ns  += elapsed * engine->seen.bytes;
        account->time       = now;
    }
    if (engine->seen.bytes > account->leave_peak) {
        account->leave_peak = engine->seen.bytes;
    }
}

static void uct_helper_engine_account_region(uct_helper_engine_h engine,
                                             uct_helper_region_t *region,
                                             int sign, uint64_t now)
{
    uct_helper_account_t *account = &engine->account;
    size_t length = uct_helper_engine_pinned_length(engine, region);

    uct_helper_engine_account(engine, now);
    if (sign > 0) {
        account->pinned += length;
        ++account->regions;
    } else {
        account->pinned -= length;
        --account->regions;
        if (engine->env.claim != NULL) {
            engine->env.unclaim(engine->env.arg, length);
        }
    }
    if (uct_helper_engine_class(engine, uct_helper_region_length(region)) ==
        UCT_HELPER_CLASS_SMALL) {
        account->small += sign;
    }
    if (account->pinned > account->pinned_peak) {
        account->pinned_peak = account->pinned;
    }
}

/* What would pin more than leaving everything pinned pins something twice.
 * Neighbours may share a page, which then is. */
static int uct_helper_engine_is_twice(uct_helper_engine_h engine,
                                      size_t length)
{
    return engine->account.pinned + length >
           engine->seen.bytes +
                   (engine->account.regions + 1) * (engine->page_mask + 1);
}

int uct_helper_engine_fits(uct_helper_engine_h engine, size_t length)
{
    return (engine->account.pinned <= engine->max_pinned) &&
           (length <= engine->max_pinned - engine->account.pinned) &&
           (engine->account.regions < engine->max_regions);
}

/* How many uses until the region's next: as predicted, and if it is overdue by
 * so many, as many more; after a use that the predictor does not know of yet,
 * as many as there were before that; if nothing is known, as many as there have
 * been since its latest, which makes the order that of the latest uses. */
static int64_t uct_helper_engine_distance(uct_helper_engine_h engine,
                                          uct_helper_region_t *region)
{
    uint64_t now  = ucs_load_relaxed(&engine->learned);
    uint64_t next = ucs_load_relaxed(&region->next_use);

    if (ucs_load_relaxed(&region->use_start) !=
        ucs_load_relaxed(&region->learned_start)) {
        return ucs_load_relaxed(&region->again);
    }
    if (next == 0) {
        next = ucs_load_relaxed(&region->learned);
    }
    return (next > now) ? next - now : now - next;
}

/* Belady's rule on predictions: the idle region whose next use is farthest, if
 * that is beyond @a least. Any order of the heap serves, and beyond
 * UCT_HELPER_VICTIMS regions the older part of it. */
static uct_helper_region_t *
uct_helper_engine_farthest(uct_helper_engine_h engine,
                           const uct_helper_heap_t *heap, int64_t least)
{
    unsigned count              = ucs_min(heap->count, UCT_HELPER_VICTIMS);
    uct_helper_region_t *victim = NULL;
    int64_t distance;
    unsigned i;

    for (i = 0; i < count; ++i) {
        distance = uct_helper_engine_distance(engine, heap->array[i]);
        if ((distance >= least) &&
            (uct_helper_word_refs(ucs_load_relaxed(&heap->array[i]->word)) ==
             0)) {
            victim = heap->array[i];
            least  = distance;
        }
    }
    return victim;
}

/* The order of uses is right where the program repeats itself, and an LRU cache
 * is where it does not; which is the case here shows in what would have come of
 * either */
static uct_helper_region_t *
uct_helper_engine_decide(uct_helper_engine_h engine, uct_helper_heap_t *heap,
                         int64_t least)
{
    uct_helper_region_t *far = uct_helper_engine_farthest(engine, heap, least);
    uct_helper_region_t *old = uct_helper_heap_oldest(heap);

    if ((far == NULL) || (old == NULL) || (far == old)) {
        return far;
    }
    uct_helper_duel_differ(&engine->duel, ucs_load_relaxed(&far->start),
                           ucs_load_relaxed(&old->start));
    return engine->duel.second ? old : far;
}

static uct_helper_region_t *
uct_helper_engine_victim(uct_helper_engine_h engine, int class, int64_t least)
{
    uct_helper_heap_t *heap = &engine->lru[class];

    if ((class == UCT_HELPER_CLASS_MANAGED) &&
        (engine->policy == UCT_HELPER_POLICY_PREDICT)) {
        return uct_helper_engine_decide(engine, heap, least);
    }
    return uct_helper_heap_oldest(heap);
}

/* Evict one idle region of a class, or of any if @a class is
 * UCT_HELPER_CLASS_LAST. The lock is let go for the lower domain's call.
 * @return Bytes unpinned, 0 if nothing is idle or, under predict, needed less
 *         soon than @a least from now. */
static size_t uct_helper_engine_evict(uct_helper_engine_h engine, int class,
                                      int64_t least)
{
    uct_helper_region_t *victim = NULL;
    size_t length;
    int i;

    do {
        for (i = UCT_HELPER_CLASS_LAST - 1; (i >= 0) && (victim == NULL); --i) {
            if ((class == UCT_HELPER_CLASS_LAST) || (class == i)) {
                victim = uct_helper_engine_victim(engine, i, least);
            }
        }
        if (victim == NULL) {
            return 0;
        }
        if (uct_helper_region_claim(engine, victim)) {
            break;
        }
        victim = NULL; /* found a user since it was chosen */
    } while (1);

    ++engine->account.evicted;
    length = uct_helper_engine_pinned_length(engine, victim);
    uct_helper_engine_unlock(engine);
    uct_helper_region_deregister(engine, victim, NULL);
    uct_helper_engine_lock(engine);
    return length;
}

/* Doomed regions, and what another thread is about to release or to have
 * registered without a user, will soon make room. Under the lock, which is let
 * go meanwhile. @return Zero if there is nothing to wait for. */
static int uct_helper_engine_await_room(uct_helper_engine_h engine)
{
    int is_reclaimable = (engine->reclaim != NULL);

    if (!is_reclaimable && (engine->account.transit == 0)) {
        return 0;
    }
    uct_helper_engine_unlock(engine);
    if (is_reclaimable) {
        uct_helper_engine_reclaim(engine);
    } else if (engine->env.yield != NULL) {
        engine->env.yield(engine->env.arg);
    } else {
        sched_yield();
    }
    uct_helper_engine_lock(engine);
    return 1;
}

/* Under the lock, which is let go now and then. A use is never refused for a
 * ceiling of ours, but it asks all who could make room; the helper's
 * registration is. @return Nonzero if there is room, and it is claimed; a use
 * has claimed it in any case. */
static int uct_helper_engine_find_room(uct_helper_engine_h engine,
                                       size_t length, int is_use)
{
    unsigned why   = is_use ? UCT_HELPER_ROOM_USE : UCT_HELPER_ROOM_HELPER;
    unsigned asked = 0;
    uct_helper_room_t room;
    int64_t least;
    int is_local;

    /* A use may have what it needs. Under predict the helper takes free room
     * only: a lower bound of one use against an estimate of another is no
     * ground to give up what is there. */
    least = is_use ? INT64_MIN : INT64_MAX;
    for (;;) {
        is_local = uct_helper_engine_fits(engine, length);
        if (is_local && uct_helper_engine_claim(engine, length, why)) {
            return 1;
        }

        room = (is_use && is_local) ?
                       uct_helper_engine_ask(engine, length, 0, &asked) :
                       UCT_HELPER_ROOM_NONE;
        if (room == UCT_HELPER_ROOM_NONE) {
            if ((is_use || !is_local) &&
                (uct_helper_engine_evict(engine, UCT_HELPER_CLASS_LAST,
                                         least) > 0)) {
                continue;
            }
            if (!is_use) {
                return 0;
            }
            if (uct_helper_engine_await_room(engine)) {
                continue;
            }
            room = is_local ? uct_helper_engine_ask(engine, length, 1, &asked) :
                              UCT_HELPER_ROOM_NONE;
        }
        if (room == UCT_HELPER_ROOM_GRANTED) {
            return 1;
        }
        if (room == UCT_HELPER_ROOM_NONE) {
            (void)uct_helper_engine_claim(engine, length,
                                          UCT_HELPER_ROOM_FORCE);
            return 0;
        }
    }
}

/* Count the region as pinned before it is */
static int uct_helper_engine_make_room(uct_helper_engine_h engine,
                                       uct_helper_region_t *region, int is_use)
{
    size_t length = uct_helper_engine_pinned_length(engine, region);
    uint64_t now  = uct_helper_engine_now(engine);
    int fits;

    uct_helper_engine_lock(engine);
    if ((uct_helper_engine_class(engine, uct_helper_region_length(region)) ==
         UCT_HELPER_CLASS_SMALL) &&
        (engine->account.small >= UCT_HELPER_SMALL_MAX)) {
        uct_helper_engine_evict(engine, UCT_HELPER_CLASS_SMALL,
                                INT64_MIN);
    }
    while (is_use && uct_helper_engine_is_twice(engine, length) &&
           (uct_helper_engine_evict(engine, UCT_HELPER_CLASS_LAST,
                                    INT64_MIN) > 0)) {
    }
    fits = (is_use || !uct_helper_engine_is_twice(engine, length)) &&
           uct_helper_engine_find_room(engine, length, is_use);
    if (fits || is_use) {
        uct_helper_engine_account_region(engine, region, 1, now);
        engine->account.over_ceiling += !fits;
        if (!fits) {
            ucs_store_relaxed(&engine->is_over, 1);
        }
        ++engine->account.transit;
        engine->account.wanted += is_use;
    }
    uct_helper_engine_unlock(engine);
    return fits || is_use;
}

void uct_helper_engine_trim(uct_helper_engine_h engine)
{
    uct_helper_engine_lock(engine);
    ucs_store_relaxed(&engine->is_over, 0);
    while (((engine->account.pinned > engine->max_pinned) ||
            (engine->account.regions > engine->max_regions)) &&
           (uct_helper_engine_evict(engine, UCT_HELPER_CLASS_LAST,
                                    INT64_MIN) > 0)) {
    }
    /* What is in use is left, and its last user looks again */
    if ((engine->account.pinned > engine->max_pinned) ||
        (engine->account.regions > engine->max_regions)) {
        ucs_store_relaxed(&engine->is_over, 1);
    }
    uct_helper_engine_unlock(engine);
}

/* Evict at least @a length bytes, or all that is idle */
static size_t uct_helper_engine_evict_for(uct_helper_engine_h engine,
                                          size_t length)
{
    size_t freed = 0;
    size_t bytes;

    uct_helper_engine_reclaim(engine);
    uct_helper_engine_lock(engine);
    do {
        bytes  = uct_helper_engine_evict(engine, UCT_HELPER_CLASS_LAST,
                                         INT64_MIN);
        freed += bytes;
    } while ((bytes > 0) && (freed < length));
    uct_helper_engine_unlock(engine);
    return freed;
}

/* Uses that are themselves short of something are not waited for, for they may
 * wait here as well */
static int uct_helper_engine_is_leaving(uct_helper_engine_h engine)
{
    int is_leaving;

    uct_helper_engine_lock(engine);
    is_leaving = engine->account.transit > engine->account.wanted;
    uct_helper_engine_unlock(engine);
    return is_leaving;
}

size_t uct_helper_engine_release(uct_helper_engine_h engine, size_t length)
{
    size_t freed = uct_helper_engine_evict_for(engine, length);

    /* What other threads are just releasing counts until they have */
    while ((freed < length) && uct_helper_engine_is_leaving(engine)) {
        sched_yield();
    }
    return freed;
}

void uct_helper_engine_yield(uct_helper_engine_h engine)
{
    ucs_store_relaxed(&engine->pressed, 1);
    do {
        (void)uct_helper_engine_evict_for(engine, SIZE_MAX);
        if (!uct_helper_engine_is_leaving(engine)) {
            break;
        }
        sched_yield();
    } while (1);
    /* What the helper had registered meanwhile without a user */
    (void)uct_helper_engine_evict_for(engine, SIZE_MAX);
}

/*
 * Registration
 */

static ucs_status_t uct_helper_lower_reg(uct_helper_engine_h engine,
                                         uct_helper_region_t *region,
                                         unsigned flags, uct_mem_h *memh_p)
{
    uint64_t start = uct_helper_engine_now(engine);
    ucs_status_t status;

    status = engine->env.mem_reg(engine->env.arg,
                                 (void*)ucs_load_relaxed(&region->start),
                                 uct_helper_region_length(region), flags,
                                 memh_p);
    if (status == UCS_OK) {
        start = uct_helper_engine_now(engine) - start;
        uct_helper_engine_lock(engine);
        ucs_predict_cost_update(&engine->register_cost,
                                uct_helper_engine_pages(engine, region),
                                start);
        uct_helper_engine_unlock(engine);
    }
    return status;
}

/* The verbs domain of UCX 1.13 reports a full device or memlock limit as an
 * I/O error */
int uct_helper_status_is_exhausted(ucs_status_t status)
{
    return (status == UCS_ERR_NO_MEMORY) || (status == UCS_ERR_IO_ERROR) ||
           (status == UCS_ERR_NO_RESOURCE);
}

/* A use: what fails for want of memory or regions is tried again after idle
 * registrations have been given up. Quietly, for the caller has a way left. */
static ucs_status_t uct_helper_lower_reg_use(uct_helper_engine_h engine,
                                             uct_helper_region_t *region,
                                             unsigned flags, uct_mem_h *memh_p)
{
    ucs_status_t status;

    status = uct_helper_lower_reg(engine, region, flags, memh_p);
    if (!uct_helper_status_is_exhausted(status)) {
        return status;
    }

    ucs_store_relaxed(&engine->pressed, 1);
    (void)uct_helper_engine_evict_for(
            engine, uct_helper_engine_pinned_length(engine, region));
    return uct_helper_lower_reg(engine, region, flags, memh_p);
}

/* Under the lock; references do not change while a region is REGISTERING */
static ucs_status_t uct_helper_region_publish(uct_helper_engine_h engine,
                                              uct_helper_region_t *region,
                                              uct_mem_h memh, uint64_t now,
                                              unsigned refs)
{
    uint64_t word = ucs_load_relaxed(&region->word);
    int doomed    = !!(word & UCT_HELPER_WORD_DOOMED);

    ucs_store_release(&region->memh, memh); /* [R-FIELDS] */
    uct_helper_index_add_memh(&engine->index, region);
    if (refs == 0) {
        ucs_store_relaxed(&region->use_start, now); /* of who waited */
        ucs_store_relaxed(&region->last_use, now);
    }
    if (!doomed) {
        uct_helper_heap_push(uct_helper_region_lru(engine, region), region);
    }
    if (uct_helper_word_refs(word) > 0) {
        uct_helper_engine_in_use(engine,
                                 uct_helper_engine_pinned_length(engine,
                                                                 region));
    }
    /* release [R-LIVE]: pairs with the acquire in try_ref and in waiters */
    ucs_store_release(&region->word,
                      uct_helper_word_set_state(word, UCT_HELPER_STATE_LIVE));
    if (doomed && (uct_helper_word_refs(word) == 0)) {
        uct_helper_region_reclaim(engine, region);
    }
    return (doomed && (refs == 0)) ? UCS_ERR_CANCELED : UCS_OK;
}

/* Under the lock. Whoever waits finds the region doomed and goes his own way;
 * the last of them frees it. */
static void uct_helper_region_abandon(uct_helper_engine_h engine,
                                      uct_helper_region_t *region,
                                      unsigned refs)
{
    uint64_t word = ucs_load_relaxed(&region->word) - refs * UCT_HELPER_WORD_REF;

    if (!(word & UCT_HELPER_WORD_DOOMED)) {
        uct_helper_index_remove(&engine->index, region);
    }
    if (uct_helper_word_refs(word) == 0) {
        uct_helper_region_free(engine, region);
        return;
    }
    /* release [R-LIVE]: pairs with the acquire in waiters */
    ucs_store_release(&region->word,
                      uct_helper_word_set_state(word,
                                                UCT_HELPER_STATE_DORMANT) |
                              UCT_HELPER_WORD_DOOMED);
}

ucs_status_t uct_helper_region_register(uct_helper_engine_h engine,
                                        uct_helper_region_t *region,
                                        unsigned flags, unsigned refs)
{
    int is_use = (refs > 0);
    uct_mem_h memh = NULL;
    ucs_status_t status;
    int may_keep, has_room;
    uint64_t now;

    flags   |= UCT_MD_MEM_FLAG_HIDE_ERRORS;
    /* Asked anew each time: the memory was let go of since the last use */
    may_keep = is_use || uct_helper_engine_may_keep(engine, region, 0);
    has_room = may_keep && uct_helper_engine_make_room(engine, region, is_use);
    if (!has_room) {
        status = may_keep ? UCS_ERR_EXCEEDS_LIMIT : UCS_ERR_REJECTED;
    } else if (is_use) {
        status = uct_helper_lower_reg_use(engine, region, flags, &memh);
    } else {
        status = uct_helper_lower_reg(engine, region, flags, &memh);
    }
    now = uct_helper_engine_now(engine);

    uct_helper_engine_lock(engine);
    engine->account.transit -= has_room;
    engine->account.wanted  -= has_room && is_use;
    if (status == UCS_OK) {
        status = uct_helper_region_publish(engine, region, memh, now, refs);
    } else {
        if (has_room) {
            uct_helper_engine_account_region(engine, region, -1, now);
            ++engine->account.failed;
        }
        if ((status == UCS_ERR_EXCEEDS_LIMIT) &&
            (uct_helper_word_refs(ucs_load_relaxed(&region->word)) == 0) &&
            !(ucs_load_relaxed(&region->word) & UCT_HELPER_WORD_DOOMED)) {
            /* release [R-LIVE]: pairs with the acquire in waiters */
            ucs_store_release(&region->word,
                              uct_helper_word_set_state(
                                      ucs_load_relaxed(&region->word),
                                      UCT_HELPER_STATE_DORMANT));
        } else {
            uct_helper_region_abandon(engine, region, refs);
        }
    }
    uct_helper_engine_unlock(engine);

    engine->env.wake_waiters(engine->env.arg,
                             uct_helper_region_wait_word(region));
    return status;
}

/*
 * Deregistration
 */

/* Under the lock: a finished registration's figures go into the totals */
static void uct_helper_region_fold(uct_helper_engine_h engine,
                                   uct_helper_region_t *region)
{
    uint64_t hits = ucs_load_relaxed(&region->hits) +
                    ucs_load_relaxed(&region->joined);

    engine->account.hits      += hits;
    engine->account.in_use_ns += (double)ucs_load_relaxed(&region->busy_ns) *
                                 uct_helper_engine_pinned_length(engine,
                                                                 region);
    if (ucs_load_relaxed(&region->speculative) && (hits == 0)) {
        ++engine->account.wasted;
    }
    ucs_store_relaxed(&region->hits, 0);
    ucs_store_relaxed(&region->joined, 0);
    ucs_store_relaxed(&region->busy_ns, 0);
    ucs_store_relaxed(&region->speculative, 0);
}

void uct_helper_region_deregister(uct_helper_engine_h engine,
                                  uct_helper_region_t *region,
                                  uct_completion_t *comp)
{
    uct_mem_h memh = ucs_load_relaxed(&region->memh);
    uint64_t start, now, word;

    /* Before the lower domain can give the same handle to another region */
    ucs_store_release(&region->memh, NULL); /* [R-FIELDS] */
    start = uct_helper_engine_now(engine);
    (void)engine->env.mem_dereg(engine->env.arg, memh, comp);
    now   = uct_helper_engine_now(engine);

    uct_helper_engine_lock(engine);
    ucs_predict_cost_update(&engine->deregister_cost,
                            uct_helper_engine_pages(engine, region),
                            now - start);
    --engine->account.transit;
    uct_helper_engine_account_region(engine, region, -1, now);
    uct_helper_region_fold(engine, region);
    word = ucs_load_relaxed(&region->word);
    if (word & UCT_HELPER_WORD_DOOMED) {
        uct_helper_region_free(engine, region);
    } else if (ucs_load_relaxed(&region->planned) &&
               (ucs_load_relaxed(&region->idle) != UCT_HELPER_IDLE_DROP)) {
        /* release [R-LIVE]: pairs with the acquire in try_ref */
        ucs_store_release(&region->word,
                          uct_helper_word_set_state(
                                  word, UCT_HELPER_STATE_DORMANT));
    } else {
        uct_helper_index_remove(&engine->index, region);
        uct_helper_region_free(engine, region);
    }
    uct_helper_engine_unlock(engine);
}

static void uct_helper_invoke_completions(uct_helper_invalidate_t *list)
{
    uct_helper_invalidate_t *next;

    for (; list != NULL; list = next) {
        next = list->next;
        if (--list->comp->count == 0) {
            list->comp->func(list->comp);
        }
        free(list);
    }
}

/* A doomed region nobody uses. The first completion goes with the lower
 * domain's call; the others are due as soon as that has been made. */
static void uct_helper_region_finish(uct_helper_engine_h engine,
                                     uct_helper_region_t *region)
{
    uct_helper_invalidate_t *list = region->invalidate;
    uct_completion_t *comp        = NULL;
    uct_helper_invalidate_t *first;

    region->invalidate = NULL;
    if (list != NULL) {
        first = list;
        list  = list->next;
        comp  = first->comp;
        free(first);
    }
    uct_helper_region_deregister(engine, region, comp);
    uct_helper_invoke_completions(list);
}

/* Under the lock: a doomed LIVE region is about to be finished */
static void uct_helper_region_withdraw(uct_helper_engine_h engine,
                                       uct_helper_region_t *region)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    ucs_store_release(&region->word, /* [R-LIVE] */
                      uct_helper_word_set_state(
                              word, UCT_HELPER_STATE_DEREGISTERING));
    uct_helper_index_remove_memh(&engine->index, region);
    ++engine->account.transit;
}

void uct_helper_engine_reclaim(uct_helper_engine_h engine)
{
    uct_helper_region_t *region;
    uint64_t word;

    while (ucs_load_relaxed(&engine->reclaimable) > 0) {
        uct_helper_engine_lock(engine);
        region = uct_helper_region_unreclaim(engine);
        if (region == NULL) {
            uct_helper_engine_unlock(engine);
            return;
        }

        word = ucs_load_relaxed(&region->word);
        if (uct_helper_word_state(word) == UCT_HELPER_STATE_DORMANT) {
            uct_helper_region_free(engine, region);
            uct_helper_engine_unlock(engine);
            continue;
        }
        uct_helper_region_withdraw(engine, region);
        uct_helper_engine_unlock(engine);
        uct_helper_region_finish(engine, region);
    }
}

static void uct_helper_region_close(uct_helper_engine_h engine,
                                    uct_helper_region_t *region)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    if (uct_helper_word_state(word) != UCT_HELPER_STATE_LIVE) {
        return;
    }
    uct_helper_engine_lock(engine);
    if (!(word & UCT_HELPER_WORD_DOOMED)) {
        (void)uct_helper_region_doom(engine, region);
    }
    uct_helper_region_withdraw(engine, region);
    uct_helper_engine_unlock(engine);
    uct_helper_region_finish(engine, region);
}

void uct_helper_engine_deregister_all(uct_helper_engine_h engine)
{
    uct_helper_chunk_t *chunk;
    unsigned i;

    for (chunk = engine->chunks; chunk != NULL; chunk = chunk->next) {
        for (i = 0; i < UCT_HELPER_CHUNK; ++i) {
            uct_helper_region_close(engine, &chunk->regions[i]);
        }
    }
}

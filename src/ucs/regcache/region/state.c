/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/compiler_def.h>

/* --- FREE ----------------------------------------------------------------- */

static ucs_regcache_region_t *ucs_regcache_region_alloc(ucs_regcache_h cache)
{
    ucs_regcache_region_t *region = cache->store.free;

    cache->store.free = region->next;
    --cache->store.num_free;
    region->next       = NULL;
    region->invalidate = NULL;
    return region;
}

void ucs_regcache_region_free(ucs_regcache_h cache,
                              ucs_regcache_region_t *region)
{
    uint64_t gen = ucs_regcache_region_gen(region) + 1;

    ucs_store_relaxed(&region->planned, 0);
    /* release [R-FIELDS]: a thread that reads a field of the next life has
     * this word's change before it */
    ucs_store_release(&region->word, (gen << UCS_REGCACHE_WORD_GEN_SHIFT) |
                                             UCS_REGCACHE_STATE_FREE);
    region->next      = cache->store.free;
    cache->store.free = region;
    ++cache->store.num_free;
}

/* --- REGISTERING ---------------------------------------------------------- */

static ucs_regcache_idle_t
ucs_regcache_region_idle(ucs_regcache_h cache,
                         const ucs_regcache_region_t *region)
{
    if (region->size_class == UCS_REGCACHE_CLASS_SMALL) {
        return UCS_REGCACHE_IDLE_KEEP;
    }
    if (ucs_regcache_plan_is_used(cache) && !ucs_regcache_needs_helper(cache)) {
        return UCS_REGCACHE_IDLE_KEEP;
    }
    return ucs_load_relaxed(&region->drops) ? UCS_REGCACHE_IDLE_BOTH :
                                              cache->plan.ops->idle;
}

/* How soon the helper is to hear of the use */
static ucs_regcache_wake_t
ucs_regcache_region_wake(ucs_regcache_h cache,
                         const ucs_regcache_region_t *region, int is_new)
{
    if (ucs_load_relaxed(&region->drops)) {
        return UCS_REGCACHE_WAKE_RARELY;
    }
    return (cache->plan.ops->keeps ||
            (is_new && cache->plan.ops->minds_price)) ?
                   UCS_REGCACHE_WAKE_LEISURE :
                   UCS_REGCACHE_WAKE_NOW;
}

void ucs_regcache_region_plan_end(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region, int is_new)
{
    ucs_store_relaxed(&region->idle, ucs_regcache_region_idle(cache, region));
    ucs_store_relaxed(&region->wake,
                      ucs_regcache_region_wake(cache, region, is_new));
}

/* A region for what is asked for. @return The doom that it is born with. */
static uint64_t ucs_regcache_region_open(ucs_regcache_h cache,
                                         ucs_regcache_region_t *region,
                                         const ucs_regcache_request_t *request)
{
    ucs_store_release(&region->start, request->start);   /* [R-FIELDS] */
    ucs_store_release(&region->end, request->end);       /* [R-FIELDS] */
    ucs_store_release(&region->access, request->access); /* [R-FIELDS] */
    region->first        = request->first;
    region->last         = request->last;
    region->size_class   = request->size_class;
    region->is_cover     = request->is_cover;
    cache->memory.has_covers |= request->is_cover;
    region->is_scattered = request->is_scattered;
    region->ahead        = request->ahead;
    ucs_store_relaxed(&region->is_window, request->is_window);
    ucs_store_relaxed(&region->shorts, 0);
    ucs_store_relaxed(&region->drops, 0);
    ucs_store_relaxed(&region->speculative, 0);
    ucs_store_relaxed(&region->learned, 0);
    ucs_store_relaxed(&region->learned_start, 0);
    ucs_store_relaxed(&region->next_use, 0);
    ucs_store_relaxed(&region->again, 0);
    ucs_store_relaxed(&region->until, 0);
    ucs_store_relaxed(&region->hold, 0);
    ucs_store_relaxed(&region->due, 0);
    /* Also when it is unpinned the declaration stays */
    ucs_store_relaxed(&region->planned,
                      cache->plan.ops->keeps &&
                              (request->size_class ==
                               UCS_REGCACHE_CLASS_MANAGED));
    region->pins     = 0;
    region->lapsed   = 0;
    region->refusals = 0;
    if (request->is_alone ||
        ucs_unlikely(ucs_load_relaxed(&cache->distrust))) {
        return UCS_REGCACHE_WORD_DOOMED;
    }
    ucs_regcache_index_add(&cache->index, region);
    return 0;
}

ucs_regcache_region_t *
ucs_regcache_region_begin(ucs_regcache_h cache, ucs_regcache_region_t *region,
                          const ucs_regcache_request_t *request)
{
    int is_new      = (region == NULL);
    uint64_t doomed = 0;
    uint64_t word;

    if (is_new) {
        region = ucs_regcache_region_alloc(cache);
        doomed = ucs_regcache_region_open(cache, region, request);
    } else {
        ucs_store_release(&region->access, /* [R-FIELDS] */
                          request->access | ucs_load_relaxed(&region->access));
    }

    ucs_store_relaxed(&region->missed, request->now);
    ucs_store_relaxed(&region->use_start, request->now);
    ucs_store_relaxed(&region->last_use, request->now);
    ucs_regcache_region_plan_end(cache, region, is_new);
    word = ucs_load_relaxed(&region->word);
    /* release [R-LIVE]: pairs with the acquire in try_ref */
    ucs_store_release(
            &region->word,
            (ucs_regcache_word_set_state(word, UCS_REGCACHE_STATE_REGISTERING) |
             doomed) +
                    UCS_REGCACHE_WORD_REF);
    return region;
}

/* --- LIVE ----------------------------------------------------------------- */

/* References do not change while a region is REGISTERING */
ucs_status_t
ucs_regcache_region_publish(ucs_regcache_h cache, ucs_regcache_region_t *region,
                            ucs_regcache_memh_t memh, uint64_t now,
                            unsigned refs)
{
    uint64_t word = ucs_load_relaxed(&region->word);
    int doomed    = !!(word & UCS_REGCACHE_WORD_DOOMED);

    ucs_store_release(&region->memh, memh); /* [R-FIELDS] */
    ucs_regcache_index_add_memh(&cache->index, region);
    if (refs == 0) {
        ucs_store_relaxed(&region->last_use, now);
        if (ucs_regcache_word_refs(word) > 0) { /* of those that waited */
            ucs_store_relaxed(&region->use_start, now);
        }
    }
    if (!doomed) {
        ucs_regcache_lru_push(ucs_regcache_region_lru(cache, region), region);
    }
    if (ucs_regcache_word_refs(word) > 0) {
        ucs_regcache_in_use(cache, ucs_regcache_pinned_length(region));
    }
    /* release [R-LIVE]: pairs with the acquire in try_ref and in waiters */
    ucs_store_release(&region->word, ucs_regcache_word_set_state(
                                             word, UCS_REGCACHE_STATE_LIVE));
    if (doomed && (ucs_regcache_word_refs(word) == 0)) {
        ucs_regcache_region_reclaim(cache, region);
    }
    return (doomed && (refs == 0)) ? UCS_ERR_CANCELED : UCS_OK;
}

/* A thread that waits finds the region doomed and registers by itself; the last of them
 * frees it. */
static void ucs_regcache_region_abandon(ucs_regcache_h cache,
                                        ucs_regcache_region_t *region,
                                        unsigned refs)
{
    uint64_t word = ucs_load_relaxed(&region->word) -
                    refs * UCS_REGCACHE_WORD_REF;

    if (!(word & UCS_REGCACHE_WORD_DOOMED)) {
        ucs_regcache_index_remove(&cache->index, region);
    }
    if (ucs_regcache_word_refs(word) == 0) {
        ucs_regcache_region_free(cache, region);
        return;
    }
    /* release [R-LIVE]: pairs with the acquire in waiters */
    ucs_store_release(&region->word, ucs_regcache_word_set_state(
                                             word, UCS_REGCACHE_STATE_DORMANT) |
                                             UCS_REGCACHE_WORD_DOOMED);
}

/* Not doomed, and nobody waits for it */
static void ucs_regcache_region_rest(ucs_regcache_h cache,
                                     ucs_regcache_region_t *region)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    /* release [R-LIVE]: pairs with the acquire in try_ref and in waiters */
    ucs_store_release(&region->word,
                      ucs_regcache_word_set_state(word,
                                                  UCS_REGCACHE_STATE_DORMANT));
    if (cache->plan.ops->unpinned != NULL) {
        cache->plan.ops->unpinned(cache, region);
    }
}

/* A region that did not fit, and that no thread waits for, may be registered later */
void ucs_regcache_region_fail(ucs_regcache_h cache,
                              ucs_regcache_region_t *region,
                              ucs_status_t status, unsigned refs)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    if ((status == UCS_ERR_EXCEEDS_LIMIT) &&
        (ucs_regcache_word_refs(word) == 0) &&
        !(word & UCS_REGCACHE_WORD_DOOMED)) {
        ucs_regcache_region_rest(cache, region);
    } else {
        ucs_regcache_region_abandon(cache, region, refs);
    }
}

/* --- DEREGISTERING -------------------------------------------------------- */

int ucs_regcache_region_take_idle(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region)
{
    uint64_t word = ucs_load_acquire(&region->word); /* [R-PUT] */

    if (!ucs_regcache_word_is_idle(word) ||
        !ucs_cas_acq_rel(&region->word, &word,
                         ucs_regcache_word_set_state(
                                 word, UCS_REGCACHE_STATE_DEREGISTERING))) {
        return 0;
    }

    ucs_heap_remove(ucs_regcache_region_lru(cache, region), &region->lru);
    ucs_regcache_index_remove_memh(region);
    ++cache->account.transit;
    ++cache->account.leaving;
    return 1;
}

void ucs_regcache_region_withdraw(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    ucs_store_release(&region->word, /* [R-LIVE] */
                      ucs_regcache_word_set_state(
                              word, UCS_REGCACHE_STATE_DEREGISTERING));
    ucs_regcache_index_remove_memh(region);
    ++cache->account.transit;
    ++cache->account.leaving;
}

/* What others need the room of goes as soon as its first use is over, before the helper
 * has heard of that. It will know a buffer there then, and may plan for it. Of what was
 * registered for a use to come (rank.h) it may never hear. */
static int ucs_regcache_region_is_unheard(ucs_regcache_h cache,
                                          ucs_regcache_region_t *region)
{
    return cache->plan.ops->keeps_dormant &&
           (ucs_load_relaxed(&region->idle) == UCS_REGCACHE_IDLE_QUEUE) &&
           !ucs_load_relaxed(&region->is_window) &&
           (ucs_load_relaxed(&region->learned_start) == 0);
}

void ucs_regcache_region_retire(ucs_regcache_h cache,
                                ucs_regcache_region_t *region)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    --cache->account.transit;
    --cache->account.leaving;
    if (word & UCS_REGCACHE_WORD_DOOMED) {
        ucs_regcache_region_free(cache, region);
    } else if ((ucs_load_relaxed(&region->planned) &&
                (ucs_load_relaxed(&region->idle) != UCS_REGCACHE_IDLE_DROP)) ||
               ucs_regcache_region_is_unheard(cache, region)) {
        ucs_regcache_region_rest(cache, region);
    } else {
        ucs_regcache_region_forget(cache, region);
    }
}

void ucs_regcache_region_forget(ucs_regcache_h cache,
                                ucs_regcache_region_t *region)
{
    ucs_regcache_index_remove(&cache->index, region);
    ucs_regcache_region_free(cache, region);
}

/* --- Doom ----------------------------------------------------------------- */

uint64_t ucs_regcache_region_doom(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region)
{
    ucs_regcache_index_remove(&cache->index, region);
    ucs_heap_remove(ucs_regcache_region_lru(cache, region), &region->lru);
    ucs_regcache_account_why(cache, region, UCS_REGCACHE_HELD_OTHER,
                             UCS_REGCACHE_TIME_NEVER);
    /* From here on no look-up without the lock takes a reference: either its
     * compare-and-swap came first and is counted in the word, or it fails
     * [R-LIVE] */
    return ucs_or_acq_rel(&region->word, UCS_REGCACHE_WORD_DOOMED);
}

/* Bytes that a doomed region without users pins */
static size_t ucs_regcache_region_held(const ucs_regcache_region_t *region)
{
    return (ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
            UCS_REGCACHE_STATE_LIVE) ?
                   ucs_regcache_pinned_length(region) :
                   0;
}

void ucs_regcache_region_reclaim(ucs_regcache_h cache,
                                 ucs_regcache_region_t *region)
{
    region->next        = cache->reclaim.list;
    cache->reclaim.list = region;
    ucs_add_relaxed(&cache->reclaim.count, 1);
    ucs_add_relaxed(&cache->reclaim.bytes, ucs_regcache_region_held(region));
}

ucs_regcache_region_t *ucs_regcache_region_unreclaim(ucs_regcache_h cache)
{
    ucs_regcache_region_t *region = cache->reclaim.list;

    if (region != NULL) {
        cache->reclaim.list = region->next;
        ucs_sub_relaxed(&cache->reclaim.count, 1);
        ucs_sub_relaxed(&cache->reclaim.bytes,
                        ucs_regcache_region_held(region));
    }
    return region;
}

/* @return Nonzero if there is something to reclaim. */
static int ucs_regcache_strike(ucs_regcache_h cache,
                               ucs_regcache_region_t *region)
{
    uint64_t word              = ucs_regcache_region_doom(cache, region);
    ucs_regcache_state_t state = ucs_regcache_word_state(word);

    if ((state == UCS_REGCACHE_STATE_LIVE) ||
        (state == UCS_REGCACHE_STATE_REGISTERING)) {
        ++cache->stats.invalidated;
    }
    /* In any other state, or with users, the thread that holds it sees the
     * doom */
    if ((ucs_regcache_word_refs(word) > 0) ||
        ((state != UCS_REGCACHE_STATE_LIVE) &&
         (state != UCS_REGCACHE_STATE_DORMANT))) {
        return 0;
    }
    ucs_regcache_region_reclaim(cache, region);
    return 1;
}

int ucs_regcache_strike_range(ucs_regcache_h cache, uintptr_t start,
                              uintptr_t end)
{
    int reclaim = 0;
    ucs_regcache_region_t *region;

    while ((region = ucs_regcache_index_first(&cache->index, start, end)) !=
           NULL) {
        reclaim |= ucs_regcache_strike(cache, region);
    }
    return reclaim;
}

void ucs_regcache_note_event(ucs_regcache_h cache, uintptr_t start,
                             uintptr_t end, uint64_t now)
{
    ucs_regcache_event_t *event =
            &cache->memory.latest[cache->memory.events % UCS_REGCACHE_EVENTS];

    event->start = start;
    event->end   = end;
    event->time  = now;
    ++cache->memory.events;
}

int ucs_regcache_was_struck(ucs_regcache_h cache, uintptr_t start,
                            uintptr_t end, uint64_t time)
{
    uint64_t events = cache->memory.events;
    uint64_t number = (events > UCS_REGCACHE_EVENTS) ?
                              events - UCS_REGCACHE_EVENTS :
                              0;
    const ucs_regcache_event_t *event;

    if ((number > 0) &&
        (cache->memory.latest[number % UCS_REGCACHE_EVENTS].time >= time)) {
        return 1; /* there may have been others before */
    }
    for (; number < events; ++number) {
        event = &cache->memory.latest[number % UCS_REGCACHE_EVENTS];
        if ((event->time >= time) && (event->start < end) &&
            (event->end > start)) {
            return 1;
        }
    }
    return 0;
}

int ucs_regcache_forget_range(ucs_regcache_h cache, uintptr_t start,
                              uintptr_t end, uint64_t now)
{
    int reclaim;
    unsigned i;

    ucs_regcache_account(cache, now);
    reclaim = ucs_regcache_strike_range(cache, start, end);
    ucs_regcache_note_event(cache, start, end, now);
    ucs_extents_remove(&cache->memory.seen, start, end);
    ucs_extents_remove(&cache->memory.kept, start, end);
    ucs_extents_remove(&cache->memory.barred, start, end);
    for (i = 0; i < UCS_REGCACHE_GIVEN; ++i) {
        ucs_extents_remove(&cache->memory.given[i].bytes, start, end);
    }
    return reclaim;
}

/* --- Lock ----------------------------------------------------------------- */

/* Memory events that interrupted the lock's owner could not say which regions they
 * strike, so all are struck. An event that comes meanwhile is covered: nothing comes into
 * look-up during the strike. */
static void ucs_regcache_strike_all(ucs_regcache_h cache)
{
    cache->is_struck |= ucs_regcache_forget_range(cache, 0, UINTPTR_MAX,
                                                  ucs_regcache_now(cache));
    ucs_extents_remove(&cache->memory.untouched, 0, UINTPTR_MAX);
    /* release [R-GATE]: pairs with the acquire in get */
    (void)ucs_and_acq_rel(&cache->gate, ~(uint32_t)UCS_REGCACHE_GATE_EVENT);
}

/* relaxed: this thread sees an event that interrupts it, and the lock orders one that
 * interrupted another owner */
void ucs_regcache_lock(ucs_regcache_h cache)
{
    ucs_lock(&cache->lock);
    ++cache->account.lock_takings;
    if (ucs_unlikely(ucs_load_relaxed(&cache->gate) &
                     UCS_REGCACHE_GATE_EVENT)) {
        ucs_regcache_strike_all(cache);
    }
}

void ucs_regcache_unlock(ucs_regcache_h cache)
{
    int is_struck;

    if (ucs_unlikely(ucs_load_relaxed(&cache->gate) &
                     UCS_REGCACHE_GATE_EVENT)) {
        ucs_regcache_strike_all(cache);
    }
    is_struck        = cache->is_struck;
    cache->is_struck = 0;
    ucs_unlock(&cache->lock);

    if (ucs_unlikely(is_struck)) {
        cache->env.wake(cache->env.arg);
    }
    /* An event came since it was looked for: hits wait for the next lock */
    if (ucs_unlikely(ucs_load_relaxed(&cache->gate) &
                     UCS_REGCACHE_GATE_EVENT)) {
        ucs_regcache_lock(cache);
        ucs_regcache_unlock(cache);
    }
}

int ucs_regcache_try_lock(ucs_regcache_h cache)
{
    if (!ucs_lock_try(&cache->lock)) {
        return 0;
    }
    ++cache->account.lock_takings;
    return 1;
}

/* --- The helper ----------------------------------------------------------- */

int ucs_regcache_keeps_idle(ucs_regcache_h cache)
{
    return cache->plan.ops->idle != UCS_REGCACHE_IDLE_DROP;
}

int ucs_regcache_needs_helper(ucs_regcache_h cache)
{
    return ucs_regcache_plan_is_used(cache) &&
           !ucs_load_relaxed(&cache->helper_refused) &&
           !ucs_load_relaxed(&cache->distrust);
}

void ucs_regcache_helper_refused(ucs_regcache_h cache)
{
    ucs_store_relaxed(&cache->helper_refused, 1);
}

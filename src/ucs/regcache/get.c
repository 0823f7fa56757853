/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "regcache_int.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

/* A use waits at least so long, ns, for another thread to register: longer than a
 * thread whose processor is free takes to wake up */
#define UCS_REGCACHE_WAIT_NS UINT64_C(1000000)

/* Not on a hit, which uses little of it */
static ucs_regcache_request_t
ucs_regcache_request(ucs_regcache_h cache, void *address, size_t length,
                     unsigned flags, uintptr_t sp, uint64_t now)
{
    uintptr_t start = (uintptr_t)address;

    return (ucs_regcache_request_t){
            .start      = start,
            .end        = start + length,
            .first      = ucs_regcache_page_down(cache, start),
            .last       = ucs_regcache_page_up(cache, start + length),
            .flags      = flags,
            .access     = flags & cache->config.access_mask,
            .size_class = ucs_regcache_size_class(cache, length),
            .sp         = sp,
            .now        = now};
}

/* The caller has just taken a reference; the word was @a old before. From the
 * first reference to the last there is one writer, the user that has it: no
 * atomic read-modify-write is needed. */
static UCS_F_ALWAYS_INLINE void
ucs_regcache_region_begin_use(ucs_regcache_h cache,
                              ucs_regcache_region_t *region, uint64_t old,
                              ucs_regcache_class_t size_class, uintptr_t sp,
                              uint64_t now)
{
    if (ucs_unlikely(ucs_regcache_word_refs(old) > 0)) {
        /* The use that is under way speaks for both, and is none of those that
         * last as long as the one before: its end is to be read off the
         * clock */
        ucs_store_relaxed(&region->untimed, 0);
        if (size_class == UCS_REGCACHE_CLASS_MANAGED) {
            ucs_add_relaxed(&region->joined, 1);
        }
        return;
    }

    ucs_store_relaxed(&region->use_start, now);
    ucs_store_relaxed(&region->sp, sp);
    ucs_regcache_in_use(cache, ucs_regcache_pinned_length(region));
    if (size_class == UCS_REGCACHE_CLASS_MANAGED) {
        ucs_store_relaxed(&region->hits, ucs_load_relaxed(&region->hits) + 1);
    }
}

/* --- Wait ----------------------------------------------------------------- */

/* The caller has a reference on a region. @return Nonzero if it is still being
 *         registered; the reference is gone then. */
static int ucs_regcache_wait_no_longer(ucs_regcache_h cache,
                                       ucs_regcache_region_t *region)
{
    int is_registering;

    ucs_regcache_lock(cache); /* under it the state stays as it is */
    is_registering = ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
                     UCS_REGCACHE_STATE_REGISTERING;
    if (is_registering) {
        ucs_sub_relaxed(&region->word, UCS_REGCACHE_WORD_REF);
    }
    ucs_regcache_unlock(cache);
    return is_registering;
}

/* The caller has a reference on a region that another thread registers, and
 * waits for that until @a until, ns.
 * @return UCS_OK if it is now a live one. Else the reference is gone:
 *         UCS_ERR_CANCELED if it is not, UCS_ERR_TIMED_OUT if it may become
 *         one later. */
static ucs_status_t ucs_regcache_wait(ucs_regcache_h cache,
                                      ucs_regcache_region_t *region,
                                      uint64_t until, ucs_regcache_loss_t *loss)
{
    uint64_t word, now;

    loss->why = UCS_REGCACHE_LOST_WAITED;
    for (;;) {
        word = ucs_load_acquire(&region->word); /* [R-LIVE] */
        if (ucs_regcache_word_state(word) != UCS_REGCACHE_STATE_REGISTERING) {
            break;
        }
        now = ucs_regcache_now(cache);
        if (now < until) {
            cache->env.wait(cache->env.arg,
                            ucs_regcache_region_wait_word(region),
                            (uint32_t)word, until - now);
        } else if (ucs_regcache_wait_no_longer(cache, region)) {
            return UCS_ERR_TIMED_OUT;
        }
    }
    if (ucs_regcache_word_is_hit(word)) {
        return UCS_OK;
    }

    if (ucs_regcache_word_state(word) == UCS_REGCACHE_STATE_LIVE) {
        ucs_regcache_region_put(cache, region);
    } else {
        /* acq_rel [R-PUT]: pairs with the other waiters' */
        word = ucs_sub_acq_rel(&region->word, UCS_REGCACHE_WORD_REF);
        if (ucs_regcache_word_refs(word) == 1) {
            ucs_regcache_doomed(cache, region);
        }
    }
    return UCS_ERR_CANCELED;
}

/* The caller has waited for a registration and has a reference on it */
static void
ucs_regcache_region_begin_late(ucs_regcache_h cache,
                               ucs_regcache_region_t *region,
                               const ucs_regcache_request_t *request,
                               ucs_regcache_loss_t *loss)
{
    uint64_t now = ucs_regcache_now(cache);

    ucs_regcache_lock(cache);
    cache->stats.late += request->size_class == UCS_REGCACHE_CLASS_MANAGED;
    ucs_regcache_account_loss(cache, loss, now);
    ucs_regcache_unlock(cache);
    /* Waiting was part of the use: the next one is due a period after this
     * one was wanted */
    ucs_store_relaxed(&region->use_start, request->now);
    ucs_store_relaxed(&region->untimed, 0);
    ucs_store_relaxed(&region->speculative, 0);
    ucs_store_relaxed(&region->sp, request->sp);
}

/* --- Miss ----------------------------------------------------------------- */

/* Under the lock. @return Nonzero if the range was ever registered, and is still
 * mapped. */
static int ucs_regcache_see(ucs_regcache_h cache,
                             const ucs_regcache_request_t *request)
{
    int seen = ucs_extents_covers(&cache->memory.seen, request->first,
                                  request->last);

    if (request->size_class == UCS_REGCACHE_CLASS_MANAGED) {
        if (seen) {
            ++cache->stats.missed;
        } else {
            ++cache->stats.cold;
        }
    }
    ucs_regcache_account(cache, request->now);
    if (!seen) {
        ucs_extents_add(&cache->memory.seen, request->first, request->last);
        ucs_regcache_account(cache, request->now);
    }
    return seen;
}

/* What a look-up under the lock came to */
typedef enum ucs_regcache_found {
    UCS_REGCACHE_FOUND_LIVE,        /* reference taken */
    UCS_REGCACHE_FOUND_REGISTERING, /* reference taken, to be waited for */
    UCS_REGCACHE_FOUND_NONE,        /* region is REGISTERING and the caller's */
    UCS_REGCACHE_FOUND_COALESCED    /* likewise, and more than was asked for, by
                                       range or access */
} ucs_regcache_found_t;

typedef struct ucs_regcache_lookup {
    ucs_regcache_region_t     *region;
    uint64_t                  old;        /* LIVE: its word before */
    ucs_regcache_inspection_t inspection; /* NONE and COALESCED: begun */
    ucs_regcache_lost_t       why;        /* likewise: it must be */
    uint64_t                  until;      /* REGISTERING: ns, how long to wait */
    int                       wakes;      /* the helper is to register what is
                                             ahead, or give up what is behind */
} ucs_regcache_lookup_t;

/* Why a use has to register, which finds @a region DORMANT, or nothing if that is
 * NULL. The helper's plan is a hint: it may be changing. */
static ucs_regcache_lost_t
ucs_regcache_why_missed(ucs_regcache_region_t *region, int seen, uint64_t now)
{
    uint64_t due;

    if (!seen) {
        return UCS_REGCACHE_LOST_FIRST;
    }
    if (region == NULL) {
        return UCS_REGCACHE_LOST_UNFORETOLD;
    }
    if (region->lapsed >= now) {
        return UCS_REGCACHE_LOST_ROOM;
    }
    due = ucs_load_relaxed(&region->due);
    return ((due != 0) && (due <= now)) ? UCS_REGCACHE_LOST_LATE :
                                          UCS_REGCACHE_LOST_UNFORETOLD;
}

/* What is registered for the use together with what lies around: a step of a walk with
 * the next ones, whatever was registered there by itself.
 * @return A DORMANT region that has it, NULL: a new one, or else @a region. */
static ucs_regcache_region_t *
ucs_regcache_begin_more(ucs_regcache_h cache, ucs_regcache_region_t *region,
                        const ucs_regcache_request_t *request,
                        ucs_regcache_request_t *whole)
{
    int is_step = (request->walk != NULL);

    if (is_step && ucs_regcache_cover(cache, whole)) {
        whole->is_cover = 1;
        return NULL;
    }
    if (request->size_class == UCS_REGCACHE_CLASS_MANAGED) {
        region = ucs_regcache_coalesce(cache, region, whole);
    }
    if (!is_step && (region == NULL) && ucs_regcache_cover(cache, whole)) {
        whole->is_cover = 1;
    }
    return region;
}

/* Begin to register @a region, which is DORMANT, or a new one if it is NULL */
static ucs_regcache_found_t
ucs_regcache_begin(ucs_regcache_h cache, ucs_regcache_region_t *region,
                   const ucs_regcache_request_t *request, int may_coalesce,
                   ucs_regcache_lookup_t *lookup)
{
    ucs_regcache_request_t whole = *request;
    int seen;

    ucs_regcache_cover_asked(cache, request);
    seen        = ucs_regcache_see(cache, request);
    lookup->why = request->is_alone ?
                          UCS_REGCACHE_LOST_LATE :
                          ucs_regcache_why_missed(region, seen, request->now);
    if (may_coalesce &&
        ((region == NULL) || !ucs_load_relaxed(&region->is_window))) {
        region = ucs_regcache_begin_more(cache, region, request, &whole);
    }
    region         = ucs_regcache_region_begin(cache, region, &whole);
    ucs_store_relaxed(&region->missed_room,
                      lookup->why == UCS_REGCACHE_LOST_ROOM);
    ucs_regcache_soft_missed(cache, region, request->now);
    lookup->region = region;
    lookup->wakes  = ucs_regcache_walk_looks(cache, request, region);
    ucs_regcache_inspect_begin(cache, region, &lookup->inspection);
    /* A DORMANT region of another range or access is not what was asked for either:
     * part of it may be gone, or may be read only by now */
    return (!region->is_cover &&
            (ucs_load_relaxed(&region->start) == request->start) &&
            (ucs_load_relaxed(&region->end) == request->end) &&
            (ucs_load_relaxed(&region->access) == request->access)) ?
                   UCS_REGCACHE_FOUND_NONE :
                   UCS_REGCACHE_FOUND_COALESCED;
}

/* A thread that registers may have lost its processor. So a use waits for it as long as
 * registering itself would take, and then does that: it loses at most twice as much.
 * @return Until when, ns. */
static uint64_t ucs_regcache_wait_until(ucs_regcache_h cache,
                                        ucs_regcache_region_t *region)
{
    return ucs_regcache_now(cache) +
           ucs_max(ucs_regcache_missed_ns(cache,
                                          ucs_regcache_pages(cache, region)),
                   UCS_REGCACHE_WAIT_NS);
}

/* A walk comes back to windows that it has left. @return One of these, if
 * @a region is not registered; else that. */
static ucs_regcache_region_t *
ucs_regcache_look_around(ucs_regcache_h cache,
                         const ucs_regcache_request_t *request,
                         ucs_regcache_region_t *region)
{
    ucs_regcache_region_t *window = NULL;

    if ((request->walk != NULL) &&
        ((region == NULL) ||
         (ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
          UCS_REGCACHE_STATE_DORMANT))) {
        window = ucs_regcache_walk_dormant(cache, request);
    }
    return (window != NULL) ? window : region;
}

/* Under the lock, with a region in reserve */
static ucs_regcache_found_t
ucs_regcache_look_up(ucs_regcache_h cache, ucs_regcache_request_t *request,
                     int may_coalesce, ucs_regcache_lookup_t *lookup)
{
    ucs_regcache_region_t *region;

    lookup->wakes = 0;
    ucs_regcache_walk_step(cache, request);
    region = ucs_regcache_index_find(&cache->index, request->start,
                                     request->end, request->access);
    if (may_coalesce && cache->walking.is_on) {
        region = ucs_regcache_look_around(cache, request, region);
    }
    if (region != NULL) {
        lookup->region = region;
        lookup->old    = ucs_load_relaxed(&region->word);
        switch (ucs_regcache_word_state(lookup->old)) {
        case UCS_REGCACHE_STATE_LIVE:
            if (ucs_regcache_region_try_ref(region, request->start,
                                            request->end, request->access,
                                            &lookup->old)) {
                if (region->is_cover ||
                    ucs_load_relaxed(&region->is_window)) {
                    ucs_regcache_cover_serves(cache, request);
                }
                lookup->wakes = ucs_regcache_walk_looks(cache, request, region);
                return UCS_REGCACHE_FOUND_LIVE;
            }
            region = NULL; /* as many users as can be counted */
            break;
        case UCS_REGCACHE_STATE_REGISTERING:
            if (request->is_alone) {
                region = NULL;
                break;
            }
            lookup->until = ucs_regcache_wait_until(cache, region);
            /* relaxed: the state changes under the lock alone, which is held */
            ucs_add_relaxed(&region->word, UCS_REGCACHE_WORD_REF);
            return UCS_REGCACHE_FOUND_REGISTERING;
        default:
            break;
        }
    }
    return ucs_regcache_begin(cache, region, request, may_coalesce, lookup);
}

static ucs_status_t ucs_regcache_miss(ucs_regcache_h cache,
                                      const ucs_regcache_request_t *request,
                                      ucs_regcache_lookup_t *lookup,
                                      ucs_regcache_loss_t *loss,
                                      ucs_regcache_memh_t *memh_p)
{
    ucs_regcache_region_t *region = lookup->region;
    ucs_status_t status;

    loss->why = lookup->why;
    ucs_store_relaxed(&region->sp, request->sp);
    ucs_store_relaxed(&region->untimed, 0); /* registering is part of the use */
    if ((ucs_load_relaxed(&region->idle) != UCS_REGCACHE_IDLE_DROP) &&
        !ucs_regcache_inspect(cache,
                              ucs_regcache_cover_question(cache, region,
                                                          request->flags),
                              &lookup->inspection)) {
        if (region->is_cover) {
            /* Nobody would hear what becomes of what nobody asked for */
            ucs_regcache_register_refuse(cache, region);
            return UCS_ERR_REJECTED;
        }
        ucs_store_relaxed(&region->idle, UCS_REGCACHE_IDLE_DROP);
        ucs_store_relaxed(&region->planned, 0);
    }
    if (ucs_regcache_idle_is_queued(ucs_load_relaxed(&region->idle))) {
        ucs_regcache_listen_begin(cache, request->access);
    }
    status = ucs_regcache_register_use(
            cache, region, request->flags | ucs_load_relaxed(&region->access),
            &lookup->inspection, loss);
    if (status == UCS_OK) {
        *memh_p = ucs_load_relaxed(&region->memh);
    }
    return status;
}

/* relaxed: a measure, the list itself is looked at under the lock */
static int ucs_regcache_must_reclaim(ucs_regcache_h cache)
{
    return (ucs_load_relaxed(&cache->reclaim.count) >=
            UCS_REGCACHE_RECLAIM_MAX) ||
           (ucs_load_relaxed(&cache->reclaim.bytes) >=
            UCS_REGCACHE_RECLAIM_MAX_BYTES);
}

/* Do what may wait or allocate, and take the lock. What is lost by now is counted under
 * it, for what follows may be a hit. */
static ucs_status_t ucs_regcache_prepare(ucs_regcache_h cache,
                                         ucs_regcache_loss_t *loss)
{
    int is_lost  = (loss->why == UCS_REGCACHE_LOST_WAITED);
    uint64_t now = 0;
    ucs_status_t status;

    ucs_regcache_pass_gate(cache);
    if (!ucs_regcache_needs_helper(cache)) {
        /* the helper, which does else, is none */
        is_lost |= ucs_load_relaxed(&cache->reclaim.count) > 0;
        ucs_regcache_reclaim(cache);
    } else if (ucs_regcache_must_reclaim(cache)) {
        is_lost = 1;
        ucs_regcache_reclaim_some(cache, UCS_REGCACHE_RECLAIM_MAX);
    }
    if (is_lost) {
        now = ucs_regcache_now(cache);
    }
    status = ucs_regcache_lock_reserved(cache);
    if (is_lost && (status == UCS_OK)) {
        ucs_regcache_account_loss(cache, loss, now);
        loss->why = UCS_REGCACHE_LOST_RELEASED;
    }
    return status;
}

/* No hint leads to a window: each of its uses is looked up, as a step */
static void ucs_regcache_hint(ucs_regcache_h cache,
                              const ucs_regcache_request_t *request,
                              ucs_regcache_region_t *region)
{
    if (!ucs_load_relaxed(&region->is_window)) {
        /* relaxed: a hint only, the region's word decides */
        ucs_store_relaxed(ucs_regcache_index_range_hint(&cache->index,
                                                        request->start,
                                                        request->end),
                          region);
    }
}

static UCS_F_NOINLINE ucs_status_t
ucs_regcache_get_slow(ucs_regcache_h cache, void *address, size_t length,
                      unsigned flags, uintptr_t sp, ucs_regcache_memh_t *memh_p,
                      uint64_t now)
{
    ucs_regcache_request_t request = ucs_regcache_request(cache, address,
                                                          length, flags, sp,
                                                          now);
    int may_coalesce               = ucs_regcache_may_coalesce(cache, &request);
    ucs_regcache_loss_t loss       = {.since = now,
                                      .why   = UCS_REGCACHE_LOST_RELEASED};
    ucs_regcache_lookup_t lookup;
    ucs_regcache_found_t found;
    ucs_status_t status;

    for (;;) {
        status = ucs_regcache_prepare(cache, &loss);
        if (status != UCS_OK) {
            return status;
        }

        found = ucs_regcache_look_up(cache, &request, may_coalesce, &lookup);
        ucs_regcache_unlock(cache);
        if (lookup.wakes) {
            cache->env.wake(cache->env.arg);
        }

        switch (found) {
        case UCS_REGCACHE_FOUND_LIVE:
            ucs_regcache_region_begin_use(cache, lookup.region, lookup.old,
                                          request.size_class, sp, now);
            goto out;
        case UCS_REGCACHE_FOUND_REGISTERING:
            status = ucs_regcache_wait(cache, lookup.region, lookup.until,
                                       &loss);
            if (status == UCS_OK) {
                ucs_regcache_region_begin_late(cache, lookup.region, &request,
                                               &loss);
                goto out;
            }
            if (status == UCS_ERR_TIMED_OUT) {
                request.is_alone = 1;
                may_coalesce     = 0;
            }
            break;
        case UCS_REGCACHE_FOUND_NONE:
        case UCS_REGCACHE_FOUND_COALESCED:
            status = ucs_regcache_miss(cache, &request, &lookup, &loss, memh_p);
            if ((status == UCS_OK) || (found == UCS_REGCACHE_FOUND_NONE)) {
                return status;
            }
            may_coalesce = 0; /* what was asked for may still be had */
            break;
        }
    }

out:
    *memh_p = ucs_load_relaxed(&lookup.region->memh);
    ucs_regcache_hint(cache, &request, lookup.region);
    return UCS_OK;
}

/* --- Hit ------------------------------------------------------------------ */

static UCS_F_ALWAYS_INLINE ucs_status_t
ucs_regcache_get_at(ucs_regcache_h cache, void *address, size_t length,
                    unsigned flags, uintptr_t sp, ucs_regcache_memh_t *memh_p,
                    uint64_t now)
{
    uintptr_t start = (uintptr_t)address;
    uintptr_t end   = start + length;
    ucs_regcache_region_t *region;
    uint64_t old;

    /* relaxed: regions are never unmapped, [R-LIVE] orders the rest */
    region = ucs_load_relaxed(
            ucs_regcache_index_range_hint(&cache->index, start, end));
    /* acquire [R-GATE]: pairs with the release in ucs_regcache_gate_open() and
     * in ucs_regcache_strike_all(): a thread that comes after an unmapping
     * finds the gate shut, or open again and the region struck */
    if (ucs_unlikely(
                (region == NULL) ||
                (ucs_load_acquire(&cache->gate) != UCS_REGCACHE_GATE_OPEN) ||
                !ucs_regcache_region_try_ref(region, start, end,
                                             flags & cache->config.access_mask,
                                             &old))) {
        return ucs_regcache_get_slow(cache, address, length, flags, sp, memh_p,
                                     now);
    }

    *memh_p = ucs_load_relaxed(&region->memh);
    ucs_regcache_region_begin_use(cache, region, old,
                                  ucs_regcache_size_class(cache, length), sp,
                                  now);
    return UCS_OK;
}

static UCS_F_NOINLINE ucs_status_t
ucs_regcache_get_by_env(ucs_regcache_h cache, void *address, size_t length,
                        unsigned flags, uintptr_t sp,
                        ucs_regcache_memh_t *memh_p)
{
    return ucs_regcache_get_at(cache, address, length, flags, sp, memh_p,
                               ucs_regcache_now(cache));
}

/* By the counter that is read in line, nothing here is called unless it is for
 * the last time, and no register is saved */
ucs_status_t ucs_regcache_get(ucs_regcache_h cache, void *address,
                              size_t length, unsigned flags, uintptr_t sp,
                              ucs_regcache_memh_t *memh_p)
{
    uint64_t now;

    if (ucs_unlikely(!ucs_clock_try_read(cache->env.clock, &now))) {
        return ucs_regcache_get_by_env(cache, address, length, flags, sp,
                                       memh_p);
    }

    return ucs_regcache_get_at(cache, address, length, flags, sp, memh_p, now);
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>
#include <ucs/sys/sync/give_way.h>
#include <ucs/sys/math.h>

/* Keys of the LRU order that are corrected before the index lock is let go:
 * each moves its region through the heap, which costs as much as to look at
 * some others. More than one for each eviction, so all are correct in the
 * end. */
static unsigned ucs_regcache_evict_lot(ucs_regcache_h cache)
{
    return 1 + cache->tuning.lot / 8;
}

/* Belady's rule on predictions: the idle region whose next use is farthest. Any
 * order of the heap serves, and beyond a lot of regions the older part of
 * it. */
static ucs_regcache_region_t *ucs_regcache_farthest(ucs_regcache_h cache,
                                                    const ucs_heap_t *heap)
{
    unsigned count                = ucs_min(heap->count, cache->tuning.lot);
    ucs_regcache_region_t *victim = NULL;
    int64_t most                  = INT64_MIN;
    ucs_regcache_region_t *region;
    int64_t distance;
    unsigned i;

    for (i = 0; i < count; ++i) {
        region   = ucs_regcache_lru_region(*ucs_heap_at(heap, i));
        distance = cache->plan.ops->distance(cache, region);
        if ((distance >= most) &&
            (ucs_regcache_word_refs(ucs_load_relaxed(&region->word)) == 0)) {
            victim = region;
            most   = distance;
        }
    }
    return victim;
}

/* The region of a class that goes first. Where all that stand first are in use, the latest
 * uses decide: that search puts them behind the others. Under the lock, which is let go
 * after each lot that is looked at. @return NULL if nothing is idle. */
static ucs_regcache_region_t *
ucs_regcache_victim(ucs_regcache_h cache, int class)
{
    ucs_heap_t *heap = &cache->lru[class];
    ucs_regcache_region_t *victim;
    uint64_t now;
    unsigned left;

    if ((class == UCS_REGCACHE_CLASS_MANAGED) &&
        (cache->plan.ops->distance != NULL)) {
        victim = ucs_regcache_farthest(cache, heap);
        if ((victim != NULL) || (heap->count <= cache->tuning.lot)) {
            return victim;
        }
    }

    now = ucs_regcache_now(cache);
    for (;;) {
        left   = ucs_regcache_evict_lot(cache);
        victim = ucs_regcache_lru_oldest(heap, now, &left);
        if ((victim != NULL) || (left > 0)) {
            return victim;
        }
        ucs_regcache_unlock(cache);
        ucs_regcache_lock(cache);
    }
}

/* The victim is taken; the lock is let go meanwhile. @return Its bytes. */
static size_t ucs_regcache_evict_victim(ucs_regcache_h cache,
                                        ucs_regcache_region_t *victim)
{
    size_t length = ucs_regcache_pinned_length(victim);

    ++cache->stats.evicted;
    ucs_regcache_unlock(cache);
    ucs_regcache_region_deregister(cache, victim, NULL, NULL);
    ucs_regcache_lock(cache);
    return length;
}

size_t ucs_regcache_evict_soft(ucs_regcache_h cache,
                               ucs_regcache_region_t *before)
{
    ucs_regcache_region_t *victim;

    victim = ucs_regcache_victim(cache, UCS_REGCACHE_CLASS_MANAGED);
    if ((victim == NULL) ||
        ((before != NULL) &&
         (cache->plan.ops->distance(cache, victim) <=
          cache->plan.ops->distance(cache, before))) ||
        !ucs_regcache_region_take_idle(cache, victim)) {
        return 0;
    }
    ucs_regcache_soft_evicted(cache, victim);
    return ucs_regcache_evict_victim(cache, victim);
}

/* Of all classes the last goes first */
size_t ucs_regcache_evict(ucs_regcache_h cache, int size_class)
{
    int is_any = (size_class == UCS_REGCACHE_CLASS_LAST);
    int first  = is_any ? 0 : size_class;
    int class  = is_any ? size_class - 1 : size_class;
    ucs_regcache_region_t *victim;

    while (class >= first) {
        victim = ucs_regcache_victim(cache, class);
        if (victim == NULL) {
            --class;
        } else if (ucs_regcache_region_take_idle(cache, victim)) {
            return ucs_regcache_evict_victim(cache, victim);
        } /* else it has found a user since it was chosen */
    }
    return 0;
}

/* Under the lock */
static int ucs_regcache_passes_ceiling(ucs_regcache_h cache)
{
    return (cache->stats.pinned_bytes > cache->config.max_pinned) ||
           (cache->stats.regions > cache->config.max_regions);
}

/* What is in use is left, and its last user looks again. The lock is let go on the way,
 * so what others read is not changed before the end: a helper that found no ceiling
 * passed would not come back. */
void ucs_regcache_trim(ucs_regcache_h cache)
{
    ucs_regcache_lock(cache);
    while (ucs_regcache_passes_ceiling(cache) &&
           (ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_LAST) > 0)) {
    }
    ucs_store_relaxed(&cache->is_over, ucs_regcache_passes_ceiling(cache));
    ucs_regcache_unlock(cache);
}

size_t ucs_regcache_evict_for(ucs_regcache_h cache, size_t length, int is_count)
{
    size_t freed = 0;
    size_t bytes;

    ucs_regcache_reclaim(cache);
    ucs_regcache_lock(cache);
    do {
        bytes = ucs_regcache_evict(cache, UCS_REGCACHE_CLASS_LAST);
        freed += (is_count && (bytes > 0)) ? 1 : bytes;
    } while ((bytes > 0) && (freed < length));
    ucs_regcache_unlock(cache);
    return freed;
}

/* Uses that are themselves short of something are not waited for, for they may
 * wait here as well */
static int ucs_regcache_is_leaving(ucs_regcache_h cache)
{
    int is_leaving;

    ucs_regcache_lock(cache);
    is_leaving = cache->account.transit > cache->account.wanted;
    ucs_regcache_unlock(cache);
    return is_leaving;
}

static size_t ucs_regcache_shrink_by(ucs_regcache_h cache, size_t length,
                                     int is_count)
{
    size_t freed = ucs_regcache_evict_for(cache, length, is_count);

    /* What other threads are just releasing counts until they have */
    while ((freed < length) && ucs_regcache_is_leaving(cache)) {
        ucs_give_way();
    }
    return freed;
}

size_t ucs_regcache_shrink(ucs_regcache_h cache, size_t length)
{
    return ucs_regcache_shrink_by(cache, length, 0);
}

uint64_t ucs_regcache_shrink_regions(ucs_regcache_h cache, uint64_t count)
{
    return ucs_regcache_shrink_by(cache, count, 1);
}

void ucs_regcache_yield(ucs_regcache_h cache)
{
    ucs_store_relaxed(&cache->pressed, 1);
    do {
        (void)ucs_regcache_evict_for(cache, SIZE_MAX, 0);
        if (!ucs_regcache_is_leaving(cache)) {
            break;
        }
        ucs_give_way();
    } while (1);
    /* What the helper had registered meanwhile without a user */
    (void)ucs_regcache_evict_for(cache, SIZE_MAX, 0);
}

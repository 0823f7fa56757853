/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "pin_md_int.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/io/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_memory.h>
#include <errno.h>
#include <string.h>

uct_pin_region_t *uct_pin_region_alloc(void *address, size_t length,
                                       unsigned num_slots)
{
    uct_pin_region_t *region;

    region = ucs_own_alloc(sizeof(*region) + (num_slots * sizeof(*region->slots)));
    if (region != NULL) { /* zeroed */
        region->address   = address;
        region->length    = length;
        region->num_slots = num_slots;
    }
    return region;
}

static unsigned uct_pin_table_class(size_t length)
{
    return (length <= UCT_PIN_SMALL_MAX) ? UCT_PIN_CLASS_SMALL :
           (length <= UCT_PIN_SLOT_MAX)  ? UCT_PIN_CLASS_MEDIUM :
                                           UCT_PIN_CLASS_LARGE;
}

/* The idler ring of a class that has room, NULL if none has */
static uct_pin_ring_t *
uct_pin_table_select_ring(uct_pin_table_t *table,
                          const uct_pin_region_t *region)
{
    uct_pin_ring_t *rings = table->rings[uct_pin_table_class(region->length)];
    uct_pin_ring_t *best  = NULL;
    unsigned i, busy, best_busy = 0;

    for (i = 0; i < UCT_PIN_RINGS_PER_CLASS; ++i) {
        busy = ucs_load_relaxed(&rings[i].busy);
        if ((rings[i].num_free >= region->num_slots) &&
            ((best == NULL) || (busy < best_busy))) {
            best      = &rings[i];
            best_busy = busy;
        }
    }

    return best;
}

static int uct_pin_table_insert(uct_pin_table_t *table,
                                uct_pin_region_t *region)
{
    uct_pin_ring_t *ring = NULL;
    unsigned i;

    pthread_mutex_lock(&table->lock);
    if (table->num_regions < table->max_regions) {
        ring = uct_pin_table_select_ring(table, region);
    }
    if (ring != NULL) {
        for (i = 0; i < region->num_slots; ++i) {
            region->slots[i] = ring->free_slots[--ring->num_free];
        }
        region->ring = ring;
        ucs_list_add_tail(&table->regions, &region->list);
        ++table->num_regions;
    }
    pthread_mutex_unlock(&table->lock);

    return (ring == NULL) ? -ENOSPC : 0;
}

static void uct_pin_table_remove(uct_pin_table_t *table,
                                 uct_pin_region_t *region)
{
    uct_pin_ring_t *ring = region->ring;
    unsigned i;

    pthread_mutex_lock(&table->lock);
    for (i = region->num_slots; i > 0; --i) {
        ring->free_slots[ring->num_free++] = region->slots[i - 1];
    }
    ucs_list_del(&region->list);
    --table->num_regions;
    pthread_mutex_unlock(&table->lock);
}

static void uct_pin_region_empty_slots(uct_pin_region_t *region, unsigned count)
{
    int ret;

    while (count > 0) {
        ret = uct_pin_ring_pin(region->ring, region->slots[--count], NULL, 0);
        if ((ret < 0) && (ret != -EBADF)) {
            ucs_helper_log_plain(UCS_LOG_LEVEL_ERROR,
                                 "pin_md: unpinning %p length %zu: %s",
                                 region->address, region->length,
                                 strerror(-ret));
        }
    }
}

static int uct_pin_region_fill_slots(uct_pin_region_t *region)
{
    size_t offset, length;
    unsigned i;
    int ret;

    for (i = 0; i < region->num_slots; ++i) {
        offset = i * UCT_PIN_SLOT_MAX;
        length = ucs_min(region->length - offset, UCT_PIN_SLOT_MAX);
        ret    = uct_pin_ring_pin(region->ring, region->slots[i],
                                  UCS_PTR_BYTE_OFFSET(region->address, offset),
                                  length);
        if (ret < 0) {
            uct_pin_region_empty_slots(region, i);
            return ret;
        }
    }

    return 0;
}

int uct_pin_table_pin(uct_pin_table_t *table, void *address, size_t length,
                      uct_pin_region_t **region_p)
{
    size_t num_slots = ((length - 1) / UCT_PIN_SLOT_MAX) + 1;
    uct_pin_region_t *region;
    int ret;

    if (num_slots > UCT_PIN_MD_MAX_REGIONS) {
        return -ENOSPC;
    }

    region = uct_pin_region_alloc(address, length, num_slots);
    if (region == NULL) {
        return -ENOMEM;
    }

    ret = uct_pin_table_insert(table, region);
    if (ret < 0) {
        goto err_free;
    }

    ret = uct_pin_region_fill_slots(region);
    if (ret < 0) {
        goto err_remove;
    }

    *region_p = region;
    return 0;

err_remove:
    uct_pin_table_remove(table, region);
err_free:
    ucs_own_free(region);
    return ret;
}

void uct_pin_table_unpin(uct_pin_table_t *table, uct_pin_region_t *region)
{
    uct_pin_region_empty_slots(region, region->num_slots);
    uct_pin_table_remove(table, region);
    ucs_own_free(region);
}

int uct_pin_region_copy(uct_pin_region_t *region, uct_pin_view_way_t way,
                        size_t offset, void *data, size_t length)
{
    int ret = 0;
    size_t part;

    for (; (length > 0) && (ret == 0); offset += part, length -= part) {
        part = ucs_min(UCT_PIN_SLOT_MAX - (offset % UCT_PIN_SLOT_MAX), length);
        ret  = uct_pin_view_copy(region->ring->view, way,
                                 region->slots[offset / UCT_PIN_SLOT_MAX],
                                 (uintptr_t)region->address + offset, data,
                                 part);
        data = UCS_PTR_BYTE_OFFSET(data, part);
    }

    return ret;
}

static uct_pin_ring_t *uct_pin_table_ring(uct_pin_table_t *table,
                                          unsigned index)
{
    return &table->rings[index / UCT_PIN_RINGS_PER_CLASS]
                        [index % UCT_PIN_RINGS_PER_CLASS];
}

/* Undo the first @a count rings */
static void uct_pin_table_release_rings(uct_pin_table_t *table, unsigned count,
                                        void (*release)(uct_pin_ring_t *ring))
{
    while (count > 0) {
        --count;
        release(uct_pin_table_ring(table, count));
    }
}

ucs_status_t uct_pin_table_init(uct_pin_table_t *table, unsigned max_regions,
                                int has_views)
{
    unsigned i, num_slots;
    ucs_status_t status;

    pthread_mutex_init(&table->lock, NULL);
    ucs_list_head_init(&table->regions);
    table->num_regions = 0;
    table->max_regions = max_regions;

    for (i = 0; i < UCT_PIN_NUM_RINGS; ++i) {
        /* Regions below the large class take one slot each */
        num_slots = ((i / UCT_PIN_RINGS_PER_CLASS) == UCT_PIN_CLASS_LARGE) ?
                    UCT_PIN_MD_MAX_REGIONS : max_regions;
        status    = uct_pin_ring_init(uct_pin_table_ring(table, i), num_slots,
                                      has_views);
        if (status != UCS_OK) {
            goto err_release;
        }
    }

    return UCS_OK;

err_release:
    uct_pin_table_release_rings(table, i, uct_pin_ring_cleanup);
    pthread_mutex_destroy(&table->lock);
    return status;
}

void uct_pin_table_cleanup(uct_pin_table_t *table)
{
    uct_pin_region_t *region, *tmp;

    if (table->num_regions > 0) {
        ucs_helper_log_plain(UCS_LOG_LEVEL_DIAG,
                             "pin_md: %u regions were still registered at close",
                             table->num_regions);
    }

    uct_pin_table_release_rings(table, UCT_PIN_NUM_RINGS, uct_pin_ring_cleanup);
    ucs_list_for_each_safe(region, tmp, &table->regions, list) {
        ucs_own_free(region);
    }
    pthread_mutex_destroy(&table->lock);
}

void uct_pin_table_abandon(uct_pin_table_t *table)
{
    /* Another thread of the parent may have held the lock, or been amid a
     * change of the list, when the child was forked: neither is usable */
    uct_pin_table_release_rings(table, UCT_PIN_NUM_RINGS, uct_pin_ring_abandon);
}

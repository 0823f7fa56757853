/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pin_inside.h"

#include <uct/sm/pin_md/pin_md_int.h>

#include <ucs/sys/proc/cancel.h>

int uct_pin_md_is_attached(uct_md_h md)
{
    return uct_pin_md_find(md) != NULL;
}

/* Slots of @a slots that are of the ring and were not seen before */
static unsigned uct_pin_inside_see(const uct_pin_ring_t *ring, uint64_t *seen,
                                   const uint16_t *slots, unsigned count)
{
    unsigned fresh = 0;
    uint64_t bit;
    unsigned i;

    for (i = 0; i < count; ++i) {
        bit    = UINT64_C(1) << (slots[i] % 64);
        fresh += (slots[i] < ring->num_slots) && !(seen[slots[i] / 64] & bit);
        seen[slots[i] / 64] |= bit;
    }

    return fresh;
}

/* Under the lock */
static int uct_pin_inside_ring_is_valid(uct_pin_table_t *table,
                                        const uct_pin_ring_t *ring)
{
    uint64_t seen[(UINT16_MAX + 1) / 64] = {0};
    unsigned count                       = ring->num_free;
    unsigned fresh;
    uct_pin_region_t *region;

    if (ring->num_free > ring->num_slots) {
        return 0;
    }

    fresh = uct_pin_inside_see(ring, seen, ring->free_slots, ring->num_free);
    ucs_list_for_each(region, &table->regions, list) {
        if (region->ring == ring) {
            count += region->num_slots;
            fresh += uct_pin_inside_see(ring, seen, region->slots,
                                        region->num_slots);
        }
    }

    return (count == ring->num_slots) && (fresh == ring->num_slots);
}

static int uct_pin_inside_table_is_valid(uct_pin_table_t *table)
{
    unsigned count = 0;
    uct_pin_region_t *region;
    int is_valid;
    unsigned i;

    pthread_mutex_lock(&table->lock);
    ucs_list_for_each(region, &table->regions, list) {
        ++count;
    }
    is_valid = (count == table->num_regions) && (count <= table->max_regions);
    for (i = 0; is_valid && (i < UCT_PIN_NUM_RINGS); ++i) {
        is_valid = uct_pin_inside_ring_is_valid(
                table, &table->rings[i / UCT_PIN_RINGS_PER_CLASS]
                                    [i % UCT_PIN_RINGS_PER_CLASS]);
    }
    pthread_mutex_unlock(&table->lock);
    return is_valid;
}

int uct_pin_md_is_valid(uct_md_h md)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);

    return (pin == NULL) || !uct_pin_md_is_owner(pin) ||
           uct_pin_inside_table_is_valid(&pin->table);
}

size_t uct_pin_md_pinned_bytes(uct_md_h md)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);
    size_t num_bytes  = 0;
    uct_pin_region_t *region;

    if ((pin != NULL) && uct_pin_md_is_owner(pin)) {
        pthread_mutex_lock(&pin->table.lock);
        ucs_list_for_each(region, &pin->table.regions, list) {
            num_bytes += region->length;
        }
        pthread_mutex_unlock(&pin->table.lock);
    }
    return num_bytes;
}

const uct_pin_config_t *uct_pin_md_config(uct_md_h md)
{
    uct_pin_md_t *pin = uct_pin_md_find(md);

    return (pin == NULL) ? NULL : &pin->config;
}

uint64_t uct_pin_md_serial(uct_mem_h memh)
{
    return ((uct_pin_region_t*)memh)->serial;
}

static ucs_status_t
uct_pin_md_copy(uct_md_h md, uct_mem_h memh, uct_pin_view_way_t way,
                uintptr_t address, void *data, size_t length)
{
    uct_pin_md_t *pin        = uct_pin_md_find(md);
    uct_pin_region_t *region = memh;
    uintptr_t start          = (uintptr_t)region->address;
    int ret;
    ucs_cancel_hold();

    if ((pin == NULL) || !pin->config.verify || !uct_pin_md_is_owner(pin) ||
        (region->ring == NULL)) {
        return UCS_ERR_UNSUPPORTED;
    }
    if ((address < start) || (length > region->length) ||
        (address - start > region->length - length)) {
        return UCS_ERR_INVALID_PARAM;
    }
    ret = uct_pin_region_copy(region, way, address - start, data, length);
    return (ret == 0) ? UCS_OK : UCS_ERR_IO_ERROR;
}

ucs_status_t uct_pin_md_read(uct_md_h md, uct_mem_h memh, uintptr_t address,
                             void *data, size_t length)
{
    return uct_pin_md_copy(md, memh, UCT_PIN_VIEW_READ, address, data, length);
}

ucs_status_t uct_pin_md_write(uct_md_h md, uct_mem_h memh, uintptr_t address,
                              const void *data, size_t length)
{
    return uct_pin_md_copy(md, memh, UCT_PIN_VIEW_WRITE, address, (void*)data,
                           length);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_world.h"

#include <string.h>

/* Handles look like pointers, and come back as soon as they are free */
#define SIM_MEMH_BASE 0x7000ul
#define SIM_MEMH_STEP 64ul

sim_world_t sim_world;
int sim_has_covers;

/* With covers: between an event and the unmapping at most */
#define SIM_GOING_NS 200000ul

static sim_slot_t *sim_slot(ucs_regcache_memh_t memh)
{
    uintptr_t offset = (uintptr_t)memh - SIM_MEMH_BASE;

    if ((offset % SIM_MEMH_STEP) ||
        (offset / SIM_MEMH_STEP >= SIM_MAX_SLOTS)) {
        sim_violation("no handle of the lower domain: %p", memh);
        return NULL;
    }
    return &sim_world.slots[offset / SIM_MEMH_STEP];
}

static unsigned sim_page_of(uintptr_t address)
{
    return (address - SIM_BASE) / SIM_PAGE;
}

static size_t sim_slot_bytes(const sim_slot_t *slot)
{
    return (sim_page_of(slot->end - 1) - sim_page_of(slot->start) + 1) *
           SIM_PAGE;
}

/*
 * Lower domain
 */

/* The lower domain works: others run, time may pass */
static void sim_lower_work(size_t length)
{
    uint64_t ns = 1000 + 50 * (length / SIM_PAGE);

    if (sim_is_lock_mine()) {
        sim_violation("the lower domain is called under the index lock");
    }
    if (sim_world.is_instant || (sim_rng_below(&sim_world.rng, 2) == 0)) {
        sim_advance(ns);
        sim_point();
    } else {
        sim_sleep(ns);
    }
}

static int sim_lower_is_helper(void)
{
    return (sim_current() == sim_world.helper) ||
           (sim_current() == sim_world.step_owner);
}

static void sim_lower_check_ceiling(size_t length)
{
    int fits = (sim_world.live_bytes + length <= sim_world.params.max_pinned) &&
               (sim_world.live < sim_world.params.max_regions);
    ucs_regcache_stats_t stats;
    long left;

    if (fits) {
        return;
    }
    if (sim_lower_is_helper() && (sim_world.helper >= 0)) {
        sim_violation("the helper passes a ceiling");
        return;
    }
    if (!sim_is_lock_free()) {
        return;
    }
    left = sim_quiet();
    ucs_regcache_stats(sim_world.cache, sim_now(), &stats);
    sim_loud(left);
    if (stats.over_ceiling == 0) {
        sim_violation("a ceiling is passed and nobody knows of it");
    }
}

static ucs_status_t sim_lower_fault(void)
{
    static const ucs_status_t errors[] = {
        UCS_ERR_NO_MEMORY, UCS_ERR_IO_ERROR, UCS_ERR_INVALID_ADDR,
        UCS_ERR_NO_RESOURCE
    };

    if (sim_fault("registration fails, site")) {
        return errors[sim_rng_below(&sim_world.rng, 4)];
    }
    if ((sim_world.device_limit > 0) &&
        (sim_world.live >= sim_world.device_limit)) {
        ++sim_world.full;
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}

/* Pin: note the generations. @return Zero if a page is not mapped. */
static int sim_lower_pin(sim_slot_t *slot)
{
    unsigned page;

    for (page = sim_page_of(slot->start); page <= sim_page_of(slot->end - 1);
         ++page) {
        slot->mapping[page] = sim_world.pages[page].mapping;
        if (!(slot->mapping[page] & 1)) {
            return 0;
        }
    }
    return 1;
}

static sim_slot_t *sim_lower_take(void)
{
    unsigned i;

    for (i = 0; i < SIM_MAX_SLOTS; ++i) {
        if (!sim_world.slots[i].is_live) {
            return &sim_world.slots[i];
        }
    }
    sim_violation("more than %u registrations at once", SIM_MAX_SLOTS);
    return NULL;
}

static ucs_status_t sim_lower_pin_range(uintptr_t start, size_t length,
                                        unsigned flags, ucs_regcache_memh_t *memh_p)
{
    sim_slot_t *slot = sim_lower_take();

    if (slot == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }
    slot->start  = start;
    slot->end    = start + length;
    slot->access = flags;
    if (!sim_lower_pin(slot)) {
        return UCS_ERR_INVALID_ADDR;
    }
    slot->is_live = 1;
    slot->holders = 0;
    slot->serial  = ++sim_world.serial;
    ++sim_world.live;
    sim_world.live_bytes += sim_slot_bytes(slot);
    *memh_p = (ucs_regcache_memh_t)(SIM_MEMH_BASE + (slot - sim_world.slots) *
                                                  SIM_MEMH_STEP);
    sim_trace("pins, handle", (uintptr_t)*memh_p, slot->serial);
    return UCS_OK;
}

static ucs_status_t sim_mem_reg(void *arg, void *address, size_t length,
                                unsigned flags, ucs_regcache_memh_t *memh_p)
{
    ucs_regcache_memh_t memh = NULL;
    ucs_status_t status;

    sim_trace("mem_reg", (uintptr_t)address, length);
    status = sim_lower_fault();
    if (status == UCS_OK) {
        sim_lower_check_ceiling(length);
        status = sim_lower_pin_range((uintptr_t)address, length, flags, &memh);
    }
    sim_lower_work(length);
    if (status != UCS_OK) {
        sim_trace("mem_reg fails", (uintptr_t)address, (uint64_t)-status);
        return status;
    }
    *memh_p = memh;
    return UCS_OK;
}

static void sim_complete(void *arg, ucs_regcache_comp_t opaque)
{
    sim_comp_t *comp = (sim_comp_t*)opaque;
    sim_slot_t *slot = sim_slot(comp->memh);

    sim_trace("invalidated", (uintptr_t)comp->memh, comp->serial);
    if (comp->is_done) {
        sim_violation("an invalidation completes twice");
    }
    if ((slot != NULL) && slot->is_live && (slot->serial == comp->serial)) {
        sim_violation("an invalidation completes before its end");
    }
    comp->is_done = 1;
}

static ucs_status_t sim_mem_dereg(void *arg, ucs_regcache_memh_t memh,
                                  ucs_regcache_comp_t comp)
{
    sim_slot_t *slot = sim_slot(memh);
    ucs_status_t status;

    sim_trace("mem_dereg", (uintptr_t)memh, (slot == NULL) ? 0 : slot->serial);
    if ((slot == NULL) || !slot->is_live) {
        sim_violation("deregistered twice: %p", memh);
        return UCS_ERR_INVALID_PARAM;
    }
    if ((slot->holders > 0) && (sim_current() >= 0)) {
        sim_violation("deregistered in use: %p", memh);
    }
    status = sim_fault("deregistration reports an error, site") ?
                     UCS_ERR_IO_ERROR :
                     UCS_OK;
    sim_lower_work(slot->end - slot->start);
    slot->is_live = 0;
    --sim_world.live;
    sim_world.live_bytes -= sim_slot_bytes(slot);
    sim_point();
    if (comp != NULL) {
        sim_complete(arg, comp);
    }
    return status;
}

/*
 * The rest of the environment
 */

static uint64_t sim_env_now(void *arg)
{
    sim_advance(10);
    sim_point();
    return sim_now();
}

static void sim_env_wake(void *arg)
{
    sim_point();
    sim_world.is_notified = 1;
    if (sim_world.helper >= 0) {
        sim_wake(sim_world.helper);
    }
}

static void sim_env_wait(void *arg, uint32_t *word, uint32_t value,
                         uint64_t ns)
{
    if ((ns != UINT64_MAX) && (sim_rng_below(&sim_world.rng, 4) == 0)) {
        sim_trace("waits in vain", ns, 0);
        sim_advance(ns);
        sim_point();
        return;
    }
    sim_trace("waits", 0, 0);
    sim_wait(word, value);
}

static void sim_env_wake_waiters(void *arg, uint32_t *word)
{
    sim_point();
    sim_wake_waiters(word);
}

/* All memory is of one kind, also while it is unmapped: a look that comes
 * between an event and the unmapping finds it as it was. Of what a message
 * would bring into memory some is there. */
static int sim_env_inspect(void *arg, unsigned flags, uintptr_t *start_p,
                           uintptr_t *end_p)
{
    sim_point();
    if ((*start_p < SIM_BASE) ||
        (*end_p > SIM_BASE + SIM_PAGES * SIM_PAGE)) {
        return 0; /* ahead of a walk, where there is none */
    }
    *start_p = SIM_BASE;
    *end_p   = SIM_BASE + SIM_PAGES * SIM_PAGE;
    return !(flags & UCS_REGCACHE_INSPECT_SPECULATE) ||
           (sim_rng_below(&sim_world.rng, 2) == 0);
}

void sim_world_env(ucs_regcache_env_t *env)
{
    env->mem_reg      = sim_mem_reg;
    env->mem_dereg    = sim_mem_dereg;
    env->complete     = sim_complete;
    env->now          = sim_env_now;
    env->wake         = sim_env_wake;
    env->wait         = sim_env_wait;
    env->wake_waiters = sim_env_wake_waiters;
    if (sim_has_covers) {
        env->inspect = sim_env_inspect;
    }
}

void sim_world_lock_step(void)
{
    while (sim_world.step_owner >= 0) {
        sim_spin("step mutex", 0);
    }
    sim_world.step_owner = sim_current();
}

int sim_world_try_lock_step(void)
{
    sim_point();
    if (sim_world.step_owner >= 0) {
        return 0;
    }
    sim_world.step_owner = sim_current();
    return 1;
}

void sim_world_hear(void)
{
    ucs_operation_t said[SIM_MAX_SAID];
    unsigned count = sim_world.num_said;

    memcpy(said, sim_world.said, sizeof(said));
    sim_world.num_said = 0;
    if (count > 0) {
        ucs_regcache_tell(sim_world.cache, said, count);
    }
}

void sim_world_unlock_step(void)
{
    sim_world.step_owner = -1;
}

/*
 * Application
 */

static int sim_range_is_going(unsigned first, unsigned last)
{
    for (; first < last; ++first) {
        if (sim_world.pages[first].is_going) {
            return 1;
        }
    }
    return 0;
}

int sim_world_say(const ucs_operation_t *operation)
{
    unsigned first = sim_page_of(operation->address);
    unsigned last  = sim_page_of(operation->address + operation->length - 1);

    sim_point();
    if ((operation->kind == UCS_OPERATION_RECEIVE) &&
        sim_range_is_going(first, last + 1)) {
        return 0;
    }
    sim_trace((operation->kind == UCS_OPERATION_RECEIVE) ? "posts" : "ends",
              operation->address, operation->length);
    if (sim_world.num_said < SIM_MAX_SAID) {
        sim_world.said[sim_world.num_said++] = *operation;
    }
    return 1;
}

static void sim_range_count(uintptr_t start, uintptr_t end, int sign)
{
    unsigned page;

    for (page = sim_page_of(start); page <= sim_page_of(end - 1); ++page) {
        sim_world.pages[page].users += sign;
    }
}

/* What a use was given is what it asked for */
static void sim_check_use(const sim_use_t *use, unsigned access)
{
    sim_slot_t *slot = sim_slot(use->memh);
    unsigned page;

    if (slot == NULL) {
        return;
    }
    if (!slot->is_live) {
        sim_violation("got a handle that is not registered: %p", use->memh);
    }
    if ((slot->start > use->start) || (slot->end < use->end)) {
        sim_violation("got a registration of another range: %p", use->memh);
    }
    if (access & ~slot->access) {
        sim_violation("got a registration without the access asked for");
    }
    for (page = sim_page_of(use->start); page <= sim_page_of(use->end - 1);
         ++page) {
        if (slot->mapping[page] != sim_world.pages[page].mapping) {
            sim_violation("STALE: page %u was pinned in mapping %u and is %u",
                          page, slot->mapping[page],
                          sim_world.pages[page].mapping);
        }
    }
}

/* What the cache refuses the decorator asks of the lower domain; here that
 * ends the use. @return Nonzero if the refusal has a cause. */
static int sim_may_fail(unsigned faults, unsigned full)
{
    return (sim_fault_mine() > faults) || (sim_world.full > full);
}

int sim_world_get(uintptr_t start, uintptr_t end, unsigned access,
                  uintptr_t sp, sim_use_t *use)
{
    unsigned faults = sim_fault_mine();
    unsigned full   = sim_world.full;
    ucs_status_t status;

    if (sim_range_is_going(sim_page_of(start), sim_page_of(end - 1) + 1)) {
        sim_spin("range is being unmapped", 0);
        return 0;
    }
    sim_range_count(start, end, 1);
    sim_trace("get", start, end - start);
    use->start = start;
    use->end   = end;
    status     = ucs_regcache_get(sim_world.cache, (void *)start, end - start,
                                  access, sp, &use->memh);
    if (status != UCS_OK) {
        sim_trace("get fails", start, -status);
        sim_range_count(start, end, -1);
        if (!sim_may_fail(faults, full)) {
            sim_violation("a use fails (%d) for no reason", status);
        }
        return 0;
    }
    ++sim_world.gets;
    sim_trace("got", (uintptr_t)use->memh, 0);
    sim_check_use(use, access);
    ++sim_slot(use->memh)->holders;
    return 1;
}

static void sim_use_ends(const sim_use_t *use)
{
    sim_trace("put", (uintptr_t)use->memh, use->start);
    --sim_slot(use->memh)->holders;
}

/* A refused invalidation leaves the use: it is ended without one */
static void sim_use_put(const sim_use_t *use, sim_comp_t *comp)
{
    unsigned faults = sim_fault_mine();
    ucs_status_t status;

    sim_use_ends(use);
    status = ucs_regcache_put(sim_world.cache, use->memh,
                              (ucs_regcache_comp_t)comp);
    if ((status != UCS_OK) && (comp != NULL) && (sim_fault_mine() > faults)) {
        comp->is_done = 1;
        status = ucs_regcache_put(sim_world.cache, use->memh, NULL);
    }
    if (status != UCS_OK) {
        sim_violation("put of %p fails: %d", use->memh, status);
    }
    sim_range_count(use->start, use->end, -1);
}

void sim_world_put(const sim_use_t *use)
{
    sim_use_put(use, NULL);
}

void sim_world_invalidate(const sim_use_t *use)
{
    sim_comp_t *comp = &sim_world.comps[sim_world.num_comps];

    if (sim_world.num_comps == SIM_MAX_COMPS) {
        sim_world_put(use);
        return;
    }
    ++sim_world.num_comps;
    comp->memh    = use->memh;
    comp->serial  = sim_slot(use->memh)->serial;
    comp->is_done = 0;
    sim_trace("invalidate", (uintptr_t)use->memh, comp->serial);
    sim_use_put(use, comp);
}

static int sim_range_is_used(unsigned first, unsigned last)
{
    for (; first < last; ++first) {
        if (sim_world.pages[first].users > 0) {
            return 1;
        }
    }
    return 0;
}

static void sim_range_set(unsigned first, unsigned last, int is_going,
                          unsigned generations)
{
    for (; first < last; ++first) {
        sim_world.pages[first].is_going = is_going;
        sim_world.pages[first].mapping += generations;
    }
}

/* Every region that a look-up could find, not only those in the index */
static int sim_world_finds(uintptr_t start, uintptr_t end)
{
    long left = sim_quiet();
    int is_found;

    is_found = ucs_regcache_has_region(sim_world.cache, start, end);
    sim_loud(left);
    return is_found;
}

int sim_world_unmap(unsigned first, unsigned last)
{
    uintptr_t start = SIM_BASE + first * SIM_PAGE;
    int is_mine     = sim_is_lock_mine();

    if (sim_range_is_going(first, last) || sim_range_is_used(first, last)) {
        return 0;
    }
    sim_range_set(first, last, 1, 0);
    sim_trace("unmap", start, (last - first) * SIM_PAGE);
    ucs_regcache_unmapped(sim_world.cache, start, (last - first) * SIM_PAGE);
    if (sim_has_covers && !is_mine) {
        /* What begins now must leave these pages out, and several uses may */
        sim_sleep(sim_rng_below(&sim_world.rng, SIM_GOING_NS));
    }
    if (!is_mine && sim_world_finds(start, start + (last - first) * SIM_PAGE)) {
        sim_violation("a region is found over memory that is being unmapped");
    }
    sim_range_set(first, last, 1, 1);
    sim_trace("unmapped", start, (last - first) * SIM_PAGE);
    sim_point();
    if (!is_mine && sim_world_finds(start, start + (last - first) * SIM_PAGE)) {
        sim_violation("a region is found over unmapped memory");
    }
    sim_range_set(first, last, 0, 1);
    sim_trace("mapped", start, (last - first) * SIM_PAGE);
    return 1;
}

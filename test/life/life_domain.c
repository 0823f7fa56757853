/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"

#include <uct/base/uct_abi.h>
#include <uct/ib/helper_md/helper_md.h>
#include "../cma.h"
#include "../inside/md_inside.h"
#include "../inside/pin_inside.h"

#include <ucs/sys/clock.h>

#include <sys/mman.h>
#include <time.h>

/* Uses of one buffer in the same place that teach the helper its period */
#define LIFE_LESSONS 4

/* Milliseconds, and some */
#define LIFE_DRAIN_TRIES 5000

uct_md_h life_domain_open_bare(void)
{
    uct_md_h md = cma_open();

    if (md == NULL) {
        life_fail("the cma domain cannot be opened");
    }
    return md;
}

static uct_md_h life_domain_open_with(const uct_pin_config_t *pin_config)
{
    const uct_helper_config_t helper_config = {
            .policy          = UCS_REGCACHE_POLICY_PAPER,
            .min_size        = 16384,
            .max_pinned      = SIZE_MAX,
            .node_max_pinned = SIZE_MAX,
            .cpu_policy      = UCT_HELPER_CPU_POLICY_AGGRESSIVE,
            .max_regions     = ULONG_MAX,
            .log_level       = UCS_LOG_LEVEL_WARN};
    uct_md_h md = life_domain_open_bare();

    if (uct_pin_md_attach(md, pin_config) != UCS_OK) {
        life_fail("pin_md cannot be attached");
    }
    if (uct_helper_md_attach(md, "pin", &helper_config) != UCS_OK) {
        life_fail("the helper cannot be attached");
    }
    return md;
}

uct_md_h life_domain_open(void)
{
    const uct_pin_config_t pin_config = {.verify = 0};

    return life_domain_open_with(&pin_config);
}

/* As the door has it: the helper heard of what was unmapped during its use */
static void life_domain_verify(uct_md_h md, uct_mem_h memh)
{
    uct_pin_difference_t difference;

    if (uct_pin_md_compare(md, memh, &difference) &&
        !uct_helper_md_is_gone(md, memh)) {
        uct_pin_md_stale(md, memh, &difference);
    }
}

uct_md_h life_domain_open_verified(void)
{
    const uct_pin_config_t pin_config = {.verify = 1};
    uct_md_h md                       = life_domain_open_with(&pin_config);

    uct_pin_md_delegate_verify(md);
    uct_helper_md_set_verify(md, life_domain_verify);
    return md;
}

void life_domain_close(uct_md_h md)
{
    uct_md_close(md);
    if (uct_pin_md_is_attached(md)) {
        life_fail("the domain is still there after its end");
    }
    if (life_proc_helper() != 0) {
        life_fail("a helper outlives its domain");
    }
}

uct_mem_h life_try_reg(uct_md_h md, void *address, size_t length)
{
    uct_mem_h memh;
    ucs_status_t status;

    status = uct_abi_md(md)->ops->mem_reg(md, address, length,
                                          UCT_MD_MEM_ACCESS_ALL |
                                          UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh);
    return (status == UCS_OK) ? memh : NULL;
}

uct_mem_h life_reg(uct_md_h md, void *address, size_t length)
{
    uct_mem_h memh = life_try_reg(md, address, length);

    if (memh == NULL) {
        life_fail("%zu bytes at %p cannot be registered", length, address);
    }
    return memh;
}

void life_dereg(uct_md_h md, uct_mem_h memh)
{
    const uct_abi_md_mem_dereg_params_t params = {
        .field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH,
        .memh       = memh
    };

    if (uct_abi_md(md)->ops->mem_dereg(md, &params) != UCS_OK) {
        life_fail("a registration cannot be given back");
    }
}

void life_use(uct_md_h md, void *address, size_t length)
{
    life_dereg(md, life_reg(md, address, length));
}

void *life_make_live(uct_md_h md)
{
    void *buffer = life_map(LIFE_LENGTH);
    int i;

    for (i = 0; i < LIFE_LESSONS; ++i) {
        life_use(md, buffer, LIFE_LENGTH);
    }
    if (!uct_helper_md_has_thread(md)) {
        life_fail("no helper after %d uses", LIFE_LESSONS);
    }
    life_proc_await_helper();
    return buffer;
}

void life_drain(uct_md_h md)
{
    const struct timespec pause = {0, 1000000};
    ucs_regcache_stats_t stats;
    int tries;

    life_step("drain");
    for (tries = 0; uct_pin_md_pinned_bytes(md) > 0; ++tries) {
        if (tries == LIFE_DRAIN_TRIES) {
            ucs_regcache_stats(uct_helper_md_cache(md), ucs_clock_now(),
                               &stats);
            life_fail("%zu bytes of memory that is gone stay pinned; the cache "
                      "knows of %lu in %lu regions, %lu of them mapped",
                      uct_pin_md_pinned_bytes(md), stats.pinned_bytes,
                      stats.regions, stats.leave_pinned_bytes);
        }
        nanosleep(&pause, NULL);
    }
}

void *life_map(size_t length)
{
    void *address = mmap(NULL, length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (address == MAP_FAILED) {
        life_fail("%zu bytes cannot be mapped", length);
    }
    return address;
}

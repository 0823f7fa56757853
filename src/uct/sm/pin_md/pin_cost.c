/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "pin_md_int.h"

#include <ucs/sys/clock.h>

#include <sys/mman.h>

/* The cost per page is measured between one page and these, which are of the
 * small size class */
#define UCT_PIN_COST_PAGES 32

/* Timed registrations of each size. Few, for some kernels unpin late, and the pages
 * of each count against the memlock limit until then. */
#define UCT_PIN_COST_TRIES 4

void uct_pin_cost_wait(const uct_pin_config_t *config, size_t num_pages,
                       unsigned part)
{
    double cost_ns = config->cost_base_ns + config->cost_per_page_ns * num_pages;
    double end;

    if (cost_ns <= 0) {
        return;
    }

    /* Busy, as a driver is that builds and writes its page tables */
    end = ucs_clock_monotonic() + cost_ns / part;
    while (ucs_clock_monotonic() < end) {
    }
}

/* The least of some tries in nanoseconds, negative if pinning fails */
static double uct_pin_cost_pin_ns(uct_pin_table_t *table, void *address,
                                  size_t length)
{
    double best = -1;
    uct_pin_region_t *region;
    double start, elapsed;
    unsigned i;

    for (i = 0; i < UCT_PIN_COST_TRIES; ++i) {
        start = ucs_clock_monotonic();
        if (uct_pin_table_pin(table, address, length, &region) != 0) {
            return -1;
        }
        elapsed = ucs_clock_monotonic() - start;
        uct_pin_table_unpin(table, region);
        best = ((best < 0) || (elapsed < best)) ? elapsed : best;
    }

    return best;
}

static void *uct_pin_cost_map(size_t length)
{
    void *address;

    address = mmap(NULL, length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return (address == MAP_FAILED) ? NULL : address;
}

ucs_linear_func_t uct_pin_cost_measure(uct_pin_table_t *table,
                                       const uct_pin_config_t *config)
{
    size_t page_size = sysconf(_SC_PAGESIZE);
    size_t length    = UCT_PIN_COST_PAGES * page_size;
    double base_ns   = config->cost_base_ns;
    double page_ns   = config->cost_per_page_ns;
    double one_ns, all_ns, slope_ns;
    void *address;

    address = uct_pin_cost_map(length);
    if (address == NULL) {
        goto out;
    }

    one_ns = uct_pin_cost_pin_ns(table, address, page_size);
    all_ns = uct_pin_cost_pin_ns(table, address, length);
    if ((one_ns >= 0) && (all_ns > one_ns)) {
        slope_ns = (all_ns - one_ns) / (UCT_PIN_COST_PAGES - 1);
        page_ns += slope_ns;
        base_ns += (one_ns > slope_ns) ? one_ns - slope_ns : 0;
    }

    munmap(address, length);
out:
    return ucs_linear_func_make(base_ns * 1e-9, page_ns * 1e-9 / page_size);
}

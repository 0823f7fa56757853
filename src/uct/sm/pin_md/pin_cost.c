/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "pin_md_int.h"

#include <ucs/sys/clock.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* The cost per page is measured between one page and these, which are of the
 * small size class */
#define UCT_PIN_COST_PAGES 32

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

/* VmPin in kB, -1 if the kernel does not tell */
static long uct_pin_cost_vm_pin(void)
{
    const char *line = NULL;
    char text[4096];
    long value;

    if (ucs_own_fd_read_text("/proc/self/status", text, sizeof(text)) > 0) {
        line = strstr(text, "\nVmPin:");
    }
    return ((line != NULL) && (sscanf(line, " VmPin: %ld", &value) == 1)) ?
                   value :
                   -1;
}

/* The least of some tries in nanoseconds, negative if pinning fails */
static double uct_pin_cost_pin_ns(uct_pin_table_t *table, void *address,
                                  size_t length, unsigned tries)
{
    double best = -1;
    uct_pin_region_t *region;
    double start, elapsed;
    unsigned i;

    for (i = 0; i < tries; ++i) {
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

int uct_pin_cost_is_lazy(uct_pin_table_t *table)
{
    size_t page_size = sysconf(_SC_PAGESIZE);
    int lazy         = 0;
    uct_pin_region_t *region;
    void *address;
    long before;

    address = uct_pin_cost_map(page_size);
    if (address == NULL) {
        return 0;
    }

    if (uct_pin_table_pin(table, address, page_size, &region) == 0) {
        before = uct_pin_cost_vm_pin();
        uct_pin_table_unpin(table, region);
        lazy = (before > 0) && (uct_pin_cost_vm_pin() >= before);
    }

    munmap(address, page_size);
    return lazy;
}

ucs_linear_func_t uct_pin_cost_measure(uct_pin_table_t *table,
                                       const uct_pin_config_t *config,
                                       unsigned tries)
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

    one_ns = uct_pin_cost_pin_ns(table, address, page_size, tries);
    all_ns = uct_pin_cost_pin_ns(table, address, length, tries);
    if ((one_ns >= 0) && (all_ns > one_ns)) {
        slope_ns = (all_ns - one_ns) / (UCT_PIN_COST_PAGES - 1);
        page_ns += slope_ns;
        base_ns += (one_ns > slope_ns) ? one_ns - slope_ns : 0;
    }

    munmap(address, length);
out:
    return ucs_linear_func_make(base_ns * 1e-9, page_ns * 1e-9 / page_size);
}

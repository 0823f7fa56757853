/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "calls.h"
#include "events.h"
#include "monitor.h"
#include <ucs/sys/proc/process.h>

#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>

/* A thread that unmaps watched memory waits for our reader: 5 to 10 us if the
 * reader runs on the same processor, some 35 if it is woken on another, a time
 * slice at worst. To end the watch first takes 2 us and 19 ns a page. At twice
 * as many bytes that is more than twice the short wait, at half as many it is
 * as long. */
#define UCT_HELPER_CALLS_UNMAP_MAX (512ul << 10)

/* Rounds to whole pages as the kernel does. @return Zero if there are none. */
static int uct_helper_calls_pages(void *address, size_t length,
                                  uintptr_t *start_p, uintptr_t *end_p)
{
    uintptr_t mask = sysconf(_SC_PAGESIZE) - 1;

    *start_p = (uintptr_t)address & ~mask;
    if (length > UINTPTR_MAX - mask - (uintptr_t)address) {
        return 0; /* the kernel will refuse it */
    }

    *end_p = ((uintptr_t)address + length + mask) & ~mask;
    return *end_p > *start_p;
}

static void uct_helper_calls_discard(void *address, size_t length)
{
    uct_helper_events_unmapped((uintptr_t)address, length);
}

/* Regions first: unwatched memory must not stay registered. */
static void uct_helper_calls_leave(void *address, size_t length)
{
    uintptr_t start, end;

    if (uct_helper_calls_pages(address, length, &start, &end) &&
        uct_helper_events_unmapped(start, end - start)) {
        uct_helper_monitor_unwatch(start, end);
    }
}

static void uct_helper_calls_unmap(void *address, size_t length)
{
    if (length <= UCT_HELPER_CALLS_UNMAP_MAX) {
        uct_helper_calls_leave(address, length);
    }
}

static void uct_helper_calls_place(void *address, size_t length)
{
    uintptr_t start, end;

    if (uct_helper_calls_pages(address, length, &start, &end) &&
        ucs_process_is_known()) {
        uct_helper_monitor_spread_beside(start, end);
    }
}

/* No registration is left where memory was just mapped, unless its event is
 * still under way. What the monitor finds out here its first use need not
 * ask. */
static void uct_helper_calls_mapped(void *address, size_t length)
{
    uct_helper_range_t range;
    uintptr_t start, end;
    uint64_t number;

    if (!uct_helper_calls_pages(address, length, &start, &end) ||
        !uct_helper_events_mapped(start, end - start)) {
        return;
    }

    number = uct_helper_events_number();
    if (uct_helper_monitor_spread(start, end, &range)) {
        uct_helper_events_learn(number, range.kept, range.kept_end);
    }
}

const uct_helper_calls_t uct_helper_calls = {
    .discard = uct_helper_calls_discard,
    .leave   = uct_helper_calls_leave,
    .unmap   = uct_helper_calls_unmap,
    .place   = uct_helper_calls_place,
    .mapped  = uct_helper_calls_mapped
};

int uct_helper_calls_listen(void)
{
    uct_helper_calls_listen_func_t listen;

    listen = dlsym(RTLD_DEFAULT, UCT_HELPER_CALLS_LISTEN);
    if (listen == NULL) {
        return 0;
    }

    listen(&uct_helper_calls);
    return 1;
}

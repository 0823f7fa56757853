/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define _GNU_SOURCE
#include "reader.h"

#include <uct/ib/helper_md/hear.h>
#include <ucs/sys/atomic.h>
#include <ucs/sys/clock.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static pthread_once_t ucp_door_reader_once = PTHREAD_ONCE_INIT;
static _Atomic(const ucp_door_reader_t*) ucp_door_reader;


static uint64_t ucp_door_reader_now(void)
{
    return ucs_clock_now();
}

static const ucp_door_reader_t *ucp_door_reader_get(void)
{
    /* [O-READY] The acquire pairs with the release in ucp_door_reader_find(). */
    return ucs_load_acquire(&ucp_door_reader);
}

unsigned ucp_door_drain(ucs_operation_t *into, unsigned max)
{
    const ucp_door_reader_t *reader = ucp_door_reader_get();

    return (reader != NULL) ? reader->drain(into, max) : 0;
}

int ucp_door_reader_stats(ucp_door_stats_t *stats)
{
    const ucp_door_reader_t *reader = ucp_door_reader_get();

    memset(stats, 0, sizeof(*stats));
    if (reader == NULL) {
        return 0;
    }

    reader->get_stats(stats);
    return 1;
}

static uint64_t ucp_door_reader_lost(void)
{
    ucp_door_stats_t stats;

    (void)ucp_door_reader_stats(&stats);
    return stats.lost;
}

/* The parent's operations are not the child's */
static void ucp_door_reader_child(void)
{
    ucp_door_reader_get()->adopt();
}

static void ucp_door_reader_find(void)
{
    static ucp_door_listener_t listener = {
        .version   = UCP_DOOR_VERSION,
        .now       = ucp_door_reader_now,
        .idle_step = uct_helper_idle_step,
        .posted    = uct_helper_posted
    };
    const ucp_door_reader_t *reader;
    ucp_door_open_func_t open;

    listener.clock = ucs_clock_view();
    listener.wants = uct_helper_hear_wants();

    open = (ucp_door_open_func_t)dlsym(RTLD_DEFAULT, UCP_DOOR_OPEN);
    if (open == NULL) {
        return;
    }

    reader = open(&listener);
    if ((reader == NULL) || (reader->version != UCP_DOOR_VERSION)) {
        return;
    }

    /* [O-READY] The release pairs with the acquire in ucp_door_reader_get(). */
    ucs_store_release(&ucp_door_reader, reader);
    (void)pthread_atfork(NULL, NULL, ucp_door_reader_child);
    uct_helper_hear_from(ucp_door_drain, ucp_door_reader_lost);
}

int ucp_door_reader_start(void)
{
    pthread_once(&ucp_door_reader_once, ucp_door_reader_find);
    return ucp_door_reader_get() != NULL;
}

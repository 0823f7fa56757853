/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_int.h"

#include <ucp/wire/wire_thread.h>

#include <time.h>

/* The thread that moves an instance forward on request */

static unsigned ucp_firehose_thread_turn(ucx_firehose_h firehose)
{
    unsigned count;

    if (!ucp_wire_thread_enter(1)) {
        return 0;
    }
    count = ucx_firehose_progress(firehose);
    ucp_wire_thread_leave(1);
    return count;
}

static void *ucp_firehose_thread(void *arg)
{
    const struct timespec idle = {.tv_nsec = UCP_FIREHOSE_IDLE_US * 1000};
    ucx_firehose_h firehose    = arg;

    /* relaxed: what matters is that it is seen at some time */
    while (!ucs_load_relaxed(&firehose->thread_stops)) {
        if (ucp_firehose_thread_turn(firehose) == 0) {
            nanosleep(&idle, NULL);
        }
    }
    return NULL;
}

ucs_status_t ucp_firehose_thread_start(ucx_firehose_h firehose)
{
    if (ucp_wire_thread_start(&firehose->thread, 0, ucp_firehose_thread,
                              firehose) != 0) {
        return UCS_ERR_NO_MEMORY;
    }
    firehose->has_thread = 1;
    return UCS_OK;
}

void ucp_firehose_thread_stop(ucx_firehose_h firehose)
{
    if (firehose->has_thread) {
        ucs_store_relaxed(&firehose->thread_stops, 1);
        pthread_join(firehose->thread, NULL);
    }
}

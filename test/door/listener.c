/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Preloaded behind the stub: opens its door without a helper, and writes what
 * it heard into $LISTENER_OUT.PID as the process ends, if that was anything.
 */

#include "../../bench/bench_util.h"

#include <ucp/door/door.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const listener_names[] = {"send", "receive", "received",
                                             "put", "get", "atomic", "map",
                                             "unmap"};
static const ucp_door_reader_t *listener_reader;
static _Atomic(unsigned long) listener_heard[UCS_OPERATION_LAST];
static _Atomic(unsigned long) listener_strange;
static _Atomic(unsigned long) listener_idle_steps;
static _Atomic(uint64_t) listener_threads; /* a bit for each that was heard */

static void listener_drain(void)
{
    ucs_operation_t operations[64];
    unsigned count, i;

    while ((count = listener_reader->drain(operations, 64)) > 0) {
        for (i = 0; i < count; ++i) {
            if (operations[i].kind < UCS_OPERATION_LAST) {
                ++listener_heard[operations[i].kind];
            }
            listener_threads |= UINT64_C(1) << (operations[i].thread % 64);
            /* All but ends have a label, and length comes with an address */
            listener_strange +=
                    (operations[i].kind >= UCS_OPERATION_LAST) ||
                    ((operations[i].label == 0) !=
                     (operations[i].kind == UCS_OPERATION_RECEIVED)) ||
                    ((operations[i].length != 0) &&
                     (operations[i].address == 0));
        }
    }
}

/* Called for each operation before it is told: no ring gets full */
static uint64_t listener_now(void)
{
    if (listener_reader != NULL) {
        listener_drain();
    }
    return bench_now();
}

static ucs_idle_outcome_t listener_idle_step(uint64_t spare_ns)
{
    ++listener_idle_steps;
    listener_drain();
    return UCS_IDLE_HEARD;
}

static void listener_posted(uintptr_t address, size_t length)
{
}

__attribute__((constructor)) static void listener_open(void)
{
    static ucs_operation_wants_t wants    = {.all = 1};
    static const ucp_door_listener_t self = {UCP_DOOR_VERSION, listener_now,
                                             listener_idle_step,
                                             listener_posted, NULL, &wants};
    ucp_door_open_func_t open;

    open = (ucp_door_open_func_t)dlsym(RTLD_DEFAULT, UCP_DOOR_OPEN);
    if (open != NULL) {
        listener_reader = open(&self);
    }
}

__attribute__((destructor)) static void listener_write(void)
{
    const char *out = getenv("LISTENER_OUT");
    unsigned long all = 0;
    char path[4096];
    FILE *file;
    int i;

    if ((listener_reader == NULL) || (out == NULL)) {
        return;
    }

    listener_drain();
    for (i = 0; i < UCS_OPERATION_LAST; ++i) {
        all += listener_heard[i];
    }
    snprintf(path, sizeof(path), "%s.%d", out, getpid());
    if ((all == 0) || ((file = fopen(path, "w")) == NULL)) {
        return;
    }

    for (i = 0; i < UCS_OPERATION_LAST; ++i) {
        fprintf(file, "%s %lu\n", listener_names[i], listener_heard[i]);
    }
    fprintf(file, "strange %lu\nlost %lu\nidle %lu\nthreads %d\n",
            listener_strange, (unsigned long)listener_reader->lost(),
            listener_idle_steps, __builtin_popcountll(listener_threads));
    fclose(file);
}

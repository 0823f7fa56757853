/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Preloaded behind the stub: opens its door without a helper, and writes what
 * it heard into $EAR_OUT.PID as the process ends, if that was anything.
 */

#include <ucp/door/door.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *const ear_names[] = {"send", "receive", "received", "put",
                                        "get", "atomic", "map", "unmap"};
static const ucp_door_reader_t *ear_reader;
static _Atomic(unsigned long) ear_heard[UCS_OPERATION_LAST];
static _Atomic(unsigned long) ear_strange;
static _Atomic(unsigned long) ear_idle_steps;
static _Atomic(uint64_t) ear_threads; /* a bit for each that was heard */


static void ear_listen(void)
{
    ucs_operation_t operations[64];
    unsigned count, i;

    while ((count = ear_reader->drain(operations, 64)) > 0) {
        for (i = 0; i < count; ++i) {
            if (operations[i].kind < UCS_OPERATION_LAST) {
                ++ear_heard[operations[i].kind];
            }
            ear_threads |= UINT64_C(1) << (operations[i].thread % 64);
            /* All but ends have a label, and length comes with an address */
            ear_strange += (operations[i].kind >= UCS_OPERATION_LAST) ||
                           ((operations[i].label == 0) !=
                            (operations[i].kind == UCS_OPERATION_RECEIVED)) ||
                           ((operations[i].length != 0) &&
                            (operations[i].address == 0));
        }
    }
}

/* Called for each operation before it is told: no ring gets full */
static uint64_t ear_now(void)
{
    struct timespec now;

    if (ear_reader != NULL) {
        ear_listen();
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec * 1000000000ull) + now.tv_nsec;
}

static ucs_idle_outcome_t ear_idle_step(uint64_t spare_ns UCS_V_UNUSED)
{
    ++ear_idle_steps;
    ear_listen();
    return UCS_IDLE_HEARD;
}

__attribute__((constructor)) static void ear_open(void)
{
    static const ucp_door_listener_t listener = {UCP_DOOR_VERSION, ear_now,
                                                 ear_idle_step, NULL,
                                                 NULL, NULL};
    ucp_door_open_func_t open;

    open = (ucp_door_open_func_t)dlsym(RTLD_DEFAULT, UCP_DOOR_OPEN);
    if (open != NULL) {
        ear_reader = open(&listener);
    }
}

__attribute__((destructor)) static void ear_write(void)
{
    const char *out = getenv("EAR_OUT");
    unsigned long all = 0;
    char path[4096];
    FILE *file;
    int i;

    if ((ear_reader == NULL) || (out == NULL)) {
        return;
    }

    ear_listen();
    for (i = 0; i < UCS_OPERATION_LAST; ++i) {
        all += ear_heard[i];
    }
    snprintf(path, sizeof(path), "%s.%d", out, getpid());
    if ((all == 0) || ((file = fopen(path, "w")) == NULL)) {
        return;
    }

    for (i = 0; i < UCS_OPERATION_LAST; ++i) {
        fprintf(file, "%s %lu\n", ear_names[i], ear_heard[i]);
    }
    fprintf(file, "strange %lu\nlost %lu\nidle %lu\nthreads %d\n",
            ear_strange, (unsigned long)ear_reader->lost(),
            ear_idle_steps,
            __builtin_popcountll(ear_threads));
    fclose(file);
}

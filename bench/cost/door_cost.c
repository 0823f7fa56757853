/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * What a call of UCP takes, in nanoseconds of processor time:
 * door_cost [open|quiet]. One line a function, `name ns`: the least of several
 * rounds. UCP does nothing here. With `open` the preloaded stub's door is opened,
 * and read as a helper would; with `quiet`, as one would that learns nothing from
 * what is short.
 */

#include "../bench_util.h"

#include <ucp/api/ucp.h>
#include <ucp/door/door.h>
#include <ucs/sys/clock.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define DOOR_ROUNDS 400
#define DOOR_CALLS  500 /* fewer than a ring holds */
#define DOOR_LONG   8192

enum { DOOR_SEND, DOOR_RECEIVE, DOOR_LONG_RECEIVE, DOOR_PROGRESS, DOOR_LAST };

static const char *const door_names[DOOR_LAST] = {"send", "receive",
                                                  "receive_followed",
                                                  "progress"};
static const ucp_door_reader_t *door_reader;
static ucs_operation_wants_t door_wants = {.least = DOOR_LONG};
static char door_buffer[DOOR_LONG];

static uint64_t door_now(void)
{
    return ucs_clock_now();
}

static ucs_idle_outcome_t door_idle_step(uint64_t spare_ns)
{
    return UCS_IDLE_HEARD;
}

static void door_posted(uintptr_t address, size_t length)
{
}

static int door_open(void)
{
    static ucp_door_listener_t listener = {UCP_DOOR_VERSION, door_now,
                                           door_idle_step, door_posted, NULL,
                                           &door_wants};
    ucp_door_open_func_t open;

    ucs_clock_init();
    listener.clock = &ucs_clock_scale;
    open = (ucp_door_open_func_t)dlsym(RTLD_DEFAULT, UCP_DOOR_OPEN);
    door_reader = (open == NULL) ? NULL : open(&listener);
    return door_reader != NULL;
}

static void door_call(int what)
{
    const ucp_request_param_t param = {.op_attr_mask = 0};
    int i;

    for (i = 0; i < DOOR_CALLS; ++i) {
        switch (what) {
        case DOOR_SEND:
            ucp_tag_send_nbx(NULL, door_buffer, 8, 1, &param);
            break;
        case DOOR_RECEIVE:
            ucp_tag_recv_nbx(NULL, door_buffer, 8, 1, 1, &param);
            break;
        case DOOR_LONG_RECEIVE:
            ucp_tag_recv_nbx(NULL, door_buffer, sizeof(door_buffer), 1, 1,
                             &param);
            break;
        default:
            ucp_worker_progress(NULL);
        }
    }
}

/* @return Operations that were heard */
static unsigned door_drain(void)
{
    ucs_operation_t operations[256];
    unsigned all = 0;
    unsigned count;

    while ((door_reader != NULL) &&
           ((count = door_reader->drain(operations, 256)) > 0)) {
        all += count;
    }
    return all;
}

/* @return Nonzero if as much was heard as was to be */
static int door_is_heard(int what, int is_quiet, unsigned heard)
{
    int is_wanted = (what != DOOR_PROGRESS) &&
                    (!is_quiet || (what == DOOR_LONG_RECEIVE));

    return is_wanted ? (heard >= DOOR_ROUNDS * DOOR_CALLS) : (heard == 0);
}

int main(int argc, char **argv)
{
    int is_quiet = (argc > 1) && !strcmp(argv[1], "quiet");
    int is_open  = is_quiet || ((argc > 1) && !strcmp(argv[1], "open"));
    double least, ns;
    uint64_t start;
    unsigned heard;
    int what, round;

    if (!is_quiet) {
        ucs_operation_listen(&door_wants, 1);
    }
    if (is_open && !door_open()) {
        fprintf(stderr, "door_cost: there is no door to open\n");
        return 1;
    }

    for (what = 0; what < DOOR_LAST; ++what) {
        least = 1e9;
        heard = 0;
        for (round = 0; round < DOOR_ROUNDS; ++round) {
            start = bench_cpu_now();
            door_call(what);
            ns    = (double)(bench_cpu_now() - start) / DOOR_CALLS;
            least = (ns < least) ? ns : least;
            heard += door_drain();
        }
        if (is_open && !door_is_heard(what, is_quiet, heard)) {
            fprintf(stderr, "door_cost: %s: %u heard\n", door_names[what],
                    heard);
            return 1;
        }
        printf("%s %.2f\n", door_names[what], least);
    }
    return 0;
}

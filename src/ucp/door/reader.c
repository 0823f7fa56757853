/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "door.h"

#include <uct/ib/helper_md/hear.h>

#include <dlfcn.h>
#include <pthread.h>

static pthread_once_t ucp_door_reader_once = PTHREAD_ONCE_INIT;

static void ucp_door_reader_find(void)
{
    static ucp_door_listener_t listener = {
        .version   = UCP_DOOR_VERSION,
        .now       = ucs_clock_now,
        .clock     = &ucs_clock_scale,
        .idle_step = uct_helper_idle_step,
        .posted    = uct_helper_posted
    };
    ucp_door_open_func_t open       = dlsym(RTLD_DEFAULT, UCP_DOOR_OPEN);
    const ucp_door_reader_t *reader = NULL;

    listener.wants = uct_helper_hear_wants();
    if (open != NULL) {
        reader = open(&listener);
    }
    if ((reader == NULL) || (reader->version != UCP_DOOR_VERSION)) {
        return;
    }

    /* The parent's operations are not the child's */
    (void)pthread_atfork(NULL, NULL, reader->adopt);
    uct_helper_hear_from(reader->drain, reader->lost);
}

void ucp_door_reader_start(void)
{
    pthread_once(&ucp_door_reader_once, ucp_door_reader_find);
}

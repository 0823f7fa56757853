/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"

#include <ucs/sys/sync/atomic.h>
#include <ucp/api/ucp.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* How often each way to end is taken, of LIFE_INIT_ROUND: a program that loads
 * UCX anew costs as much as twenty of the others */
#define LIFE_INIT_ROUND 10

typedef enum life_end {
    LIFE_END_CLOSE,       /* as it should be */
    LIFE_END_EXIT,        /* exit() with the domain open and the helper live */
    LIFE_END_THREAD_EXIT, /* exit() in another thread, while this one registers */
    LIFE_END_FORKED,      /* the ends from here on are those of a new program */
    /* libucp unloaded under the helper, then exit() */
    LIFE_END_DLCLOSE = LIFE_END_FORKED,
    LIFE_END_LEAVE,       /* pthread_exit() in the first thread */
    LIFE_END_LEAVE_FIRST, /* the same before another thread loads the helper */
    LIFE_END_LAST
} life_end_t;

static const char *const life_end_names[LIFE_END_LAST] = {
    "close", "exit", "exit in a thread", "dlclose", "leave", "leave-first"
};

static char life_stub[4096];

static void *life_exit_thread(void *arg)
{
    exit(0);
}

/* In a child: ends the process */
static void life_end_in_child(life_end_t end)
{
    uct_md_h md     = life_domain_open();
    uct_md_h beside = life_domain_open();
    void *buffer    = life_make_live(md);
    pthread_t thread;

    (void)life_make_live(beside);

    if (end == LIFE_END_EXIT) {
        exit(0);
    }

    if (pthread_create(&thread, NULL, life_exit_thread, NULL) != 0) {
        life_fail("no thread to exit in");
    }
    for (;;) {
        life_use(md, buffer, LIFE_LENGTH);
    }
}

static void life_end_close(void)
{
    uct_md_h md     = life_domain_open();
    uct_md_h beside = life_domain_open();
    void *buffer    = life_make_live(md);
    void *other     = life_make_live(beside);

    uct_md_close(beside);
    munmap(other, LIFE_LENGTH);
    life_domain_close(md);
    munmap(buffer, LIFE_LENGTH);
}

static void life_exec_inside(life_end_t end)
{
    setenv("LD_PRELOAD", life_stub, 1);
    setenv("UCX_MD_HELPER", "y", 1);
    setenv("UCX_MD_PIN", "y", 1);
    setenv("UCX_TLS", "cma,posix,self", 1);
    execl("/proc/self/exe", "life", "--inside", life_end_names[end],
          (char*)NULL);
    life_fail("life cannot be started");
}

static void life_end(life_end_t end)
{
    pid_t pid;

    life_step(life_end_names[end]);
    if (end == LIFE_END_CLOSE) {
        life_end_close();
        return;
    }

    pid = fork();
    if (pid == 0) {
        if (end >= LIFE_END_FORKED) {
            life_exec_inside(end);
        } else {
            life_end_in_child(end);
        }
    }
    life_wait_child(pid, life_end_names[end]);
}

/* The stub of the build tree that this program lies in */
static void life_find_stub(const life_options_t *options)
{
    char self[2048] = "";
    char *slash;

    if (options->stub != NULL) {
        snprintf(life_stub, sizeof(life_stub), "%s", options->stub);
    } else if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0) {
        slash  = strrchr(self, '/');
        *slash = '\0';
        snprintf(life_stub, sizeof(life_stub),
                 "%s/../../src/uct/door/.libs/libucx_helper.so", self);
    }
    if (access(life_stub, R_OK) != 0) {
        life_fail("there is no preload library %s: give it with --stub",
                  life_stub);
    }
}

/* The new programs, by turns, are the last of each round */
static life_end_t life_init_choose(unsigned long i)
{
    unsigned long count = LIFE_END_LAST - LIFE_END_FORKED;

    return (life_end_t)((i % LIFE_INIT_ROUND < LIFE_INIT_ROUND - 1) ?
                        i % LIFE_END_FORKED :
                        LIFE_END_FORKED + (i / LIFE_INIT_ROUND) % count);
}

void life_init(const life_options_t *options)
{
    unsigned long done[LIFE_END_LAST] = {0};
    unsigned long i;
    life_end_t end;

    life_find_stub(options);
    for (i = 0; i < options->count; ++i) {
        end = life_init_choose(i);
        life_end(end);
        ++done[end];
    }
    printf("init %lu: close %lu exit %lu thread-exit %lu dlclose %lu leave %lu "
           "leave-first %lu\n",
           options->count, done[LIFE_END_CLOSE], done[LIFE_END_EXIT],
           done[LIFE_END_THREAD_EXIT], done[LIFE_END_DLCLOSE],
           done[LIFE_END_LEAVE], done[LIFE_END_LEAVE_FIRST]);
}

/* --- the programs that are started anew ------------------------------------
 * */

static void *life_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    if (symbol == NULL) {
        life_fail("libucp has no %s", name);
    }
    return symbol;
}

/* Map and unmap a buffer by UCP until the preloaded helper runs */
static void life_ucp_start(void *ucp)
{
    ucs_status_t (*config_read)(const char*, const char*, ucp_config_t**) =
            life_symbol(ucp, "ucp_config_read");
    ucs_status_t (*init)(unsigned, unsigned, const ucp_params_t*,
                         const ucp_config_t*, ucp_context_h*) =
            life_symbol(ucp, "ucp_init_version");
    ucs_status_t (*map)(ucp_context_h, const ucp_mem_map_params_t*,
                        ucp_mem_h*) = life_symbol(ucp, "ucp_mem_map");
    ucs_status_t (*unmap)(ucp_context_h, ucp_mem_h) =
            life_symbol(ucp, "ucp_mem_unmap");
    const ucp_params_t params        = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_RMA
    };
    ucp_mem_map_params_t map_params  = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = life_map(LIFE_LENGTH),
        .length     = LIFE_LENGTH
    };
    ucp_config_t *config;
    ucp_context_h context;
    ucp_mem_h memh;
    int i;

    if ((config_read(NULL, NULL, &config) != UCS_OK) ||
        (init(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context) !=
         UCS_OK)) {
        life_fail("UCP cannot be initialized");
    }
    for (i = 0; i < 4; ++i) {
        if ((map(context, &map_params, &memh) != UCS_OK) ||
            (unmap(context, memh) != UCS_OK)) {
            life_fail("UCP cannot map");
        }
    }
}

static void *life_ucp_load(void)
{
    void *ucp = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);

    if (ucp == NULL) {
        life_fail("%s", dlerror());
    }
    return ucp;
}

static int life_inside_dlclose(void)
{
    void *ucp = life_ucp_load();

    life_ucp_start(ucp);
    life_proc_await_helper();

    dlclose(ucp);
    if (dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD) != NULL) {
        life_fail("libucp stays loaded");
    }
    /* An event for the helper that is left */
    munmap(life_map(LIFE_LENGTH), LIFE_LENGTH);
    return 0;
}

/* Not by UCP, whose own threads keep a process that its first one leaves; but
 * it tells which UCX this is */
static void life_inside_use(void)
{
    void *buffer = life_map(LIFE_LENGTH);
    uct_md_h md;
    int i;

    life_ucp_load();
    md = life_domain_open_bare();
    for (i = 0; i < 4; ++i) {
        life_use(md, buffer, LIFE_LENGTH);
    }
    life_proc_await_helper();
}

static void *life_inside_worker(void *arg)
{
    while (!life_proc_is_left()) {
        sched_yield();
    }
    life_inside_use();
    return NULL;
}

int life_inside(const char *what)
{
    pthread_t thread;

    if (!strcmp(what, life_end_names[LIFE_END_DLCLOSE])) {
        return life_inside_dlclose();
    }

    if (!strcmp(what, life_end_names[LIFE_END_LEAVE])) {
        life_inside_use();
    } else if (pthread_create(&thread, NULL, life_inside_worker, NULL) != 0) {
        life_fail("no thread");
    }
    pthread_exit(NULL);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * The loader's locks are the program's: symbolizers, crash reporters and
 * profilers hold one in a callback of dl_iterate_phdr(), a library's constructor
 * runs under the other. There they may communicate, fork, end the program or wait
 * for a thread that does.
 */
#include "attack.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLBACKS     3
#define FIRST_TRIES   12
#define FIRST_MS      5000
#define FIRST_CRASHES 8
#define MODULE        "/.libs/attack_module.so"

/* What is done while the lock is held, and where */
static void (*inside)(uct_md_h md);
static uct_md_h domain;
static char *buffer;

static int callback(struct dl_phdr_info *info, size_t size, void *arg)
{
    inside(domain);
    return 1;
}

/* The helper has plans by then, and comes again and again */
static void call_back(uct_md_h md, void (*what)(uct_md_h md))
{
    unsigned i;

    domain = md;
    inside = what;
    buffer = attack_map(ATTACK_SIZE);
    attack_use_often(md, buffer, ATTACK_SIZE);
    for (i = 0; i < CALLBACKS; ++i) {
        attack_sleep(2 * i);
        dl_iterate_phdr(callback, NULL);
        attack_use_often(md, buffer, ATTACK_SIZE);
    }
}

static void use_old_and_new(uct_md_h md)
{
    char *fresh = attack_map(2 * ATTACK_SIZE);

    attack_use(md, buffer, ATTACK_SIZE);
    attack_use_often(md, fresh, 2 * ATTACK_SIZE);
    if ((madvise(fresh, ATTACK_SIZE, MADV_DONTNEED) != 0) ||
        (munmap(fresh + ATTACK_SIZE, ATTACK_SIZE) != 0)) {
        attack_die("memory does not go: %m");
    }
    attack_use(md, fresh, ATTACK_SIZE);
    fresh = mremap(fresh, ATTACK_SIZE, 2 * ATTACK_SIZE, MREMAP_MAYMOVE);
    if (fresh == MAP_FAILED) {
        attack_die("memory does not move: %m");
    }
    attack_use(md, fresh, 2 * ATTACK_SIZE);
    munmap(fresh, 2 * ATTACK_SIZE);
}

static void fork_a_child(uct_md_h md)
{
    pid_t child;
    int status;

    child = fork();
    if (child == 0) {
        _exit(7);
    }
    if ((waitpid(child, &status, 0) != child) || !WIFEXITED(status) ||
        (WEXITSTATUS(status) != 7)) {
        attack_die("no child");
    }
}

static void end_silently(uct_md_h md)
{
    exit(5);
}

static void end_the_program(uct_md_h md)
{
    puts("ends in a callback");
    end_silently(md);
}

static void become_another(uct_md_h md)
{
    execl("/bin/sh", "sh", "-c", "echo another program", NULL);
    attack_die("no shell: %m");
}

/* All that a program may ask for. To open a domain loads nothing, for one was
 * opened before. */
static void *all_main(void *arg)
{
    uct_md_h md = arg;
    uct_md_h other;

    use_old_and_new(md);
    fork_a_child(md);
    other = attack_open();
    use_old_and_new(other);
    uct_md_close(other);
    return NULL;
}

static void wait_for_all(uct_md_h md)
{
    pthread_t thread;

    if ((pthread_create(&thread, NULL, all_main, md) != 0) ||
        (pthread_join(thread, NULL) != 0)) {
        attack_die("no thread");
    }
}

ATTACK(callback_uses, md)
{
    call_back(md, use_old_and_new);
}

ATTACK(callback_forks, md)
{
    call_back(md, fork_a_child);
}

ATTACK(callback_ends, md)
{
    call_back(md, end_the_program);
}

ATTACK(callback_becomes_another, md)
{
    call_back(md, become_another);
}

ATTACK(callback_waits, md)
{
    call_back(md, wait_for_all);
}

/* What the module's constructor calls */
void attack_construct(void);

void attack_construct(void)
{
    use_old_and_new(domain);
    fork_a_child(domain);
    wait_for_all(domain);
}

ATTACK(constructor, md)
{
    char path[PATH_MAX + sizeof(MODULE)], *folder;
    ssize_t length;

    length = readlink("/proc/self/exe", path, PATH_MAX);
    if (length < 0) {
        attack_die("no path: %m");
    }
    path[length] = '\0';
    folder       = dirname(path);
    if (folder != path) {
        attack_die("no folder");
    }
    strcat(path, MODULE);

    domain = md;
    buffer = attack_map(ATTACK_SIZE);
    attack_use_often(md, buffer, ATTACK_SIZE);
    if (dlopen(path, RTLD_NOW) == NULL) {
        attack_die("%s", dlerror());
    }
    attack_use_often(md, buffer, ATTACK_SIZE);
}

/*
 * A thread opens the first domain while another one is in a callback
 */

static void *first_main(void *arg)
{
    attack_sleep(*(unsigned*)arg);
    domain = attack_open();
    use_old_and_new(domain);
    return NULL;
}

static void use_the_first(uct_md_h md)
{
    char *own = attack_map(ATTACK_SIZE);

    attack_use_often(attack_open(), own, ATTACK_SIZE);
}

static int first_callback(struct dl_phdr_info *info, size_t size, void *arg)
{
    attack_sleep(FIRST_TRIES / 2);
    inside(NULL);
    return 1;
}

/* In a process of its own: the callback lasts for half the time in which the thread
 * begins */
static void first_child(unsigned late)
{
    pthread_t thread;

    buffer = attack_map(ATTACK_SIZE);
    if (pthread_create(&thread, NULL, first_main, &late) != 0) {
        attack_die("no thread");
    }
    dl_iterate_phdr(first_callback, NULL);
    pthread_join(thread, NULL);
    exit(0);
}

/* @return How it has ended, as of waitpid(); SIGKILL: it never did */
static int first_status(pid_t child)
{
    unsigned waited;
    int status;

    for (waited = 0; waited < FIRST_MS; ++waited) {
        if (waitpid(child, &status, WNOHANG) == child) {
            return status;
        }
        attack_sleep(1);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return status;
}

/* UCX itself crashes now and then when its destructors run while a thread opens a
 * domain: such a child begins again. One that hangs does not. */
static int first_has_ended(unsigned late)
{
    unsigned crashes = 0;
    int status;
    pid_t child;

    do {
        child = fork();
        if (child == 0) {
            first_child(late);
        }
        status = first_status(child);
    } while (WIFSIGNALED(status) && (WTERMSIG(status) != SIGKILL) &&
             (inside == end_silently) && (++crashes < FIRST_CRASHES));
    return WIFEXITED(status);
}

/* UCX has loaded its own modules by then */
static void begin_with(void (*what)(uct_md_h md))
{
    unsigned ended = 0, i, count;
    uct_component_h *components;

    if (uct_query_components(&components, &count) != UCS_OK) {
        attack_die("no components");
    }
    uct_release_component_list(components);
    inside = what;
    for (i = 0; i < FIRST_TRIES; ++i) {
        ended += first_has_ended(i);
    }
    printf("%u of %u have ended\n", ended, FIRST_TRIES);
}

ATTACK_BEFORE(first_exit, md)
{
    begin_with(end_silently);
}

ATTACK_BEFORE(first_fork, md)
{
    begin_with(fork_a_child);
}

ATTACK_BEFORE(first_use, md)
{
    begin_with(use_the_first);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include "monitor.h"
#include <ucs/sys/log.h>
#include "monitor_reader.h"
#include "uffd.h"
#include "watched.h"

#include <ucs/sys/atomic.h>

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

/* This lock protects the number of users and the reader's life. It is taken
 * with nothing held, and by fork. The reader never takes it, nor does a memory
 * event. */
static pthread_mutex_t uct_helper_monitor_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t uct_helper_monitor_once  = PTHREAD_ONCE_INIT;
static unsigned uct_helper_monitor_users;

/* -1: nothing is watched */
static _Atomic(int) uct_helper_monitor_fd = -1;

/* [R-WATCH] The file of the descriptor, which is written before the
 * descriptor. */
static struct stat uct_helper_monitor_file;


/* The program may have closed the descriptor, or put its own in place of it. It
 * may do so again between this and what follows; a userfaultfd's requests mean
 * nothing to another file. */
static int uct_helper_monitor_is_ours(int fd)
{
    struct stat file;

    return (fd >= 0) && (fstat(fd, &file) == 0) &&
           (file.st_dev == uct_helper_monitor_file.st_dev) &&
           (file.st_ino == uct_helper_monitor_file.st_ino);
}

static void uct_helper_monitor_complain(int fd)
{
    static _Atomic(int) said;

    if (ucs_add_relaxed(&said, 1) == 0) {
        ucs_helper_warn("the program has closed or replaced descriptor %d, by "
                        "which memory is watched: what is communicated for the "
                        "first time from now on is registered only while it is "
                        "in use",
                        fd);
    }
}

/* @return The descriptor for a request, or -1 */
static int uct_helper_monitor_get_fd(void)
{
    /* [R-WATCH] The acquire pairs with the release in
     * uct_helper_monitor_create(). */
    int fd = ucs_load_acquire(&uct_helper_monitor_fd);

    return uct_helper_monitor_is_ours(fd) ? fd : -1;
}

/* The lock is held. The reader keeps the file. */
static void uct_helper_monitor_close(void)
{
    int fd = uct_helper_monitor_get_fd();

    ucs_store_relaxed(&uct_helper_monitor_fd, -1);
    if (fd >= 0) {
        close(fd);
    }
}

/* The lock is held. */
static ucs_status_t uct_helper_monitor_create(const char **reason_p)
{
    int fd;

    fd = uct_helper_uffd_open(reason_p);
    if (fd < 0) {
        return UCS_ERR_UNSUPPORTED;
    }

    if ((fstat(fd, &uct_helper_monitor_file) != 0) ||
        !uct_helper_reader_start(fd, reason_p)) {
        close(fd);
        return UCS_ERR_NO_RESOURCE;
    }

    uct_helper_watched_clear();
    ucs_store_release(&uct_helper_monitor_fd, fd); /* [R-WATCH] */
    return UCS_OK;
}

static void uct_helper_monitor_prepare(void)
{
    pthread_mutex_lock(&uct_helper_monitor_lock);
}

static void uct_helper_monitor_parent(void)
{
    pthread_mutex_unlock(&uct_helper_monitor_lock);
}

/* The child has neither reader nor watched memory; its copy of the descriptor
 * would keep the parent's alive */
static void uct_helper_monitor_child(void)
{
    uct_helper_monitor_close();
    uct_helper_monitor_forget();
}

static void uct_helper_monitor_at_fork(void)
{
    pthread_atfork(uct_helper_monitor_prepare, uct_helper_monitor_parent,
                   uct_helper_monitor_child);
}

/* A child that no handler saw may share its table of descriptors with its
 * parent, so none is closed here */
void uct_helper_monitor_forget(void)
{
    pthread_mutex_init(&uct_helper_monitor_lock, NULL);
    uct_helper_monitor_users = 0;
    ucs_store_relaxed(&uct_helper_monitor_fd, -1);
    uct_helper_reader_forget();
    uct_helper_watched_forget();
}

ucs_status_t uct_helper_monitor_start(const char **reason_p)
{
    ucs_status_t status = UCS_OK;

    pthread_once(&uct_helper_monitor_once, uct_helper_monitor_at_fork);
    pthread_mutex_lock(&uct_helper_monitor_lock);
    if (uct_helper_monitor_users == 0) {
        status = uct_helper_monitor_create(reason_p);
    }
    uct_helper_monitor_users += (status == UCS_OK);
    pthread_mutex_unlock(&uct_helper_monitor_lock);
    return status;
}

void uct_helper_monitor_stop(void)
{
    pthread_mutex_lock(&uct_helper_monitor_lock);
    if (--uct_helper_monitor_users == 0) {
        uct_helper_monitor_close();
        uct_helper_reader_stop();
        uct_helper_watched_clear();
    }
    pthread_mutex_unlock(&uct_helper_monitor_lock);
}

/* Memory that touches the range may be watched by another userfaultfd: then the
 * range is watched alone. @return Nonzero if the range is watched. */
static int uct_helper_monitor_watch_row(int fd, const uct_helper_range_t *range)
{
    if (range->is_anonymous &&
        uct_helper_uffd_watch(fd, range->run_start, range->run_end)) {
        uct_helper_watched_add(range->run_start, range->run_end);
        return 1;
    }

    if (!uct_helper_uffd_watch(fd, range->start, range->end)) {
        return 0;
    }

    uct_helper_watched_add(range->start, range->end);
    return 1;
}

int uct_helper_monitor_watch(const uct_helper_range_t *range)
{
    int fd = uct_helper_monitor_get_fd();

    if (fd < 0) {
        fd = ucs_load_relaxed(&uct_helper_monitor_fd);
        if (fd >= 0) {
            uct_helper_monitor_complain(fd);
        }
        return 0;
    }

    return uct_helper_monitor_watch_row(fd, range);
}

static void uct_helper_monitor_spread_one(uintptr_t start, uintptr_t end,
                                          void *arg)
{
    uct_helper_range_t range;

    if ((uct_helper_range_find(UCT_HELPER_RANGE_WAY_QUERY, start, end, &range) <
         UCT_HELPER_RANGE_HOLE) &&
        range.is_anonymous) {
        (void)uct_helper_monitor_watch_row(*(int*)arg, &range);
    }
}

/* Reading all mappings at each call would be too slow for a program that has
 * many: under a kernel that cannot be asked for one, this mapping is watched
 * alone. A range that was to be moved and was not may have holes. */
void uct_helper_monitor_spread(uintptr_t start, uintptr_t end)
{
    uct_helper_range_t range = {.start = start, .end = end};
    int fd;

    if ((ucs_load_relaxed(&uct_helper_monitor_fd) < 0) ||
        !uct_helper_watched_any(start, end, 1)) {
        return;
    }

    fd = uct_helper_monitor_get_fd();
    if ((fd >= 0) &&
        !uct_helper_range_each_within(start, end, uct_helper_monitor_spread_one,
                                      &fd)) {
        (void)uct_helper_monitor_watch_row(fd, &range);
    }
}

void uct_helper_monitor_spread_beside(uintptr_t start, uintptr_t end)
{
    int fd;

    if ((ucs_load_relaxed(&uct_helper_monitor_fd) < 0) ||
        !uct_helper_watched_any(start, end, 1)) {
        return;
    }

    fd = uct_helper_monitor_get_fd();
    if (fd >= 0) {
        (void)uct_helper_range_each_within(start - 1, start,
                                           uct_helper_monitor_spread_one, &fd);
        (void)uct_helper_range_each_within(end, end + 1,
                                           uct_helper_monitor_spread_one, &fd);
    }
}

void uct_helper_monitor_unwatch(uintptr_t start, uintptr_t end)
{
    int fd;

    if ((ucs_load_relaxed(&uct_helper_monitor_fd) < 0) ||
        !uct_helper_watched_any(start, end, 0)) {
        return;
    }

    fd = uct_helper_monitor_get_fd();
    if ((fd >= 0) && uct_helper_uffd_unwatch(fd, start, end)) {
        uct_helper_watched_remove(start, end);
    }
}

void uct_helper_monitor_unwatch_all(void)
{
    if (ucs_load_relaxed(&uct_helper_monitor_fd) >= 0) {
        uct_helper_watched_clear();
        uct_helper_reader_unwatch_all();
    }
}

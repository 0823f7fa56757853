/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "monitor.h"
#include "monitor_parts.h"

#include <ucs/sys/io/log.h>

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/math.h>

#include <pthread.h>

/* Protects the number of users and the reader's life. Taken with no lock held.
 * Neither the reader nor a memory event nor a fork takes it. */
static pthread_mutex_t uct_helper_monitor_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t uct_helper_monitor_once  = PTHREAD_ONCE_INIT;
static unsigned uct_helper_monitor_users;

/* None: nothing is watched. Another file refuses a userfaultfd's requests. */
static ucs_own_fd_t uct_helper_monitor_fd = UCS_OWN_FD_INIT;

/* The lock is held. @return NULL, or what was refused */
static const char *uct_helper_monitor_create(void)
{
    const char *reason = NULL;
    int fd             = uct_helper_uffd_open(&reason);

    if (fd < 0) {
        return reason;
    }

    uct_helper_watched_clear();
    if (!ucs_own_fd_set(&uct_helper_monitor_fd, fd)) {
        return "the descriptor of userfaultfd is closed";
    }

    reason = uct_helper_reader_start(&uct_helper_monitor_fd);
    if (reason != NULL) {
        ucs_own_fd_close(&uct_helper_monitor_fd);
    }
    return reason;
}

/* The child has no reader and no watched memory. Its copy of the descriptor
 * would keep the parent's open. */
static void uct_helper_monitor_child(void)
{
    ucs_own_fd_close(&uct_helper_monitor_fd);
    uct_helper_range_let_go();
    uct_helper_monitor_forget();
}

static void uct_helper_monitor_at_fork(void)
{
    pthread_atfork(NULL, NULL, uct_helper_monitor_child);
}

/* Closes nothing: a child without fork handlers may share its table of
 * descriptors with its parent */
void uct_helper_monitor_forget(void)
{
    pthread_mutex_init(&uct_helper_monitor_lock, NULL);
    uct_helper_monitor_users = 0;
    ucs_own_fd_forget(&uct_helper_monitor_fd);
    uct_helper_range_forget();
    uct_helper_reader_forget();
    uct_helper_watched_forget();
}

const char *uct_helper_monitor_start(void)
{
    const char *reason = NULL;

    pthread_once(&uct_helper_monitor_once, uct_helper_monitor_at_fork);
    pthread_mutex_lock(&uct_helper_monitor_lock);
    if (uct_helper_monitor_users == 0) {
        reason = uct_helper_monitor_create();
    }
    uct_helper_monitor_users += (reason == NULL);
    pthread_mutex_unlock(&uct_helper_monitor_lock);
    return reason;
}

void uct_helper_monitor_stop(void)
{
    pthread_mutex_lock(&uct_helper_monitor_lock);
    if (--uct_helper_monitor_users == 0) {
        ucs_own_fd_close(&uct_helper_monitor_fd); /* the reader keeps the file */
        uct_helper_reader_stop();
        uct_helper_watched_clear();
    }
    pthread_mutex_unlock(&uct_helper_monitor_lock);
}

/* If another userfaultfd watches memory that touches the range, only the range
 * is watched and noted. @return Nonzero if the range is watched. */
static int uct_helper_monitor_watch_row(int fd, uct_helper_range_t *range)
{
    if (range->is_anonymous &&
        uct_helper_uffd_watch(fd, range->run_start, range->run_end)) {
        uct_helper_watched_add(range->run_start, range->run_end);
        return 1;
    }

    range->kept     = ucs_max(range->kept, range->start);
    range->kept_end = range->end;
    if (!uct_helper_uffd_watch(fd, range->start, range->end)) {
        return 0;
    }

    uct_helper_watched_add(range->start, range->end);
    return 1;
}

int uct_helper_monitor_watch(uct_helper_range_t *range)
{
    static _Atomic(int) said;
    int fd = ucs_own_fd_get(&uct_helper_monitor_fd);

    if (fd >= 0) {
        return uct_helper_monitor_watch_row(fd, range);
    }

    fd = ucs_own_fd_number(&uct_helper_monitor_fd);
    if ((fd >= 0) && (ucs_add_relaxed(&said, 1) == 0)) {
        ucs_helper_warn("the program has closed or replaced descriptor %d, "
                        "which watches memory: new buffers are registered only "
                        "while they are in use",
                        fd);
    }
    return 0;
}

/* @return The descriptor, or -1 if there is nothing to do: no memory is watched
 * within @a beside bytes of the range */
static int uct_helper_monitor_fd_near(uintptr_t start, uintptr_t end,
                                      unsigned beside)
{
    return ((ucs_own_fd_number(&uct_helper_monitor_fd) >= 0) &&
            uct_helper_watched_any(start, end, beside)) ?
                   ucs_own_fd_get(&uct_helper_monitor_fd) :
                   -1;
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

/* If the kernel cannot be asked for a single mapping, only this one is watched:
 * reading all mappings at each call would be too slow. */
int uct_helper_monitor_spread(uintptr_t start, uintptr_t end,
                              uct_helper_range_t *range_p)
{
    int fd = uct_helper_monitor_fd_near(start, end, 1);
    uct_helper_range_kind_t kind;

    if (fd < 0) {
        return 0;
    }

    kind = uct_helper_range_find(UCT_HELPER_RANGE_WAY_QUERY, start, end,
                                 range_p);
    if (kind == UCT_HELPER_RANGE_UNKNOWN) {
        range_p->start = start;
        range_p->end   = end;
    } else if (!range_p->is_anonymous) {
        /* It may have holes, if a move of it failed */
        uct_helper_range_each_within(start, end, uct_helper_monitor_spread_one,
                                     &fd);
        return 0;
    }
    return uct_helper_monitor_watch_row(fd, range_p) &&
           (kind == UCT_HELPER_RANGE_PRIVATE);
}

void uct_helper_monitor_spread_beside(uintptr_t start, uintptr_t end)
{
    int fd = uct_helper_monitor_fd_near(start, end, 1);

    if (fd >= 0) {
        uct_helper_range_each_within(start - 1, start,
                                     uct_helper_monitor_spread_one, &fd);
        uct_helper_range_each_within(end, end + 1,
                                     uct_helper_monitor_spread_one, &fd);
    }
}

void uct_helper_monitor_unwatch(uintptr_t start, uintptr_t end)
{
    int fd = uct_helper_monitor_fd_near(start, end, 0);

    if ((fd >= 0) && uct_helper_uffd_unwatch(fd, start, end)) {
        uct_helper_watched_remove(start, end);
    }
}

void uct_helper_monitor_unwatch_all(void)
{
    if (ucs_own_fd_number(&uct_helper_monitor_fd) >= 0) {
        uct_helper_watched_clear();
        uct_helper_reader_unwatch_all();
    }
}

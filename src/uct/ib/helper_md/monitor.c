/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include "monitor.h"
#include "events.h"
#include "spawn.h"

#include <ucs/sys/atomic.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#  define UFFD_USER_MODE_ONLY 1
#endif

#define UCT_HELPER_MONITOR_STACK_SIZE (256ul << 10)
#define UCT_HELPER_MONITOR_BATCH      16
#define UCT_HELPER_MONITOR_KEPT_MAX   32
#define UCT_HELPER_MONITOR_RETRY_MS   1

/* EVENT_FORK is not asked for: a child's memory is not watched, and so fork()
 * does not wait for the reader either */
#define UCT_HELPER_MONITOR_FEATURES \
    (UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE | \
     UFFD_FEATURE_EVENT_REMAP)

const char *uct_helper_monitor_names[] = {
    [UCT_HELPER_MONITOR_AUTO]        = "auto",
    [UCT_HELPER_MONITOR_UCM]         = "ucm",
    [UCT_HELPER_MONITOR_USERFAULTFD] = "userfaultfd",
    [UCT_HELPER_MONITOR_BOTH]        = "both",
    [UCT_HELPER_MONITOR_LAST]        = NULL
};

/* Events that the reader has taken and that an engine was too busy for. More
 * than fits becomes "everything". The reader's own. */
typedef struct uct_helper_monitor_kept {
    unsigned count;
    struct {
        uintptr_t address;
        size_t    length;
    } events[UCT_HELPER_MONITOR_KEPT_MAX];
} uct_helper_monitor_kept_t;

/* Protects users and the reader's life. Taken with nothing held, and by fork.
 * The reader never takes it, nor does a memory event. */
static pthread_mutex_t uct_helper_monitor_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t uct_helper_monitor_once  = PTHREAD_ONCE_INIT;
static unsigned uct_helper_monitor_users;
static pthread_t uct_helper_monitor_reader;
static int uct_helper_monitor_stop_fd = -1;

/* -1: nothing is watched */
static _Atomic(int) uct_helper_monitor_fd = -1;


/*
 * Reader
 */

static void uct_helper_monitor_keep(uct_helper_monitor_kept_t *kept,
                                    uintptr_t address, size_t length)
{
    if (kept->count == UCT_HELPER_MONITOR_KEPT_MAX) {
        kept->count = 0;
        address     = 0;
        length      = SIZE_MAX;
    }

    kept->events[kept->count].address = address;
    kept->events[kept->count].length  = length;
    ++kept->count;
}

static void uct_helper_monitor_take(uct_helper_monitor_kept_t *kept,
                                    const struct uffd_msg *message)
{
    switch (message->event) {
    case UFFD_EVENT_REMAP:
        /* Where it went nothing of ours can be, unless an event was missed */
        uct_helper_monitor_keep(kept, message->arg.remap.to,
                                message->arg.remap.len);
        uct_helper_monitor_keep(kept, message->arg.remap.from,
                                message->arg.remap.len);
        break;
    case UFFD_EVENT_REMOVE:
    case UFFD_EVENT_UNMAP:
        uct_helper_monitor_keep(kept, message->arg.remove.start,
                                message->arg.remove.end -
                                message->arg.remove.start);
        break;
    default:
        break;
    }
}

static void uct_helper_monitor_pass(uct_helper_monitor_kept_t *kept)
{
    while ((kept->count > 0) &&
           uct_helper_events_try_pass(kept->events[kept->count - 1].address,
                                      kept->events[kept->count - 1].length)) {
        --kept->count;
    }
}

/* @return Zero if the descriptor is of no use any more: the program has closed
 *         what it does not know */
static int uct_helper_monitor_read(int fd, uct_helper_monitor_kept_t *kept)
{
    struct uffd_msg messages[UCT_HELPER_MONITOR_BATCH];
    ssize_t length, i;

    while ((length = read(fd, messages, sizeof(messages))) > 0) {
        for (i = 0; i < length / (ssize_t)sizeof(messages[0]); ++i) {
            uct_helper_monitor_take(kept, &messages[i]);
        }
        uct_helper_monitor_pass(kept);
    }
    return (length < 0) && ((errno == EAGAIN) || (errno == EINTR));
}

/* What is watched no more must not stay registered: the reason is of no
 * matter, all goes */
static void uct_helper_monitor_lost(uct_helper_monitor_kept_t *kept)
{
    ucs_store_release(&uct_helper_monitor_fd, -1); /* [R-WATCH] */
    kept->count = 0;
    uct_helper_monitor_keep(kept, 0, SIZE_MAX);
}

static void *uct_helper_monitor_main(void *arg)
{
    uct_helper_monitor_kept_t kept = {.count = 0};
    int fd                         = ucs_load_relaxed(&uct_helper_monitor_fd);
    struct pollfd fds[2] = {
        {.fd = fd, .events = POLLIN},
        {.fd = (int)(intptr_t)arg, .events = POLLIN}
    };
    int is_lost = 0;

    uct_helper_spawn_enter();
    for (;;) {
        poll(fds, 2, (kept.count > 0) ? UCT_HELPER_MONITOR_RETRY_MS : -1);
        if (fds[1].revents != 0) {
            break;
        }

        /* Nobody who unmapped what is read here comes back before the gates
         * are shut, and then they stay so until it has been passed on */
        uct_helper_events_shut();
        if (!is_lost && !uct_helper_monitor_read(fd, &kept)) {
            uct_helper_monitor_lost(&kept);
            fds[0].fd = -1;
            is_lost   = 1;
        }
        uct_helper_monitor_pass(&kept);
        if (kept.count == 0) {
            uct_helper_events_open();
        }
    }

    uct_helper_events_open();
    /* Here, not in who joins: glibc gives the pages of this thread's stack back
     * at its end, and if those are watched (a mapping that lies next to it was
     * merged with it) it would wait for itself */
    if (!is_lost) {
        close(fd);
    }
    uct_helper_spawn_leave();
    return NULL;
}

/*
 * Life
 */

/* Faults in the kernel's own accesses need privileges. There are no faults. */
static int uct_helper_monitor_open(const char **reason_p)
{
    struct uffdio_api api = {
        .api      = UFFD_API,
        .features = UCT_HELPER_MONITOR_FEATURES
    };
    int fd;

    fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if ((fd < 0) && (errno == EINVAL)) {
        fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    }
    if (fd < 0) {
        *reason_p = (errno == ENOSYS) ? "the kernel has no userfaultfd" :
                    (errno == EPERM)  ? "userfaultfd is not permitted" :
                                        "userfaultfd is refused";
        return -1;
    }

    if (ioctl(fd, UFFDIO_API, &api) != 0) {
        *reason_p = "userfaultfd does not report unmapped memory";
        close(fd);
        return -1;
    }

    return fd;
}

static int uct_helper_monitor_register(int fd, uintptr_t start, uintptr_t end)
{
    struct uffdio_register range = {
        .range = {.start = start, .len = end - start},
        .mode  = UFFDIO_REGISTER_MODE_WP
    };

    return (ioctl(fd, UFFDIO_REGISTER, &range) == 0);
}

/* Some processors have no write protection by userfaultfd, and a filter may let
 * the call pass and not the ioctl: one try tells */
static int uct_helper_monitor_probe(int fd)
{
    size_t length = sysconf(_SC_PAGESIZE);
    struct uffdio_range range;
    void *page;
    int works;

    page = mmap(NULL, length, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return 0;
    }

    range.start = (uintptr_t)page;
    range.len   = length;
    works       = uct_helper_monitor_register(fd, range.start,
                                              range.start + length) &&
                  (ioctl(fd, UFFDIO_UNREGISTER, &range) == 0);
    munmap(page, length);
    return works;
}

static int uct_helper_monitor_spawn(int stop_fd)
{
    int ret;

    ret = uct_helper_spawn(&uct_helper_monitor_reader,
                           UCT_HELPER_MONITOR_STACK_SIZE,
                           uct_helper_monitor_main, (void*)(intptr_t)stop_fd);
    if (ret == 0) {
        pthread_setname_np(uct_helper_monitor_reader,
                           UCT_HELPER_MONITOR_THREAD_NAME);
    }
    return ret;
}

/* Under the lock */
static ucs_status_t uct_helper_monitor_create(const char **reason_p)
{
    ucs_status_t status = UCS_ERR_UNSUPPORTED;
    int fd;

    fd = uct_helper_monitor_open(reason_p);
    if (fd < 0) {
        goto err;
    }

    if (!uct_helper_monitor_probe(fd)) {
        *reason_p = "userfaultfd cannot watch memory without protecting it";
        goto err_close;
    }

    status                     = UCS_ERR_NO_RESOURCE;
    uct_helper_monitor_stop_fd = eventfd(0, EFD_CLOEXEC);
    if (uct_helper_monitor_stop_fd < 0) {
        *reason_p = "no file descriptor is left for userfaultfd";
        goto err_close;
    }

    ucs_store_release(&uct_helper_monitor_fd, fd); /* [R-WATCH] */
    if (uct_helper_monitor_spawn(uct_helper_monitor_stop_fd) != 0) {
        *reason_p = "a thread for userfaultfd is refused";
        goto err_close_stop;
    }

    return UCS_OK;

err_close_stop:
    ucs_store_release(&uct_helper_monitor_fd, -1); /* [R-WATCH] */
    close(uct_helper_monitor_stop_fd);
    uct_helper_monitor_stop_fd = -1;
err_close:
    close(fd);
err:
    return status;
}

static void uct_helper_monitor_prepare(void)
{
    pthread_mutex_lock(&uct_helper_monitor_lock);
}

static void uct_helper_monitor_parent(void)
{
    pthread_mutex_unlock(&uct_helper_monitor_lock);
}

/* The child has neither reader nor watched memory; its copies of the
 * descriptors would keep the parent's alive */
static void uct_helper_monitor_child(void)
{
    int fd = ucs_load_relaxed(&uct_helper_monitor_fd);

    if (uct_helper_monitor_users > 0) {
        if (fd >= 0) {
            close(fd);
        }
        close(uct_helper_monitor_stop_fd);
    }
    ucs_store_relaxed(&uct_helper_monitor_fd, -1);
    uct_helper_monitor_stop_fd = -1;
    uct_helper_monitor_users   = 0;
    pthread_mutex_unlock(&uct_helper_monitor_lock);
}

static void uct_helper_monitor_at_fork(void)
{
    pthread_atfork(uct_helper_monitor_prepare, uct_helper_monitor_parent,
                   uct_helper_monitor_child);
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
    uint64_t one = 1;

    pthread_mutex_lock(&uct_helper_monitor_lock);
    if (--uct_helper_monitor_users == 0) {
        /* Cannot fail: the counter is 0 */
        if (write(uct_helper_monitor_stop_fd, &one, sizeof(one)) > 0) {
            pthread_join(uct_helper_monitor_reader, NULL);
        }
        ucs_store_release(&uct_helper_monitor_fd, -1); /* [R-WATCH] */
        close(uct_helper_monitor_stop_fd);
        uct_helper_monitor_stop_fd = -1;
    }
    pthread_mutex_unlock(&uct_helper_monitor_lock);
}

int uct_helper_monitor_watch(uintptr_t start, uintptr_t end)
{
    /* acquire [R-WATCH]: pairs with the release of who changes it */
    int fd = ucs_load_acquire(&uct_helper_monitor_fd);

    return (fd >= 0) && uct_helper_monitor_register(fd, start, end);
}

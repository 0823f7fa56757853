/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "monitor_parts.h"
#include "events.h"
#include "monitor.h"

#include <ucs/sys/proc/spawn.h>

#include <ucs/sys/mem/own_map.h>
#include <ucs/sys/sync/atomic.h>

#include <linux/close_range.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first: events that are read at once, on the stack. The second: events
 * that are kept for a busy cache; more become "everything", with half as many
 * when 16 come within a retry. The third: milliseconds until they are tried
 * again; an unmapping thread waits for it, an index lock is held for
 * microseconds. */
#define UCT_HELPER_READER_BATCH      16
#define UCT_HELPER_READER_KEPT_MAX   32
#define UCT_HELPER_READER_RETRY_MS   1
#define UCT_HELPER_READER_STACK_SIZE (256ul << 10)

typedef struct uct_helper_reader_event {
    uintptr_t address;
    size_t    length;
    int       is_gone;  /* the kernel has unmapped it */
    int       is_noted; /* watched.c knows, or need not */
} uct_helper_reader_event_t;

/* Events that the reader has taken and not passed on yet. Used by the reader
 * only. */
typedef struct uct_helper_reader_kept {
    unsigned                  count;
    uct_helper_reader_event_t events[UCT_HELPER_READER_KEPT_MAX];
} uct_helper_reader_kept_t;

static ucs_spawned_t uct_helper_reader_thread;
static sem_t uct_helper_reader_ready;
static const char *uct_helper_reader_reason; /* why not; written before it is ready */
static _Atomic(int) uct_helper_reader_is_stopped;
static _Atomic(int) uct_helper_reader_must_unwatch;

/* The bell is a watched page that no thread uses. Unmapping it makes an event
 * that wakes the reader, without a descriptor that the program could close.
 * NULL while the reader is awake and has not put up a new one. */
static _Atomic(void*) uct_helper_reader_bell;

/* Of what is still mapped, and of "everything", no note is removed */
static void uct_helper_reader_keep(uct_helper_reader_kept_t *kept,
                                   uintptr_t address, size_t length, int is_gone)
{
    if (kept->count == UCT_HELPER_READER_KEPT_MAX) {
        kept->count = 0;
        address     = 0;
        length      = SIZE_MAX;
        is_gone     = 0;
    }

    kept->events[kept->count++] = (uct_helper_reader_event_t){
            .address  = address,
            .length   = length,
            .is_gone  = is_gone,
            .is_noted = !is_gone};
}

static void uct_helper_reader_take(uct_helper_reader_kept_t *kept,
                                   const struct uffd_msg *message)
{
    switch (message->event) {
    case UFFD_EVENT_REMAP:
        /* Nothing is registered at the memory's new place, unless an event was
         * missed. */
        uct_helper_reader_keep(kept, message->arg.remap.to,
                               message->arg.remap.len, 1);
        uct_helper_reader_keep(kept, message->arg.remap.from,
                               message->arg.remap.len, 1);
        break;
    case UFFD_EVENT_REMOVE:
        uct_helper_reader_keep(kept, message->arg.remove.start,
                               message->arg.remove.end -
                               message->arg.remove.start, 0);
        break;
    case UFFD_EVENT_UNMAP:
        uct_helper_reader_keep(kept, message->arg.remove.start,
                               message->arg.remove.end -
                               message->arg.remove.start, 1);
        break;
    default:
        break;
    }
}

/* Moved memory is still watched at its new place. Without a note it may not be
 * joined with neighbours, no more. Nor is a note removed for what was read while
 * another thread held the notes: the thread that unmapped has gone on, and may have
 * noted what it mapped there next. A note too many only lets more be watched. */
static void uct_helper_reader_note(uct_helper_reader_kept_t *kept, int holds)
{
    unsigned i;

    for (i = 0; i < kept->count; ++i) {
        if (holds && !kept->events[i].is_noted) {
            uct_helper_watched_remove_held(kept->events[i].address,
                                           kept->events[i].address +
                                           kept->events[i].length);
        }
        kept->events[i].is_noted = 1;
    }
}

static void uct_helper_reader_pass(uct_helper_reader_kept_t *kept)
{
    while ((kept->count > 0) &&
           uct_helper_events_try_pass(kept->events[kept->count - 1].address,
                                      kept->events[kept->count - 1].length,
                                      kept->events[kept->count - 1].is_gone)) {
        --kept->count;
    }
}

/* @return As read() */
static ssize_t uct_helper_reader_read_some(int fd,
                                           uct_helper_reader_kept_t *kept)
{
    struct uffd_msg messages[UCT_HELPER_READER_BATCH];
    int holds = uct_helper_watched_try_hold();
    ssize_t length, i;

    length = read(fd, messages, sizeof(messages));
    for (i = 0; i < length / (ssize_t)sizeof(messages[0]); ++i) {
        uct_helper_reader_take(kept, &messages[i]);
    }
    uct_helper_reader_note(kept, holds);
    if (holds) {
        uct_helper_watched_let_go();
    }
    return length;
}

static void uct_helper_reader_read(int fd, uct_helper_reader_kept_t *kept)
{
    while (uct_helper_reader_read_some(fd, kept) > 0) {
        uct_helper_reader_pass(kept);
    }
}

/* Children do not get this mapping, so the kernel joins it with no other one. */
static void uct_helper_reader_put_up_bell(int fd)
{
    size_t length = sysconf(_SC_PAGESIZE);
    void *bell;

    if (ucs_load_relaxed(&uct_helper_reader_bell) != NULL) {
        return;
    }

    bell = ucs_own_map(length);
    if (bell == NULL) {
        return;
    }

    if ((syscall(SYS_madvise, bell, length, MADV_DONTFORK) != 0) ||
        !uct_helper_uffd_watch(fd, (uintptr_t)bell, (uintptr_t)bell + length)) {
        ucs_own_unmap(bell, length);
        return;
    }

    /* [R-BELL] The swap pairs with the one in uct_helper_reader_ring(): what a
     * thread wrote before it rang is seen by what the reader looks at next. */
    (void)ucs_swap_acq_rel(&uct_helper_reader_bell, bell);
}

static void uct_helper_reader_ring(void)
{
    /* [R-BELL] The swap pairs with the one in
     * uct_helper_reader_put_up_bell(). */
    void *bell = ucs_swap_acq_rel(&uct_helper_reader_bell, NULL);

    if (bell != NULL) {
        ucs_own_unmap(bell, sysconf(_SC_PAGESIZE));
    }
}

/* The thread gets a table of descriptors with only @a fd in it, so that from here on the
 * program cannot replace the file. Only copies are closed here. */
static int uct_helper_reader_set_apart(ucs_own_fd_t *own, int fd)
{
    return (syscall(SYS_close_range, fd + 1, ~0u, CLOSE_RANGE_UNSHARE) == 0) &&
           ((fd == 0) || (syscall(SYS_close_range, 0, fd - 1, 0) == 0)) &&
           (ucs_own_fd_get(own) >= 0);
}

/* Some processors have no write protection by userfaultfd, and a filter may refuse the
 * ioctl only: the bell shows it. @return NULL, or what was refused */
static const char *uct_helper_reader_begin(ucs_own_fd_t *own, int fd)
{
    if (!uct_helper_reader_set_apart(own, fd)) {
        return "a thread cannot have descriptors of its own";
    }
    uct_helper_reader_put_up_bell(fd);
    return (ucs_load_relaxed(&uct_helper_reader_bell) != NULL) ?
                   NULL : "userfaultfd cannot watch memory without protecting it";
}

void uct_helper_reader_unwatch_all(void)
{
    ucs_store_relaxed(&uct_helper_reader_must_unwatch, 1);
    uct_helper_reader_ring();
}

static void uct_helper_reader_loop(int fd)
{
    uct_helper_reader_kept_t kept = {.count = 0};
    struct pollfd poll_fd         = {.fd = fd, .events = POLLIN};
    uintptr_t bell;

    for (;;) {
        uct_helper_reader_put_up_bell(fd);
        if (ucs_load_relaxed(&uct_helper_reader_is_stopped)) {
            break;
        }
        if (ucs_load_relaxed(&uct_helper_reader_must_unwatch)) {
            ucs_store_relaxed(&uct_helper_reader_must_unwatch, 0);
            uct_helper_uffd_unwatch_all(fd);
            /* The bell has been unwatched with the rest. It is not unmapped: if it
             * is watched again by now, as part of a row, the reader would wait for
             * itself. */
            bell = (uintptr_t)ucs_load_relaxed(&uct_helper_reader_bell);
            if (bell != 0) {
                uct_helper_uffd_watch(fd, bell, bell + sysconf(_SC_PAGESIZE));
            }
            continue;
        }

        /* Without a bell the reader could not be woken. */
        poll(&poll_fd, 1,
             ((kept.count > 0) ||
              (ucs_load_relaxed(&uct_helper_reader_bell) == NULL)) ?
             UCT_HELPER_READER_RETRY_MS : -1);

        /* A thread that unmapped memory goes on only after the gates are shut,
         * and they stay shut until its event has been passed on. */
        uct_helper_events_shut();
        uct_helper_reader_read(fd, &kept);
        uct_helper_reader_pass(&kept);
        if (kept.count == 0) {
            uct_helper_events_open();
        }
    }

    uct_helper_events_open();
}

static void *uct_helper_reader_main(void *arg)
{
    uct_helper_reader_kept_t none = {.count = 0};
    ucs_own_fd_t *own             = arg;
    int fd                        = ucs_own_fd_number(own);
    const char *reason;

    ucs_spawn_enter();
    /* Another thread would open a file to name this one */
    pthread_setname_np(pthread_self(), UCT_HELPER_MONITOR_THREAD_NAME);
    reason = uct_helper_reader_begin(own, fd);
    uct_helper_reader_reason = reason;
    sem_post(&uct_helper_reader_ready);
    if (reason == NULL) {
        uct_helper_reader_loop(fd);
        /* The reader unwatches all memory itself: glibc gives this thread's stack
         * back at its end, and if that were watched it would wait for itself.
         * Closing is not enough: a child without fork handlers may have a copy. */
        uct_helper_uffd_unwatch_all(fd);
        uct_helper_reader_read(fd, &none);
        close(fd);
    }
    ucs_spawn_leave();
    return NULL;
}

const char *uct_helper_reader_start(ucs_own_fd_t *own)
{
    const char *reason = NULL;

    ucs_store_relaxed(&uct_helper_reader_is_stopped, 0);
    ucs_store_relaxed(&uct_helper_reader_must_unwatch, 0);
    sem_init(&uct_helper_reader_ready, 0, 0);
    if (ucs_spawn(&uct_helper_reader_thread, UCT_HELPER_READER_STACK_SIZE,
                  uct_helper_reader_main, own) != 0) {
        reason = "a thread for userfaultfd is refused";
    } else {
        while (sem_wait(&uct_helper_reader_ready) != 0) {
        }
        reason = uct_helper_reader_reason;
        if (reason != NULL) {
            (void)ucs_spawn_join(&uct_helper_reader_thread);
        }
    }
    if (reason != NULL) {
        sem_destroy(&uct_helper_reader_ready);
    }
    return reason;
}

void uct_helper_reader_stop(void)
{
    ucs_store_relaxed(&uct_helper_reader_is_stopped, 1);
    uct_helper_reader_ring();
    (void)ucs_spawn_join(&uct_helper_reader_thread);
    sem_destroy(&uct_helper_reader_ready);
    /* The reader may have put up another bell after it was rung. */
    uct_helper_reader_ring();
}

void uct_helper_reader_forget(void)
{
    ucs_store_relaxed(&uct_helper_reader_bell, NULL);
}

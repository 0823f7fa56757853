/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "pin_verify.h"

#include <ucm/api/ucm.h>
#include <ucs/debug/log_def.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>
#include <ucs/sys/own_fd.h>
#include <ucs/sys/own_map.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>


/* Compared at a time. Not on the stack: the program's threads may have small
 * ones. */
#define UCT_PIN_VERIFY_CHUNK (16ul << 10)

/* Pages compared between the first and the last of a sample */
#define UCT_PIN_VERIFY_SAMPLE_PAGES 8

/* Below the comparison's own frame, what the stack may be used for */
#define UCT_PIN_VERIFY_STACK (256ul << 10)

/* A difference must be there so often, and the device's byte the same */
#define UCT_PIN_VERIFY_ROUNDS 5

/* Memory events that are remembered, of the whole process; a power of two */
#define UCT_PIN_VERIFY_EVENTS 1024

/* After the helper's handler, which must not wait for this one */
#define UCT_PIN_VERIFY_EVENTS_PRIORITY 2000

/* Each field is written by the thread that drew the number; a reader takes an
 * entry that is being written over for what it is or was: a hint for a human */
typedef struct uct_pin_verify_event {
    _Atomic(uint64_t)  time; /* ns */
    _Atomic(uintptr_t) start;
    _Atomic(uintptr_t) end;
} uct_pin_verify_event_t;

static uct_pin_verify_event_t uct_pin_verify_events[UCT_PIN_VERIFY_EVENTS];
static _Atomic(uint64_t) uct_pin_verify_num_events;
static pthread_once_t uct_pin_verify_once = PTHREAD_ONCE_INIT;


/* Runs inside munmap() and the like: must not allocate, log or block */
static void uct_pin_verify_event(ucm_event_type_t type, ucm_event_t *event,
                                 void *arg)
{
    uint64_t number = ucs_add_relaxed(&uct_pin_verify_num_events, 1);
    uct_pin_verify_event_t *entry =
            &uct_pin_verify_events[number % UCT_PIN_VERIFY_EVENTS];
    uintptr_t start = (uintptr_t)event->vm_unmapped.address;

    (void)type;
    (void)arg;
    ucs_store_relaxed(&entry->start, start);
    ucs_store_relaxed(&entry->end, start + event->vm_unmapped.size);
    ucs_store_relaxed(&entry->time, ucs_clock_monotonic());
}

static void uct_pin_verify_listen(void)
{
    if (ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED,
                              UCT_PIN_VERIFY_EVENTS_PRIORITY,
                              uct_pin_verify_event, NULL) != UCS_OK) {
        ucs_diag("pin_md: no memory events, histories will lack them");
    }
}

void uct_pin_verify_init(void)
{
    pthread_once(&uct_pin_verify_once, uct_pin_verify_listen);
}

void uct_pin_verify_mark(uct_pin_region_t *region)
{
    region->time = ucs_clock_monotonic();
    region->tid  = syscall(SYS_gettid);
}

/* What the virtual address shows; pages that it cannot show are left as they
 * are in @a data. Not a plain copy: they may be gone, and that is no crime. By
 * the thread's number: the process's is that of its first thread, whose memory
 * is gone once it has left. */
static void uct_pin_verify_shown(uintptr_t address, unsigned char *data,
                                 size_t length, size_t page_size)
{
    pid_t self = syscall(SYS_gettid);
    struct iovec local, remote;
    ssize_t ret;
    size_t part;

    while (length > 0) {
        local.iov_base  = data;
        remote.iov_base = (void*)address;
        local.iov_len   = remote.iov_len = length;
        ret  = process_vm_readv(self, &local, 1, &remote, 1, 0);
        part = (ret > 0) ? (size_t)ret : page_size - (address % page_size);
        part = ucs_min(part, length);
        address += part;
        data    += part;
        length  -= part;
    }
}

/* One comparison */
typedef struct uct_pin_verify_run {
    uct_pin_region_t     *region;
    size_t               page_size;
    uintptr_t            frame;     /* stack frame of the comparison */
    unsigned char        *seen;     /* a chunk, through the registration */
    unsigned char        *shown;    /* a chunk, through the virtual address */
    uct_pin_difference_t difference; /* as found last */
} uct_pin_verify_run_t;

/* A buffer on the stack shares its first page with the very functions that
 * compare, whose frames change between one look and the other */
static int uct_pin_verify_is_own_stack(const uct_pin_verify_run_t *run,
                                       uintptr_t address)
{
    return (address < run->frame) &&
           (run->frame - address < UCT_PIN_VERIFY_STACK);
}

/* First difference in at most a chunk. @return Its offset or @a length. */
static size_t uct_pin_verify_look(uct_pin_verify_run_t *run, size_t offset,
                                  size_t length)
{
    uct_pin_region_t *region = run->region;
    uintptr_t address        = (uintptr_t)region->address + offset;
    unsigned char *seen      = run->seen;
    unsigned char *shown     = run->shown;
    size_t i;
    int ret;

    ret = uct_pin_region_copy(region, UCT_PIN_VIEW_READ, offset, seen, length);
    if (ret < 0) {
        ucs_error("pin_md: reading the registration of %p length %zu: %s",
                  region->address, region->length, strerror(-ret));
        return length;
    }

    memcpy(shown, seen, length);
    uct_pin_verify_shown(address, shown, length, run->page_size);
    if (!memcmp(seen, shown, length)) {
        return length;
    }

    for (i = 0; i < length; ++i) {
        if ((seen[i] != shown[i]) &&
            !uct_pin_verify_is_own_stack(run, address + i)) {
            run->difference.address = address + i;
            run->difference.seen    = seen[i];
            run->difference.shown   = shown[i];
            return i;
        }
    }

    return length;
}

/* A page that the registration has lost never follows what is written through
 * the virtual address. So a difference stands if it is there each time and the
 * device sees the same byte each time. */
static int uct_pin_verify_lasts(uct_pin_verify_run_t *run, size_t offset)
{
    unsigned char first = run->difference.seen;
    unsigned round;

    for (round = 1; round < UCT_PIN_VERIFY_ROUNDS; ++round) {
        sched_yield();
        if ((uct_pin_verify_look(run, offset, 1) != 0) ||
            (run->difference.seen != first)) {
            return 0;
        }
    }

    return 1;
}

/* @return Nonzero if there is a difference that lasts */
static int uct_pin_verify_chunk(uct_pin_verify_run_t *run, size_t offset,
                                size_t length)
{
    size_t found;

    while (length > 0) {
        found = uct_pin_verify_look(run, offset, length);
        if (found == length) {
            return 0;
        }
        if (uct_pin_verify_lasts(run, offset + found)) {
            return 1;
        }
        offset += found + 1;
        length -= found + 1;
    }

    return 0;
}

static int uct_pin_verify_page(uct_pin_verify_run_t *run, size_t page)
{
    return uct_pin_verify_chunk(run, page * run->page_size, run->page_size);
}

static int uct_pin_verify_all(uct_pin_verify_run_t *run)
{
    size_t offset, length;

    for (offset = 0; offset < run->region->length; offset += length) {
        length = ucs_min(run->region->length - offset, UCT_PIN_VERIFY_CHUNK);
        if (uct_pin_verify_chunk(run, offset, length)) {
            return 1;
        }
    }

    return 0;
}

static int uct_pin_verify_sample(uct_pin_verify_run_t *run)
{
    size_t num_pages = run->region->length / run->page_size;
    uint64_t random  = ucs_clock_monotonic();
    unsigned i;

    if (uct_pin_verify_page(run, 0) ||
        uct_pin_verify_page(run, num_pages - 1)) {
        return 1;
    }

    for (i = 0; i < UCT_PIN_VERIFY_SAMPLE_PAGES; ++i) {
        /* Knuth's linear congruential generator */
        random = (random * UINT64_C(6364136223846793005)) +
                 UINT64_C(1442695040888963407);
        if (uct_pin_verify_page(run, (random >> 32) % num_pages)) {
            return 1;
        }
    }

    return 0;
}

int uct_pin_verify_compare(uct_pin_region_t *region, uct_pin_verify_t what,
                           size_t page_size, uct_pin_difference_t *difference)
{
    uct_pin_verify_run_t run = {
        .region    = region,
        .page_size = page_size,
        .frame     = (uintptr_t)__builtin_frame_address(0),
        .seen      = ucs_own_map(2 * UCT_PIN_VERIFY_CHUNK)
    };
    int differs;

    if (run.seen == NULL) {
        ucs_error("pin_md: no memory to compare %p length %zu with what is "
                  "registered", region->address, region->length);
        return 0;
    }

    run.shown = run.seen + UCT_PIN_VERIFY_CHUNK;
    differs   = ((what == UCT_PIN_VERIFY_SAMPLE) &&
                 (region->length / page_size > UCT_PIN_VERIFY_SAMPLE_PAGES + 2)) ?
                uct_pin_verify_sample(&run) : uct_pin_verify_all(&run);
    if (differs) {
        *difference = run.difference;
    }
    ucs_own_unmap(run.seen, 2 * UCT_PIN_VERIFY_CHUNK);
    return differs;
}

/*
 * History
 */

static void uct_pin_verify_thread_name(pid_t tid, char *name, size_t max)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)tid);
    if (ucs_own_fd_read_text(path, name, max) <= 0) {
        snprintf(name, max, "has ended");
    }
    name[strcspn(name, "\n")] = '\0';
}

/* Events on the region since it was registered, as far as remembered.
 * @return Their number; the last one in *last. */
static unsigned uct_pin_verify_events_on(const uct_pin_region_t *region,
                                         const uct_pin_verify_event_t **last)
{
    uintptr_t start    = (uintptr_t)region->address;
    uint64_t last_time = 0;
    unsigned count     = 0;
    const uct_pin_verify_event_t *entry;
    uint64_t time;
    unsigned i;

    for (i = 0; i < UCT_PIN_VERIFY_EVENTS; ++i) {
        entry = &uct_pin_verify_events[i];
        time  = ucs_load_relaxed(&entry->time);
        if ((time < region->time) ||
            (ucs_load_relaxed(&entry->start) >= start + region->length) ||
            (ucs_load_relaxed(&entry->end) <= start)) {
            continue;
        }
        ++count;
        if (time >= last_time) {
            last_time = time;
            *last     = entry;
        }
    }

    return count;
}

void uct_pin_verify_history(const uct_pin_region_t *region, char *text,
                            size_t max)
{
    uint64_t now                       = ucs_clock_monotonic();
    const uct_pin_verify_event_t *last = NULL;
    char events[128]                   = "none";
    char name[32];
    unsigned count;

    count = uct_pin_verify_events_on(region, &last);
    if (count > 0) {
        snprintf(events, sizeof(events),
                 "%u, the last %.3f ms ago of 0x%" PRIxPTR "..0x%" PRIxPTR,
                 count, (now - ucs_load_relaxed(&last->time)) * 1e-6,
                 ucs_load_relaxed(&last->start), ucs_load_relaxed(&last->end));
    }

    uct_pin_verify_thread_name(region->tid, name, sizeof(name));
    snprintf(text, max,
             "registration %" PRIu64 " of %p..%p, made %.3f ms ago by thread "
             "%d (%s); memory events on it since: %s",
             region->serial, region->address,
             UCS_PTR_BYTE_OFFSET(region->address, region->length),
             (now - region->time) * 1e-6, (int)region->tid, name, events);
}

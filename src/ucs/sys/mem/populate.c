/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include <ucs/sys/mem/populate.h>

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/proc/spawn.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#  define MADV_POPULATE_WRITE 23
#endif

/* The threads only make system calls */
#define UCS_POPULATE_STACK_SIZE (32ul << 10)

/* Shared by the threads */
typedef struct ucs_populate_work {
    uintptr_t         start; /* whole pages */
    uintptr_t         end;
    size_t            page;
    const cpu_set_t   *cpus;
    _Atomic(uint64_t) next;   /* offset of the first free chunk */
    _Atomic(uint64_t) bytes;  /* populated */
    _Atomic(int)      failed; /* no further chunk is taken */
} ucs_populate_work_t;


static int ucs_populate_is_resident(uintptr_t page_address, size_t page)
{
    unsigned char vec = 0;

    return (syscall(SYS_mincore, page_address, page, &vec) == 0) && (vec & 1);
}

/* Memory that was touched before is left to the registration */
static int ucs_populate_is_done(const ucs_populate_work_t *work,
                                uintptr_t start, uintptr_t end)
{
    uintptr_t middle = (start + (end - start) / 2) & ~(work->page - 1);

    return ucs_populate_is_resident(start, work->page) &&
           ucs_populate_is_resident(middle, work->page) &&
           ucs_populate_is_resident(end - work->page, work->page);
}

/* By system call: hooks of the function must not see it */
static int ucs_populate_chunk(uintptr_t start, uintptr_t end)
{
    int ret;

    do {
        ret = syscall(SYS_madvise, start, end - start, MADV_POPULATE_WRITE);
    } while ((ret != 0) && ((errno == EINTR) || (errno == EAGAIN)));
    return ret == 0;
}

/* relaxed: the threads are joined before what they counted is read, and of two
 * that take a chunk each gets another */
static void ucs_populate_take(ucs_populate_work_t *work)
{
    uintptr_t start, end;

    while (!ucs_load_relaxed(&work->failed)) {
        start = work->start + ucs_add_relaxed(&work->next, UCS_POPULATE_CHUNK);
        if (start >= work->end) {
            return;
        }
        end = (work->end - start > UCS_POPULATE_CHUNK) ?
                      start + UCS_POPULATE_CHUNK :
                      work->end;
        if (ucs_populate_is_done(work, start, end)) {
            continue;
        }
        if (!ucs_populate_chunk(start, end)) {
            ucs_store_relaxed(&work->failed, 1);
            return;
        }
        ucs_add_relaxed(&work->bytes, end - start);
    }
}

static void *ucs_populate_main(void *arg)
{
    ucs_populate_work_t *work = arg;

    if (work->cpus != NULL) {
        (void)sched_setaffinity(0, sizeof(*work->cpus), work->cpus);
    }
    ucs_populate_take(work);
    return NULL;
}

/* Goes on without threads that the system refuses. @return Threads started. */
static unsigned ucs_populate_start(ucs_populate_work_t *work,
                                   ucs_spawned_t *threads, unsigned count)
{
    unsigned started = 0;

    while ((started < count) &&
           (ucs_spawn(&threads[started], UCS_POPULATE_STACK_SIZE,
                      ucs_populate_main, work) == 0)) {
        ++started;
    }
    return started;
}

ucs_populated_t ucs_populate(void *address, size_t length,
                             const cpu_set_t *cpus, unsigned hands)
{
    size_t page               = sysconf(_SC_PAGESIZE);
    ucs_populate_work_t work  = {.page = page, .cpus = cpus};
    ucs_populated_t populated = {};
    ucs_spawned_t threads[UCS_POPULATE_HANDS_MAX];
    size_t chunks;
    unsigned i;

    work.start = ((uintptr_t)address + page - 1) & ~(page - 1);
    work.end   = ((uintptr_t)address + length) & ~(page - 1);
    if ((hands == 0) || (work.start >= work.end)) {
        return populated;
    }

    chunks = (work.end - work.start - 1) / UCS_POPULATE_CHUNK + 1;
    hands  = (hands > UCS_POPULATE_HANDS_MAX) ? UCS_POPULATE_HANDS_MAX : hands;
    hands  = (hands > chunks) ? chunks : hands;
    populated.hands = 1 + ucs_populate_start(&work, threads, hands - 1);
    ucs_populate_take(&work);
    for (i = 0; i < populated.hands - 1; ++i) {
        (void)ucs_spawn_join(&threads[i]);
    }
    populated.bytes = ucs_load_relaxed(&work.bytes);
    return populated;
}

/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "range.h"

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/mem/maps.h>
#include <ucs/sys/math.h>
#include <ucs/sys/io/own_fd.h>
#include <ucs/sys/proc/thread.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A guard below a stack is a page by default. Arenas of malloc() end in
 * inaccessible mappings too, and our own stacks have them below
 * (ucs/sys/proc/spawn.c), but those are mostly larger. */
#define UCT_HELPER_RANGE_GUARD_MAX (256ul << 10)

/* Bytes of a stack without a limit (RLIMIT_STACK): a thread's, and the main thread's,
 * for the kernel puts mappings farther below that one then */
#define UCT_HELPER_RANGE_STACK_MAX  (8ul << 20)
#define UCT_HELPER_RANGE_STACK_MAIN (1ul << 40)

#define UCT_HELPER_RANGE_PAGES     1024 /* looked at by one mincore() */

/* Sum over the mappings. Those from the first that covers the range on come in
 * ascending order. */
typedef struct uct_helper_range_sum {
    uintptr_t               start, end; /* the range in question */
    uintptr_t               next;       /* first byte not yet covered */
    uintptr_t               first;      /* start of the first mapping */
    uintptr_t               guard_end;  /* of a guard just below the first */
    uintptr_t               run_start;  /* of the row that ends at run_next */
    uintptr_t               run_next;
    unsigned                above;      /* mappings of the row behind the end */
    uintptr_t               alike_start; /* of the part up to alike_next that
                                            may be kept with it: readable, no
                                            stack */
    uintptr_t               alike_next;
    int                     is_anonymous;
    uct_helper_range_kind_t kind;
} uct_helper_range_sum_t;

/* Per thread; valid if `known` is 1. A helper's is empty. */
static __thread struct {
    int       known;
    int       is_main;
    uintptr_t start, end;
} uct_helper_range_stack;

/* /proc/self/maps, open while there are domains; a child forgets it, for it
 * shows its parent's memory. If it were opened for each question, it would be
 * closed as often, and a program that closes descriptors which it does not know
 * might have its own file under that number by then. */
static ucs_own_fd_t uct_helper_range_maps = UCS_OWN_FD_INIT;

/* A thread reads its text */
static _Atomic(int) uct_helper_range_is_read;

static uct_helper_range_kind_t uct_helper_vma_kind(const ucs_maps_vma_t *vma)
{
    if (!(vma->flags & UCS_MAPS_READABLE)) {
        return UCT_HELPER_RANGE_NO_ACCESS;
    }
    if (vma->is_file) {
        return UCT_HELPER_RANGE_FILE;
    }
    return (vma->flags & UCS_MAPS_SHARED) ? UCT_HELPER_RANGE_SHARED :
                                                      UCT_HELPER_RANGE_PRIVATE;
}

/* @param without  The size of a stack without a limit */
static size_t uct_helper_range_stack_size(size_t without)
{
    struct rlimit limit;

    return ((getrlimit(RLIMIT_STACK, &limit) != 0) ||
            (limit.rlim_cur == RLIM_INFINITY)) ?
                   without : limit.rlim_cur;
}

/* In ascending order, before the sum has the mapping. What lies above a guard
 * may be a stack, up to the default size of one. */
static void uct_helper_range_feed_alike(uct_helper_range_sum_t *sum,
                                        const ucs_maps_vma_t *vma)
{
    if (uct_helper_vma_kind(vma) != UCT_HELPER_RANGE_PRIVATE) {
        return;
    }

    if (sum->alike_next != vma->start) {
        sum->alike_start = vma->start;
        if (sum->guard_end == vma->start) {
            sum->alike_start += uct_helper_range_stack_size(
                    UCT_HELPER_RANGE_STACK_MAX);
        }
    }
    sum->alike_next = vma->end;
}

/* In ascending order, a mapping below the range in question */
static void uct_helper_range_feed_below(uct_helper_range_sum_t *sum,
                                        const ucs_maps_vma_t *vma)
{
    uct_helper_range_feed_alike(sum, vma);
    sum->guard_end = (!(vma->flags & UCS_MAPS_ACCESS) &&
                      (vma->end - vma->start <= UCT_HELPER_RANGE_GUARD_MAX)) ?
                             vma->end : 0;
    if (!ucs_maps_is_anonymous(vma)) {
        sum->run_next = 0;
        return;
    }

    if (sum->run_next != vma->start) {
        sum->run_start = vma->start;
    }
    sum->run_next = vma->end;
}

/* @return Zero if no further mapping matters */
static int uct_helper_range_feed_above(uct_helper_range_sum_t *sum,
                                       const ucs_maps_vma_t *vma)
{
    if (!sum->is_anonymous || (vma->start != sum->run_next) ||
        !ucs_maps_is_anonymous(vma)) {
        return 0;
    }

    if (sum->alike_next == vma->start) {
        uct_helper_range_feed_alike(sum, vma);
    }
    sum->run_next = vma->end;
    return ++sum->above < UCT_HELPER_RANGE_RUN_MAX;
}

/* @return Zero if no further mapping matters */
static int uct_helper_range_feed(void *arg, const ucs_maps_vma_t *vma)
{
    uct_helper_range_sum_t *sum = arg;

    if (vma->end <= sum->start) {
        uct_helper_range_feed_below(sum, vma);
        return 1;
    }

    if (sum->next >= sum->end) {
        return uct_helper_range_feed_above(sum, vma);
    }

    if (vma->start > sum->next) {
        sum->kind = ucs_max(sum->kind, UCT_HELPER_RANGE_HOLE);
        return 0;
    }

    if (sum->next == sum->start) {
        sum->first = vma->start;
        if (sum->run_next != vma->start) {
            sum->run_start = vma->start;
        }
    }
    uct_helper_range_feed_alike(sum, vma);
    sum->kind = ucs_max(sum->kind, uct_helper_vma_kind(vma));
    sum->is_anonymous &= ucs_maps_is_anonymous(vma);
    sum->next          = vma->end;
    sum->run_next      = vma->end;
    return 1;
}

/* A stack grows down towards its guard. Another mapping may have been merged
 * with it from above, so only the default size of a stack counts as one.
 * @return The first address that cannot be a stack. */
static uintptr_t uct_helper_range_conclude(uct_helper_range_sum_t *sum)
{
    uintptr_t stack_end;

    if (sum->next < sum->end) {
        sum->kind = ucs_max(sum->kind, UCT_HELPER_RANGE_HOLE);
    }

    if ((sum->guard_end == 0) || (sum->guard_end != sum->first)) {
        return sum->first;
    }

    stack_end = sum->guard_end +
                uct_helper_range_stack_size(UCT_HELPER_RANGE_STACK_MAX);
    if (sum->start < stack_end) {
        sum->kind = ucs_max(sum->kind, UCT_HELPER_RANGE_STACK);
    }
    return stack_end;
}

/* The kernel finds the mapping of an address, so the row below is asked for in
 * descending order. Below the last one asked for there may be a guard. */
static void uct_helper_range_query_below(int fd, uct_helper_range_sum_t *sum,
                                         uintptr_t start)
{
    ucs_maps_vma_t below[UCT_HELPER_RANGE_RUN_MAX];
    unsigned count = 0;

    while ((count < UCT_HELPER_RANGE_RUN_MAX) && (start > 0) &&
           (ucs_maps_query(fd, start - 1, 0, &below[count]) == 0)) {
        start = below[count].start;
        if (!ucs_maps_is_anonymous(&below[count++])) {
            break;
        }
    }

    sum->guard_end = (count == UCT_HELPER_RANGE_RUN_MAX) ? start : 0;
    while (count > 0) {
        uct_helper_range_feed_below(sum, &below[--count]);
    }
}

/* @return 0, or a negative errno: -ENOTTY of an older kernel */
static int uct_helper_range_query(int fd, uct_helper_range_sum_t *sum)
{
    ucs_maps_vma_t vma;
    int ret;

    ret = ucs_maps_query(fd, sum->start, UCS_MAPS_NEXT, &vma);
    if (ret == 0) {
        uct_helper_range_query_below(fd, sum, vma.start);
    }

    while ((ret == 0) && uct_helper_range_feed(sum, &vma)) {
        ret = ucs_maps_query(fd, vma.end, UCS_MAPS_NEXT, &vma);
    }
    return (ret == -ENOENT) ? 0 : ret;
}

/* @return A descriptor for questions about single mappings, or -1, also if the
 * program has closed ours; the caller then closes own */
static int uct_helper_range_begin(ucs_own_fd_t *own)
{
    return (ucs_own_fd_number(&uct_helper_range_maps) >= 0) ?
                   ucs_own_fd_get(&uct_helper_range_maps) :
                   ucs_maps_open(own);
}

/* One thread at a time reads the text of the mappings. A line's offset changes with
 * them, and the kernel keeps one reader's place in a file, no more. */
static int uct_helper_range_read(ucs_maps_func_t func, void *arg)
{
    ucs_own_fd_t *kept = &uct_helper_range_maps;
    int ret            = -ENOENT;
    int is_done        = 0;
    int idle           = 0;
    int fd;

    /* relaxed: nothing but the file is looked at, which the kernel locks */
    if ((ucs_own_fd_number(kept) >= 0) &&
        ucs_cas_relaxed(&uct_helper_range_is_read, &idle, 1)) {
        fd      = ucs_own_fd_get(kept);
        is_done = (fd < 0) || ucs_maps_has_text(fd);
        if ((fd >= 0) && is_done) {
            ret = ucs_maps_each(kept, func, arg);
        }
        ucs_store_relaxed(&uct_helper_range_is_read, 0);
    }

    return is_done ? ret : ucs_maps_read(func, arg);
}

static int uct_helper_range_ask(uct_helper_range_way_t way,
                                uct_helper_range_sum_t *sum)
{
    ucs_own_fd_t own = UCS_OWN_FD_INIT;
    int ret          = -ENOTTY;
    int fd;

    if (way != UCT_HELPER_RANGE_WAY_PARSE) {
        fd  = uct_helper_range_begin(&own);
        ret = (fd < 0) ? -ENOENT : uct_helper_range_query(fd, sum);
        ucs_own_fd_close(&own);
    }
    if ((way == UCT_HELPER_RANGE_WAY_PARSE) ||
        ((way == UCT_HELPER_RANGE_WAY_AUTO) && (ret != 0) &&
         (sum->next == sum->start))) {
        ret = uct_helper_range_read(uct_helper_range_feed, sum);
    }
    return ret;
}

void uct_helper_range_keep(void)
{
    if (ucs_own_fd_number(&uct_helper_range_maps) < 0) {
        (void)ucs_maps_open(&uct_helper_range_maps);
    }
}

void uct_helper_range_let_go(void)
{
    ucs_own_fd_close(&uct_helper_range_maps);
}

void uct_helper_range_forget(void)
{
    ucs_own_fd_forget(&uct_helper_range_maps);
    ucs_store_relaxed(&uct_helper_range_is_read, 0);
}

uct_helper_range_kind_t uct_helper_range_find(uct_helper_range_way_t way,
                                              uintptr_t start, uintptr_t end,
                                              uct_helper_range_t *range_p)
{
    uct_helper_range_sum_t sum = {
        .start        = start,
        .end          = end,
        .next         = start,
        .kind         = UCT_HELPER_RANGE_PRIVATE,
        .is_anonymous = 1
    };
    int ret = uct_helper_range_ask(way, &sum);

    memset(range_p, 0, sizeof(*range_p));
    if (ret != 0) {
        range_p->kind = UCT_HELPER_RANGE_UNKNOWN;
        return range_p->kind;
    }

    range_p->kept         = ucs_min(uct_helper_range_conclude(&sum),
                                    sum.alike_start);
    range_p->kept_end     = ucs_max(sum.next, sum.alike_next);
    range_p->kind         = sum.kind;
    range_p->start        = sum.first;
    range_p->end          = sum.next;
    range_p->is_anonymous = sum.is_anonymous &&
                            (sum.kind < UCT_HELPER_RANGE_HOLE);
    range_p->run_start    = sum.run_start;
    range_p->run_end      = sum.run_next;
    return range_p->kind;
}

static int uct_helper_range_count_one(void *arg, const ucs_maps_vma_t *vma)
{
    ++*(long*)arg;
    return 1;
}

long uct_helper_range_count(void)
{
    long count = 0;

    return (uct_helper_range_read(uct_helper_range_count_one, &count) == 0) ?
                   count :
                   -1;
}

void uct_helper_range_each_within(uintptr_t start, uintptr_t end,
                                  void (*visit)(uintptr_t start, uintptr_t end,
                                                void *arg),
                                  void *arg)
{
    ucs_own_fd_t own = UCS_OWN_FD_INIT;
    int fd           = uct_helper_range_begin(&own);
    ucs_maps_vma_t vma;

    for (; (fd >= 0) && (ucs_maps_query(fd, start, UCS_MAPS_NEXT, &vma) == 0) &&
           (vma.start < end); start = vma.end) {
        if (ucs_maps_is_anonymous(&vma)) {
            visit(vma.start, vma.end, arg);
        }
    }
    ucs_own_fd_close(&own);
}

/* glibc would read the main thread's from a file. The kernel has put some bytes above
 * its frames. */
static void uct_helper_range_learn_main_stack(void)
{
    uct_helper_range_stack.is_main = 1;
    uct_helper_range_stack.end     = getauxval(AT_RANDOM);
    uct_helper_range_stack.start   = uct_helper_range_stack.end -
                                     uct_helper_range_stack_size(
                                             UCT_HELPER_RANGE_STACK_MAIN);
}

static void uct_helper_range_learn_stack(void)
{
    pthread_attr_t attr;
    void *address;
    size_t size;

    if (uct_helper_range_stack.known) {
        return;
    }

    /* No buffer of the program's lies on a helper's stack, and asking for the
     * stack allocates */
    if (syscall(SYS_gettid) == getpid()) {
        uct_helper_range_learn_main_stack();
    } else if (!ucs_thread_is_helper() &&
               (pthread_getattr_np(pthread_self(), &attr) == 0)) {
        if (pthread_attr_getstack(&attr, &address, &size) == 0) {
            uct_helper_range_stack.start = (uintptr_t)address;
            uct_helper_range_stack.end   = (uintptr_t)address + size;
        }
        pthread_attr_destroy(&attr);
    }
    uct_helper_range_stack.known = 1;
}

int uct_helper_range_is_own_stack(uintptr_t start, uintptr_t end)
{
    uct_helper_range_learn_stack();
    return !uct_helper_range_stack.is_main &&
           (start < uct_helper_range_stack.end) &&
           (end > uct_helper_range_stack.start);
}

int uct_helper_range_has_stack(size_t bytes)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    uct_helper_range_learn_stack();
    return (here < uct_helper_range_stack.end) &&
           (here > uct_helper_range_stack.start) &&
           (here - uct_helper_range_stack.start >= bytes);
}

int uct_helper_range_is_resident(uintptr_t start, uintptr_t end)
{
    unsigned char pages[UCT_HELPER_RANGE_PAGES];
    size_t page = sysconf(_SC_PAGESIZE);
    size_t count, i;

    for (; start < end; start += count * page) {
        count = ucs_min((end - start) / page, UCT_HELPER_RANGE_PAGES);
        if (mincore((void*)start, count * page, pages) != 0) {
            return 0;
        }
        for (i = 0; i < count; ++i) {
            if (!(pages[i] & 1)) {
                return 0;
            }
        }
    }
    return 1;
}

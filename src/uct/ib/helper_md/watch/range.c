/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include "range.h"

#include <ucs/sys/maps.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A guard below a stack is a page by default; arenas of malloc() end in
 * inaccessible mappings, too, but those are mostly larger */
#define UCT_HELPER_RANGE_GUARD_MAX (256ul << 10)

/* Of a stack without a limit (RLIMIT_STACK) */
#define UCT_HELPER_RANGE_STACK_MAX (8ul << 20)

#define UCT_HELPER_RANGE_PAGES     1024 /* looked at by one mincore() */

/* Sum over the mappings, of which those from the first that covers on are fed
 * in ascending order */
typedef struct uct_helper_range_sum {
    uintptr_t               start, end; /* what was asked for */
    uintptr_t               next;       /* first byte not yet covered */
    uintptr_t               first;      /* start of the first mapping */
    uintptr_t               guard_end;  /* of a guard just below the first */
    uintptr_t               run_start;  /* of the row that ends at run_next */
    uintptr_t               run_next;
    unsigned                above;      /* mappings of the row behind the end */
    int                     is_anonymous;
    uct_helper_range_kind_t kind;
} uct_helper_range_sum_t;

/* Per thread; a value of `known` other than 1 means not yet */
static __thread struct {
    int       known;
    uintptr_t start, end;
} uct_helper_range_stack;


static void uct_helper_range_is(uct_helper_range_sum_t *sum,
                                uct_helper_range_kind_t kind)
{
    sum->kind = (kind > sum->kind) ? kind : sum->kind;
}

static uct_helper_range_kind_t
uct_helper_vma_kind(const ucs_maps_vma_t *vma)
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

static int uct_helper_vma_is_anonymous(const ucs_maps_vma_t *vma)
{
    return !vma->is_file && !(vma->flags & UCS_MAPS_SHARED);
}

static int uct_helper_vma_is_guard(const ucs_maps_vma_t *vma)
{
    return !(vma->flags & UCS_MAPS_ACCESS) &&
           (vma->end - vma->start <= UCT_HELPER_RANGE_GUARD_MAX);
}

/* In ascending order, one that lies below what was asked for */
static void uct_helper_range_feed_below(uct_helper_range_sum_t *sum,
                                        const ucs_maps_vma_t *vma)
{
    sum->guard_end = uct_helper_vma_is_guard(vma) ? vma->end : 0;
    if (!uct_helper_vma_is_anonymous(vma)) {
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
        !uct_helper_vma_is_anonymous(vma)) {
        return 0;
    }

    sum->run_next = vma->end;
    return ++sum->above < UCT_HELPER_RANGE_RUN_MAX;
}

/* @return Zero if no further mapping matters */
static int uct_helper_range_feed(uct_helper_range_sum_t *sum,
                                 const ucs_maps_vma_t *vma)
{
    if (vma->end <= sum->start) {
        uct_helper_range_feed_below(sum, vma);
        return 1;
    }

    if (sum->next >= sum->end) {
        return uct_helper_range_feed_above(sum, vma);
    }

    if (vma->start > sum->next) {
        uct_helper_range_is(sum, UCT_HELPER_RANGE_HOLE);
        return 0;
    }

    if (sum->next == sum->start) {
        sum->first = vma->start;
        if (sum->run_next != vma->start) {
            sum->run_start = vma->start;
        }
    }
    uct_helper_range_is(sum, uct_helper_vma_kind(vma));
    sum->is_anonymous &= uct_helper_vma_is_anonymous(vma);
    sum->next          = vma->end;
    sum->run_next      = vma->end;
    return 1;
}

static size_t uct_helper_range_stack_size(void)
{
    struct rlimit limit;

    if ((getrlimit(RLIMIT_STACK, &limit) != 0) ||
        (limit.rlim_cur == RLIM_INFINITY)) {
        return UCT_HELPER_RANGE_STACK_MAX;
    }
    return limit.rlim_cur;
}

/* A stack grows down towards its guard. Another mapping may have been merged
 * with it from above, so only what lies within the default size of a stack
 * counts as one. @return From where on nothing of it can be a stack. */
static uintptr_t uct_helper_range_conclude(uct_helper_range_sum_t *sum)
{
    uintptr_t stack_end;

    if (sum->next < sum->end) {
        uct_helper_range_is(sum, UCT_HELPER_RANGE_HOLE);
    }

    if ((sum->guard_end == 0) || (sum->guard_end != sum->first)) {
        return sum->first;
    }

    stack_end = sum->guard_end + uct_helper_range_stack_size();
    if (sum->start < stack_end) {
        uct_helper_range_is(sum, UCT_HELPER_RANGE_STACK);
    }
    return stack_end;
}

/* The kernel finds the mapping of an address, so those of the row below are
 * asked for in descending order */
static void uct_helper_range_query_below(int fd, uct_helper_range_sum_t *sum,
                                         const ucs_maps_vma_t *vma)
{
    uintptr_t start = vma->start;
    ucs_maps_vma_t below;
    unsigned count;

    for (count = 0; (count < UCT_HELPER_RANGE_RUN_MAX) && (start > 0);
         ++count) {
        if (ucs_maps_query(fd, start - 1, 0, &below) != 0) {
            break;
        }
        if (count == 0) {
            uct_helper_range_feed_below(sum, &below);
        }
        if (!uct_helper_vma_is_anonymous(&below)) {
            break;
        }
        start = below.start;
    }

    if (count > 0) {
        sum->run_start = start;
        sum->run_next  = vma->start;
    }
}

/* @return 0, or a negative errno: -ENOTTY of an older kernel */
static int uct_helper_range_query(int fd, uct_helper_range_sum_t *sum)
{
    ucs_maps_vma_t vma;
    int ret;

    ret = ucs_maps_query(fd, sum->start, UCS_MAPS_NEXT,
                                     &vma);
    if (ret == 0) {
        uct_helper_range_query_below(fd, sum, &vma);
    }

    while ((ret == 0) && uct_helper_range_feed(sum, &vma)) {
        ret = ucs_maps_query(fd, vma.end, UCS_MAPS_NEXT,
                                         &vma);
    }
    return (ret == -ENOENT) ? 0 : ret;
}

static int uct_helper_range_feed_parsed(void *arg, const ucs_maps_vma_t *vma)
{
    return uct_helper_range_feed(arg, vma);
}

static int uct_helper_range_parse(int fd, uct_helper_range_sum_t *sum)
{
    return ucs_maps_each(fd, uct_helper_range_feed_parsed, sum);
}

static int uct_helper_range_ask(int fd, uct_helper_range_way_t way,
                                uct_helper_range_sum_t *sum)
{
    int ret = -ENOTTY;

    if (way != UCT_HELPER_RANGE_WAY_PARSE) {
        ret = uct_helper_range_query(fd, sum);
    }
    if ((way == UCT_HELPER_RANGE_WAY_PARSE) ||
        ((way == UCT_HELPER_RANGE_WAY_AUTO) && (ret != 0) &&
         (sum->next == sum->start))) {
        ret = uct_helper_range_parse(fd, sum);
    }
    return ret;
}

/* Opened for each question: a descriptor that is kept would show a forked
 * child its parent's memory */
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
    int ret = -ENOENT;
    int fd;

    fd = ucs_maps_open();
    if (fd >= 0) {
        ret = uct_helper_range_ask(fd, way, &sum);
        close(fd);
    }

    memset(range_p, 0, sizeof(*range_p));
    if (ret != 0) {
        range_p->kind = UCT_HELPER_RANGE_UNKNOWN;
        return range_p->kind;
    }

    range_p->kept         = uct_helper_range_conclude(&sum);
    range_p->kind         = sum.kind;
    range_p->start        = sum.first;
    range_p->end          = sum.next;
    range_p->is_anonymous = sum.is_anonymous &&
                            (sum.kind < UCT_HELPER_RANGE_HOLE);
    range_p->run_start    = sum.run_start;
    range_p->run_end      = sum.run_next;
    return range_p->kind;
}

/* What is to be done with each mapping */
typedef struct uct_helper_range_visit {
    void (*visit)(uintptr_t start, uintptr_t end, void *arg);
    void *arg;
} uct_helper_range_visit_t;

static int uct_helper_range_visit_one(void *arg, const ucs_maps_vma_t *vma)
{
    const uct_helper_range_visit_t *visit = arg;

    if (uct_helper_vma_is_anonymous(vma)) {
        visit->visit(vma->start, vma->end, visit->arg);
    }
    return 1;
}

void uct_helper_range_each(void (*visit)(uintptr_t start, uintptr_t end,
                                         void *arg),
                           void *arg)
{
    uct_helper_range_visit_t each = {.visit = visit, .arg = arg};
    int fd;

    fd = ucs_maps_open();
    if (fd >= 0) {
        (void)ucs_maps_each(fd, uct_helper_range_visit_one, &each);
        close(fd);
    }
}

int uct_helper_range_each_within(uintptr_t start, uintptr_t end,
                                 void (*visit)(uintptr_t start, uintptr_t end,
                                               void *arg),
                                 void *arg)
{
    ucs_maps_vma_t vma;
    int ret;
    int fd;

    fd = ucs_maps_open();
    if (fd < 0) {
        return 0;
    }

    while ((ret = ucs_maps_query(fd, start,
                                             UCS_MAPS_NEXT, &vma)) ==
           0) {
        if (vma.start >= end) {
            break;
        }
        if (uct_helper_vma_is_anonymous(&vma)) {
            visit(vma.start, vma.end, arg);
        }
        start = vma.end;
    }
    close(fd);
    return (ret == 0) || (ret == -ENOENT);
}

static void uct_helper_range_learn_stack(void)
{
    pthread_attr_t attr;
    void *address;
    size_t size;

    if ((syscall(SYS_gettid) == getpid()) ||
        (pthread_getattr_np(pthread_self(), &attr) != 0)) {
        goto out;
    }

    if (pthread_attr_getstack(&attr, &address, &size) == 0) {
        uct_helper_range_stack.start = (uintptr_t)address;
        uct_helper_range_stack.end   = (uintptr_t)address + size;
    }
    pthread_attr_destroy(&attr);

out:
    uct_helper_range_stack.known = 1;
}

int uct_helper_range_is_own_stack(uintptr_t start, uintptr_t end)
{
    if (!uct_helper_range_stack.known) {
        uct_helper_range_learn_stack();
    }
    return (start < uct_helper_range_stack.end) &&
           (end > uct_helper_range_stack.start);
}

int uct_helper_range_is_resident(uintptr_t start, uintptr_t end)
{
    unsigned char pages[UCT_HELPER_RANGE_PAGES];
    size_t page = sysconf(_SC_PAGESIZE);
    size_t count, i;

    for (; start < end; start += count * page) {
        count = (end - start) / page;
        count = (count > UCT_HELPER_RANGE_PAGES) ? UCT_HELPER_RANGE_PAGES :
                                                   count;
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

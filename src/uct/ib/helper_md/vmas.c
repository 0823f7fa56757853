/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "vmas.h"

#include <ucs/sys/atomic.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define UCT_HELPER_VMAS_BUFFER    16384
#define UCT_HELPER_VMAS_PERIOD_NS UINT64_C(1000000000)

/* Share of the helper's time that counting may take is one part in this */
#define UCT_HELPER_VMAS_SHARE 256

static _Atomic(long) uct_helper_vmas_set;

/* Where the reader of a file of lines "from-to ..." stands */
typedef struct uct_helper_vmas_line {
    uintptr_t bound[2];
    unsigned  field; /* 0, 1: in this bound; 2: in the rest */
} uct_helper_vmas_line_t;


/* @return Nonzero at the end of a line that overlaps */
static int uct_helper_vmas_feed(uct_helper_vmas_line_t *line, char c,
                                uintptr_t start, uintptr_t end)
{
    uintptr_t digit;
    int overlaps;

    if (c == '\n') {
        overlaps = (line->bound[0] < end) && (line->bound[1] > start);
        *line    = (uct_helper_vmas_line_t){{0, 0}, 0};
        return overlaps;
    }

    if (line->field == 2) {
        return 0;
    }

    if ((c == '-') || (c == ' ')) {
        ++line->field;
        return 0;
    }

    digit                     = (c <= '9') ? c - '0' : c - 'a' + 10;
    line->bound[line->field] = (line->bound[line->field] << 4) | digit;
    return 0;
}

long uct_helper_vmas_count(uintptr_t start, uintptr_t end)
{
    uct_helper_vmas_line_t line = {{0, 0}, 0};
    long count                  = 0;
    char buffer[UCT_HELPER_VMAS_BUFFER];
    ssize_t length, i;
    int fd;

    fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }

    while ((length = read(fd, buffer, sizeof(buffer))) > 0) {
        for (i = 0; i < length; ++i) {
            count += uct_helper_vmas_feed(&line, buffer[i], start, end);
        }
    }
    close(fd);
    return (length < 0) ? -1 : count;
}

long uct_helper_vmas_limit(void)
{
    long limit = ucs_load_relaxed(&uct_helper_vmas_set);
    char text[32];
    ssize_t length;
    int fd;

    if (limit > 0) {
        return limit;
    }

    fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return LONG_MAX;
    }

    length = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (length <= 0) {
        return LONG_MAX;
    }

    text[length] = '\0';
    limit        = atol(text);
    return (limit > 0) ? limit : LONG_MAX;
}

void uct_helper_vmas_set_limit(long limit)
{
    ucs_store_relaxed(&uct_helper_vmas_set, limit);
}

int uct_helper_vmas_watch(uct_helper_vmas_t *vmas, uint64_t now)
{
    long limit, count, left;
    int was_near = vmas->is_near;
    uint64_t cost;

    if (now < vmas->next_ns) {
        return 0;
    }

    count         = uct_helper_vmas_count(0, UINTPTR_MAX);
    limit         = uct_helper_vmas_limit();
    left          = (count < limit) ? limit - ucs_max(count, 0) : 0;
    vmas->is_near = left <= limit / (was_near ? UCT_HELPER_VMAS_GO :
                                                UCT_HELPER_VMAS_STOP);
    cost          = ucs_clock_now() - now;
    vmas->next_ns = now + ucs_max(UCT_HELPER_VMAS_PERIOD_NS,
                                  cost * UCT_HELPER_VMAS_SHARE);
    return vmas->is_near != was_near;
}

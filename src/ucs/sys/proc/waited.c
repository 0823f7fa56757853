/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "waited.h"

#include <ucs/sys/io/own_fd.h>

#include <stdio.h>
#include <unistd.h>

/* Kept open, for it is read often */
static ucs_own_fd_t ucs_waited_file = UCS_OWN_FD_INIT;

/* relaxed, both: one that is read with the other's number is one look's mistake */
static _Atomic(pid_t) ucs_waited_pid;
static _Atomic(unsigned) ucs_waited_others;

void ucs_waited_begin(void)
{
    ucs_waited_beside(0, 0);
    ucs_own_fd_forget(&ucs_waited_file);
    (void)ucs_own_fd_open(&ucs_waited_file, "/proc/self/schedstat");
}

void ucs_waited_end(void)
{
    ucs_own_fd_close(&ucs_waited_file);
}

void ucs_waited_beside(pid_t pid, unsigned others)
{
    ucs_store_relaxed(&ucs_waited_others, others);
    ucs_store_relaxed(&ucs_waited_pid, pid);
}

/* The second number of the text; 0: there is none */
static uint64_t ucs_waited_parse(const char *text)
{
    unsigned long long waited = 0;

    return (sscanf(text, "%*u %llu", &waited) == 1) ? waited : 0;
}

/* The program may close the descriptor meanwhile, and open a file of its own */
uint64_t ucs_waited_ns(void)
{
    char text[64] = "";
    int fd        = ucs_own_fd_get(&ucs_waited_file);

    if ((fd < 0) || (pread(fd, text, sizeof(text) - 1, 0) <= 0) ||
        (ucs_own_fd_get(&ucs_waited_file) != fd)) {
        return 0;
    }
    return ucs_waited_parse(text);
}

void ucs_waited_read(ucs_waited_t *waited)
{
    char path[64], text[64];

    waited->own    = ucs_waited_ns();
    waited->beside = 0;
    waited->pid    = ucs_load_relaxed(&ucs_waited_pid);
    if (waited->pid != 0) {
        snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)waited->pid);
        if (ucs_own_fd_read_text(path, text, sizeof(text)) > 0) {
            waited->beside = ucs_waited_parse(text);
        }
    }
}

/* A process that has ended has waited no more */
static uint64_t ucs_waited_more(uint64_t before, uint64_t after)
{
    return (after > before) ? after - before : 0;
}

uint64_t ucs_waited_since(const ucs_waited_t *before)
{
    ucs_waited_t after;
    uint64_t sum;

    ucs_waited_read(&after);
    sum = ucs_waited_more(before->own, after.own);
    if ((after.pid == before->pid) && (before->beside != 0)) {
        sum += ucs_waited_more(before->beside, after.beside) *
               ucs_load_relaxed(&ucs_waited_others);
    }
    return sum;
}

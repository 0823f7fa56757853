/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Guard pages (Linux 6.13): installing them discards what was there, and no
 * userfaultfd is told of it. On an older kernel the programs do as much and
 * discard nothing.
 */

#include "attack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROUNDS       20
#define GUARDED_PAGE 20

/* Advice by one of several ways. @return Zero, or -1 and errno. */
typedef int (*guard_func_t)(void *address, size_t length, int advice);

static int guard_by_libc(void *address, size_t length, int advice)
{
    return madvise(address, length, advice);
}

static int guard_by_system_call(void *address, size_t length, int advice)
{
    return syscall(SYS_madvise, address, length, advice);
}

/* Found when the program runs, for an older C library has none */
extern ssize_t process_madvise(int pidfd, const struct iovec *iov, size_t count,
                               int advice, unsigned flags)
        __attribute__((weak));

static int guard_by_process_madvise(void *address, size_t length, int advice)
{
    struct iovec iov = {address, length};
    ssize_t done     = -1;
    int pidfd        = syscall(SYS_pidfd_open, getpid(), 0);

    errno = ENOSYS;
    if (process_madvise != NULL) {
        done = process_madvise(pidfd, &iov, 1, advice, 0);
    }
    close(pidfd);
    return (done == (ssize_t)length) ? 0 : -1;
}

/* @return Nonzero if the kernel does that at all */
static int guard_is_there(guard_func_t func)
{
    void *page = attack_map(ATTACK_PAGE);
    int works  = (func(page, ATTACK_PAGE, MADV_GUARD_INSTALL) == 0);

    munmap(page, ATTACK_PAGE);
    return works;
}

static void guard_put(guard_func_t func, void *address, size_t length)
{
    if (func(address, length, MADV_GUARD_INSTALL) != 0) {
        attack_die("no guard: %m");
    }
}

static void guard_take(guard_func_t func, void *address, size_t length)
{
    if (func(address, length, MADV_GUARD_REMOVE) != 0) {
        attack_die("a guard stays: %m");
    }
}

/* At once to the output, for a stale registration ends the program */
static void guard_whole(uct_md_h md, guard_func_t func)
{
    char *buffer = attack_map(ATTACK_SIZE);
    int is_there = guard_is_there(func);
    int i;

    printf("guards: %s\n", is_there ? "some" : "none");
    fflush(stdout);
    attack_use_often(md, buffer, ATTACK_SIZE);
    for (i = 0; i < ROUNDS; ++i) {
        if (is_there) {
            guard_put(func, buffer, ATTACK_SIZE);
            guard_take(func, buffer, ATTACK_SIZE);
        }
        attack_use(md, buffer, ATTACK_SIZE);
        attack_sleep(1);
    }
    munmap(buffer, ATTACK_SIZE);
}

/* What an allocator with guard pages does: one page among many */
static void guard_page(uct_md_h md, guard_func_t func)
{
    char *buffer = attack_map(ATTACK_SIZE);
    int is_there = guard_is_there(func);
    int i;

    attack_use_often(md, buffer, ATTACK_SIZE);
    for (i = 0; is_there && (i < ROUNDS); ++i) {
        guard_put(func, buffer + (GUARDED_PAGE + i) * ATTACK_PAGE, ATTACK_PAGE);
        attack_sleep(1);
        guard_take(func, buffer + (GUARDED_PAGE + i) * ATTACK_PAGE,
                   ATTACK_PAGE);
        attack_use(md, buffer, ATTACK_SIZE);
        attack_sleep(1);
    }
    munmap(buffer, ATTACK_SIZE);
}

ATTACK(guard, md)
{
    guard_whole(md, guard_by_libc);
}

ATTACK(guard_page, md)
{
    guard_page(md, guard_by_libc);
}

ATTACK(guard_process, md)
{
    guard_whole(md, guard_by_process_madvise);
    guard_page(md, guard_by_process_madvise);
}

/* What is guarded cannot be pinned, and must not look as if it were. Without
 * the software NIC nothing is pinned, and the use does not fail. */
ATTACK(guard_use, md)
{
    char *buffer = attack_map(ATTACK_SIZE);

    attack_use_often(md, buffer, ATTACK_SIZE);
    if (guard_is_there(guard_by_libc)) {
        guard_put(guard_by_libc, buffer + GUARDED_PAGE * ATTACK_PAGE,
                  ATTACK_PAGE);
        attack_sleep(5);
        if ((getenv("UCX_MD_PIN") != NULL) &&
            (attack_try(md, buffer, ATTACK_SIZE) == UCS_OK)) {
            attack_die("what is guarded was registered");
        }
        guard_take(guard_by_libc, buffer + GUARDED_PAGE * ATTACK_PAGE,
                   ATTACK_PAGE);
    }
    attack_use(md, buffer, ATTACK_SIZE);
    munmap(buffer, ATTACK_SIZE);
}

/* Other memory by a call that is seen, at the same address */
ATTACK(guard_fixed, md)
{
    char *buffer = attack_map(ATTACK_SIZE);
    char *page   = buffer + GUARDED_PAGE * ATTACK_PAGE;
    int i;

    attack_use_often(md, buffer, ATTACK_SIZE);
    for (i = 0; i < ROUNDS; ++i) {
        if (mmap(page, ATTACK_PAGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page) {
            attack_die("no page of its own: %m");
        }
        attack_use(md, buffer, ATTACK_SIZE);
        attack_sleep(1);
    }
    munmap(buffer, ATTACK_SIZE);
}

/* The control: by raw system calls nobody is told */
ATTACK(guard_raw, md)
{
    guard_whole(md, guard_by_system_call);
}

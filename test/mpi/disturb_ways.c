/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "disturb.h"
#include "ring.h"
#include "../newer_kernel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE       4096ul
#define READ_WRITE (PROT_READ | PROT_WRITE)
/* Rounds between two that start a program, or bury children */
#define SELDOM     10

static void *map_what(const disturb_t *d, void *address, size_t size, int flags,
                      int fd)
{
    return d->raw ? (void*)syscall(SYS_mmap, address, size, READ_WRITE, flags,
                                   fd, 0) :
                    mmap(address, size, READ_WRITE, flags, fd, 0);
}

void *disturb_map(const disturb_t *d, void *address, size_t size, int flags)
{
    void *mapped = map_what(d, address, size,
                            flags | MAP_PRIVATE | MAP_ANONYMOUS, -1);

    if ((mapped == MAP_FAILED) || ((address != NULL) && (mapped != address))) {
        fail("mapping %zu bytes failed: %m", size);
    }
    return mapped;
}

void disturb_unmap(const disturb_t *d, void *address, size_t size)
{
    if (d->raw) {
        syscall(SYS_munmap, address, size);
    } else {
        munmap(address, size);
    }
}

/* A kernel may not know the advice */
static void advise(const disturb_t *d, void *address, size_t size, int advice)
{
    if (d->raw) {
        syscall(SYS_madvise, address, size, advice);
    } else {
        (void)madvise(address, size, advice);
    }
}

/* In place, by the C library where that is asked for */
static void *resize(const disturb_t *d, void *address, size_t from, size_t to,
                    int flags)
{
    return d->raw ? (void*)syscall(SYS_mremap, address, from, to, flags, 0) :
                    mremap(address, from, to, flags);
}

/* Always by system call: the function of that name in UCX 1.13's libucm, which
 * comes first in a program that is linked with it, drops the last argument */
static void move(void *from, void *to, size_t size, int flags)
{
    if (syscall(SYS_mremap, from, size, size,
                MREMAP_MAYMOVE | MREMAP_FIXED | flags, to) != (long)to) {
        fail("moving %zu bytes failed: %m", size);
    }
}

static int new_file(size_t size)
{
    int fd = memfd_create("disturb", MFD_CLOEXEC);

    if ((fd < 0) || (ftruncate(fd, size) != 0)) {
        fail("no file in memory: %m");
    }
    return fd;
}

static void map_file(const disturb_t *d, void *address, int flags, int fd)
{
    if (map_what(d, address, d->size, flags | MAP_FIXED, fd) != address) {
        fail("mapping a file failed: %m");
    }
}

static void do_guard(disturb_t *d)
{
    advise(d, d->recv, d->size, MADV_GUARD_INSTALL);
    advise(d, d->recv, d->size, MADV_GUARD_REMOVE);
    advise(d, d->send, d->size, MADV_GUARD_INSTALL);
    advise(d, d->send, d->size, MADV_GUARD_REMOVE);
}

static void do_fixed(disturb_t *d)
{
    if (d->round % 3 == 0) {
        map_file(d, d->recv, MAP_SHARED | MAP_ANONYMOUS, -1);
    } else {
        disturb_map(d, d->recv, d->size, MAP_FIXED);
    }
    disturb_map(d, d->send, d->size, MAP_FIXED);
}

/* Another file each time, cut to nothing while it is mapped */
static void do_memfd(disturb_t *d)
{
    int fd = new_file(d->size);

    map_file(d, d->recv, (d->round & 1) ? MAP_SHARED : MAP_PRIVATE, fd);
    if ((ftruncate(fd, 0) != 0) || (ftruncate(fd, d->size) != 0)) {
        fail("truncating failed: %m");
    }
    close(fd);
}

static void do_hole(disturb_t *d)
{
    if (d->fd < 0) {
        d->fd = new_file(d->size);
        map_file(d, d->recv, MAP_SHARED, d->fd);
    }
    if (fallocate(d->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  d->size) != 0) {
        fail("no hole: %m");
    }
}

static void do_onto(disturb_t *d)
{
    void *other = disturb_map(d, NULL, d->size, 0);

    memset(other, 1, d->size);
    move(other, d->recv, d->size, 0);
}

/* What has moved leaves its mapping: in a hole another thread may map */
static void do_swap(disturb_t *d)
{
    void *other = disturb_map(d, NULL, d->size, 0);

    move(d->recv, other, d->size, MREMAP_DONTUNMAP);
    move(d->send, d->recv, d->size, MREMAP_DONTUNMAP);
    move(other, d->send, d->size, 0);
}

static void do_dontunmap(disturb_t *d)
{
    void *moved = resize(d, d->recv, d->size, d->size,
                         MREMAP_MAYMOVE | MREMAP_DONTUNMAP);

    if (moved != MAP_FAILED) {
        disturb_unmap(d, moved, d->size);
    }
}

static void do_discard(disturb_t *d)
{
    static const int advice[] = {MADV_DONTNEED, MADV_FREE, MADV_DONTNEED_LOCKED,
                                 MADV_DONTNEED};

    advise(d, d->recv, d->size, advice[d->round % 4]);
    advise(d, d->send, d->size, advice[(d->round + 1) % 4]);
}

static void do_part(disturb_t *d)
{
    size_t offset = (d->round % (d->size / PAGE)) * PAGE;

    advise(d, d->recv + offset, PAGE, MADV_DONTNEED);
    disturb_map(d, d->send + offset, PAGE, MAP_FIXED);
}

static void do_protect(disturb_t *d)
{
    mprotect(d->recv, d->size, PROT_NONE);
    mprotect(d->send, d->size, PROT_READ);
    mprotect(d->recv, d->size, READ_WRITE);
    mprotect(d->send, d->size, READ_WRITE);
}

static void do_fork(disturb_t *d)
{
    pid_t child = fork();

    if (child == 0) {
        memset(d->recv, 1, d->size);
        memset(d->send, 2, d->size);
        disturb_unmap(d, d->recv, d->size);
        advise(d, d->send, d->size, MADV_DONTNEED);
        _exit(0);
    }
    if (d->round % SELDOM == 0) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
}

/* By a system call of the child, in the memory of its parent */
static void do_vfork(disturb_t *d)
{
    unsigned char *recv = d->recv;
    size_t size         = d->size;

    if (vfork() == 0) {
        syscall(SYS_mmap, recv, size, READ_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        _exit(0);
    }
}

static void do_system(disturb_t *d)
{
    if ((d->round % SELDOM == 0) && (system("true") != 0)) {
        fail("no shell: %m");
    }
}

/* What was cut off comes back where it was, unless another thread has mapped
 * there meanwhile */
static void do_shrink(disturb_t *d)
{
    unsigned char *rest = d->recv + PAGE;

    if (resize(d, d->recv, d->size, PAGE, 0) != d->recv) {
        fail("shrinking failed: %m");
    }
    if (map_what(d, rest, d->size - PAGE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                 -1) != rest) {
        disturb_unmap(d, d->recv, PAGE);
        d->recv = disturb_map(d, NULL, d->size, 0);
    }
}

static void do_merge(disturb_t *d)
{
    advise(d, d->recv, d->size, MADV_MERGEABLE);
    advise(d, d->send, d->size, MADV_MERGEABLE);
}

static void do_collapse(disturb_t *d)
{
    advise(d, d->recv, d->size, MADV_HUGEPAGE);
    advise(d, d->recv, d->size, MADV_COLLAPSE);
    advise(d, d->send, d->size, MADV_COLLAPSE);
    advise(d, d->send, d->size, MADV_PAGEOUT);
}

static void commit(void *address, size_t size)
{
    if (mprotect(address, size, READ_WRITE) != 0) {
        fail("committing failed: %m");
    }
}

/* One mapping as the program made it, so that it can be moved by one call */
static void grow_reserved(disturb_t *d)
{
    unsigned char *grown;

    commit(d->recv + d->size, d->size);
    memset(d->recv, 1, 2 * d->size);
    grown = resize(d, d->recv, 2 * d->size, 8 * d->size, MREMAP_MAYMOVE);
    if (grown == MAP_FAILED) {
        fail("growing failed: %m");
    }
    if (grown[2 * d->size - 1] != 1) {
        fail("growing lost what was there");
    }
    disturb_unmap(d, grown, 8 * d->size);
}

/* Reserved, committed, communicated; committed further by the next round, and
 * grown */
static void do_grow(disturb_t *d)
{
    if (d->is_reserved) {
        grow_reserved(d);
    } else {
        disturb_unmap(d, d->recv, d->size);
    }

    d->recv = mmap(NULL, 2 * d->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
    if (d->recv == MAP_FAILED) {
        fail("reserving failed: %m");
    }
    commit(d->recv, d->size);
    d->is_reserved = 1;
}

const disturb_way_t disturb_ways[] = {
    {"guard", do_guard},
    {"fixed", do_fixed},
    {"memfd", do_memfd},
    {"hole", do_hole},
    {"onto", do_onto},
    {"swap", do_swap},
    {"dontunmap", do_dontunmap},
    {"discard", do_discard},
    {"part", do_part},
    {"protect", do_protect},
    {"fork", do_fork},
    {"vfork", do_vfork},
    {"system", do_system},
    {"shrink", do_shrink},
    {"grow", do_grow},
    {"merge", do_merge},
    {"collapse", do_collapse},
    {"lengths", NULL},
    {"heap", NULL},
    {"break", NULL},
    {NULL, NULL}
};

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "oracle_disturb.h"

#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_DONTNEED_LOCKED
#  define MADV_DONTNEED_LOCKED 24
#endif

/*
 * What UCX's hooks do not see, and the kernel tells of
 */

static void oracle_raw_munmap(oracle_worker_t *worker, oracle_slot_t *slot)
{
    (void)worker;
    syscall(SYS_munmap, slot->address, slot->length);
    if (syscall(SYS_mmap, slot->address, slot->length, ORACLE_PROT,
                ORACLE_ANON_FLAGS | MAP_FIXED_NOREPLACE, -1, 0L) < 0) {
        syscall(SYS_munmap, slot->address + slot->length, oracle_page);
        oracle_slot_close(slot);
        oracle_slot_map(worker, slot);
        return;
    }
    oracle_slot_close(slot);
    slot->kind = ORACLE_ANON;
}

static void oracle_raw_map_fixed(oracle_worker_t *worker, oracle_slot_t *slot)
{
    size_t length;
    char *address = oracle_part(worker, slot, &length);

    syscall(SYS_mmap, address, length, ORACLE_PROT,
            ORACLE_ANON_FLAGS | MAP_FIXED, -1, 0L);
}

static void oracle_raw_dontneed(oracle_worker_t *worker, oracle_slot_t *slot)
{
    size_t length;
    char *address = oracle_part(worker, slot, &length);

    syscall(SYS_madvise, address, length, MADV_DONTNEED);
}

static void oracle_dontneed_locked(oracle_worker_t *worker,
                                   oracle_slot_t *slot)
{
    size_t length;
    char *address = oracle_part(worker, slot, &length);

    madvise(address, length, MADV_DONTNEED_LOCKED);
}

/* The wrapper of libc is older than Linux's leave to use this on oneself */
static void oracle_process_madvise(oracle_worker_t *worker,
                                   oracle_slot_t *slot)
{
    struct {
        void   *base;
        size_t length;
    } part;

    if (worker->pidfd < 0) {
        worker->pidfd = syscall(SYS_pidfd_open, getpid(), 0);
    }
    part.base = oracle_part(worker, slot, &part.length);
    syscall(SYS_process_madvise, worker->pidfd, &part, 1, MADV_DONTNEED, 0);
}

static void oracle_ring_open(oracle_worker_t *worker)
{
    worker->ring = calloc(1, sizeof(*worker->ring));
    if ((worker->ring == NULL) ||
        (io_uring_queue_init(1, worker->ring, 0) != 0)) {
        oracle_die("io_uring_queue_init");
    }
}

/* A thread of the kernel's makes the call */
static void oracle_uring_madvise(oracle_worker_t *worker, oracle_slot_t *slot)
{
    struct io_uring_cqe *cqe;
    size_t length;
    char *address = oracle_part(worker, slot, &length);

    if (worker->ring == NULL) {
        oracle_ring_open(worker);
    }
    io_uring_prep_madvise(io_uring_get_sqe(worker->ring), address, length,
                          MADV_DONTNEED);
    if ((io_uring_submit(worker->ring) != 1) ||
        (io_uring_wait_cqe(worker->ring, &cqe) != 0) || (cqe->res != 0)) {
        oracle_die("madvise by io_uring");
    }
    io_uring_cqe_seen(worker->ring, cqe);
}

static void oracle_mremap_onto(oracle_worker_t *worker, oracle_slot_t *slot)
{
    void *other;

    (void)worker;
    other = mmap(NULL, slot->length, ORACLE_PROT, ORACLE_ANON_FLAGS, -1, 0);
    if ((other == MAP_FAILED) ||
        (syscall(SYS_mremap, other, slot->length, slot->length,
                 MREMAP_MAYMOVE | MREMAP_FIXED, slot->address) < 0)) {
        oracle_die("mremap");
    }
    oracle_slot_close(slot);
    slot->kind = ORACLE_ANON;
}

#ifdef MREMAP_DONTUNMAP
static void oracle_mremap_dontunmap(oracle_worker_t *worker,
                                    oracle_slot_t *slot)
{
    long other;

    (void)worker;
    other = syscall(SYS_mremap, slot->address, slot->length, slot->length,
                    MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0L);
    if (other > 0) {
        munmap((void*)other, slot->length);
    }
}
#endif

static void oracle_punch_hole(oracle_worker_t *worker, oracle_slot_t *slot)
{
    size_t length;
    char *address = oracle_part(worker, slot, &length);

    length = (length + oracle_page - 1) & ~(oracle_page - 1);
    if (fallocate(slot->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  address - slot->address, length) != 0) {
        oracle_die("fallocate");
    }
}

static void oracle_truncate(oracle_worker_t *worker, oracle_slot_t *slot)
{
    (void)worker;
    if ((ftruncate(slot->fd, 0) != 0) ||
        (ftruncate(slot->fd, slot->length) != 0)) {
        oracle_die("ftruncate");
    }
}

static void oracle_remap_file_pages(oracle_worker_t *worker,
                                    oracle_slot_t *slot)
{
    size_t pages = slot->length / oracle_page;

    syscall(SYS_remap_file_pages,
            slot->address + (oracle_below(worker, pages) * oracle_page),
            oracle_page, 0, oracle_below(worker, pages), 0);
}

static const oracle_disturbance_t oracle_kernel[] = {
    {"raw_munmap", ORACLE_ALL_KINDS, 20, oracle_raw_munmap},
    {"raw_map_fixed", ORACLE_BIT(ORACLE_ANON), 20, oracle_raw_map_fixed},
    {"raw_dontneed", ORACLE_ALL_KINDS, 20, oracle_raw_dontneed},
    {"dontneed_locked", ORACLE_ALL_KINDS, 20, oracle_dontneed_locked},
    {"process_madvise", ORACLE_ALL_KINDS, 20, oracle_process_madvise},
    {"uring_madvise", ORACLE_ALL_KINDS, 20, oracle_uring_madvise},
    {"mremap_onto", ORACLE_ALL_KINDS, 20, oracle_mremap_onto},
#ifdef MREMAP_DONTUNMAP
    {"mremap_dontunmap", ORACLE_BIT(ORACLE_ANON), 20, oracle_mremap_dontunmap},
#endif
    {"punch_hole", ORACLE_BIT(ORACLE_SHARED), 40, oracle_punch_hole},
    {"truncate", ORACLE_BIT(ORACLE_SHARED), 20, oracle_truncate},
    {"remap_file_pages", ORACLE_BIT(ORACLE_SHARED), 20,
     oracle_remap_file_pages}
};

const oracle_disturbances_t oracle_disturbances_kernel = {
    .table   = oracle_kernel,
    .count   = sizeof(oracle_kernel) / sizeof(oracle_kernel[0]),
    .seen_by = ORACLE_SEEN_BY_KERNEL
};

void oracle_disturb_close(oracle_worker_t *worker)
{
    if (worker->pidfd >= 0) {
        close(worker->pidfd);
    }
    if (worker->ring != NULL) {
        io_uring_queue_exit(worker->ring);
        free(worker->ring);
    }
}

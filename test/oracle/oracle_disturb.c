/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle_slot.h"
#include "../newer_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORACLE_BIT(_kind) (1u << (_kind))
#define ORACLE_ALL_KINDS  (ORACLE_BIT(ORACLE_KIND_LAST) - 1)

/* Pages of a file have to be pinned afterwards, which not every kernel does */
#define ORACLE_PINS_FILE  ORACLE_BIT(ORACLE_KIND_LAST)

typedef enum oracle_seen_by {
    ORACLE_SEEN_BY_HOOKS, /* of UCX 1.13 */
    ORACLE_SEEN_BY_KERNEL,
    ORACLE_SEEN_BY_STUB
} oracle_seen_by_t;

/* One way to take pages away from under a registration */
typedef struct oracle_disturbance {
    const char       *name;
    oracle_seen_by_t seen_by;
    unsigned         kinds;  /* of oracle_kind_t, bits, and ORACLE_PINS_FILE */
    unsigned         weight; /* how often, beside the others */
    void             (*run)(oracle_worker_t *worker, oracle_slot_t *slot);
    int              advice; /* of a part of it, if there is no function */
} oracle_disturbance_t;

/*
 * What UCX's hooks see
 */

static void oracle_munmap_same(oracle_worker_t *worker, oracle_slot_t *slot)
{
    char *address = slot->address;

    oracle_slot_unmap(slot);
    oracle_slot_reserve(slot, address);
    oracle_slot_place(slot, oracle_random_kind(worker));
}

static void oracle_munmap_other(oracle_worker_t *worker, oracle_slot_t *slot)
{
    oracle_slot_unmap(slot);
    oracle_slot_map(worker, slot);
}

static void oracle_munmap_part(oracle_worker_t *worker, oracle_slot_t *slot)
{
    char *address, *end;
    size_t length;

    address = oracle_part(worker, slot, &length);
    end     = slot->address + slot->length + oracle_page;
    munmap(address, length);
    length = (length + oracle_page - 1) & ~(oracle_page - 1);
    if (mmap(address, length, ORACLE_PROT,
             ORACLE_ANON_FLAGS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED) {
        return;
    }

    /* Another thread was faster: the hole is its now */
    munmap(slot->address, address - slot->address);
    munmap(address + length, end - (address + length));
    oracle_slot_close(slot);
    oracle_slot_map(worker, slot);
}

static void oracle_map_fixed(oracle_worker_t *worker, oracle_slot_t *slot)
{
    size_t length;
    char *address = oracle_part(worker, slot, &length);

    if (mmap(address, length, ORACLE_PROT, ORACLE_ANON_FLAGS | MAP_FIXED, -1,
             0) == MAP_FAILED) {
        oracle_die("mmap");
    }
}

static void oracle_replace(oracle_worker_t *worker, oracle_slot_t *slot)
{
    oracle_slot_place(slot, oracle_random_kind(worker));
}

static void oracle_protect(oracle_worker_t *worker, oracle_slot_t *slot)
{
    mprotect(slot->address, slot->length, PROT_NONE);
    mprotect(slot->address, slot->length, ORACLE_PROT);
}

/* The page behind the slot is taken, so growing moves the pages. They go on
 * under their new address; the old one gets others. */
static void oracle_mremap_away(oracle_worker_t *worker, oracle_slot_t *slot)
{
    char *old = slot->address;
    void *address;

    address = mremap(old, slot->length, slot->length + oracle_page,
                     MREMAP_MAYMOVE);
    if (address == MAP_FAILED) {
        /* Earlier disturbances have left several mappings here */
        oracle_munmap_same(worker, slot);
        return;
    }
    munmap(address, slot->length + oracle_page);
    munmap(old + slot->length, oracle_page);
    oracle_slot_reserve(slot, old);
    oracle_slot_place(slot, oracle_random_kind(worker));
}

static int oracle_shm_create(size_t length)
{
    int id = shmget(IPC_PRIVATE, length, IPC_CREAT | 0600);

    if (id < 0) {
        oracle_die("shmget");
    }
    return id;
}

static void oracle_shmat_remap(oracle_worker_t *worker, oracle_slot_t *slot)
{
    int id = oracle_shm_create(slot->length);
    void *address;

    address = shmat(id, slot->address, SHM_REMAP);
    shmctl(id, IPC_RMID, NULL);
    if (address == (void*)-1) {
        oracle_die("shmat");
    }
    oracle_slot_close(slot);
    slot->kind = ORACLE_SHM;
}

static void oracle_shmdt(oracle_worker_t *worker, oracle_slot_t *slot)
{
    char *old = slot->address;

    shmdt(old);
    munmap(old + slot->length, oracle_page);
    oracle_slot_reserve(slot, old);
    oracle_slot_place(slot, oracle_random_kind(worker));
}

/* The child of a vfork() has its parent's memory */
static void oracle_vfork_munmap(oracle_worker_t *worker, oracle_slot_t *slot)
{
    char *old = slot->address;
    pid_t pid;

    pid = vfork();
    if (pid == 0) {
        munmap(old, slot->length + oracle_page);
        _exit(0);
    }
    if (pid < 0) {
        return;
    }
    while ((waitpid(pid, NULL, 0) < 0) && (errno == EINTR)) {
    }
    oracle_slot_reserve(slot, old);
    oracle_slot_place(slot, oracle_random_kind(worker));
}

/*
 * What they do not see, and the kernel tells of
 */

static void oracle_raw_munmap(oracle_worker_t *worker, oracle_slot_t *slot)
{
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
    int ret;

    if (worker->ring == NULL) {
        oracle_ring_open(worker);
    }
    io_uring_prep_madvise(io_uring_get_sqe(worker->ring), address, length,
                          MADV_DONTNEED);
    ret = io_uring_submit(worker->ring);
    if (ret == 1) {
        /* A child of posix_spawn() that ends while its thread is still in that
         * call, where signals are blocked, interrupts this one */
        while ((ret = io_uring_wait_cqe(worker->ring, &cqe)) == -EINTR) {
        }
    }
    if ((ret != 0) || (cqe->res != 0)) {
        errno = (ret < 0) ? -ret : (ret == 0) ? -cqe->res : 0;
        oracle_die("madvise by io_uring");
    }
    io_uring_cqe_seen(worker->ring, cqe);
}

static void oracle_mremap_onto(oracle_worker_t *worker, oracle_slot_t *slot)
{
    void *other;

    other = mmap(NULL, slot->length, ORACLE_PROT, ORACLE_ANON_FLAGS, -1, 0);
    if ((other == MAP_FAILED) ||
        (syscall(SYS_mremap, other, slot->length, slot->length,
                 MREMAP_MAYMOVE | MREMAP_FIXED, slot->address) < 0)) {
        oracle_die("mremap");
    }
    oracle_slot_close(slot);
    slot->kind = ORACLE_ANON;
}

static void oracle_mremap_dontunmap(oracle_worker_t *worker,
                                    oracle_slot_t *slot)
{
    long other;

    other = syscall(SYS_mremap, slot->address, slot->length, slot->length,
                    MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0L);
    if (other > 0) {
        munmap((void*)other, slot->length);
    }
}

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

/*
 * What the stub sees
 */

/* New pages when the guard goes. While it is there the range must be refused:
 * a registration of it would be one of before. */
static void oracle_guard(oracle_worker_t *worker, oracle_slot_t *slot)
{
    size_t length;
    char *address = oracle_part(worker, slot, &length);

    if (madvise(address, length, MADV_GUARD_INSTALL) != 0) {
        return; /* an older kernel */
    }
    if ((oracle_below(worker, 4) == 0) &&
        !oracle_is_refused(worker->world, slot->address, slot->length)) {
        errno = 0;
        oracle_die("a guarded range was registered");
    }
    if (madvise(address, length, MADV_GUARD_REMOVE) != 0) {
        oracle_die("madvise");
    }
}

static const oracle_disturbance_t oracle_disturbances[] = {
#define ORACLE_WAY(_seen_by, _kinds, _weight, _name) \
    {#_name, ORACLE_SEEN_BY_##_seen_by, _kinds, _weight, oracle_##_name, 0}
#define ORACLE_ADVICE(_seen_by, _kinds, _weight, _advice) \
    {#_advice, ORACLE_SEEN_BY_##_seen_by, _kinds, _weight, NULL, MADV_##_advice}
    ORACLE_WAY(HOOKS, ORACLE_ALL_KINDS, 60, munmap_same),
    ORACLE_WAY(HOOKS, ORACLE_ALL_KINDS, 10, munmap_other),
    ORACLE_WAY(HOOKS, ORACLE_BIT(ORACLE_ANON), 60, munmap_part),
    ORACLE_WAY(HOOKS, ORACLE_BIT(ORACLE_ANON), 60, map_fixed),
    ORACLE_WAY(HOOKS, ORACLE_ALL_KINDS, 40, replace),
    ORACLE_ADVICE(HOOKS, ORACLE_ALL_KINDS, 60, DONTNEED),
    ORACLE_ADVICE(HOOKS, ORACLE_BIT(ORACLE_ANON), 20, FREE),
    ORACLE_ADVICE(HOOKS, ORACLE_BIT(ORACLE_SHARED), 60, REMOVE),
    ORACLE_ADVICE(HOOKS, ORACLE_ALL_KINDS, 4, PAGEOUT),
    ORACLE_WAY(HOOKS, ORACLE_ALL_KINDS, 10, protect),
    ORACLE_WAY(HOOKS, ORACLE_BIT(ORACLE_ANON), 20, mremap_away),
    ORACLE_WAY(HOOKS, ORACLE_ALL_KINDS | ORACLE_PINS_FILE, 4, shmat_remap),
    ORACLE_WAY(HOOKS, ORACLE_BIT(ORACLE_SHM), 60, shmdt),
    ORACLE_WAY(HOOKS, ORACLE_ALL_KINDS, 1, vfork_munmap),
    ORACLE_WAY(KERNEL, ORACLE_ALL_KINDS, 20, raw_munmap),
    ORACLE_WAY(KERNEL, ORACLE_BIT(ORACLE_ANON), 20, raw_map_fixed),
    ORACLE_WAY(KERNEL, ORACLE_ALL_KINDS, 20, raw_dontneed),
    ORACLE_ADVICE(KERNEL, ORACLE_ALL_KINDS, 20, DONTNEED_LOCKED),
    ORACLE_WAY(KERNEL, ORACLE_ALL_KINDS, 20, process_madvise),
    ORACLE_WAY(KERNEL, ORACLE_ALL_KINDS, 20, uring_madvise),
    ORACLE_WAY(KERNEL, ORACLE_ALL_KINDS, 20, mremap_onto),
    ORACLE_WAY(KERNEL, ORACLE_BIT(ORACLE_ANON), 20, mremap_dontunmap),
    ORACLE_WAY(KERNEL, ORACLE_BIT(ORACLE_SHARED), 40, punch_hole),
    ORACLE_WAY(KERNEL, ORACLE_BIT(ORACLE_SHARED), 20, truncate),
    ORACLE_WAY(KERNEL, ORACLE_BIT(ORACLE_SHARED), 20, remap_file_pages),
    ORACLE_WAY(STUB, ORACLE_BIT(ORACLE_ANON), 40, guard)
};

#define ORACLE_NUM_WAYS \
    (sizeof(oracle_disturbances) / sizeof(oracle_disturbances[0]))

/*
 * Which one
 */

/* 0 if a disturbance does not go with this slot */
static unsigned oracle_weight(const oracle_worker_t *worker,
                              const oracle_slot_t *slot,
                              const oracle_disturbance_t *it)
{
    return (!(it->kinds & ORACLE_BIT(slot->kind)) ||
            ((it->seen_by == ORACLE_SEEN_BY_KERNEL) &&
             worker->options->hooks_only) ||
            ((it->seen_by == ORACLE_SEEN_BY_STUB) &&
             !worker->options->has_stub) ||
            ((it->kinds & ORACLE_PINS_FILE) &&
             !worker->options->takes_files)) ?
           0 : it->weight;
}

void oracle_disturb(oracle_worker_t *worker, oracle_slot_t *slot)
{
    const oracle_disturbance_t *it = oracle_disturbances;
    unsigned total                 = 0;
    unsigned pick, i;
    size_t length;
    char *address;

    for (i = 0; i < ORACLE_NUM_WAYS; ++i) {
        total += oracle_weight(worker, slot, &oracle_disturbances[i]);
    }
    pick = oracle_below(worker, total);
    for (; pick >= oracle_weight(worker, slot, it); ++it) {
        pick -= oracle_weight(worker, slot, it);
    }
    memmove(&slot->history[1], &slot->history[0],
            sizeof(slot->history) - sizeof(slot->history[0]));
    slot->history[0] = it->name;
    if (it->run != NULL) {
        it->run(worker, slot);
    } else {
        address = oracle_part(worker, slot, &length);
        madvise(address, length, it->advice);
    }
}

/* By a raw system call, which nobody tells of. @return Zero if the kernel has
 * no guard pages. */
static int oracle_guard_unseen(oracle_slot_t *slot)
{
    if (syscall(SYS_madvise, slot->address, slot->length,
                MADV_GUARD_INSTALL) != 0) {
        return 0;
    }
    if (syscall(SYS_madvise, slot->address, slot->length,
                MADV_GUARD_REMOVE) != 0) {
        oracle_die("madvise");
    }
    return 1;
}

void oracle_disturb_unseen(oracle_worker_t *worker, oracle_slot_t *slot)
{
    if ((slot->kind == ORACLE_ANON) && oracle_below(worker, 2) &&
        oracle_guard_unseen(slot)) {
        return;
    }
    /* A private copy instead of what is there, whatever that is */
    if (syscall(SYS_mmap, slot->address, slot->length, ORACLE_PROT,
                ORACLE_ANON_FLAGS | MAP_FIXED, -1, 0L) < 0) {
        oracle_die("mmap");
    }
    oracle_slot_close(slot);
    slot->kind = ORACLE_ANON;
}

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

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * What recent kernels have for memory, one after the other. Where a kernel has
 * it not the program goes on: it writes the same with the helper and without.
 */

#include "attack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 10
/* With a large page in it, wherever it lies */
#define LARGE_SIZE (4 * ATTACK_SIZE)

/* Of kernels that are newer than the C library */
#ifndef SYS_mseal
#  define SYS_mseal 462
#endif
#ifndef SYS_memfd_secret
#  define SYS_memfd_secret 447
#endif
#ifndef MAP_DROPPABLE
#  define MAP_DROPPABLE 0x08
#endif
#ifndef PR_SET_MEMORY_MERGE
#  define PR_SET_MEMORY_MERGE 67
#endif

#define OUTCOME(_call) (((_call) == 0) ? "done" : strerror(errno))

/* Linux 5.4, 6.1: pages are written out, and replaced by large ones, but not
 * while they are pinned */
ATTACK(collapse, md)
{
    static const int advice[] = {MADV_HUGEPAGE, MADV_COLLAPSE, MADV_COLD,
                                 MADV_PAGEOUT,  MADV_FREE,     MADV_NOHUGEPAGE};
    char *buffer              = attack_map(LARGE_SIZE);
    unsigned i, k;

    attack_use_often(md, buffer, LARGE_SIZE);
    for (i = 0; i < ROUNDS; ++i) {
        for (k = 0; k < sizeof(advice) / sizeof(advice[0]); ++k) {
            (void)madvise(buffer, LARGE_SIZE, advice[k]);
            attack_use(md, buffer, LARGE_SIZE);
        }
        attack_sleep(1);
    }
    munmap(buffer, LARGE_SIZE);
}

/* Linux 6.4: all pages of the process that are equal may be made one */
ATTACK(merge, md)
{
    char *buffer = attack_map(2 * ATTACK_SIZE);

    attack_use_often(md, buffer, ATTACK_SIZE);
    (void)prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0);
    memset(buffer, 1, 2 * ATTACK_SIZE);
    attack_use_as_is(md, buffer, 2 * ATTACK_SIZE);
    attack_use_often(md, buffer, 2 * ATTACK_SIZE);
    (void)prctl(PR_SET_MEMORY_MERGE, 0, 0, 0, 0);
    attack_use_often(md, buffer, 2 * ATTACK_SIZE);
}

/* Linux 6.10: to be unmapped and changed no more, by nobody */
ATTACK(seal, md)
{
    char *buffer = attack_map(ATTACK_SIZE);

    attack_use_often(md, buffer, ATTACK_SIZE);
    printf("seal: %s\n", OUTCOME(syscall(SYS_mseal, buffer, ATTACK_SIZE, 0)));
    attack_use_often(md, buffer, ATTACK_SIZE);
    printf("discard: %s\n",
           OUTCOME(madvise(buffer, ATTACK_SIZE, MADV_DONTNEED)));
    attack_use(md, buffer, ATTACK_SIZE);
    printf("unmap: %s\n", OUTCOME(munmap(buffer, ATTACK_SIZE)));
}

/* Linux 6.11: the kernel may drop the pages, but not while they are pinned */
ATTACK(droppable, md)
{
    char *buffer = mmap(NULL, ATTACK_SIZE, PROT_READ | PROT_WRITE,
                        MAP_DROPPABLE | MAP_ANONYMOUS, -1, 0);
    int i;

    if (buffer == MAP_FAILED) {
        return;
    }
    attack_use_often(md, buffer, ATTACK_SIZE);
    for (i = 0; i < ROUNDS; ++i) {
        (void)madvise(buffer, ATTACK_SIZE,
                      (i & 1) ? MADV_PAGEOUT : MADV_DONTNEED);
        attack_use(md, buffer, ATTACK_SIZE);
        attack_sleep(1);
    }
}

/* Linux 5.14: memory that the kernel itself cannot read, nor pin. Without the
 * software NIC that is no matter. */
ATTACK(secret, md)
{
    int fd = syscall(SYS_memfd_secret, 0);
    char *buffer;

    if (fd < 0) {
        return;
    }
    if (ftruncate(fd, ATTACK_SIZE) != 0) {
        attack_die("no room: %m");
    }
    buffer = mmap(NULL, ATTACK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (buffer != MAP_FAILED) {
        memset(buffer, 1, ATTACK_SIZE);
        (void)attack_try(md, buffer, ATTACK_SIZE);
        munmap(buffer, ATTACK_SIZE);
    }
    close(fd);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * A program's mappings are what they would be without the helper: they are
 * joined, moved, and as few.
 */

#include "attack.h"
#include "../own_proc.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Twice the kernel's default limit, so that a mapping each would not do */
#define MANY       130000
/* Without the helper some 140 are left of those */
#define FEW        2000
#define MANY_SIZE  (2 * ATTACK_PAGE)
#define LARGE_SIZE (32ul << 20)
#define MOVES      100

/* An array that is walked through, and what becomes of it ahead of the walk every
 * so many pieces */
#define WALK_PIECES 192
#define WALK_PIECE  (128ul << 10)
#define WALK_ROUNDS 3
#define WALK_EVERY  12
#define WALK_AHEAD  5

/* Holes in the program's memory, each left open while the helper prepares for a use.
 * It has most to prepare for a domain's first ones. */
#define HOLES_ROUNDS 8
#define HOLES_USES   32
#define HOLES_MS     2
#define HOLES_SIZE   (1ul << 20)
#define HOLES_FILL   (16ul << 10)

static void commit(void *address, size_t length)
{
    if (mprotect(address, length, PROT_READ | PROT_WRITE) != 0) {
        attack_die("committing failed: %m");
    }
}

static char *reserve(size_t length)
{
    char *address = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                         -1, 0);

    if (address == MAP_FAILED) {
        attack_die("reserving failed: %m");
    }
    return address;
}

/* The kernel enlarges one mapping, and not what it takes for two */
static char *grow(char *address, size_t from, size_t to)
{
    char *moved = mremap(address, from, to, MREMAP_MAYMOVE);

    if (moved == MAP_FAILED) {
        attack_die("moving failed: %m");
    }
    printf("moved, %s\n", (moved[from - 1] == 1) ? "with its contents" :
                                                   "its contents lost");
    return moved;
}

/* Reserved, committed and communicated step by step, and moved */
ATTACK(grow, md)
{
    char *buffer = reserve(8 * ATTACK_SIZE);

    commit(buffer, ATTACK_SIZE);
    attack_use_often(md, buffer, ATTACK_SIZE);
    commit(buffer + ATTACK_SIZE, ATTACK_SIZE);
    attack_use(md, buffer, 2 * ATTACK_SIZE);
    commit(buffer + 2 * ATTACK_SIZE, ATTACK_SIZE);
    memset(buffer, 1, 3 * ATTACK_SIZE);
    buffer = grow(buffer, 3 * ATTACK_SIZE, 16 * ATTACK_SIZE);
    attack_use(md, buffer, 16 * ATTACK_SIZE);
}

/* A thread's stack lies there, for all that can be told from outside */
ATTACK(above_guard, md)
{
    char *buffer = reserve(LARGE_SIZE + ATTACK_PAGE) + ATTACK_PAGE;

    commit(buffer, LARGE_SIZE);
    memset(buffer, 1, LARGE_SIZE);
    attack_use_as_is(md, buffer + LARGE_SIZE / 2, ATTACK_SIZE);
    grow(buffer, LARGE_SIZE, 2 * LARGE_SIZE);
}

/* Each beside the one before, and every other one communicated */
static void many(uct_md_h md, void *(*map)(size_t length))
{
    char *address;
    int i;

    for (i = 0; i < MANY; ++i) {
        address    = map(MANY_SIZE);
        address[0] = 1;
        if (i & 1) {
            attack_use_as_is(md, address, ATTACK_PAGE);
        }
    }
}

ATTACK(mappings, md)
{
    unsigned count;

    many(md, attack_map);
    count = own_proc_mappings();
    if ((count == 0) || (count > FEW)) {
        attack_die("%u mappings", count);
    }
    puts("few mappings");
}

/* The helper does not see them come. There may be more, but not too many. */
ATTACK(mappings_raw, md)
{
    many(md, attack_map_raw);
}

/* To an address that is told, by the C library's function: memory that was
 * communicated, onto memory that was. With UCX 1.13 alone all go astray, for its
 * hook loses that address. */
ATTACK(moved_onto, md)
{
    char *from, *onto, *moved;
    int i, astray = 0;

    for (i = 0; i < MOVES; ++i) {
        from = attack_map(ATTACK_SIZE);
        onto = attack_map(ATTACK_SIZE);
        attack_use(md, from, ATTACK_SIZE);
        attack_use(md, onto, ATTACK_SIZE);
        memset(from, i + 1, ATTACK_SIZE);
        moved = mremap(from, ATTACK_SIZE, ATTACK_SIZE,
                       MREMAP_MAYMOVE | MREMAP_FIXED, onto);
        if ((moved != onto) || (onto[ATTACK_SIZE - 1] != i + 1)) {
            ++astray;
            continue;
        }
        attack_use(md, onto, ATTACK_SIZE);
        munmap(onto, ATTACK_SIZE);
    }
    if ((astray > 0) && (getenv("UCX_MD_HELPER") != NULL)) {
        attack_die("%d of %d moves went astray", astray, MOVES);
    }
}

/* From now on the kernel refuses to move memory to an address that was not asked for, as
 * it does with huge pages */
static void forbid_new_addresses(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    if ((prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ||
        (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)) {
        attack_die("no filter: %m");
    }
}

/* To wherever the kernel likes. Some C libraries, and UCX 1.13's hook, hand it an
 * address all the same, whatever is in the register. */
ATTACK(moved_anywhere, md)
{
    char *address;
    int i, refused = 0;

    attack_use_often(md, attack_map(ATTACK_SIZE), ATTACK_SIZE);
    forbid_new_addresses();
    for (i = 0; i < MOVES; ++i) {
        address = attack_map(ATTACK_SIZE);
        attack_use(md, address, ATTACK_SIZE);
        address = mremap(address, ATTACK_SIZE, (1 + i % 3) * ATTACK_SIZE / 2,
                         MREMAP_MAYMOVE);
        refused += (address == MAP_FAILED);
    }
    if ((refused > 0) && (getenv("UCX_MD_HELPER") != NULL)) {
        attack_die("%d of %d moves were refused", refused, MOVES);
    }
}

static void map_anew(void *address, size_t length)
{
    if (mmap(address, length, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != address) {
        attack_die("mapping anew failed: %m");
    }
}

/* Two pieces, the middle page of one, or what was taken away for a while */
static void disturb(char *address, unsigned how)
{
    switch (how % 4) {
    case 0:
        map_anew(address, 2 * WALK_PIECE);
        break;
    case 1:
        if (madvise(address + WALK_PIECE / 2, ATTACK_PAGE, MADV_DONTNEED) !=
            0) {
            attack_die("giving pages back failed: %m");
        }
        break;
    case 2:
        munmap(address, WALK_PIECE);
        attack_sleep(1);
        map_anew(address, WALK_PIECE);
        break;
    default:
        syscall(SYS_munmap, address, WALK_PIECE);
        map_anew(address, WALK_PIECE);
    }
    memset(address, how, 2 * WALK_PIECE);
}

/* Whatever is registered ahead of a walk, parts of it go while it comes */
ATTACK(walked, md)
{
    char *array = attack_map(WALK_PIECES * WALK_PIECE);
    unsigned round, i;

    memset(array, 1, WALK_PIECES * WALK_PIECE);
    for (round = 0; round < WALK_ROUNDS; ++round) {
        for (i = 0; i < WALK_PIECES; ++i) {
            attack_use(md, array + i * WALK_PIECE, WALK_PIECE);
            if ((i % WALK_EVERY == 0) &&
                (i + WALK_AHEAD + 2 < WALK_PIECES)) {
                attack_sleep(2); /* more is registered */
                disturb(array + (i + WALK_AHEAD) * WALK_PIECE,
                        round + i / WALK_EVERY);
            }
        }
    }
    munmap(array, WALK_PIECES * WALK_PIECE);
}

/* @return So many bytes. If they are unmapped, the kernel puts a small mapping
 * there, for no other gap is left: small ones lie side by side by now, downwards,
 * or upwards in the old layout (setarch -L). */
static char *map_where_the_next_goes(size_t length)
{
    char *last = NULL, *next = attack_map(HOLES_FILL);

    while ((next + HOLES_FILL != last) && (last + HOLES_FILL != next)) {
        last = next;
        next = attack_map(HOLES_FILL);
    }
    return attack_map(length);
}

/* The program maps where it has just unmapped. It has no other thread that could
 * have mapped there in between. */
ATTACK(holes, unused)
{
    char *array = attack_map(HOLES_USES * WALK_PIECE);
    unsigned round, i;
    uct_md_h md;
    char *hole;

    for (round = 0; round < HOLES_ROUNDS; ++round) {
        md   = attack_open();
        hole = map_where_the_next_goes(HOLES_SIZE);
        for (i = 0; i < HOLES_USES; ++i) {
            attack_use(md, array + i * WALK_PIECE, WALK_PIECE);
            munmap(hole, HOLES_SIZE);
            attack_sleep(HOLES_MS);
            map_anew(hole, HOLES_SIZE);
            memset(hole, 0xff, HOLES_SIZE);
        }
        munmap(hole, HOLES_SIZE);
        uct_md_close(md);
    }
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/mem/own_memory.h>

#include <ucs/sys/mem/own_map.h>

#include "address_space.h"
#include <sanitized.h>

#include <uct/ib/helper_md/quiet_fork.h>

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

static bool is_zero(const char *memory, size_t size)
{
    for (size_t i = 0; i < size; ++i) {
        if (memory[i] != 0) {
            return false;
        }
    }
    return true;
}

TEST(test_own_memory, blocks_are_zeroed_apart_and_aligned)
{
    const size_t sizes[] = {1, 64, 65, 1000, 4032, 4033, 70000, 3 << 20};
    std::vector<char *> blocks;

    for (unsigned round = 0; round < 2; ++round) {
        for (size_t size : sizes) {
            for (unsigned i = 0; i < 100; ++i) {
                char *block = (char *)ucs_own_alloc(size);
                ASSERT_NE(nullptr, block);
                EXPECT_EQ(0u, (uintptr_t)block % UCS_OWN_ALIGN);
                EXPECT_TRUE(is_zero(block, size)) << size;
                memset(block, 1 + i, size);
                blocks.push_back(block);
            }
            for (unsigned i = 0; i < 100; ++i) {
                EXPECT_EQ(1 + (int)i, blocks[i][0]);
                EXPECT_EQ(1 + (int)i, blocks[i][size - 1]);
                ucs_own_free(blocks[i]);
            }
            blocks.clear();
        }
    }
    ucs_own_free(nullptr);
}

/* A sanitizer's allocator ends the program */
TEST(test_own_memory, refuses_more_than_there_is)
{
    SKIP_IF_SANITIZED();
    EXPECT_EQ(nullptr, ucs_own_alloc(SIZE_MAX));
    EXPECT_EQ(nullptr, ucs_own_alloc(SIZE_MAX / 2));
}

TEST(test_own_memory, what_is_released_is_used_again)
{
    SKIP_IF_SANITIZED();
    const size_t before = address_space("VmSize");

    for (unsigned i = 0; i < 100000; ++i) {
        ucs_own_free(ucs_own_alloc(100));
        if (i % 100 == 0) {
            ucs_own_free(ucs_own_alloc(1 << 20));
        }
    }
    EXPECT_LE(address_space("VmSize"), before + (256 << 10));
}

TEST(test_own_memory, threads_have_different_blocks)
{
    std::vector<std::thread> threads;

    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            for (unsigned i = 0; i < 20000; ++i) {
                char *block = (char *)ucs_own_alloc(64);
                block[0]    = (char)t;
                block[63]   = (char)t;
                EXPECT_EQ((char)t, block[0]);
                EXPECT_EQ((char)t, block[63]);
                ucs_own_free(block);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}

/* As an ordinary user, and with room for a sixteenth of it */
static int allocate_under_mlockall()
{
    const struct rlimit limit = {64 << 10, 64 << 10};

    if ((setrlimit(RLIMIT_MEMLOCK, &limit) != 0) || (setuid(65534) != 0) ||
        (mlockall(MCL_FUTURE) != 0)) {
        return 77;
    }
    const size_t before = address_space("VmLck");
    char *memory        = (char *)ucs_own_alloc(1 << 20);
    if (memory == nullptr) {
        return 1;
    }
    memory[1 << 19] = 1;
    return (address_space("VmLck") > before + (16 << 10)) ? 2 : 0;
}

TEST(test_own_memory, is_not_locked_by_mlockall)
{
    SKIP_IF_SANITIZED();
    pid_t child = fork();

    if (child == 0) {
        _exit(allocate_under_mlockall());
    }
    int code = wait_for_child(child);
    if (code == 77) {
        GTEST_SKIP() << "cannot become an ordinary user";
    }
    EXPECT_EQ(0, code);
}

/* Whatever a thread of the parent was about at the fork */
TEST(test_own_memory, a_child_finds_no_lock_held)
{
    SKIP_IF_SANITIZED();
    volatile bool is_over = false;
    int status            = 0;
    std::thread other([&] {
        while (!is_over) {
            ucs_own_free(ucs_own_alloc(100));
        }
    });

    /* One child that hangs tells enough */
    for (unsigned i = 0; (i < 50) && (status == 0); ++i) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            void *memory = ucs_own_alloc(100);
            ucs_own_free(memory);
            _exit(memory == nullptr);
        }
        status = wait_for_child(child);
        EXPECT_EQ(0, status);
    }
    is_over = true;
    other.join();
}

/* Where the kernel puts the next mapping of this length, and nothing is any more */
static char *make_hole(size_t length)
{
    char *hole;

    do {
        hole       = (char *)mmap(nullptr, length, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(hole, length);
        void *next = mmap(nullptr, getpagesize(), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (((char *)next >= hole) && ((char *)next < hole + length)) {
            munmap(next, getpagesize());
            return hole;
        }
    } while (true); /* a smaller hole is filled now */
}

/* The program is about to map there, over whatever another thread may have */
TEST(test_own_memory, does_not_lie_in_a_hole_that_the_program_left)
{
    SKIP_IF_SANITIZED();
    const size_t length = 16 << 20;
    char *hole          = make_hole(length);

    for (size_t size : {1ul, 64ul << 10, 1ul << 20}) {
        for (unsigned i = 0; i < 10; ++i) {
            char *pages = (char *)ucs_own_map(size);
            ASSERT_NE(nullptr, pages);
            EXPECT_TRUE((pages + size <= hole) || (pages >= hole + length));
            EXPECT_TRUE(is_zero(pages, size));
            memset(pages, 1, size);
            if (i % 2 == 0) {
                ucs_own_unmap(pages, size);
            }
        }
    }
    void *again = mmap(hole, length, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                       0);
    EXPECT_EQ(hole, again);
    munmap(again, length);
}

/* The program's own, where the next page of ours would lie: pages of ours go on
 * behind it, not where the kernel puts the program's mappings */
TEST(test_own_memory, goes_on_behind_what_is_in_its_way)
{
    SKIP_IF_SANITIZED();
    const size_t size = 1ul << 30, page = getpagesize(), far = 1ul << 43;
    char *before      = (char *)ucs_own_map(page);

    ASSERT_NE(nullptr, before);
    void *wall = mmap(before + page, size, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
                              MAP_FIXED_NOREPLACE,
                      -1, 0);
    for (unsigned i = 0; i < 10; ++i) {
        char *after = (char *)ucs_own_map(page);
        ASSERT_NE(nullptr, after);
        EXPECT_LT((size_t)(after - before) + far, 2 * far) << (void *)after;
        ucs_own_unmap(after, page);
    }
    if (wall != MAP_FAILED) {
        munmap(wall, size);
    }
    ucs_own_unmap(before, page);
}

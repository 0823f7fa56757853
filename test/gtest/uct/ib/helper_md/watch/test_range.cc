/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "far_place.h"

#include <ucs/sys/mem/maps.h>
#include <ucs/sys/proc/spawn.h>
#include <uct/ib/helper_md/watch/range.h>

#include <gtest/gtest.h>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

/* Both ways of asking must agree; the first is skipped on an older kernel */
class test_range : public ::testing::TestWithParam<uct_helper_range_way_t> {
protected:
    static constexpr size_t PAGE   = 4096;
    static constexpr size_t LENGTH = 16 * PAGE;

    void SetUp() override
    {
        if ((GetParam() == UCT_HELPER_RANGE_WAY_QUERY) &&
            (kind(this, 1) == UCT_HELPER_RANGE_UNKNOWN)) {
            GTEST_SKIP() << "this kernel has no PROCMAP_QUERY";
        }
    }

    static char *map(int prot = PROT_READ | PROT_WRITE,
                     int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1,
                     size_t length = LENGTH)
    {
        void *address = mmap(far_place(length), length, prot, flags, fd, 0);

        EXPECT_NE(MAP_FAILED, address);
        return (char*)address;
    }

    /* With a hole on either side, so that nothing touches it */
    static uintptr_t map_alone()
    {
        char *address = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                            -1, LENGTH + 2 * PAGE);

        EXPECT_EQ(0, munmap(address, PAGE));
        EXPECT_EQ(0, munmap(address + PAGE + LENGTH, PAGE));
        return (uintptr_t)address + PAGE;
    }

    uct_helper_range_kind_t kind(const void *address, size_t length)
    {
        return uct_helper_range_find(GetParam(), (uintptr_t)address,
                                     (uintptr_t)address + length, &m_range);
    }

    uct_helper_range_kind_t kind_and_unmap(void *address)
    {
        uct_helper_range_kind_t result = kind(address, LENGTH);

        munmap(address, LENGTH);
        return result;
    }

    uct_helper_range_t m_range = {};
};

TEST_P(test_range, heap_and_main_stack_may_be_kept)
{
    std::string on_heap(100, 'x');
    char on_stack[64];

    EXPECT_EQ(UCT_HELPER_RANGE_PRIVATE, kind(on_heap.data(), 100));
    EXPECT_EQ(UCT_HELPER_RANGE_PRIVATE, kind(on_stack, sizeof(on_stack)));
}

TEST_P(test_range, what_others_can_change_is_told)
{
    int fd     = memfd_create("range", MFD_CLOEXEC);
    int shm_id = shmget(IPC_PRIVATE, LENGTH, IPC_CREAT | 0600);
    void *shm  = shmat(shm_id, nullptr, 0);

    shmctl(shm_id, IPC_RMID, nullptr);
    ASSERT_EQ(0, ftruncate(fd, LENGTH));
    ASSERT_NE((void*)-1, shm);
    EXPECT_EQ(UCT_HELPER_RANGE_FILE,
              kind_and_unmap(map(PROT_READ, MAP_SHARED, fd)));
    EXPECT_EQ(UCT_HELPER_RANGE_FILE,
              kind_and_unmap(map(PROT_READ | PROT_WRITE, MAP_PRIVATE, fd)));
    EXPECT_LE(UCT_HELPER_RANGE_SHARED,
              kind_and_unmap(map(PROT_READ, MAP_SHARED | MAP_ANONYMOUS)));
    EXPECT_LE(UCT_HELPER_RANGE_SHARED, kind(shm, LENGTH));
    EXPECT_EQ(UCT_HELPER_RANGE_FILE, kind("constant", 4));
    shmdt(shm);
    close(fd);
}

TEST_P(test_range, one_bad_page_tells)
{
    char *address = map();

    ASSERT_EQ(0, mprotect(address + 3 * PAGE, PAGE, PROT_NONE));
    EXPECT_EQ(UCT_HELPER_RANGE_NO_ACCESS, kind(address, LENGTH));
    EXPECT_EQ(UCT_HELPER_RANGE_PRIVATE, kind(address, 3 * PAGE));
    ASSERT_EQ(0, munmap(address + 3 * PAGE, PAGE));
    EXPECT_EQ(UCT_HELPER_RANGE_HOLE, kind(address, LENGTH));
    EXPECT_EQ(UCT_HELPER_RANGE_HOLE, kind(address + 3 * PAGE, PAGE));
    EXPECT_EQ(UCT_HELPER_RANGE_PRIVATE, kind(address, 3 * PAGE));
    munmap(address, LENGTH);
}

TEST_P(test_range, end_of_the_address_space_is_a_hole)
{
    EXPECT_EQ(UCT_HELPER_RANGE_HOLE, kind((void*)0x7ffffffff000ul, PAGE));
    EXPECT_EQ(UCT_HELPER_RANGE_HOLE, kind(nullptr, PAGE));
}

TEST_P(test_range, stack_of_another_thread_is_told)
{
    uct_helper_range_kind_t found = UCT_HELPER_RANGE_UNKNOWN;
    char *buffer                  = nullptr;
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, nullptr, 2);
    std::thread thread([&] {
        /* AddressSanitizer keeps plain arrays elsewhere */
        buffer = (char*)__builtin_alloca(64);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    });
    pthread_barrier_wait(&barrier);
    found = kind(buffer, 64);
    pthread_barrier_wait(&barrier);
    thread.join();
    pthread_barrier_destroy(&barrier);
    EXPECT_EQ(UCT_HELPER_RANGE_STACK, found);
}

/* Its neighbour from above may have been merged with it */
TEST_P(test_range, what_lies_far_above_a_guard_is_no_stack)
{
    const size_t length = 64ul << 20;
    char *address       = map(PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                        length);

    ASSERT_EQ(0, mprotect(address, PAGE, PROT_NONE));
    EXPECT_EQ(UCT_HELPER_RANGE_STACK, kind(address + PAGE, PAGE));
    ASSERT_EQ(UCT_HELPER_RANGE_PRIVATE, kind(address + length - PAGE, PAGE));
    EXPECT_GT(m_range.kept, (uintptr_t)address + (1ul << 20));
    EXPECT_LE(m_range.kept, (uintptr_t)address + length - PAGE);
    EXPECT_EQ((uintptr_t)address + PAGE, m_range.start) << "of the mapping";
    munmap(address, length);
}

/* What is reserved, and what of it is in use, is one row up to what is no
 * private anonymous memory */
TEST_P(test_range, row_of_what_touches)
{
    const uintptr_t pages = (uintptr_t)map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                                           -1, 2 * LENGTH);
    int fd                = memfd_create("range", MFD_CLOEXEC);

    ASSERT_EQ(0, ftruncate(fd, PAGE));
    for (uintptr_t page : {pages, pages + 12 * PAGE}) {
        ASSERT_NE(MAP_FAILED, mmap((void*)page, PAGE, PROT_READ,
                                   MAP_PRIVATE | MAP_FIXED, fd, 0));
    }
    for (uintptr_t page : {pages + 2 * PAGE, pages + 4 * PAGE,
                           pages + 6 * PAGE}) {
        ASSERT_EQ(0, mprotect((void*)page, PAGE, PROT_READ | PROT_WRITE));
    }

    EXPECT_EQ(UCT_HELPER_RANGE_STACK, kind((void*)(pages + 4 * PAGE), PAGE));
    EXPECT_TRUE(m_range.is_anonymous);
    EXPECT_EQ(pages + 4 * PAGE, m_range.start);
    EXPECT_EQ(pages + 5 * PAGE, m_range.end);
    EXPECT_EQ(pages + PAGE, m_range.run_start);
    EXPECT_EQ(pages + 12 * PAGE, m_range.run_end);

    EXPECT_EQ(UCT_HELPER_RANGE_NO_ACCESS, kind((void*)(pages + 3 * PAGE), PAGE));
    EXPECT_TRUE(m_range.is_anonymous);
    EXPECT_EQ(pages + PAGE, m_range.run_start);

    kind((void*)pages, 2 * PAGE);
    EXPECT_FALSE(m_range.is_anonymous);

    ASSERT_EQ(0, munmap((void*)(pages + 3 * PAGE), PAGE));
    EXPECT_EQ(UCT_HELPER_RANGE_PRIVATE, kind((void*)(pages + 4 * PAGE), PAGE));
    EXPECT_EQ(pages + 4 * PAGE, m_range.run_start) << "there is a hole";
    munmap((void*)pages, 2 * LENGTH);
    close(fd);
}

TEST_P(test_range, long_row_is_cut)
{
    const unsigned count = 2 * UCT_HELPER_RANGE_RUN_MAX + 41;
    const char *address  = map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                               2 * count * PAGE);
    char *middle         = (char*)address + count * PAGE;

    for (unsigned i = 0; i < 2 * count; i += 2) {
        ASSERT_EQ(0, mprotect((char*)address + i * PAGE, PAGE, PROT_READ));
    }
    kind(middle, PAGE);
    EXPECT_GE(m_range.run_end - m_range.end, UCT_HELPER_RANGE_RUN_MAX * PAGE);
    EXPECT_LT(m_range.run_end - m_range.end, count * PAGE);
    EXPECT_GE(m_range.start - m_range.run_start,
              UCT_HELPER_RANGE_RUN_MAX * PAGE);
    munmap((void*)address, 2 * count * PAGE);
}

/* What touches it and may be kept likewise is told with it: up to what cannot be
 * read, is a file, or may be a stack */
TEST_P(test_range, neighbours_that_may_be_kept)
{
    const uintptr_t pages = map_alone();
    int fd                = memfd_create("range", MFD_CLOEXEC);

    ASSERT_EQ(0, ftruncate(fd, PAGE));
    for (uintptr_t page : {pages + 4 * PAGE, pages + 6 * PAGE}) {
        ASSERT_EQ(0, mprotect((void*)page, PAGE, PROT_READ));
    }
    for (uintptr_t page : {pages + 5 * PAGE, pages + 6 * PAGE,
                           pages + 4 * PAGE}) {
        ASSERT_EQ(UCT_HELPER_RANGE_PRIVATE, kind((void*)page, PAGE));
        EXPECT_EQ(page, m_range.start);
        EXPECT_EQ(page + PAGE, m_range.end);
        EXPECT_EQ(pages, m_range.kept);
        EXPECT_EQ(pages + LENGTH, m_range.kept_end);
    }

    ASSERT_EQ(0, mprotect((void*)(pages + 8 * PAGE), PAGE, PROT_NONE));
    ASSERT_NE(MAP_FAILED, mmap((void*)(pages + 2 * PAGE), PAGE, PROT_READ,
                               MAP_PRIVATE | MAP_FIXED, fd, 0));
    ASSERT_EQ(UCT_HELPER_RANGE_PRIVATE, kind((void*)(pages + 6 * PAGE), PAGE));
    EXPECT_EQ(pages + 3 * PAGE, m_range.kept);
    EXPECT_EQ(pages + 8 * PAGE, m_range.kept_end);

    ASSERT_EQ(0, munmap((void*)(pages + 4 * PAGE), PAGE));
    ASSERT_EQ(UCT_HELPER_RANGE_PRIVATE, kind((void*)(pages + 6 * PAGE), PAGE));
    EXPECT_EQ(pages + 5 * PAGE, m_range.kept) << "there is a hole";
    munmap((void*)pages, LENGTH);
    close(fd);
}

/* It is not told with what lies above it, and that is still kept */
TEST_P(test_range, neighbour_that_may_be_a_stack)
{
    const uintptr_t pages = map_alone();

    ASSERT_EQ(0, mprotect((void*)pages, PAGE, PROT_NONE));
    ASSERT_EQ(0, mprotect((void*)(pages + 4 * PAGE), 4 * PAGE, PROT_READ));
    ASSERT_EQ(UCT_HELPER_RANGE_PRIVATE, kind((void*)(pages + 4 * PAGE), PAGE));
    EXPECT_EQ(pages + 4 * PAGE, m_range.kept);
    EXPECT_EQ(pages + LENGTH, m_range.kept_end);
    munmap((void*)pages, LENGTH);
}

/* Of so many neighbours the last may have a guard below it, which is not seen */
TEST_P(test_range, neighbours_up_to_what_is_not_seen)
{
    const unsigned count  = 2 * UCT_HELPER_RANGE_RUN_MAX;
    const uintptr_t pages = (uintptr_t)map(PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                           count * PAGE);
    const uintptr_t last  = pages + (count - 1) * PAGE;

    for (unsigned i = 0; i < count; i += 2) {
        ASSERT_EQ(0, mprotect((void*)(pages + i * PAGE), PAGE, PROT_READ));
    }
    ASSERT_EQ(0, mprotect((void*)pages, PAGE, PROT_NONE));
    ASSERT_EQ(UCT_HELPER_RANGE_PRIVATE, kind((void*)last, PAGE));
    EXPECT_EQ(last, m_range.kept);
    munmap((void*)pages, count * PAGE);
}

/* Each mapping of this process, as its maps show them */
TEST_P(test_range, agrees_with_every_mapping)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4352];

    while (fgets(line, sizeof(line), maps) != nullptr) {
        uintptr_t start, end;
        unsigned long inode;
        char perms[5];
        ASSERT_EQ(4, sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %lu",
                            &start, &end, perms, &inode)) << line;
        if (strstr(line, "[vsyscall]") != nullptr) {
            continue; /* the kernel's own, no mapping of the process */
        }
        uct_helper_range_kind_t expected =
                (perms[0] != 'r')  ? UCT_HELPER_RANGE_NO_ACCESS :
                (inode != 0)       ? UCT_HELPER_RANGE_FILE :
                (perms[3] == 's')  ? UCT_HELPER_RANGE_SHARED :
                                     UCT_HELPER_RANGE_PRIVATE;
        uct_helper_range_kind_t found = kind((void*)start, PAGE);
        EXPECT_TRUE((found == expected) ||
                    ((expected == UCT_HELPER_RANGE_PRIVATE) &&
                     (found == UCT_HELPER_RANGE_STACK))) << found << line;
    }
    fclose(maps);
}

/* What the program maps next often touches the stack of a thread of ours, and is
 * kept only if that is not taken for a stack of the program's */
TEST_P(test_range, a_stack_of_ours_may_be_kept)
{
    uct_helper_range_t range;
    ucs_spawned_t thread;

    ASSERT_EQ(0, ucs_spawn(&thread, 32 << 10,
                           [](void *arg) { return arg; }, nullptr));
    uintptr_t last = (uintptr_t)thread.stack + thread.length - PAGE;
    uct_helper_range_find(GetParam(), last, last + PAGE, &range);
    EXPECT_LE(range.kept, last);
    (void)ucs_spawn_join(&thread);
}

INSTANTIATE_TEST_SUITE_P(ways, test_range,
                         ::testing::Values(UCT_HELPER_RANGE_WAY_QUERY,
                                           UCT_HELPER_RANGE_WAY_PARSE));

/* What is asked is kept open */
class test_range_kept : public test_range {
protected:
    void SetUp() override
    {
        test_range::SetUp();
        if (!IsSkipped()) {
            m_before = open_maps();
            uct_helper_range_keep();
            m_address = map();
        }
    }

    void TearDown() override
    {
        uct_helper_range_let_go();
        if (m_address != nullptr) {
            EXPECT_EQ(m_before, open_maps());
            munmap(m_address, LENGTH);
        }
    }

    /* Descriptors of anybody's maps */
    static std::vector<int> open_maps()
    {
        std::vector<int> found;

        for (int fd = 0; fd < 1024; ++fd) {
            char target[64]  = "";
            std::string path = "/proc/self/fd/" + std::to_string(fd);
            if ((readlink(path.c_str(), target, sizeof(target) - 1) > 0) &&
                (strstr(target, "/maps") != nullptr)) {
                found.push_back(fd);
            }
        }
        return found;
    }

    std::vector<int> m_before;
    char             *m_address = nullptr;
};

/* Also where the kernel cannot be asked for one mapping, and to count them */
TEST_P(test_range_kept, nothing_else_is_opened)
{
    struct rlimit before;

    getrlimit(RLIMIT_NOFILE, &before);
    struct rlimit none = {0, before.rlim_max};
    long count         = uct_helper_range_count();
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
    EXPECT_NEAR(count, uct_helper_range_count(), 4);
    EXPECT_EQ(UCT_HELPER_RANGE_PRIVATE, kind(m_address, LENGTH));
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_NEAR(count, ucs_maps_count(0, UINTPTR_MAX), 4);
}

/* Threads that read the text at once, each in its own place */
TEST_P(test_range_kept, read_by_several_threads)
{
    std::vector<std::thread> threads;

    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
            uct_helper_range_t range;
            for (int j = 0; j < 200; ++j) {
                EXPECT_EQ(UCT_HELPER_RANGE_PRIVATE,
                          uct_helper_range_find(GetParam(), (uintptr_t)m_address,
                                                (uintptr_t)m_address + LENGTH,
                                                &range));
                EXPECT_GT(uct_helper_range_count(), 10);
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
}

/* It is not opened again: what is opened for a moment may be closed by then */
TEST_P(test_range_kept, closed_by_the_program)
{
    close(open_maps().back());
    EXPECT_EQ(UCT_HELPER_RANGE_UNKNOWN, kind(m_address, LENGTH));
    EXPECT_EQ(-1, uct_helper_range_count());
    EXPECT_EQ(m_before, open_maps());
    uct_helper_range_let_go();
    uct_helper_range_keep();
    EXPECT_EQ(UCT_HELPER_RANGE_PRIVATE, kind(m_address, LENGTH));
}

/* By one that shows another process's memory */
TEST_P(test_range_kept, replaced_by_the_program)
{
    int ours = open_maps().back();
    pid_t pid = fork();

    if (pid == 0) {
        pause();
    }
    std::string path = "/proc/" + std::to_string(pid) + "/maps";
    int other        = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(ours, dup2(other, ours));
    close(other);
    EXPECT_EQ(UCT_HELPER_RANGE_UNKNOWN, kind(m_address, LENGTH));
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    uct_helper_range_let_go();
    EXPECT_GE(fcntl(ours, F_GETFD), 0) << "it is the program's";
    close(ours);
}

INSTANTIATE_TEST_SUITE_P(ways, test_range_kept,
                         ::testing::Values(UCT_HELPER_RANGE_WAY_QUERY,
                                           UCT_HELPER_RANGE_WAY_PARSE,
                                           UCT_HELPER_RANGE_WAY_AUTO));

TEST(test_range_stack, own_stack_but_not_the_main_one)
{
    char on_main[64];
    int own   = 0;
    int main  = 1;
    int other = 1;

    EXPECT_FALSE(uct_helper_range_is_own_stack((uintptr_t)on_main,
                                               (uintptr_t)on_main + 64));
    std::thread([&] {
        /* AddressSanitizer keeps plain arrays elsewhere */
        char *on_stack = (char*)__builtin_alloca(64);
        own   = uct_helper_range_is_own_stack((uintptr_t)on_stack,
                                            (uintptr_t)on_stack + 64);
        main  = uct_helper_range_is_own_stack((uintptr_t)on_main,
                                             (uintptr_t)on_main + 64);
        other = uct_helper_range_is_own_stack((uintptr_t)"x",
                                              (uintptr_t)"x" + 1);
    }).join();
    EXPECT_TRUE(own);
    EXPECT_FALSE(main);
    EXPECT_FALSE(other);
}

TEST(test_range_count, counts_mappings_in_a_range)
{
    size_t page = sysconf(_SC_PAGESIZE);
    char *pages = (char*)mmap(nullptr, 5 * page, PROT_READ,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t from = (uintptr_t)pages + page, to = from + 3 * page;

    ASSERT_NE(MAP_FAILED, pages);
    EXPECT_EQ(1, ucs_maps_count(from, to));
    mprotect(pages + 2 * page, page, PROT_NONE);
    EXPECT_EQ(3, ucs_maps_count(from, to));
    EXPECT_EQ(1, ucs_maps_count(from, from + page));
    munmap(pages + 2 * page, page);
    EXPECT_EQ(2, ucs_maps_count(from, to));
    EXPECT_GT(ucs_maps_count(0, UINTPTR_MAX), 10);
    munmap(pages, 5 * page);
    EXPECT_EQ(0, ucs_maps_count(from, to));
}

TEST(test_range_resident, one_untouched_page_tells)
{
    const size_t page   = 4096;
    const size_t length = 1500 * page;
    char *address       = (char*)mmap(nullptr, length, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t start     = (uintptr_t)address;

    madvise(address, length, MADV_NOHUGEPAGE);
    EXPECT_FALSE(uct_helper_range_is_resident(start, start + page));
    memset(address, 1, length - page);
    EXPECT_TRUE(uct_helper_range_is_resident(start, start + length - page));
    EXPECT_FALSE(uct_helper_range_is_resident(start, start + length));
    memset(address + length - page, 1, page);
    EXPECT_TRUE(uct_helper_range_is_resident(start, start + length));
    munmap(address, length);
    EXPECT_FALSE(uct_helper_range_is_resident(start, start + length));
}

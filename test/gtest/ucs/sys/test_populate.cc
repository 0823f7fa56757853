/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/mem/populate.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#  define MADV_POPULATE_WRITE 23
#endif

class test_populate : public ::testing::Test {
protected:
    static constexpr size_t LENGTH = 3 * UCS_POPULATE_CHUNK + 12345 * 4096;

    void SetUp() override
    {
        m_page = sysconf(_SC_PAGESIZE);
        m_data = map(PROT_READ | PROT_WRITE);
        if ((madvise(m_data, m_page, MADV_POPULATE_WRITE) != 0) &&
            (errno == EINVAL)) {
            GTEST_SKIP() << "this kernel cannot populate (before 5.14)";
        }
        ASSERT_EQ(0, madvise(m_data, m_page, MADV_DONTNEED));
    }

    void TearDown() override
    {
        munmap(m_data, LENGTH);
    }

    static char *map(int prot)
    {
        void *data = mmap(nullptr, LENGTH, prot,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        EXPECT_NE(MAP_FAILED, data);
        (void)madvise(data, LENGTH, MADV_NOHUGEPAGE);
        return static_cast<char*>(data);
    }

    size_t resident(const char *start, size_t length)
    {
        std::vector<unsigned char> vec(length / m_page);
        EXPECT_EQ(0, mincore(const_cast<char*>(start), length, vec.data()));
        size_t count = 0;
        for (unsigned char page : vec) {
            count += page & 1;
        }
        return count * m_page;
    }

    size_t m_page;
    char   *m_data = nullptr;
};

TEST_F(test_populate, all_pages_by_one_and_by_several)
{
    for (unsigned hands : {1, 3}) {
        ucs_populated_t populated = ucs_populate(m_data, LENGTH, nullptr,
                                                 hands);
        EXPECT_EQ(LENGTH, resident(m_data, LENGTH));
        EXPECT_EQ(LENGTH, populated.bytes);
        EXPECT_LE(1u, populated.hands);
        EXPECT_GE(hands, populated.hands);
        EXPECT_EQ(0, m_data[LENGTH - 1]);
        ASSERT_EQ(0, madvise(m_data, LENGTH, MADV_DONTNEED));
    }
}

/* No thread for a chunk that is not there, nor for no chunk */
TEST_F(test_populate, no_more_threads_than_chunks)
{
    EXPECT_EQ(1u, ucs_populate(m_data, UCS_POPULATE_CHUNK, nullptr, 8).hands);
    EXPECT_EQ(0u, ucs_populate(m_data, LENGTH, nullptr, 0).hands);
    EXPECT_EQ(0u, ucs_populate(m_data + 1, m_page, nullptr, 8).hands);
}

/* Of a page that the range has in part nothing is known */
TEST_F(test_populate, whole_pages_only)
{
    ucs_populate(m_data + 1, 4 * m_page, nullptr, 1);
    EXPECT_EQ(0u, resident(m_data, m_page));
    EXPECT_EQ(3 * m_page, resident(m_data + m_page, 3 * m_page));
    EXPECT_EQ(0u, resident(m_data + 4 * m_page, m_page));
}

TEST_F(test_populate, what_was_touched_is_left_and_kept)
{
    memset(m_data, 7, LENGTH);
    EXPECT_EQ(0u, ucs_populate(m_data, LENGTH, nullptr, 2).bytes);
    EXPECT_EQ(7, m_data[LENGTH / 2]);
}

TEST_F(test_populate, stops_where_there_is_nothing)
{
    ASSERT_EQ(0, mprotect(m_data, m_page, PROT_READ));
    EXPECT_EQ(0u, ucs_populate(m_data, UCS_POPULATE_CHUNK, nullptr, 1).bytes);
    ASSERT_EQ(0, mprotect(m_data, m_page, PROT_READ | PROT_WRITE));
    ASSERT_EQ(0, munmap(m_data + UCS_POPULATE_CHUNK, m_page));
    EXPECT_EQ(UCS_POPULATE_CHUNK,
              ucs_populate(m_data, LENGTH, nullptr, 1).bytes);
    EXPECT_EQ(0u, resident(m_data + 2 * UCS_POPULATE_CHUNK,
                           UCS_POPULATE_CHUNK));
}

/* A handler that runs in one of the threads would run beside the program */
TEST_F(test_populate, signals_stay_with_the_caller)
{
    sigset_t before, after;

    memset(&before, 0, sizeof(before)); /* the kernel knows a part of it */
    memset(&after, 0, sizeof(after));
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    ucs_populate(m_data, LENGTH, nullptr, 4);
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
}

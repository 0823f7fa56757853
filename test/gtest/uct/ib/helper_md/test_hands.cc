/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "decorator_fixture.h"

#include <uct/ib/helper_md/hands.h>

#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#  define MADV_POPULATE_WRITE 23
#endif

/** Whether the last page is in memory when the domain below is asked. */
class test_many_hands : public test_decorator {
protected:
    static constexpr size_t LENGTH = UCT_HELPER_HANDS_MIN;

    void SetUp() override
    {
        test_decorator::SetUp();
        if (IsSkipped()) {
            return;
        }
        m_page  = sysconf(_SC_PAGESIZE);
        m_range = static_cast<char*>(
                mmap(nullptr, LENGTH, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        ASSERT_NE(MAP_FAILED, (void*)m_range);
        if ((madvise(m_range, m_page, MADV_POPULATE_WRITE) != 0) &&
            (errno == EINVAL)) {
            GTEST_SKIP() << "this kernel cannot populate (before 5.14)";
        }
        m_config.populate_threads = 2;
    }

    void TearDown() override
    {
        if (m_range != nullptr) {
            munmap(m_range, LENGTH);
        }
        test_decorator::TearDown();
    }

    /* @return Zero if the domain below found it as it was */
    int populated(size_t length, unsigned flags)
    {
        fake_lower lower;
        int found = -1;

        lower.on_reg = [&](void *address, size_t reg_length) {
            unsigned char vec = 0;
            if (address == m_range) {
                EXPECT_EQ(0, mincore(m_range + reg_length - m_page, m_page,
                                     &vec));
                found = vec & 1;
            }
            return UCS_OK;
        };
        attach(lower);
        uct_mem_h memh = reg(lower, m_range, length, flags);
        EXPECT_EQ(UCS_OK, dereg(lower, memh));
        close(lower);
        EXPECT_EQ(0, madvise(m_range, LENGTH, MADV_DONTNEED));
        return found;
    }

    size_t m_page;
    char   *m_range = nullptr;
};

TEST_F(test_many_hands, what_the_program_maps_is_populated)
{
    EXPECT_EQ(1, populated(LENGTH, access));
}

TEST_F(test_many_hands, nothing_else_is)
{
    EXPECT_EQ(0, populated(LENGTH - m_page, access));
    EXPECT_EQ(0, populated(LENGTH, UCT_MD_MEM_ACCESS_RMA));
    EXPECT_EQ(0, populated(LENGTH, access | UCT_MD_MEM_FLAG_HIDE_ERRORS));
    EXPECT_EQ(0, populated(LENGTH, access | UCT_MD_MEM_FLAG_NONBLOCK));
}

TEST_F(test_many_hands, off_and_one_leave_it_to_the_registration)
{
    for (unsigned threads : {0, 1}) {
        m_config.populate_threads = threads;
        EXPECT_EQ(0, populated(LENGTH, access)) << threads;
    }
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/mem/maps.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

class test_maps : public ::testing::Test {
protected:
    void SetUp() override
    {
        m_fd = ucs_maps_open(&m_own);
        ASSERT_GE(m_fd, 0);
        /* The first and the last one cannot be merged with a neighbour */
        m_page = sysconf(_SC_PAGESIZE);
        m_area = (char*)mmap(nullptr, 4 * m_page, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, (void*)m_area);
        mprotect(m_area + m_page, m_page, PROT_READ);
        mprotect(m_area + 2 * m_page, m_page, PROT_READ | PROT_WRITE);
    }

    void TearDown() override
    {
        munmap(m_area, 4 * m_page);
        ucs_own_fd_close(&m_own);
    }

    uintptr_t at(unsigned page) const
    {
        return (uintptr_t)m_area + page * m_page;
    }

    static int gather(void *arg, const ucs_maps_vma_t *vma)
    {
        static_cast<std::vector<ucs_maps_vma_t>*>(arg)->push_back(*vma);
        return 1;
    }

    static int only_one(void *arg, const ucs_maps_vma_t*)
    {
        ++*static_cast<int*>(arg);
        return 0;
    }

    ucs_own_fd_t m_own = UCS_OWN_FD_INIT;
    int    m_fd;
    size_t m_page;
    char   *m_area;
};

TEST_F(test_maps, text_tells_of_each_in_order)
{
    std::vector<ucs_maps_vma_t> all;
    uintptr_t end   = 0;
    unsigned flags  = UCS_MAPS_NEXT, files = 0;
    uintptr_t place = (uintptr_t)&gather;

    ASSERT_EQ(0, ucs_maps_each(&m_own, gather, &all));
    for (auto &vma : all) {
        EXPECT_LE(end, vma.start);
        EXPECT_LT(vma.start, vma.end);
        end    = vma.end;
        files += vma.is_file;
        if ((vma.start <= at(2)) && (vma.end > at(2))) {
            EXPECT_EQ(at(2), vma.start);
            EXPECT_EQ(at(3), vma.end);
            flags = vma.flags;
        }
        if ((vma.start <= place) && (vma.end > place)) {
            EXPECT_TRUE(vma.is_file);
            EXPECT_TRUE(vma.flags & UCS_MAPS_EXEC);
        }
    }
    EXPECT_EQ(unsigned(UCS_MAPS_READABLE | UCS_MAPS_WRITABLE), flags);
    EXPECT_GT(files, 0u);
}

TEST_F(test_maps, stops_when_it_is_told_to)
{
    int count = 0;

    EXPECT_EQ(0, ucs_maps_each(&m_own, only_one, &count));
    EXPECT_EQ(1, count);
}

TEST_F(test_maps, counts_what_overlaps)
{
    EXPECT_EQ(1, ucs_maps_count(at(1), at(2)));
    EXPECT_EQ(2, ucs_maps_count(at(1), at(3)));
    EXPECT_GT(ucs_maps_count(0, UINTPTR_MAX), 4);
}

TEST_F(test_maps, kernel_answers_as_it_writes)
{
    ucs_maps_vma_t vma;
    int ret = ucs_maps_query(m_fd, at(1), 0, &vma);

    if (ret == -ENOTTY) {
        GTEST_SKIP() << "the kernel has no PROCMAP_QUERY";
    }
    ASSERT_EQ(0, ret);
    EXPECT_EQ(at(1), vma.start);
    EXPECT_EQ(at(2), vma.end);
    EXPECT_EQ(unsigned(UCS_MAPS_READABLE), vma.flags);
    EXPECT_FALSE(vma.is_file);

    munmap(m_area + m_page, m_page);
    EXPECT_EQ(-ENOENT, ucs_maps_query(m_fd, at(1), 0, &vma));
    EXPECT_EQ(0, ucs_maps_query(m_fd, at(1), UCS_MAPS_NEXT, &vma));
    EXPECT_EQ(at(2), vma.start);
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/ib/helper_md/watch/calls.h>
#include <uct/ib/test_paths.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

/* The stub's functions, in a library that is opened and not preloaded: nobody
 * but the test calls them */
class test_preload_memory : public ::testing::Test {
protected:
    typedef int (*munmap_func_t)(void *address, size_t length);

    void SetUp() override
    {
        static const uct_helper_calls_t calls = {
            .discard = discard,
            .leave   = leave,
            .unmap   = unmap,
            .place   = place,
            .mapped  = mapped
        };

        told().clear();
        /* It has made itself known to the C library, so it stays */
        m_library = dlopen(TEST_PRELOAD_LIBRARY,
                           RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        ASSERT_NE(nullptr, m_library) << dlerror();
        m_munmap = (munmap_func_t)dlvsym(m_library, "munmap",
                                         TEST_PRELOAD_LIBC);
        ASSERT_NE(nullptr, (void*)m_munmap) << dlerror();
        m_mmap = (__typeof__(&mmap))dlvsym(m_library, "mmap", TEST_PRELOAD_LIBC);
        ASSERT_NE(nullptr, (void*)m_mmap) << dlerror();
        m_mremap = (__typeof__(&mremap))dlvsym(m_library, "mremap",
                                               TEST_PRELOAD_LIBC);
        ASSERT_NE(nullptr, (void*)m_mremap) << dlerror();
        m_listen = (uct_helper_calls_listen_func_t)dlsym(
                m_library, UCT_HELPER_CALLS_LISTEN);
        ASSERT_NE(nullptr, (void*)m_listen) << dlerror();
        m_page    = sysconf(_SC_PAGESIZE);
        m_address = mmap(nullptr, 2 * m_page, PROT_READ,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, m_address);
        m_listen(&calls);
    }

    void TearDown() override
    {
        if (m_listen != nullptr) {
            m_listen(nullptr);
        }
        munmap(m_address, 2 * m_page);
        if (m_library != nullptr) {
            dlclose(m_library);
        }
    }

    static std::vector<std::string> &told()
    {
        static std::vector<std::string> list;
        return list;
    }

    /* Whether the page at @a address is mapped */
    static void tell(const char *what, void *address)
    {
        unsigned char vec;
        int is_mapped = (mincore(address, 1, &vec) == 0);

        told().push_back(std::string(what) + (is_mapped ? " mapped" : " gone"));
        errno = EDOM;
    }

    static void discard(void *address, size_t) { tell("discard", address); }
    static void leave(void *address, size_t) { tell("leave", address); }
    static void unmap(void *address, size_t) { tell("unmap", address); }
    static void place(void *address, size_t) { tell("place", address); }
    static void mapped(void *address, size_t) { tell("mapped", address); }

    void                           *m_library = nullptr;
    munmap_func_t                  m_munmap   = nullptr;
    __typeof__(&mmap)              m_mmap     = nullptr;
    __typeof__(&mremap)            m_mremap   = nullptr;
    uct_helper_calls_listen_func_t m_listen   = nullptr;
    size_t                         m_page     = 0;
    void                           *m_address = nullptr;
};

/* Before, that it be watched no more; after, for what was learned since */
TEST_F(test_preload_memory, munmap_is_told_before_and_after)
{
    EXPECT_EQ(0, m_munmap(m_address, m_page));
    EXPECT_EQ((std::vector<std::string>{"unmap mapped", "discard gone"}),
              told());
}

TEST_F(test_preload_memory, munmap_that_is_refused)
{
    errno = 0;
    EXPECT_EQ(-1, m_munmap(m_address, 0));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_EQ((std::vector<std::string>{"unmap mapped", "mapped mapped"}),
              told());
}

TEST_F(test_preload_memory, munmap_within_a_page_is_not_told)
{
    EXPECT_EQ(-1, m_munmap((char*)m_address + 1, m_page));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_TRUE(told().empty());
}

/* For what was learned of it since the event */
TEST_F(test_preload_memory, what_was_moved_away_is_told_afterwards)
{
    void *to = (char*)m_address + m_page;

    EXPECT_EQ(to, m_mremap(m_address, m_page, m_page,
                           MREMAP_MAYMOVE | MREMAP_FIXED, to));
    EXPECT_EQ((std::vector<std::string>{"discard mapped", "place mapped",
                                        "leave mapped", "discard gone",
                                        "mapped mapped"}),
              told());
}

TEST_F(test_preload_memory, what_could_not_be_moved_is_there)
{
    EXPECT_EQ(MAP_FAILED, m_mremap(m_address, m_page, 2 * m_page, 0));
    EXPECT_EQ((std::vector<std::string>{"leave mapped", "mapped mapped"}),
              told());
}

/* Its kind is not kept, but what lay there may be taken for what was kept */
TEST_F(test_preload_memory, what_was_mapped_over_is_told_afterwards)
{
    EXPECT_EQ(m_address, m_mmap(m_address, m_page, PROT_READ,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    EXPECT_EQ((std::vector<std::string>{"discard mapped"}), told());
    told().clear();
    void *other = m_mmap((char*)m_address + m_page, m_page, PROT_READ,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(MAP_FAILED, other);
    EXPECT_TRUE(told().empty());
    munmap(other, m_page);
}

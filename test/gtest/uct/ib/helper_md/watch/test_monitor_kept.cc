/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "monitor_fixture.h"
#include <sanitized.h>

#include <thread>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <sys/shm.h>

/*
 * What may not be kept
 */

TEST_F(test_monitor, shared_and_file_memory_is_dropped_after_use)
{
    int fd = memfd_create("monitor", MFD_CLOEXEC);

    ASSERT_EQ(0, ftruncate(fd, LENGTH));
    attach();
    for (int flags : {MAP_SHARED, MAP_PRIVATE}) {
        char *address = (char*)mmap(nullptr, LENGTH, PROT_READ | PROT_WRITE,
                                    flags, fd, 0);
        memset(address, 1, LENGTH);
        expect_dropped(address);
        /* Nobody is told of these */
        EXPECT_EQ(0, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               0, LENGTH));
        EXPECT_EQ(0, ftruncate(fd, 0));
        EXPECT_EQ(0, ftruncate(fd, LENGTH));
        munmap(address, LENGTH);
    }
    ::close(fd);
}

/* One that the program brought along, in memory like any other */
TEST_F(test_monitor, stack_without_a_guard_is_dropped_after_use)
{
    const size_t size           = 16 * LENGTH;
    std::function<void()> body  = [this] {
        char on_stack[LENGTH];
        expect_dropped(on_stack);
    };
    void *stack       = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t id;

    attach();
    pthread_attr_init(&attr);
    ASSERT_EQ(0, pthread_attr_setstack(&attr, stack, size));
    ASSERT_EQ(0, pthread_create(&id, &attr, [](void *arg) -> void* {
        (*static_cast<std::function<void()>*>(arg))();
        return nullptr;
    }, &body));
    pthread_join(id, nullptr);
    pthread_attr_destroy(&attr);
    munmap(stack, size);
}

/* The lower domain of this test pins nothing, so what is not touched stays out
 * of memory. Once the helper is seen to foresee the uses of one buffer, the
 * same number of uses of an untouched one must all come to a buffer that is not
 * registered. */
TEST_F(test_monitor, helper_brings_no_page_into_memory)
{
    char *untouched = (char*)mmap(nullptr, LENGTH, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned hits   = 0;
    unsigned count  = 0;

    m_config.policy = UCS_REGCACHE_POLICY_PAPER;
    attach();
    for (count = 0; (count < 5000) && (hits < 5); ++count) {
        hits += is_hit(m_buffer);
        usleep(3000); /* the period of the uses, to be learned */
    }
    ASSERT_EQ(5u, hits) << "the helper foresees nothing";
    for (hits = 0; count > 0; --count) {
        hits += is_hit(untouched);
        /* A helper that is late keeps what it would not bring back */
        for (int i = 0; (i < 10000) && (m_lower.live_count() > 0); ++i) {
            usleep(100);
        }
        usleep(3000); /* as above */
    }
    EXPECT_EQ(0u, hits);
    munmap(untouched, LENGTH);
}

/* The page that wakes the reader does not lie where the kernel puts a page: in a
 * hole where the program may map something else in its place */
TEST_F(test_monitor, page_of_ours_is_in_no_hole)
{
    const size_t page = 4096;
    std::vector<void*> above;

    attach(); /* the first one tries memory events out */
    use(m_buffer);
    close();

    char *pages = (char*)mmap(nullptr, 2 * page + LENGTH, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *hole  = pages + page;
    void *found;

    ASSERT_NE(MAP_FAILED, (void*)pages);
    memset(pages + 2 * page, 1, LENGTH);
    unmap(hole, page);
    do {
        found = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                     0);
        ASSERT_NE(MAP_FAILED, found);
        above.push_back(found);
    } while ((found != hole) && (above.size() < 1000));
    ASSERT_EQ(hole, found);
    unmap(hole, page);
    above.pop_back();

    attach();
    use(pages + 2 * page);
    EXPECT_TRUE(is_hit(pages + 2 * page));
    found = mmap(hole, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    close();
    above.push_back(found);
    above.push_back(pages);
    for (void *address : above) {
        munmap(address, page);
    }
    munmap(pages + 2 * page, LENGTH);
    SKIP_IF_SANITIZED(); /* its own pages come there */
    EXPECT_EQ(hole, found) << "something is there";
}

/* Threads one after the other: the second has the stack of the first */
TEST_F(test_monitor, recycled_stack)
{
    char *buffers[2] = {};

    attach();
    for (int i = 0; i < 2; ++i) {
        unsigned before = m_lower.reg_count();
        std::thread([&] {
            char on_stack[LENGTH];
            buffers[i] = on_stack;
            expect_dropped(on_stack);
        }).join();
        EXPECT_EQ(before + 2, m_lower.reg_count()) << "one for each use";
        EXPECT_EQ(0u, m_lower.live_count());
    }
    EXPECT_EQ(buffers[0], buffers[1]);
}

/* userfaultfd does not see it, UCM's hook of shmat() does */
TEST_F(test_monitor, shmat_remap)
{
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "UCM's hooks and ThreadSanitizer exclude each other";
#endif
    int id = shmget(IPC_PRIVATE, LENGTH, IPC_CREAT | 0600);

    m_config.monitor = UCT_HELPER_MONITOR_AUTO;
    attach();
    use(m_buffer);
    ASSERT_TRUE(is_hit(m_buffer));
    ASSERT_EQ((void*)m_buffer, shmat(id, m_buffer, SHM_REMAP));
    EXPECT_FALSE(is_hit(m_buffer));
    EXPECT_EQ(0u, m_lower.live_count()); /* and it is shared now */
    shmdt(m_buffer);
    shmctl(id, IPC_RMID, nullptr);
    m_buffer = nullptr;
}

/* Where something has just been mapped nothing of before can be registered */
TEST_F(test_monitor, a_fresh_mapping_strikes_with_ucm)
{
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "UCM's hooks and ThreadSanitizer exclude each other";
#endif
    m_config.monitor = UCT_HELPER_MONITOR_UCM;
    attach();
    use(m_buffer);
    ASSERT_TRUE(is_hit(m_buffer));
    unmap(m_buffer); /* UCM does not see it */
    ASSERT_EQ((void*)m_buffer,
              mmap(m_buffer, LENGTH, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
    EXPECT_FALSE(is_hit(m_buffer));
}

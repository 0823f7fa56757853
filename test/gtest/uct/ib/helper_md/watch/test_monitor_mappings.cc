/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../device/mapping.h"
#include "held_lock.h"
#include "../log_capture.h"
#include "monitor_fixture.h"

#include <uct/ib/helper_md/watch/calls.h>
#include <uct/ib/helper_md/watch/events.h>
#include <uct/ib/helper_md/watch/monitor_parts.h>
#include <ucs/sys/mem/maps.h>
#include <ucs/sys/proc/thread.h>
#include <uct/ib/helper_md/watch/range.h>
#include <uct/ib/helper_md/watch/trust.h>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

/*
 * A program's mappings are what they would be without us
 */

class test_monitor_mappings : public test_monitor {
protected:
    static constexpr size_t RESERVED = 8 * LENGTH;

    /* For a single mapping: what is mapped is known by that alone */
    bool can_ask()
    {
        uct_helper_range_t range;

        return uct_helper_range_find(UCT_HELPER_RANGE_WAY_QUERY,
                                     (uintptr_t)m_area,
                                     (uintptr_t)m_area + LENGTH, &range) !=
               UCT_HELPER_RANGE_UNKNOWN;
    }

    void SetUp() override
    {
        test_monitor::SetUp();
        if (!IsSkipped()) {
            attach();
            m_area = (char*)syscall(SYS_mmap, far_place(RESERVED), RESERVED,
                                    PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1l,
                                    0l);
            ASSERT_NE(MAP_FAILED, (void*)m_area);
        }
    }

    void TearDown() override
    {
        test_monitor::TearDown(); /* closes the domain */
        if (m_area != nullptr) {
            syscall(SYS_munmap, m_area, RESERVED);
        }
    }

    /* One of the program's own */
    static int open_userfaultfd()
    {
        struct uffdio_api api = {UFFD_API, 0, 0};
        int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);

        EXPECT_EQ(0, ioctl(fd, UFFDIO_API, &api));
        return fd;
    }

    /* Others may be */
    void expect_not_kept(char *address)
    {
        unsigned before = m_lower.live_count();

        use(address);
        EXPECT_EQ(before, m_lower.live_count());
        EXPECT_FALSE(is_hit(address));
    }

    /* By the kernel's account, whatever it is called by; and written to */
    static void commit(char *address, size_t length = LENGTH)
    {
        ASSERT_EQ(0, syscall(SYS_mprotect, address, length,
                             PROT_READ | PROT_WRITE));
        memset(address, 1, length);
    }

    /* As the stub sees it */
    static void map_over(char *address, size_t length = LENGTH)
    {
        uct_helper_calls.place(address, length);
        ASSERT_EQ((long)address,
                  syscall(SYS_mmap, address, length, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1l, 0l));
        uct_helper_calls.mapped(address, length);
    }

    long count() const
    {
        return ucs_maps_count((uintptr_t)m_area,
                                      (uintptr_t)m_area + RESERVED);
    }

    /* Nonzero if the range is one mapping for the kernel, which alone can say
     * so: a border is where mremap() fails */
    static bool is_one(char *address, size_t length)
    {
        char *moved = (char*)syscall(SYS_mremap, address, length, 2 * length,
                                     MREMAP_MAYMOVE, 0);
        if ((void*)moved == MAP_FAILED) {
            EXPECT_EQ(EFAULT, errno);
            return false;
        }
        syscall(SYS_munmap, moved, 2 * length);
        return true;
    }

    /* As the kernel says */
    static bool is_watched(char *address)
    {
        return mapping_of(address).flags.find(" uw") != std::string::npos;
    }

    char *m_area = nullptr;
};

TEST_F(test_monitor_mappings, reserve_and_commit)
{
    commit(m_area);
    use(m_area);
    EXPECT_TRUE(is_hit(m_area));
    commit(m_area + LENGTH);
    EXPECT_EQ(2, count());
    EXPECT_TRUE(is_hit(m_area)) << "nothing has gone";
    EXPECT_TRUE(is_one(m_area, 2 * LENGTH));
}

TEST_F(test_monitor_mappings, mapped_beside_what_is_watched)
{
    map_over(m_area);
    memset(m_area, 1, LENGTH);
    use(m_area);
    map_over(m_area + LENGTH);
    memset(m_area, 1, 2 * LENGTH);
    EXPECT_EQ(2, count());
    EXPECT_TRUE(is_hit(m_area));
    EXPECT_TRUE(is_one(m_area, 2 * LENGTH));
}

/* The one that fills the gap is joined with what is below, whichever is
 * watched. What lies above had pages of its own by then, and is not joined. */
TEST_F(test_monitor_mappings, mapped_between)
{
    if (!can_ask()) {
        GTEST_SKIP() << "this kernel has no PROCMAP_QUERY";
    }
    for (char *used : {m_area, m_area + 2 * LENGTH}) {
        syscall(SYS_munmap, m_area, RESERVED);
        for (char *address : {m_area, m_area + 2 * LENGTH}) {
            map(address, MAP_FIXED_NOREPLACE);
        }
        use(used);
        map_over(m_area + LENGTH);
        memset(m_area, 1, 2 * LENGTH);
        EXPECT_EQ(2, count());
        EXPECT_TRUE(is_one(m_area, 2 * LENGTH));
    }
}

/* A kernel moves several mappings at once only if none of them is watched */
TEST_F(test_monitor_mappings, several_move_at_once)
{
    char *to = map(far_place(LENGTH));

    commit(m_area);
    ASSERT_EQ(0, mprotect(m_area, LENGTH / 2, PROT_READ));
    if ((void*)syscall(SYS_mremap, m_area, LENGTH, LENGTH,
                       MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
        unmap(to);
        GTEST_SKIP() << "this kernel does not do that";
    }
    use(to);
    uct_helper_calls.leave(to, LENGTH);
    EXPECT_EQ((long)m_area, syscall(SYS_mremap, to, LENGTH, LENGTH,
                                    MREMAP_MAYMOVE | MREMAP_FIXED, m_area))
            << strerror(errno);
    uct_helper_calls.mapped(m_area, LENGTH);
    EXPECT_FALSE(is_hit(m_area)) << "it was elsewhere";
    EXPECT_TRUE(is_hit(m_area));
}

/* What had left and was not moved is as it was */
TEST_F(test_monitor_mappings, refused_move)
{
    commit(m_area, 2 * LENGTH);
    use(m_area);
    uct_helper_calls.leave(m_area + LENGTH, LENGTH);
    EXPECT_EQ(3, count()) << "a part was watched no more";
    uct_helper_calls.mapped(m_area + LENGTH, LENGTH);
    EXPECT_EQ(2, count());
    EXPECT_TRUE(is_one(m_area, 2 * LENGTH));
}

/* The stack heuristics leave out what lies just above a guard: to be kept, not
 * to be watched */
TEST_F(test_monitor_mappings, above_a_guard)
{
    const size_t length = 32ul << 20;
    char *guard         = (char*)mmap(nullptr, length + 4096, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                              0);
    char *address       = guard + 4096;

    ASSERT_EQ(0, mprotect(address, length, PROT_READ | PROT_WRITE));
    memset(address + length / 2, 1, LENGTH);
    use(address + length / 2);
    EXPECT_TRUE(is_hit(address + length / 2));
    EXPECT_TRUE(is_one(address, length));
    munmap(guard, 4096);
}

/* What touches a buffer and cannot be watched with it is not known with it */
TEST_F(test_monitor_mappings, beside_the_programs_own_userfaultfd)
{
    struct uffdio_register range = {};
    int fd                       = open_userfaultfd();

    commit(m_area, 3 * LENGTH);
    range.range = {(uintptr_t)m_area + LENGTH, LENGTH};
    range.mode  = UFFDIO_REGISTER_MODE_MISSING;
    ASSERT_EQ(0, ioctl(fd, UFFDIO_REGISTER, &range));
    use(m_area);
    use(m_area + 2 * LENGTH);
    EXPECT_TRUE(is_hit(m_area));
    EXPECT_TRUE(is_hit(m_area + 2 * LENGTH));
    expect_not_kept(m_area + LENGTH);
    ::close(fd);
}

/* The program's own userfaultfd comes first */
TEST_F(test_monitor_mappings, programs_own_userfaultfd)
{
    struct uffdio_register range = {};
    int fd                       = open_userfaultfd();

    commit(m_area, 3 * LENGTH);
    use(m_area);
    use(m_area + LENGTH);
    range.range = {(uintptr_t)m_area + LENGTH, LENGTH};
    range.mode  = UFFDIO_REGISTER_MODE_MISSING;
    ASSERT_EQ(-1, ioctl(fd, UFFDIO_REGISTER, &range));
    ASSERT_EQ(EBUSY, errno);
    uct_helper_calls.leave(m_area + LENGTH, LENGTH);
    EXPECT_EQ(0, ioctl(fd, UFFDIO_REGISTER, &range)) << strerror(errno);
    EXPECT_TRUE(is_hit(m_area));
    EXPECT_FALSE(is_hit(m_area + LENGTH));
    EXPECT_EQ(1u, m_lower.live_count()) << "theirs is not kept";
    /* And what touches theirs can be */
    use(m_area + 2 * LENGTH);
    EXPECT_TRUE(is_hit(m_area + 2 * LENGTH));
    ::close(fd);
}

/* The reader finds the notes held by this thread when it reads that the area was
 * unmapped, and cannot pass that on for some milliseconds. What was mapped
 * there meanwhile is watched, and so is then what is mapped beside it. */
TEST_F(test_monitor_mappings, what_was_mapped_since_is_watched)
{
    char *lower = m_area + 2 * LENGTH, *upper = lower + LENGTH;
    uct_helper_range_t range;

    if (!can_ask()) {
        GTEST_SKIP() << "this kernel has no PROCMAP_QUERY";
    }
    for (int i = 0; i < 8; ++i) {
        syscall(SYS_munmap, m_area, RESERVED); /* nothing else touches them */
        map_over(lower, 2 * LENGTH);
        use(lower, 2 * LENGTH);
        use(m_buffer);
        with_index_lock([&] {
            ASSERT_TRUE(uct_helper_watched_try_hold());
            syscall(SYS_munmap, lower, 2 * LENGTH);
            map(upper, MAP_FIXED_NOREPLACE);
            uct_helper_watched_let_go();
            (void)uct_helper_monitor_spread((uintptr_t)upper,
                                            (uintptr_t)upper + LENGTH, &range);
        });
        unmap(m_buffer); /* this thread waits for the reader */
        m_buffer = map();
        map_over(lower);
        EXPECT_TRUE(is_watched(lower));
        memset(lower, 1, LENGTH);
        EXPECT_TRUE(is_one(lower, 2 * LENGTH));
    }
}

/* What touches a buffer is watched and known with it, each by itself */
TEST_F(test_monitor_mappings, neighbour_is_struck)
{
    commit(m_area, 2 * LENGTH);
    ASSERT_EQ(0, mprotect(m_area + LENGTH, LENGTH, PROT_READ));
    use(m_area);
    use(m_area + LENGTH);
    EXPECT_TRUE(is_hit(m_area + LENGTH));
    EXPECT_TRUE(is_watched(m_area + LENGTH));
    unmap(m_area + LENGTH);
    map(m_area + LENGTH, MAP_FIXED_NOREPLACE);
    EXPECT_TRUE(is_hit(m_area));
    EXPECT_FALSE(is_hit(m_area + LENGTH));
}

/* As the stub tells of munmap(): nothing is registered nor watched any more, so
 * that the thread waits for nobody */
TEST_F(test_monitor_mappings, unmapped_as_the_stub_sees_it)
{
    commit(m_area, 2 * LENGTH);
    use(m_area);
    use(m_area + LENGTH);
    uct_helper_calls.unmap(m_area, LENGTH);
    EXPECT_FALSE(is_watched(m_area));
    EXPECT_TRUE(is_watched(m_area + LENGTH));
    unmap(m_area);
    EXPECT_TRUE(is_hit(m_area + LENGTH));
    map(m_area, MAP_FIXED_NOREPLACE);
    EXPECT_FALSE(is_hit(m_area));
}

TEST_F(test_monitor_mappings, refused_unmapping)
{
    commit(m_area, 2 * LENGTH);
    use(m_area);
    uct_helper_calls.unmap(m_area, LENGTH);
    uct_helper_calls.mapped(m_area, LENGTH);
    EXPECT_TRUE(is_watched(m_area));
    EXPECT_EQ(2, count());
    EXPECT_TRUE(is_one(m_area, 2 * LENGTH));
}

/* It would take longer than the reader does */
TEST_F(test_monitor_mappings, much_is_unmapped_while_it_is_watched)
{
    const size_t length = 64ul << 20;
    char *large         = (char*)mmap(far_place(length), length,
                              PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                              0);

    ASSERT_NE(MAP_FAILED, (void*)large);
    use(large);
    uct_helper_calls.unmap(large, length);
    EXPECT_TRUE(is_watched(large));
    unmap(large, length);
    map(large, MAP_FIXED_NOREPLACE);
    EXPECT_FALSE(is_hit(large));
    unmap(large);
}

/* What was mapped beside what is watched is known: nothing is asked, nor watched,
 * by its first use. Without the descriptor it could not be. The event of what lay
 * there before may still be under way, and then it is not known: once more. */
TEST_F(test_monitor_mappings, mapped_beside_what_is_watched_is_known)
{
    const int not_known = 77;
    unsigned attempts   = 0;
    int outcome;

    close();
    if (!can_ask()) {
        GTEST_SKIP() << "this kernel has no PROCMAP_QUERY";
    }
    do {
        outcome = in_child([this] {
            attach();
            for (int i = 0; i < 2; ++i) {
                map_over(m_area + 3 * i * LENGTH);
                memset(m_area + 3 * i * LENGTH, 1, LENGTH);
                use(m_area + 3 * i * LENGTH);
                map_over(m_area + (3 * i + 1) * LENGTH);
                memset(m_area + (3 * i + 1) * LENGTH, 1, LENGTH);
            }
            ::close(find_userfaultfd());
            use(m_area + LENGTH);
            bool is_known = is_hit(m_area + LENGTH);
            unmap(m_area + 4 * LENGTH); /* is still watched */
            map(m_area + 4 * LENGTH, MAP_FIXED_NOREPLACE);
            expect_not_kept(m_area + 4 * LENGTH);
            close();
            return HasFailure() ? 1 : is_known ? 0 : not_known;
        });
    } while ((outcome == not_known) && (++attempts < 50));
    EXPECT_EQ(0, outcome);
}

/* Whoever tells of the event. Without the descriptor nothing else can be kept. Who
 * unmaps goes on when the reader has shut the gate, and a use is let through when it has
 * passed the event on. The helper takes no step, for it probes the hooks by events. */
TEST_F(test_monitor_mappings, learned_before_an_event)
{
    close();
    EXPECT_EQ(0, in_child([this] {
        const uintptr_t start = (uintptr_t)m_area;

        attach();
        commit(m_area, 4 * LENGTH);
        use(m_area + 3 * LENGTH);
        use(m_buffer);
        uct_helper_calls.discard(m_area, 3 * LENGTH);
        ::close(find_userfaultfd());

        EXPECT_TRUE(ucs_thread_hold());
        uint64_t number = uct_helper_events_number();
        uct_helper_calls.discard(m_area + 2 * LENGTH, LENGTH);
        uct_helper_events_learn(number, start, start + LENGTH);
        expect_not_kept(m_area);

        number = uct_helper_events_number();
        unmap(m_area + 2 * LENGTH);
        use(m_buffer);
        uct_helper_events_learn(number, start + LENGTH, start + 2 * LENGTH);
        expect_not_kept(m_area + LENGTH);
        ucs_thread_release();
        close();
        return HasFailure();
    }));
}

TEST_F(test_monitor_mappings, near_the_limit_nothing_is_watched)
{
    log_capture log;

    commit(m_area);
    use(m_area);
    EXPECT_TRUE(is_hit(m_area));
    EXPECT_TRUE(is_watched(m_area));
    /* It is time to count. No step is just counting: it would forget that it does. */
    EXPECT_TRUE(ucs_thread_hold());
    uct_helper_trust_set_limit(1);
    uct_helper_trust_forget();
    ucs_thread_release();
    char *other = map(far_place(LENGTH));
    const time_t soon = time(nullptr) + 20;
    while (log.lines().empty() && (time(nullptr) < soon)) {
        use(other);
        usleep(1000);
    }
    expect_dropped(other);
    expect_dropped(m_area);
    EXPECT_EQ(1u, log.lines().size());
    for (const auto &line : log.lines()) {
        EXPECT_NE(std::string::npos, line.find("vm.max_map_count=1 ")) << line;
    }
    for (int i = 0; (i < 10000) && is_watched(m_area); ++i) {
        usleep(1000);
    }
    EXPECT_FALSE(is_watched(m_area));

    /* When there is room again it is watched before it is kept */
    uct_helper_trust_set_limit(0);
    const time_t end = time(nullptr) + 20;
    while (!is_hit(m_area) && (time(nullptr) < end)) {
        usleep(10000);
    }
    EXPECT_TRUE(is_hit(m_area));
    EXPECT_TRUE(is_watched(m_area));
    unmap(other);
    close();
    uct_helper_trust_forget();
}

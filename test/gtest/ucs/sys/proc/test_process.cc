/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/ib/helper_md/decorator_fixture.h>
#include <uct/ib/helper_md/device/mapping.h>
#include <uct/ib/helper_md/watch/held_lock.h>
#include <uct/ib/helper_md/log_capture.h>

#include <ucs/sys/mem/maps.h>

#include <atomic>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/syscall.h>

/* Unmaps inside fork(), after every prepare handler of the helper has run:
 * those that are registered first run last */
static std::function<void()> test_last_prepare;

__attribute__((constructor)) static void test_process_register(void)
{
    pthread_atfork([]() {
        if (test_last_prepare) {
            test_last_prepare();
        }
    }, nullptr, nullptr);
}

class test_process : public test_decorator {
protected:
    void start(fake_lower &lower,
               ucs_regcache_policy_t policy = UCS_REGCACHE_POLICY_LEAVE_PINNED)
    {
        m_config.policy = policy;
        attach(lower);
    }

    /* A child without fork handlers: it finds every lock as it was. Exit code
     * as of in_child(). */
    static int in_raw_child_at_once(const std::function<int()> &function)
    {
        pid_t pid = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr,
                            nullptr);

        if (pid == 0) {
            alarm(10);
            _exit(function());
        }
        return wait_for_child(pid);
    }

    /* The same while no other thread holds any */
    static int in_raw_child(const std::function<int()> &function)
    {
        wait_for_quiet();
        return in_raw_child_at_once(function);
    }

    /* The helper is inside a registration of m_buffer, at the gate. Returns
     * zero if it never came there. */
    bool bring_helper_to_gate(fake_lower &lower)
    {
        const time_t end = time(nullptr) + 20;

        while (time(nullptr) < end) {
            for (int i = 0; i < 6; ++i) {
                usleep(20000); /* the period of the uses, to be learned */
                EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, m_buffer,
                                                   TEST_LENGTH)));
            }
            lower.shut_gate(m_buffer);
            for (int i = 0; (i < 60) && (lower.at_gate() == 0); ++i) {
                usleep(1000);
            }
            if (lower.at_gate() > 0) {
                return true;
            }
            lower.open_gate();
        }
        return false;
    }
};

TEST_F(test_process, fork_waits_until_the_helper_is_out_of_the_domain)
{
    start(lower, UCS_REGCACHE_POLICY_PAPER);
    ASSERT_TRUE(bring_helper_to_gate(lower));

    /* Lets the helper go on as soon as fork() waits for it, or does not */
    std::atomic<bool> is_forked{false};
    pid_t forker = syscall(SYS_gettid);
    std::thread opener([&]() {
        while (!is_forked && (thread_state(forker) != 'S')) {
            std::this_thread::yield();
        }
        lower.open_gate();
    });
    pid_t pid = fork();
    if (pid == 0) {
        alarm(10);
        _exit(lower.at_gate() != 0);
    }
    is_forked = true;
    EXPECT_EQ(0, wait_for_child(pid)) << "the helper was inside at the fork";
    opener.join();
    close(lower);
    EXPECT_EQ(0u, lower.live_count());
}

/* A signal handler's, whose thread has what the helper waits for there */
TEST_F(test_process, fork_does_not_wait_for_ever)
{
    EXPECT_EQ(0, in_child([&]() {
        fake_lower lower;

        start(lower, UCS_REGCACHE_POLICY_PAPER);
        if (!bring_helper_to_gate(lower) ||
            (in_child([]() { return 5; }) != 5)) {
            return 1;
        }
        lower.open_gate();
        usleep(10000);
        /* The helper steps on, and nothing is left held */
        dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
        if (in_child([]() { return 5; }) != 5) {
            return 2;
        }
        close(lower);
        return lower.live_count() == 0 ? 0 : 3;
    }));
}

TEST_F(test_process, exit_does_not_wait_for_ever)
{
    EXPECT_EQ(5, in_child([&]() {
        fake_lower &lower = *new fake_lower; /* nothing ends what waits there */

        start(lower, UCS_REGCACHE_POLICY_PAPER);
        if (!bring_helper_to_gate(lower)) {
            return 1;
        }
        exit(5);
    }));
}

TEST_F(test_process, unmapping_inside_fork_strikes_at_once)
{
    const unsigned count = 40;
    std::vector<void*> buffers;

    start(lower);
    for (unsigned i = 0; i < count; ++i) {
        buffers.push_back(map(nullptr));
        EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, buffers[i], TEST_LENGTH)));
    }
    uint64_t struck   = 0;
    test_last_prepare = [&]() {
        ucs_regcache_stats_t stats;
        for (void *buffer : buffers) {
            munmap(buffer, TEST_LENGTH);
        }
        ucs_regcache_stats(uct_helper_md_cache(lower.md()), 0, &stats);
        struck = stats.invalidated;
    };
    EXPECT_EQ(0, in_child([]() { return 0; }));
    test_last_prepare = nullptr;
    EXPECT_EQ(count, struck);
    for (void *buffer : buffers) {
        ASSERT_EQ(buffer, map(buffer));
        EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, buffer, TEST_LENGTH)));
    }
    EXPECT_EQ(2 * count, lower.reg_count());
    close(lower);
    for (void *buffer : buffers) {
        munmap(buffer, TEST_LENGTH);
    }
}

/* A fork handler of the program's may wait for such a thread: of two handlers the one
 * that is registered first is the last before a fork, and the first afterwards */
TEST_F(test_process, domains_open_and_close_inside_fork)
{
    EXPECT_EQ(0, in_child([&]() {
        fake_lower lower;

        alarm(10);
        start(lower, UCS_REGCACHE_POLICY_PAPER);
        dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
        test_last_prepare = [&]() {
            std::thread([&]() {
                fake_lower other;

                attach(other);
                dereg(other, reg(other, m_buffer, TEST_LENGTH));
                close(other);
                close(lower);
            }).join();
        };
        if (in_child([]() { return 5; }) != 5) {
            return 1;
        }
        test_last_prepare = nullptr;
        return HasFailure() || (lower.live_count() > 0) ? 2 : 0;
    }));
}

/* Its helper steps: no fork is under way there */
TEST_F(test_process, forked_child_has_a_helper_of_its_own)
{
    start(lower, UCS_REGCACHE_POLICY_PAPER);
    EXPECT_EQ(0, in_child([&]() {
        fake_lower own;

        alarm(10);
        start(own, UCS_REGCACHE_POLICY_PAPER);
        if (!bring_helper_to_gate(own)) {
            return 1;
        }
        own.open_gate();
        close(own);
        return 0;
    }));
}

/* A thread of the parent has the lock: the child's munmap() must not ask for
 * it */
TEST_F(test_process, raw_child_unmaps_while_the_parent_holds_the_lock)
{
    start(lower);
    uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH);
    std::atomic<int> phase{0};
    std::thread owner([&]() {
        with_index_lock([&phase]() {
            phase = 1;
            while (phase != 2) {
                std::this_thread::yield();
            }
        });
    });
    while (phase != 1) {
        std::this_thread::yield();
    }
    EXPECT_EQ(0, in_raw_child_at_once([&]() {
        return munmap(m_buffer, TEST_LENGTH) != 0;
    }));
    phase = 2;
    owner.join();
    EXPECT_TRUE(lower.is_live(memh));
    EXPECT_EQ(UCS_OK, dereg(lower, memh));
    EXPECT_EQ(memh, reg(lower, m_buffer, TEST_LENGTH));
    EXPECT_EQ(UCS_OK, dereg(lower, memh));
}

/* Its first call may be any of the three */
TEST_F(test_process, raw_child_deregisters_first)
{
    start(lower, UCS_REGCACHE_POLICY_ON_DEMAND);
    uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH);
    EXPECT_EQ(0, in_raw_child([&] {
        return (dereg(lower, memh) == UCS_OK) && lower.is_live(memh) ? 0 : 1;
    }));
    EXPECT_EQ(UCS_OK, dereg(lower, memh));
    EXPECT_EQ(0u, lower.live_count());
}

TEST_F(test_process, raw_child_goes_straight_down)
{
    start(lower, UCS_REGCACHE_POLICY_PAPER);
    uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH);
    EXPECT_TRUE(uct_helper_md_has_thread(lower.md()));

    EXPECT_EQ(0, in_raw_child([&] {
        int error = goes_straight_down(lower, memh);

        ops(lower)->close(lower.md());
        return (lower.close_count() == 1) ? error : 4;
    }));

    EXPECT_TRUE(uct_helper_md_has_thread(lower.md()));
    EXPECT_TRUE(lower.is_live(memh));
    EXPECT_EQ(UCS_OK, dereg(lower, memh));
    close(lower);
    EXPECT_EQ(0u, lower.live_count());
}

TEST_F(test_process, raw_child_closes_without_the_helper)
{
    start(lower, UCS_REGCACHE_POLICY_PAPER);
    EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, m_buffer, TEST_LENGTH)));
    EXPECT_EQ(0, in_raw_child([&] {
        ops(lower)->close(lower.md());
        return lower.close_count() - 1;
    }));
}

#if !defined(__SANITIZE_ADDRESS__)
/* exit() must not wait for a thread that is not there, nor report. (A leak
 * checker would, at exit, stop threads that are not there.) */
TEST_F(test_process, raw_child_exits)
{
    char path[] = "/tmp/test_process.XXXXXX";
    int fd      = mkstemp(path);

    ASSERT_GE(fd, 0);
    ::close(fd);
    unlink(path);
    EXPECT_EQ(0, in_child([&] {
        m_config.report.kind = UCT_HELPER_REPORT_JSON;
        strcpy(m_config.report.path, path);
        start(lower, UCS_REGCACHE_POLICY_PAPER);
        dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
        if (in_raw_child([]() -> int {
                alarm(3); /* a thread's end is waited for 5 s */
                exit(3);
            }) != 3) {
            return 1;
        }
        return (::access(path, F_OK) == 0) ? 2 : 0;
    }));
    EXPECT_EQ(0, ::access(path, F_OK)) << "the parent has not reported";
    unlink(path);
}
#endif

TEST_F(test_process, raw_child_has_a_helper_of_its_own)
{
    start(lower, UCS_REGCACHE_POLICY_PAPER);
    EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, m_buffer, TEST_LENGTH)));
    EXPECT_EQ(0, in_raw_child([&] {
        fake_lower own;

        if (uct_helper_md_attach(own.md(), "own0", &m_config) != UCS_OK) {
            return 1;
        }
        dereg(own, reg(own, m_buffer, TEST_LENGTH));
        if (!uct_helper_md_has_thread(own.md())) {
            return 2;
        }
        own.await_dereg(1);
        /* Events are its own, too */
        uct_mem_h memh = reg(own, m_buffer, TEST_LENGTH);
        munmap(m_buffer, TEST_LENGTH);
        map(m_buffer);
        uct_mem_h other = reg(own, m_buffer, TEST_LENGTH);
        if (memh == other) {
            return 3;
        }
        dereg(own, memh);
        dereg(own, other);
        /* And so is its child */
        if (in_raw_child([&]() {
                uct_mem_h third = reg(own, m_buffer, TEST_LENGTH);
                return (dereg(own, third) == UCS_OK) ? 5 : 6;
            }) != 5) {
            return 4;
        }
        ops(own)->close(own.md());
        return (own.live_count() == 0) ? 0 : 7;
    }));
}

/*
 * A domain that keeps what it registers from children, as rdma-core does where
 * the kernel does not copy pinned pages at fork: pages are counted, the first
 * registration of a page marks it and the last deregistration unmarks it
 */

class marking_lower : public fake_lower {
public:
    marking_lower() : fake_lower("ib")
    {
        on_reg = [this](void *address, size_t length) {
            return mark(address, length, 1, MADV_DONTFORK);
        };
        on_dereg = [this](void *address, size_t length) {
            mark(address, length, -1, MADV_DOFORK);
        };
    }

private:
    ucs_status_t mark(void *address, size_t length, int change, int advice)
    {
        uintptr_t size = sysconf(_SC_PAGESIZE);
        uintptr_t page = (uintptr_t)address & ~(size - 1);

        for (; page < (uintptr_t)address + length; page += size) {
            int &count = m_pages[page];
            count     += change;
            if ((count == ((advice == MADV_DONTFORK) ? 1 : 0)) &&
                (madvise((void*)page, size, advice) != 0) &&
                (advice == MADV_DONTFORK)) {
                count -= change;
                return UCS_ERR_IO_ERROR;
            }
        }
        return UCS_OK;
    }

    std::map<uintptr_t, int> m_pages;
};

class test_marks : public test_process,
                   public ::testing::WithParamInterface<int> {
protected:
    void SetUp() override
    {
        test_process::SetUp();
        if (!IsSkipped()) {
            log_capture log;
            start(m_lower, ucs_regcache_policy_t(GetParam()));
        }
    }

    void TearDown() override
    {
        if (!IsSkipped()) {
            close(m_lower);
            EXPECT_EQ(0u, m_lower.live_count());
        }
        test_process::TearDown();
    }

    void use(void *address, size_t length)
    {
        EXPECT_EQ(UCS_OK, dereg(m_lower, reg(m_lower, address, length)));
    }

    /* Whether a child has no copy of the page */
    static bool is_marked(void *address)
    {
        std::string flags = mapping_of(address).flags;

        EXPECT_NE("", flags) << address << " is not mapped";
        return flags.find(" dc") != std::string::npos;
    }

    marking_lower m_lower;
};

TEST_P(test_marks, child_reads_the_neighbour_on_the_page)
{
    char *bytes = (char*)m_buffer;
    size_t page = sysconf(_SC_PAGESIZE);

    /* Large and small buffers that end, and begin, within a page */
    bytes[page - 1]           = 42;
    bytes[page + 40 * 1024]   = 43;
    use(bytes + page + 100, 40000);
    use(bytes + 100, 200);
    for (size_t offset = 0; offset < TEST_LENGTH; offset += page) {
        EXPECT_FALSE(is_marked(bytes + offset));
    }
    EXPECT_EQ(0, in_raw_child([&]() {
        return (bytes[page - 1] == 42) && (bytes[page + 40 * 1024] == 43) &&
               (bytes[page + 99] == 0) && (bytes[99] == 0) ? 0 : 1;
    }));
}

TEST_P(test_marks, freed_memory_leaves_no_mark_for_its_next_owner)
{
    int reused = 0;

    for (int i = 0; i < 10; ++i) {
        use(m_buffer, TEST_LENGTH);
        munmap(m_buffer, TEST_LENGTH);
        void *next = mmap(m_buffer, TEST_LENGTH, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                          0);
        if (next == MAP_FAILED) { /* a thread's allocator was faster */
            m_buffer = map(nullptr);
            continue;
        }
        ++reused;
        EXPECT_FALSE(is_marked(m_buffer));
        uct_mem_h memh = reg(m_lower, m_buffer, TEST_LENGTH);
        /* What is in use must have its mark, or a fork takes its pages */
        EXPECT_TRUE(is_marked(m_buffer));
        EXPECT_EQ(UCS_OK, dereg(m_lower, memh));
    }
    EXPECT_GT(reused, 0);
}

TEST_P(test_marks, memory_that_moves_takes_no_mark_along)
{
    use(m_buffer, TEST_LENGTH);
    void *moved = mremap(m_buffer, TEST_LENGTH, 16 * TEST_LENGTH,
                         MREMAP_MAYMOVE);
    ASSERT_NE(MAP_FAILED, moved);
    EXPECT_FALSE(is_marked(moved));
    munmap(moved, 16 * TEST_LENGTH);
    m_buffer = nullptr;
}

TEST_P(test_marks, mappings_do_not_multiply)
{
    const size_t page = sysconf(_SC_PAGESIZE), pages = 1000;
    char *bytes       = (char*)mmap(nullptr, pages * page,
                                    PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ASSERT_NE(MAP_FAILED, bytes);
    long before = ucs_maps_count(0, UINTPTR_MAX);
    for (size_t i = 0; i < pages; i += 2) {
        use(bytes + i * page, page);
    }
    EXPECT_NEAR(before, ucs_maps_count(0, UINTPTR_MAX), 4);
    munmap(bytes, pages * page);
}

/* Registered memory that cannot be marked (huge pages, on older rdma-core):
 * the use is told what it would have been told without us, nothing else is */
TEST_P(test_marks, what_cannot_be_marked_is_refused_quietly)
{
    auto marking = m_lower.on_reg;
    void *huge   = map(nullptr);
    uct_mem_h memh;
    log_capture log;

    m_lower.on_reg = [&](void *address, size_t length) {
        return (address == huge) ? UCS_ERR_IO_ERROR : marking(address, length);
    };
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(UCS_ERR_IO_ERROR,
                  ops(m_lower)->mem_reg(m_lower.md(), huge, TEST_LENGTH, access,
                                        &memh));
        use(m_buffer, TEST_LENGTH);
    }
    EXPECT_EQ(0u, log.lines().size());
    munmap(huge, TEST_LENGTH);
}

INSTANTIATE_TEST_SUITE_P(
        policies, test_marks,
        ::testing::Values(int(UCS_REGCACHE_POLICY_PAPER),
                          int(UCS_REGCACHE_POLICY_LEAVE_PINNED),
                          int(UCS_REGCACHE_POLICY_ON_DEMAND),
                          int(UCS_REGCACHE_POLICY_LRU)));

TEST_F(test_process, marking_domain_is_told_in_one_line)
{
    log_capture log;
    marking_lower marking;
    fake_lower plain("ib");

    start(marking);
    ASSERT_EQ(1u, log.lines().size());
    EXPECT_NE(std::string::npos, log.lines()[0].find("MADV_DONTFORK"));
    start(plain);
    EXPECT_EQ(1u, log.lines().size());
    EXPECT_EQ(0u, plain.live_count());
    EXPECT_EQ(UCS_OK, dereg(plain, reg(plain, m_buffer, TEST_LENGTH)));
    EXPECT_EQ(1u, plain.live_count()) << "a domain without marks is kept short";
    close(marking);
    close(plain);
}

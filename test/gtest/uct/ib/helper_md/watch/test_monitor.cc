/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "held_lock.h"
#include "monitor_fixture.h"

#include <uct/ib/test_paths.h>

#include <ucs/sys/proc/process.h>

#include <atomic>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <liburing.h>
#include <poll.h>
#include <sys/wait.h>

/*
 * What the kernel tells. The ways of test/oracle/oracle_disturb.c that it tells of
 * are not written here once more.
 */

TEST_F(test_monitor, part_of_a_buffer)
{
    expect_struck([this] {
        char *part = m_buffer + LENGTH - 4096;
        unmap(part, 4096);
        ASSERT_EQ((void*)part,
                  mmap(part, 4096, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                       0));
    });
}

TEST_F(test_monitor, mremap_onto)
{
    expect_struck([this] {
        char *other = map();
        EXPECT_EQ(m_buffer, (char*)syscall(SYS_mremap, other, LENGTH, LENGTH,
                                           MREMAP_MAYMOVE | MREMAP_FIXED,
                                           m_buffer));
    });
}

TEST_F(test_monitor, mremap_away)
{
    expect_struck([this] {
        char *other = map();
        EXPECT_EQ(other, (char*)syscall(SYS_mremap, m_buffer, LENGTH, LENGTH,
                                        MREMAP_MAYMOVE | MREMAP_FIXED, other));
        map(m_buffer, MAP_FIXED_NOREPLACE);
        unmap(other);
    });
}

TEST_F(test_monitor, madvise_by_system_call)
{
    for (int advice : {MADV_DONTNEED, MADV_FREE}) {
        SCOPED_TRACE(advice);
        expect_struck([&] {
            EXPECT_EQ(0, syscall(SYS_madvise, m_buffer, LENGTH, advice));
        });
    }
}

TEST_F(test_monitor, madvise_by_io_uring)
{
    struct io_uring ring;
    struct io_uring_cqe *cqe;

    if (io_uring_queue_init(2, &ring, 0) != 0) {
        GTEST_SKIP() << "io_uring is refused here";
    }
    expect_struck([&] {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
        io_uring_prep_madvise(sqe, m_buffer, LENGTH, MADV_DONTNEED);
        ASSERT_EQ(1, io_uring_submit(&ring));
        ASSERT_EQ(0, io_uring_wait_cqe(&ring, &cqe));
        EXPECT_EQ(0, cqe->res);
        io_uring_cqe_seen(&ring, cqe);
    });
    io_uring_queue_exit(&ring);
}

TEST_F(test_monitor, dlclose_of_a_buffer)
{
    unsigned attempts = 0;
    char *page, *again;

    attach();
    do {
        void *module = dlopen(TEST_BSS_MODULE, RTLD_NOW);
        if (module == nullptr) {
            GTEST_SKIP() << dlerror();
        }
        char *buffer = (char*)dlsym(module, "test_bss_buffer");
        page         = (char*)(((uintptr_t)buffer + 16383) & ~4095ul);
        memset(page, 1, LENGTH);
        use(page);
        ASSERT_TRUE(is_hit(page));
        dlclose(module);
        again = try_map(page, MAP_FIXED_NOREPLACE);
        /* Or another thread's mapping was there first */
    } while ((again == nullptr) && (++attempts < 20));
    ASSERT_EQ(page, again); /* it is gone */
    EXPECT_FALSE(is_hit(page));
    unmap(page);
}

TEST_F(test_monitor, unmapped_by_a_child_that_shares_the_memory)
{
    expect_struck([this] {
        pid_t pid = vfork();
        if (pid == 0) {
            syscall(SYS_munmap, m_buffer, LENGTH);
            _exit(0);
        }
        waitpid(pid, nullptr, 0);
        map(m_buffer, MAP_FIXED_NOREPLACE);
    });
}

/* Many threads unmap, map again at the same place and use: what each finds
 * after its own unmapping is never what was there before. */
TEST_F(test_monitor, each_thread_finds_its_own_unmapping_done)
{
    std::atomic<unsigned> stale{0};
    std::vector<std::thread> threads;

    attach();
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            char *buffer = map();
            for (int i = 0; i < 200; ++i) {
                uct_mem_h before = reg(buffer);
                dereg(before);
                map(buffer, MAP_FIXED); /* unmaps what is there */
                uct_mem_h after = reg(buffer);
                stale += (after == before);
                dereg(after);
            }
            unmap(buffer);
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(0u, stale);
}

/*
 * What is watched lives as before
 */

/* The pages of a part would be a mapping of their own, and then realloc() by
 * mremap() of the whole would fail */
TEST_F(test_monitor, mappings_stay_whole)
{
    char *moved;

    attach();
    use(m_buffer + 16384, 16384 + 4096);
    EXPECT_TRUE(is_hit(m_buffer + 16384, 16384 + 4096));
    moved = (char*)syscall(SYS_mremap, m_buffer, LENGTH, 2 * LENGTH,
                           MREMAP_MAYMOVE, 0);
    ASSERT_NE(MAP_FAILED, (void*)moved) << strerror(errno);
    EXPECT_EQ(1, moved[LENGTH - 1]);
    unmap(moved, 2 * LENGTH);
    m_buffer = nullptr;
}

TEST_F(test_monitor, nothing_is_watched_after_the_last_domain)
{
    attach();
    use(m_buffer);
    EXPECT_NE(0, find_thread(UCT_HELPER_MONITOR_THREAD_NAME));
    EXPECT_NE(-1, find_userfaultfd());
    close();
    EXPECT_EQ(0, find_thread(UCT_HELPER_MONITOR_THREAD_NAME));
    EXPECT_EQ(-1, find_userfaultfd());
    unmap(m_buffer);
    m_buffer = nullptr;
}

TEST_F(test_monitor, two_domains_share_a_reader)
{
    fake_lower other;

    attach();
    ASSERT_EQ(UCS_OK, uct_helper_md_attach(other.md(), "fake1", &m_config));
    use(m_buffer);
    uct_abi_md(other.md())->ops->close(other.md());
    unmap(m_buffer);
    map(m_buffer, MAP_FIXED_NOREPLACE);
    EXPECT_FALSE(is_hit(m_buffer));
}

TEST_F(test_monitor, reader_takes_no_signal)
{
    std::string line;

    attach();
    use(m_buffer);
    map(m_buffer, MAP_FIXED); /* it has read once: it has its own mask */
    pid_t tid = find_thread(UCT_HELPER_MONITOR_THREAD_NAME);
    ASSERT_NE(0, tid);
    std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/status");
    while (std::getline(file, line) && (line.compare(0, 7, "SigBlk:") != 0)) {
    }
    /* All but those that cannot be blocked and glibc's own two */
    EXPECT_EQ(0xfffffffffffbfeffull,
              std::stoull(line.substr(7), nullptr, 16) | 0x180000000ull) <<
            line;
}

/* A thread that holds a cache's lock may unmap, as a signal handler can. It
 * must not wait for a reader that waits for this lock. */
TEST_F(test_monitor, unmapping_with_the_index_lock_held)
{
    EXPECT_EQ(0, in_child([this] {
        attach();
        use(m_buffer);
        with_index_lock([this] {
            for (size_t i = 0; i < LENGTH; i += 4096) {
                syscall(SYS_munmap, m_buffer + i, 4096);
            }
        });
        map(m_buffer, MAP_FIXED_NOREPLACE);
        return is_hit(m_buffer) ? 2 : 0;
    }));
}

TEST_F(test_monitor, forked_child_has_no_part_in_it)
{
    attach();
    use(m_buffer);
    EXPECT_EQ(0, in_child([this] {
        unmap(m_buffer);
        return (find_userfaultfd() == -1) ? 0 : 1;
    }));
    EXPECT_TRUE(is_hit(m_buffer));
}

/* A program that closes what it does not know. The reader has a copy that
 * nobody can close: what is watched stays so, and what is new is not kept. */
TEST_F(test_monitor, a_closed_descriptor_costs_what_is_new)
{
    EXPECT_EQ(0, in_child([this] {
        attach();
        use(m_buffer);
        ::close(find_userfaultfd());
        EXPECT_TRUE(is_hit(m_buffer));
        map(m_buffer, MAP_FIXED);
        EXPECT_FALSE(is_hit(m_buffer));
        expect_dropped(m_buffer);
        close();
        return HasFailure();
    }));
}

/* Nor does it read from, write to or close what the program puts in its place
 * */
TEST_F(test_monitor, a_replaced_descriptor_is_left_alone)
{
    EXPECT_EQ(0, in_child([this] {
        static const char text[] = "the program's own";
        char buffer[sizeof(text)] = "";
        int pipe_fds[2];

        attach();
        use(m_buffer);
        int fd = find_userfaultfd();
        EXPECT_EQ(0, pipe(pipe_fds));
        EXPECT_EQ(fd, dup2(pipe_fds[0], fd));
        EXPECT_EQ((ssize_t)sizeof(text),
                  write(pipe_fds[1], text, sizeof(text)));
        map(m_buffer, MAP_FIXED);
        expect_dropped(m_buffer);
        close();
        EXPECT_EQ((ssize_t)sizeof(text), read(fd, buffer, sizeof(buffer)));
        EXPECT_STREQ(text, buffer);
        return HasFailure();
    }));
}

/* A pipe's other end would never be told that the last reader has gone */
TEST_F(test_monitor, reader_holds_no_descriptor_of_the_program)
{
    int pipe_fds[2];

    ASSERT_EQ(0, pipe(pipe_fds));
    attach();
    use(m_buffer);
    ::close(pipe_fds[1]);
    struct pollfd end = {pipe_fds[0], POLLIN, 0};
    EXPECT_EQ(1, poll(&end, 1, 10000));
    EXPECT_NE(0, end.revents & POLLHUP);
    ::close(pipe_fds[0]);
}

/* A child without fork handlers asks about its own memory, once it has its
 * number: what its parent kept open shows the parent's */
TEST_F(test_monitor, child_forgets_what_shows_its_parents_memory)
{
    uct_helper_range_t range;
    int status = -1;

    if (uct_helper_range_find(UCT_HELPER_RANGE_WAY_QUERY, (uintptr_t)m_buffer,
                              (uintptr_t)m_buffer + LENGTH, &range) ==
        UCT_HELPER_RANGE_UNKNOWN) {
        GTEST_SKIP() << "this kernel has no PROCMAP_QUERY";
    }
    attach();
    wait_for_quiet();
    pid_t pid = syscall(SYS_fork);
    if (pid == 0) {
        ucs_process_id();
        syscall(SYS_munmap, m_buffer, LENGTH);
        _exit(uct_helper_range_find(UCT_HELPER_RANGE_WAY_QUERY,
                                    (uintptr_t)m_buffer,
                                    (uintptr_t)m_buffer + LENGTH, &range) !=
              UCT_HELPER_RANGE_HOLE);
    }
    ASSERT_EQ(pid, waitpid(pid, &status, 0));
    EXPECT_EQ(0, status);
}

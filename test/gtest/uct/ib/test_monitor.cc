/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "fake_lower.h"
#include "far_place.h"
#include "log_capture.h"
#include "quiet_fork.h"

#include <uct/ib/helper_md/engine_int.h>
#include <uct/ib/helper_md/helper_md.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <liburing.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_DONTNEED_LOCKED
#  define MADV_DONTNEED_LOCKED 24
#endif

#ifndef TEST_BSS_MODULE
#  define TEST_BSS_MODULE ""
#endif

/* The kernel's events, with a domain that counts registrations. All calls that
 * change mappings are raw, so that UCM's hooks could not see them either. */
class test_monitor : public ::testing::Test {
protected:
    static constexpr size_t LENGTH = 64ul << 10;

    void SetUp() override
    {
        const char *reason = "";

#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "ThreadSanitizer maps where a test has just unmapped";
#endif
        if (uct_helper_monitor_start(&reason) != UCS_OK) {
            GTEST_SKIP() << reason;
        }
        uct_helper_monitor_stop();
        memset(&m_config, 0, sizeof(m_config));
        m_config.policy      = UCT_HELPER_POLICY_LEAVE_PINNED;
        m_config.monitor     = UCT_HELPER_MONITOR_USERFAULTFD;
        m_config.min_size    = 16384;
        m_config.max_pinned  = SIZE_MAX;
        m_config.node_max_pinned = SIZE_MAX;
        m_config.max_regions = ULONG_MAX;
        /* Whatever else runs on this machine */
        m_config.cpu_policy  = UCT_HELPER_CPU_POLICY_AGGRESSIVE;
        m_buffer             = map();
    }

    void TearDown() override
    {
        if (uct_abi_md(m_lower.md())->ops != m_lower.ops()) {
            close(); /* a test that failed half way costs no other */
        }
        if (m_buffer != nullptr) {
            unmap(m_buffer);
        }
    }

    /* NULL if it cannot be had */
    static char *try_map(void *where, int flags)
    {
        void *address = (void*)syscall(SYS_mmap, where, LENGTH,
                                       PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1l,
                                       0l);
        return (address == MAP_FAILED) ? nullptr :
                                         (char*)memset(address, 1, LENGTH);
    }

    static char *map(void *where = nullptr, int flags = 0)
    {
        char *address = try_map((where == nullptr) ? far_place(LENGTH) : where,
                                flags);
        if (address == nullptr) {
            throw std::system_error(errno, std::generic_category(), "mmap");
        }
        return address;
    }

    static void unmap(void *address, size_t length = LENGTH)
    {
        EXPECT_EQ(0, syscall(SYS_munmap, address, length));
    }

    void attach()
    {
        ASSERT_EQ(UCS_OK, uct_helper_md_attach(m_lower.md(), "fake0",
                                               &m_config));
    }

    void close()
    {
        uct_abi_md(m_lower.md())->ops->close(m_lower.md());
        EXPECT_EQ(0u, m_lower.bad_dereg_count());
        EXPECT_EQ(0u, m_lower.live_count());
    }

    uct_mem_h reg(void *address, size_t length = LENGTH)
    {
        uct_mem_h memh = nullptr;

        EXPECT_EQ(UCS_OK, uct_abi_md(m_lower.md())->ops->mem_reg(
                                  m_lower.md(), address, length,
                                  UCT_MD_MEM_ACCESS_ALL, &memh));
        return memh;
    }

    void dereg(uct_mem_h memh)
    {
        uct_abi_md_mem_dereg_params_t params;

        params.field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH;
        params.memh       = memh;
        EXPECT_EQ(UCS_OK, uct_abi_md(m_lower.md())->ops->mem_dereg(
                                  m_lower.md(), &params));
    }

    void use(void *address, size_t length = LENGTH)
    {
        dereg(reg(address, length));
    }

    /* Nonzero if a use of the range is a hit */
    bool is_hit(void *address, size_t length = LENGTH)
    {
        unsigned before = m_lower.reg_count();

        use(address, length);
        return m_lower.reg_count() == before;
    }

    /* A registration that was kept is gone after @a disturb */
    void expect_struck(const std::function<void()> &disturb)
    {
        attach();
        use(m_buffer);
        ASSERT_TRUE(is_hit(m_buffer));
        disturb();
        EXPECT_FALSE(is_hit(m_buffer));
        EXPECT_TRUE(is_hit(m_buffer));
        close();
    }

    /* What may not be kept is registered for each use and dropped after it */
    void expect_dropped(void *address, size_t length = LENGTH)
    {
        use(address, length);
        EXPECT_EQ(0u, m_lower.live_count());
        EXPECT_FALSE(is_hit(address, length));
        EXPECT_EQ(0u, m_lower.live_count());
    }

    /* Exit code of a child that runs the function within 10 seconds */
    static int in_child(const std::function<int()> &function)
    {
        int status = -1;
        pid_t pid  = quiet_fork();

        if (pid == 0) {
            alarm(10);
            _exit(function());
        }
        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

    /* Thread of this process by name, 0 if there is none */
    static pid_t find_thread(const char *name)
    {
        DIR *dir    = opendir("/proc/self/task");
        pid_t found = 0;

        while (struct dirent *entry = readdir(dir)) {
            std::ifstream file(std::string("/proc/self/task/") +
                               entry->d_name + "/comm");
            std::string comm;
            if (std::getline(file, comm) && (comm == name)) {
                found = atoi(entry->d_name);
            }
        }
        closedir(dir);
        return found;
    }

    static int find_userfaultfd()
    {
        char target[64];

        for (int fd = 0; fd < 1024; ++fd) {
            std::string path = "/proc/self/fd/" + std::to_string(fd);
            ssize_t length   = readlink(path.c_str(), target, sizeof(target));
            if ((length > 0) &&
                (std::string(target, length) == "anon_inode:[userfaultfd]")) {
                return fd;
            }
        }
        return -1;
    }

    fake_lower          m_lower;
    uct_helper_config_t m_config;
    char                *m_buffer = nullptr;
};

/*
 * What the kernel tells
 */

TEST_F(test_monitor, munmap_by_system_call)
{
    expect_struck([this] {
        unmap(m_buffer);
        map(m_buffer, MAP_FIXED_NOREPLACE);
    });
}

TEST_F(test_monitor, map_fixed_by_system_call)
{
    expect_struck([this] { map(m_buffer, MAP_FIXED); });
}

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

TEST_F(test_monitor, mremap_away_and_leave_the_mapping)
{
    expect_struck([this] {
        void *other = (void*)syscall(SYS_mremap, m_buffer, LENGTH, LENGTH,
                                     MREMAP_MAYMOVE | 4 /* DONTUNMAP */,
                                     nullptr);
        ASSERT_NE(MAP_FAILED, other);
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

TEST_F(test_monitor, madvise_locked)
{
    if ((syscall(SYS_madvise, m_buffer, 4096, MADV_DONTNEED_LOCKED) != 0) &&
        (errno == EINVAL)) {
        GTEST_SKIP() << "this kernel has no MADV_DONTNEED_LOCKED";
    }
    expect_struck([this] {
        EXPECT_EQ(0, madvise(m_buffer, LENGTH, MADV_DONTNEED_LOCKED));
    });
}

TEST_F(test_monitor, process_madvise)
{
    struct iovec iov = {m_buffer, LENGTH};
    int pidfd        = syscall(SYS_pidfd_open, getpid(), 0);

    if (syscall(SYS_process_madvise, pidfd, &iov, 1, MADV_DONTNEED, 0) < 0) {
        ::close(pidfd);
        GTEST_SKIP() << "this kernel does not discard by process_madvise";
    }
    expect_struck([&] {
        EXPECT_EQ((long)LENGTH, syscall(SYS_process_madvise, pidfd, &iov, 1,
                                        MADV_DONTNEED, 0));
    });
    ::close(pidfd);
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
            close();
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
    close();
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
    close();
}

/*
 * What is watched lives as before
 */

TEST_F(test_monitor, no_fault_waits)
{
    int ret = in_child([this] {
        char *fresh = (char*)mmap(nullptr, LENGTH, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        attach();
        use(fresh);
        use(m_buffer);
        /* There is nobody who would answer a fault */
        for (size_t i = 0; i < LENGTH; i += 4096) {
            fresh[i]    = fresh[i] + 1;
            m_buffer[i] = m_buffer[i] + 1;
        }
        int fd = open("/dev/zero", O_RDONLY);
        if (read(fd, fresh, LENGTH) != (ssize_t)LENGTH) {
            return 1;
        }
        pid_t pid = fork();
        if (pid == 0) {
            memset(fresh, 3, LENGTH);
            _exit(0);
        }
        memset(fresh, 4, LENGTH);
        waitpid(pid, nullptr, 0);
        return 0;
    });
    EXPECT_EQ(0, ret);
}

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
    close();
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
    close();
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
    close();
}

/* Between fork's handlers the thread holds the locks of all engines. What it
 * unmaps there must not wait for a reader that waits for these locks. */
TEST_F(test_monitor, unmapping_with_the_index_lock_held)
{
    EXPECT_EQ(0, in_child([this] {
        attach();
        use(m_buffer);
        uct_helper_engine_h engine = uct_helper_md_engine(m_lower.md());
        uct_helper_engine_lock(engine);
        for (size_t i = 0; i < LENGTH; i += 4096) {
            syscall(SYS_munmap, m_buffer + i, 4096);
        }
        uct_helper_engine_unlock(engine);
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
    close();
}

/* A program that closes what it does not know: the reader finds out at the next
 * event, and from then on nothing is kept */
TEST_F(test_monitor, a_closed_descriptor_costs_registrations_only)
{
    EXPECT_EQ(0, in_child([this] {
        attach();
        use(m_buffer);
        ::close(find_userfaultfd());
        map(m_buffer, MAP_FIXED);
        while (is_hit(m_buffer)) {
            sched_yield();
        }
        expect_dropped(m_buffer);
        close();
        return HasFailure();
    }));
}

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
    close();
}

TEST_F(test_monitor, stack_of_a_thread_is_dropped_after_use)
{
    attach();
    std::thread([this] {
        char on_stack[LENGTH];
        expect_dropped(on_stack);
    }).join();
    close();
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
    close();
}

/* The lower domain of this test pins nothing, so what is not touched stays out
 * of memory. Once the helper is seen to foresee the uses of one buffer, the same
 * number of uses of an untouched one must all come to a buffer that is not
 * registered. */
TEST_F(test_monitor, helper_brings_no_page_into_memory)
{
    char *untouched = (char*)mmap(nullptr, LENGTH, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned hits   = 0;
    unsigned count  = 0;

    m_config.policy = UCT_HELPER_POLICY_PAPER;
    attach();
    for (count = 0; (count < 5000) && (hits < 5); ++count) {
        hits += is_hit(m_buffer);
        usleep(3000);
    }
    ASSERT_EQ(5u, hits) << "the helper foresees nothing";
    for (hits = 0; count > 0; --count) {
        hits += is_hit(untouched);
        /* A helper that is late keeps what it would not bring back */
        for (int i = 0; (i < 10000) && (m_lower.live_count() > 0); ++i) {
            usleep(100);
        }
        usleep(3000);
    }
    EXPECT_EQ(0u, hits);
    munmap(untouched, LENGTH);
    close();
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
            use(on_stack);
        }).join();
        EXPECT_EQ(before + 1, m_lower.reg_count());
        EXPECT_EQ(0u, m_lower.live_count());
    }
    EXPECT_EQ(buffers[0], buffers[1]);
    close();
}

/* userfaultfd does not see it, UCM's hook of shmat() does */
TEST_F(test_monitor, shmat_remap_with_both)
{
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "UCM's hooks and ThreadSanitizer exclude each other";
#endif
    int id = shmget(IPC_PRIVATE, LENGTH, IPC_CREAT | 0600);

    m_config.monitor = UCT_HELPER_MONITOR_BOTH;
    attach();
    use(m_buffer);
    ASSERT_TRUE(is_hit(m_buffer));
    ASSERT_EQ((void*)m_buffer, shmat(id, m_buffer, SHM_REMAP));
    EXPECT_FALSE(is_hit(m_buffer));
    EXPECT_EQ(0u, m_lower.live_count()); /* and it is shared now */
    shmdt(m_buffer);
    shmctl(id, IPC_RMID, nullptr);
    m_buffer = nullptr;
    close();
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
    close();
}

/*
 * Refused
 */

class test_monitor_refused : public test_monitor {
protected:
    /* Of all system calls only userfaultfd() fails from now on */
    static void refuse(int error)
    {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                     offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
        };
        struct sock_fprog filter = {4, code};

        ASSERT_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        ASSERT_EQ(0, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
    }

    /* @return 0 if the domain works with UCM's hooks, and @a lines were logged
     *         that name the option */
    int fall_back(uct_helper_monitor_t monitor, int error, size_t lines)
    {
        log_capture log;

        refuse(error);
        m_config.monitor = monitor;
        attach();
        use(m_buffer);
        if (!is_hit(m_buffer)) {
            return 1;
        }
        munmap(m_buffer, LENGTH);
        map(m_buffer, MAP_FIXED_NOREPLACE);
        if (is_hit(m_buffer)) {
            return 2;
        }
        if (log.lines().size() != lines) {
            return 3;
        }
        for (auto &line : log.lines()) {
            if (line.find("UCX_MD_HELPER_MONITOR=") == std::string::npos) {
                return 4;
            }
        }
        return testing::Test::HasFailure() ? 5 : 0;
    }
};

TEST_F(test_monitor_refused, falls_back_to_ucm)
{
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "UCM's hooks and ThreadSanitizer exclude each other";
#endif
    for (int error : {ENOSYS, EPERM}) {
        EXPECT_EQ(0, in_child([&] {
            return fall_back(UCT_HELPER_MONITOR_AUTO, error, 0);
        })) << error;
        EXPECT_EQ(0, in_child([&] {
            return fall_back(UCT_HELPER_MONITOR_BOTH, error, 1);
        })) << error;
        EXPECT_EQ(0, in_child([&] {
            return fall_back(UCT_HELPER_MONITOR_USERFAULTFD, error, 1);
        })) << error;
    }
}

/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "decorator_fixture.h"

#include <test/own_proc.h>
#include <uct/door/leader.h>
#include <ucs/sys/proc/deserted.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <new>
#include <sstream>
#include <thread>

#include <dlfcn.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <ucontext.h>

/* What a child tells */
struct test_deserted_told {
    std::atomic<int>  done;     /* workers that came to their end */
    std::atomic<int>  registered; /* by the lower domain, for one worker */
    std::atomic<int>  handlers; /* of exit() */
    std::atomic<bool> is_deaf;  /* when they ran */
};

/**
 * Children whose first thread leaves. It does so from a stack of its own: gtest
 * below it would stop the unwinding.
 */
class test_deserted : public test_decorator {
protected:
    static const int deadline_ms = 10000;

    void SetUp() override
    {
        test_decorator::SetUp();
        m_config.policy = UCS_REGCACHE_POLICY_PAPER;
        void *shared    = mmap(nullptr, sizeof(*told), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, shared);
        told = new (shared) test_deserted_told();
    }

    void TearDown() override
    {
        if (told != nullptr) {
            munmap(told, sizeof(*told));
        }
        test_decorator::TearDown();
    }

    /* In the child's first thread, on its new stack */
    static void leave()
    {
        /* What a look-up that failed has left with this thread, an earlier test's,
         * would be found as a leak when the thread is gone */
        (void)dlerror();
        (void)dlerror();
        body();
        pthread_exit(nullptr);
    }

    /* @return The child's number */
    static pid_t start_child(const std::function<void()> &function)
    {
        static char stack[256 << 10];
        ucontext_t fresh, here;
        pid_t pid = quiet_fork();

        if (pid != 0) {
            return pid;
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        atexit([]() {
            sigset_t blocked;
            pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
            told->is_deaf = sigismember(&blocked, SIGTERM);
            ++told->handlers;
        });
        body = function;
        uct_leader_watch();
        getcontext(&fresh);
        fresh.uc_stack.ss_sp   = stack;
        fresh.uc_stack.ss_size = sizeof(stack);
        makecontext(&fresh, leave, 0);
        swapcontext(&here, &fresh);
        _exit(99);
    }

    /* As wait_for_child(); one that takes too long is killed. SIGALRM would not
     * do: threads that block all signals are what is tested. */
    static int await_child(pid_t pid)
    {
        struct pollfd ended = {(int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0};

        EXPECT_GE(ended.fd, 0);
        if (poll(&ended, 1, deadline_ms) != 1) {
            ADD_FAILURE() << "the process does not end";
            kill(pid, SIGKILL);
        }
        ::close(ended.fd);
        return wait_for_child(pid);
    }

    /* A domain of a child, which never closes it */
    void open()
    {
        lower = new fake_lower();
        attach(*lower);
    }

    void use(void *address)
    {
        dereg(*lower, reg(*lower, address, TEST_LENGTH));
    }

    /* As the program's first thread does it: the helper runs when it leaves */
    void open_and_use()
    {
        uct_leader_on_leave(ucs_deserted_watch);
        open();
        use(m_buffer);
    }

    static void await_leader_is_gone()
    {
        while (thread_state(getpid()) != 'Z') {
            std::this_thread::yield();
        }
    }

    /* How often the thread of this name has gone to sleep, -1: it is not
     * there */
    static long sleeps_of(const char *name)
    {
        pid_t thread = 0;
        long count   = -1;
        std::string line;

        own_proc_threads(name, &thread);
        std::ifstream file("/proc/self/task/" + std::to_string(thread) +
                           "/status");
        while (std::getline(file, line)) {
            sscanf(line.c_str(), "voluntary_ctxt_switches: %ld", &count);
        }
        return count;
    }

    /* Until the thread that looks for others has looked a few times */
    void work_alone()
    {
        long first;

        await_leader_is_gone();
        while ((first = sleeps_of("ucx-helper-end")) < 0) {
            std::this_thread::yield();
        }
        while (sleeps_of("ucx-helper-end") < first + 4) {
            void *buffer = map(nullptr);
            use(buffer);
            use(m_buffer);
            munmap(buffer, TEST_LENGTH);
        }
        ++told->done;
    }

    static std::function<void()> body;
    static test_deserted_told    *told;
    static fake_lower            *lower;
};

std::function<void()> test_deserted::body;
test_deserted_told *test_deserted::told  = nullptr;
fake_lower *test_deserted::lower         = nullptr;

TEST_F(test_deserted, process_ends_when_its_only_thread_leaves)
{
    for (ucs_regcache_policy_t policy :
         {UCS_REGCACHE_POLICY_PREDICT, UCS_REGCACHE_POLICY_PAPER,
          UCS_REGCACHE_POLICY_LEAVE_PINNED, UCS_REGCACHE_POLICY_ON_DEMAND,
          UCS_REGCACHE_POLICY_LRU}) {
        m_config.policy = policy;
        EXPECT_EQ(0, await_child(start_child([&]() {
                      open_and_use();
                  })))
                << ucs_regcache_policy_names[policy];
    }
    EXPECT_EQ(5, told->handlers);
    EXPECT_FALSE(told->is_deaf) << "a handler of exit() cannot be ended";
}

TEST_F(test_deserted, two_domains_do_not_keep_it)
{
    EXPECT_EQ(0, await_child(start_child([&]() {
        open_and_use();
        open();
        use(m_buffer);
    })));
}

#if !defined(__SANITIZE_ADDRESS__)
/* A leak checker needs some, and waits for ever at exit */
TEST_F(test_deserted, no_descriptor_is_needed)
{
    EXPECT_EQ(0, await_child(start_child([&]() {
        const struct rlimit none = {0, 0};
        open_and_use();
        setrlimit(RLIMIT_NOFILE, &none);
    })));
}
#endif

TEST_F(test_deserted, domain_is_closed_before)
{
    EXPECT_EQ(0, await_child(start_child([&]() {
        open_and_use();
        close(*lower);
    })));
}

TEST_F(test_deserted, workers_go_on_and_then_it_ends)
{
    EXPECT_EQ(0, await_child(start_child([&]() {
        open_and_use();
        std::thread([&]() { work_alone(); }).detach();
        std::thread([&]() { work_alone(); }).detach();
    })));
    EXPECT_EQ(2, told->done) << "the process has ended under its threads";
    EXPECT_EQ(1, told->handlers);
}

/* What is known of memory comes from the kernel, by the process's number or by
 * the thread's: the former shows nothing any more, but in a file that was opened
 * before */
TEST_F(test_deserted, memory_is_kept_for_workers)
{
    m_config.policy = UCS_REGCACHE_POLICY_LEAVE_PINNED;
    EXPECT_EQ(0, await_child(start_child([&]() {
        std::thread([&]() {
            await_leader_is_gone();
            open_and_use();
            void *buffer     = map(nullptr);
            unsigned before  = lower->reg_count();
            for (int i = 0; i < 5; ++i) {
                use(buffer);
            }
            told->registered = lower->reg_count() - before;
        }).detach();
    })));
    EXPECT_EQ(1, told->registered);
}

TEST_F(test_deserted, leader_is_cancelled)
{
    EXPECT_EQ(0, await_child(start_child([&]() {
        open_and_use();
        pthread_t leader = pthread_self();
        std::thread([leader]() { pthread_cancel(leader); }).detach();
        for (;;) {
            use(m_buffer);
            pthread_testcancel();
        }
    })));
    EXPECT_EQ(1, told->handlers);
}

/* As the preloaded stub does it that another thread's first domain makes load
 * the helper, when the first thread has left */
TEST_F(test_deserted, leader_never_saw_a_domain)
{
    EXPECT_EQ(0, await_child(start_child([&]() {
        std::thread([&]() {
            await_leader_is_gone();
            open_and_use();
            work_alone();
        }).detach();
    })));
    EXPECT_EQ(1, told->done);
}

TEST_F(test_deserted, signal_ends_the_workers)
{
    pid_t pid = start_child([&]() {
        open_and_use();
        std::thread([&]() {
            await_leader_is_gone();
            told->done = 1;
            for (;;) {
                pause();
            }
        }).detach();
    });

    while ((told->done == 0) && (kill(pid, 0) == 0)) {
        std::this_thread::yield();
    }
    kill(pid, SIGTERM);
    EXPECT_EQ(-SIGTERM, await_child(pid));
}

TEST_F(test_deserted, forked_child_of_a_worker_ends)
{
    EXPECT_EQ(0, await_child(start_child([&]() {
        open_and_use();
        std::thread([&]() {
            await_leader_is_gone();
            told->registered = in_child([&]() {
                use(m_buffer);
                open();
                use(m_buffer);
                return 7;
            });
            ++told->done;
        }).detach();
    })));
    EXPECT_EQ(1, told->done);
    EXPECT_EQ(7, told->registered);
}

/* It finds its parent's threads counted, and none of them here */
TEST_F(test_deserted, forked_child_leaves_as_well)
{
    EXPECT_EQ(0, await_child(start_child([&]() {
        open_and_use();
        pid_t pid = quiet_fork();
        if (pid != 0) {
            told->registered = 100 + await_child(pid);
        }
    })));
    EXPECT_EQ(100, told->registered);
    EXPECT_EQ(2, told->handlers);
}

TEST_F(test_deserted, report_is_written_once)
{
    char path[] = "/tmp/test_deserted.XXXXXX";
    int fd      = mkstemp(path);

    ASSERT_GE(fd, 0);
    m_config.report.kind   = UCT_HELPER_REPORT_TEXT;
    m_config.report.stream = STDERR_FILENO;
    EXPECT_EQ(0, await_child(start_child([&]() {
        dup2(fd, STDERR_FILENO);
        open_and_use();
        std::thread([&]() { work_alone(); }).detach();
    })));
    ::close(fd);
    std::stringstream stream;
    stream << std::ifstream(path).rdbuf();
    unlink(path);

    std::string text(stream.str()), title("ucx-helper-md: host");
    size_t first = text.find(title);
    EXPECT_NE(std::string::npos, first) << text;
    EXPECT_EQ(first, text.rfind(title)) << text;
}

TEST_F(test_deserted, other_threads_are_not_the_first)
{
    static std::atomic<int> calls;

    EXPECT_EQ(0, in_child([]() {
        uct_leader_on_leave([]() { ++calls; });
        std::thread([]() { uct_leader_watch(); }).join();
        return (int)calls;
    }));
}
